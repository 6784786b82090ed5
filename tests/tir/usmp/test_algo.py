"""Buffers placed in pools: no overlap, inside the pools, and how much is needed."""
from __future__ import annotations

import random
from typing import Any, Callable

import pytest

from anchorleg.ir.memory_pools import PoolInfoProperties, WorkspacePoolInfo
from anchorleg.support.errors import ArgumentError
from anchorleg.tir.usmp.algo import greedy_by_conflicts, greedy_by_size, hill_climb
from anchorleg.tir.usmp.utils import BufferInfo

ALGORITHMS = [greedy_by_size, greedy_by_conflicts, hill_climb]
RAM = WorkspacePoolInfo("ram", ["llvm"])


def _buffers(sizes: list[int], conflicts: list[tuple[int, int]], pools: Any = (RAM,), alignment: int = 1) -> list[BufferInfo]:
    made = [BufferInfo(f"b{i}", size, pools, alignment) for i, size in enumerate(sizes)]
    for i, b in enumerate(made):
        b.set_conflicts([made[x if y == i else y] for x, y in conflicts if i in (x, y)])
    return made


def _check(buffers: list[BufferInfo], places: Any) -> int:
    """The height of the plan, after checking that it is one."""
    for b in buffers:
        here = places[b]
        assert here.byte_offset % b.alignment == 0 and here.pool_info in b.pool_candidates
        assert here.pool_info.limit is None or here.byte_offset + b.size_bytes <= here.pool_info.limit
        for other in b.conflicts:
            there = places[other]
            assert (there.pool_info is not here.pool_info or here.byte_offset + b.size_bytes <= there.byte_offset
                    or there.byte_offset + other.size_bytes <= here.byte_offset)
    return max(places[b].byte_offset + b.size_bytes for b in buffers)


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_a_chain_needs_its_largest_neighbours(algorithm: Callable[..., Any]) -> None:
    buffers = _buffers([10, 20, 100, 40, 50, 50], [(i, i + 1) for i in range(5)])
    assert _check(buffers, algorithm(buffers, 0)) == 140


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_equal_buffers_are_placed_by_name(algorithm: Callable[..., Any]) -> None:
    buffers = _buffers([10, 10, 10], [(0, 1), (1, 2), (0, 2)])
    places = algorithm(buffers, 0)
    assert [places[b].byte_offset for b in buffers] == [20, 10, 0]


def test_the_greedy_ways_place_behind_and_the_climber_in_gaps() -> None:
    buffers = _buffers([100, 60, 50, 40], [(0, 1), (1, 2), (0, 3), (2, 3), (1, 3)])
    assert _check(buffers, hill_climb(buffers, 0)) <= _check(buffers, greedy_by_size(buffers, 0))
    assert _check(buffers, hill_climb(buffers, 0)) == 200


@pytest.mark.parametrize("algorithm", ALGORITHMS)
@pytest.mark.parametrize("seed", range(5))
def test_random_lifetimes(algorithm: Callable[..., Any], seed: int) -> None:
    rng = random.Random(seed)
    spans = [(a, a + rng.randrange(1, 12), rng.randrange(1, 500)) for a in (rng.randrange(60) for _ in range(50))]
    conflicts = [(i, j) for i, x in enumerate(spans) for j, y in enumerate(spans) if i < j and x[0] < y[1] and y[0] < x[1]]
    buffers = _buffers([s[2] for s in spans], conflicts, alignment=16)
    pressure = max(sum(size for a, b, size in spans if a <= t < b) for t in range(80))
    height = _check(buffers, algorithm(buffers, pressure))
    assert height >= pressure and (algorithm is not hill_climb or height <= pressure * 1.3 + 16 * 12)


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_the_next_pool_is_taken_when_the_first_is_full(algorithm: Callable[..., Any]) -> None:
    small = WorkspacePoolInfo("small", ["llvm"], PoolInfoProperties(size_hint_bytes=64))
    buffers = _buffers([60, 50, 4], [(0, 1), (0, 2)], (small, RAM))
    places = algorithm(buffers, 0)
    _check(buffers, places)
    assert sorted(places[b].pool_info.pool_name for b in buffers) == ["ram", "small", "small"]


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_pools_that_are_too_small_are_named(algorithm: Callable[..., Any]) -> None:
    small = WorkspacePoolInfo("small", ["llvm"], PoolInfoProperties(size_hint_bytes=64))
    with pytest.raises(ArgumentError, match="space available in the provided pools exceeded.*size_hint_bytes of small"):
        algorithm(_buffers([40, 40], [(0, 1)], (small,)), 0)
