"""Placing buffers in pools: each gets a pool and an offset so that buffers which conflict do not overlap.

``greedy_by_size`` and ``greedy_by_conflicts`` place a buffer behind all those it conflicts with that are placed already;
``hill_climb`` places it in the lowest gap, and improves the order in which buffers are placed.
"""
from __future__ import annotations

from typing import Any, Callable, Sequence

from ...ir.module import NodeMap
from ...support.errors import ArgumentError
from .utils import BufferInfo, PoolAllocation

_Places = "dict[int, PoolAllocation]"
_ROUNDS = 300


def _aligned(offset: int, alignment: int) -> int:
    return -(-offset // max(1, alignment)) * max(1, alignment)


def _fits(pool: Any, offset: int, size: int) -> bool:
    return pool.limit is None or offset + size <= pool.limit


def _no_room(b: BufferInfo) -> ArgumentError:
    return ArgumentError(f"TVM USMP Error: the space available in the provided pools exceeded when trying to allocate the buffer {b!r}: "
                         f"increase the size_hint_bytes of {', '.join(p.pool_name for p in b.pool_candidates) or 'its pools'}")


def _behind_all(b: BufferInfo, places: dict[int, PoolAllocation]) -> PoolAllocation:
    """The first pool with room behind every buffer there that ``b`` conflicts with."""
    offsets = {id(p): 0 for p in b.pool_candidates if _fits(p, 0, b.size_bytes)}
    for other in b.conflicts:
        place = places.get(id(other))
        if place is None or id(place.pool_info) not in offsets:
            continue
        end = _aligned(place.byte_offset + other.size_bytes, other.alignment)
        if _fits(place.pool_info, end, b.size_bytes):
            offsets[id(place.pool_info)] = max(offsets[id(place.pool_info)], end)
        else:
            del offsets[id(place.pool_info)]
    for pool in b.pool_candidates:
        if id(pool) in offsets:
            return PoolAllocation(pool, offsets[id(pool)])
    raise _no_room(b)


def _lowest_gap(b: BufferInfo, places: dict[int, PoolAllocation]) -> PoolAllocation:
    """The lowest place in the first pool with room between the buffers there that ``b`` conflicts with."""
    for pool in b.pool_candidates:
        taken = sorted((places[id(o)].byte_offset, places[id(o)].byte_offset + o.size_bytes) for o in b.conflicts
                       if id(o) in places and places[id(o)].pool_info is pool)
        offset = 0
        for start, end in taken:
            if offset + b.size_bytes <= start:
                break
            offset = max(offset, _aligned(end, b.alignment))
        if _fits(pool, offset, b.size_bytes):
            return PoolAllocation(pool, offset)
    raise _no_room(b)


def _place_all(order: Sequence[BufferInfo], place: Callable[[BufferInfo, dict[int, PoolAllocation]], PoolAllocation]) -> dict[int, PoolAllocation]:
    places: dict[int, PoolAllocation] = {}
    for b in order:
        places[id(b)] = place(b, places)
    return places


def _result(buffers: Sequence[BufferInfo], places: dict[int, PoolAllocation]) -> NodeMap:
    return NodeMap({b: places[id(b)] for b in buffers})


def _by_size(buffers: Sequence[BufferInfo]) -> list[BufferInfo]:
    return sorted(buffers, key=lambda b: (b.size_bytes, len(b.conflicts), b.name_hint), reverse=True)


def _by_conflicts(buffers: Sequence[BufferInfo]) -> list[BufferInfo]:
    return sorted(buffers, key=lambda b: (len(b.conflicts), b.size_bytes, b.name_hint), reverse=True)


def greedy_by_size(buffer_info_arr: Sequence[BufferInfo], memory_pressure: int = 0) -> NodeMap:
    """Buffer → place, the largest buffers placed first; ArgumentError when the pools are too small."""
    order = _by_size(buffer_info_arr)
    return _result(order, _place_all(order, _behind_all))


def greedy_by_conflicts(buffer_info_arr: Sequence[BufferInfo], memory_pressure: int = 0) -> NodeMap:
    """Buffer → place, the buffers with most conflicts placed first; ArgumentError when the pools are too small."""
    order = _by_conflicts(buffer_info_arr)
    return _result(order, _place_all(order, _behind_all))


def _height(buffers: Sequence[BufferInfo], places: dict[int, PoolAllocation]) -> int:
    """Bytes of all pools together."""
    tops: dict[int, int] = {}
    for b in buffers:
        place = places[id(b)]
        tops[id(place.pool_info)] = max(tops.get(id(place.pool_info), 0), place.byte_offset + b.size_bytes)
    return sum(tops.values())


def _attempt(order: Sequence[BufferInfo]) -> dict[int, PoolAllocation] | None:
    try:
        return _place_all(order, _lowest_gap)
    except ArgumentError:
        return None


def hill_climb(buffer_info_arr: Sequence[BufferInfo], memory_pressure: int = 0) -> NodeMap:
    """Buffer → place: the best of several orders, improved by moving the buffers at the top forward as long as that helps.

    ``memory_pressure`` is a size that no plan gets below: reaching it ends the search.  ArgumentError when the pools are too small.
    """
    best: list[BufferInfo] = []
    places: dict[int, PoolAllocation] | None = None
    for order in (_by_size(buffer_info_arr), _by_conflicts(buffer_info_arr)):
        found = _attempt(order)
        if found is not None and (places is None or _height(order, found) < _height(best, places)):
            best, places = order, found
    if places is None:
        return greedy_by_size(buffer_info_arr)  # tells which buffer has no room
    for _ in range(_ROUNDS):
        if _height(best, places) <= memory_pressure:
            break
        better = _improved(best, places)
        if better is None:
            break
        best, places = better
    return _result(_by_size(best), places)


def _improved(order: list[BufferInfo], places: dict[int, PoolAllocation]) -> tuple[list[BufferInfo], dict[int, PoolAllocation]] | None:
    """A better order: one with a buffer that ends highest placed before one it conflicts with."""
    height = _height(order, places)
    position = {id(b): i for i, b in enumerate(order)}
    for b in sorted(order, key=lambda b: places[id(b)].byte_offset + b.size_bytes, reverse=True)[:4]:
        for other in sorted((o for o in b.conflicts if position.get(id(o), len(order)) < position[id(b)]), key=lambda o: position[id(o)])[:16]:
            changed = [x for x in order if x is not b]
            changed.insert(position[id(other)], b)
            found = _attempt(changed)
            if found is not None and _height(changed, found) < height:
                return changed, found
    return None


__all__ = ["greedy_by_conflicts", "greedy_by_size", "hill_climb"]
