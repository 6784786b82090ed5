"""What is planned: buffers that live from one step of the program to another."""
from __future__ import annotations

from typing import NamedTuple, Sequence


class BufferInfo(NamedTuple):
    """A buffer: bytes, the first and the last step at which it holds something, who makes it.

    ``pools`` are the names of the pools it may lie in, the preferred first; empty for any.
    """

    name: str
    size: int
    first: int
    last: int
    origin: str = ""
    pools: tuple[str, ...] = ()

    def meets(self, other: BufferInfo) -> bool:
        """Whether both hold something at one step."""
        return self.first <= other.last and other.first <= self.last


class PoolAllocation(NamedTuple):
    """A buffer's place: pool and byte offset in it."""

    pool: str
    offset: int


def lower_bound(buffers: Sequence[BufferInfo]) -> int:
    """The largest sum of the sizes of buffers that live at one step: no plan needs less."""
    change: dict[int, int] = {}
    for b in buffers:
        change[b.first] = change.get(b.first, 0) + b.size
        change[b.last + 1] = change.get(b.last + 1, 0) - b.size
    level = peak = 0
    for step in sorted(change):
        level += change[step]
        peak = max(peak, level)
    return peak


def aligned_bound(buffers: Sequence[BufferInfo], alignment: int) -> int:
    """As ``lower_bound``, for places at multiples of ``alignment``: only the topmost buffer alive may end in between."""
    order = sorted(range(len(buffers)), key=lambda i: buffers[i].first)
    whole = [-(-b.size // alignment) * alignment for b in buffers]
    alive: list[int] = []
    bound = 0
    for i in order:
        alive = [j for j in alive if buffers[j].last >= buffers[i].first] + [i]
        bound = max(bound, sum(whole[j] for j in alive) - max(whole[j] - buffers[j].size for j in alive))
    return bound


def conflicts(buffers: Sequence[BufferInfo]) -> list[list[int]]:
    """For each buffer the indices of those it must not overlap: a sweep over the steps."""
    order = sorted(range(len(buffers)), key=lambda i: buffers[i].first)
    found: list[list[int]] = [[] for _ in buffers]
    alive: list[int] = []
    for i in order:
        alive = [j for j in alive if buffers[j].last >= buffers[i].first]
        for j in alive:
            found[i].append(j)
            found[j].append(i)
        alive.append(i)
    return found
