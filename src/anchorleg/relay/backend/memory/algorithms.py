"""In which order buffers are placed; each is put at the lowest offset that is free during its life.

* ``greedy_by_size``: the largest first.
* ``greedy_by_conflicts``: first what lives together with the most bytes.
* ``hill_climb``: starts from the greedy orders and improves them by trying (``climb.py``).
"""
from __future__ import annotations

from typing import Callable, Sequence

from .buffers import BufferInfo, aligned_bound, conflicts
from .climb import climb

QUICK_WORK = 400_000
Order = Callable[[Sequence[BufferInfo], Sequence[Sequence[int]]], "list[int]"]


def _align(value: int, alignment: int) -> int:
    return -(-value // alignment) * alignment


def place(buffers: Sequence[BufferInfo], order: Sequence[int], around: Sequence[Sequence[int]], alignment: int) -> list[int]:
    """The offsets of buffers placed in ``order``, each at the lowest place that is free."""
    offsets = [-1] * len(buffers)
    for i in order:
        offsets[i] = lowest_gap(buffers, offsets, around[i], buffers[i].size, alignment)
    return offsets


def lowest_gap(buffers: Sequence[BufferInfo], offsets: Sequence[int], around: Sequence[int], size: int, alignment: int) -> int:
    """The lowest aligned offset with ``size`` bytes free between the placed buffers among ``around``."""
    at = 0
    for start, end in sorted((offsets[j], offsets[j] + buffers[j].size) for j in around if offsets[j] >= 0):
        if at + size <= start:
            return at
        at = max(at, _align(end, alignment))
    return at


def peak(buffers: Sequence[BufferInfo], offsets: Sequence[int]) -> int:
    """Bytes the plan needs."""
    return max((o + b.size for b, o in zip(buffers, offsets)), default=0)


def by_size(buffers: Sequence[BufferInfo], around: Sequence[Sequence[int]]) -> list[int]:
    """The largest first; among equals the longest lived."""
    return sorted(range(len(buffers)), key=lambda i: (-buffers[i].size, buffers[i].first - buffers[i].last, buffers[i].first, i))


def by_conflicts(buffers: Sequence[BufferInfo], around: Sequence[Sequence[int]]) -> list[int]:
    """First what has the most bytes living beside it."""
    return sorted(range(len(buffers)), key=lambda i: (-sum(buffers[j].size for j in around[i]), -buffers[i].size, i))


def by_breadth(buffers: Sequence[BufferInfo], around: Sequence[Sequence[int]]) -> list[int]:
    """Step by step, the steps with the most bytes alive first; within one, the largest first."""
    steps = sorted({b.first for b in buffers})
    load = {s: sum(b.size for b in buffers if b.first <= s <= b.last) for s in steps} if len(buffers) <= 2000 else {s: 0 for s in steps}
    heaviest = [max((load[s] for s in (b.first,)), default=0) for b in buffers]
    return sorted(range(len(buffers)), key=lambda i: (-heaviest[i], -buffers[i].size, i))


def hill_climb(buffers: Sequence[BufferInfo], around: Sequence[Sequence[int]], alignment: int = 1, quick: bool = False) -> list[int]:
    """The best order found by trying, see ``climb``; ``quick`` tries for a tenth of a second rather than for seconds."""
    if not buffers:
        return []
    orders = sorted((order(buffers, around) for order in (by_size, by_conflicts, by_breadth)), key=lambda o: peak(buffers, place(buffers, o, around, alignment)))
    effort = (1, QUICK_WORK) if quick else ()
    return climb([b.size for b in buffers], around, orders, alignment, aligned_bound(buffers, alignment), *effort)


ALGORITHMS: dict[str, Order] = {"greedy_by_size": by_size, "greedy_by_conflicts": by_conflicts, "hill_climb": hill_climb}


def order_by(algorithm: str, buffers: Sequence[BufferInfo], around: Sequence[Sequence[int]], alignment: int, quick: bool = False) -> list[int]:
    """The order in which an algorithm places buffers."""
    return hill_climb(buffers, around, alignment, quick) if algorithm == "hill_climb" else ALGORITHMS[algorithm](buffers, around)


def plan_offsets(buffers: Sequence[BufferInfo], alignment: int = 16, algorithm: str = "hill_climb", quick: bool = False) -> list[int]:
    """The byte offset of every buffer in one pool without a limit."""
    around = conflicts(buffers)
    return place(buffers, order_by(algorithm, buffers, around, alignment, quick), around, alignment)
