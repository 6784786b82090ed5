"""In which order buffers are placed; each is put at the lowest offset that is free during its life.

* ``greedy_by_size``: the largest first.
* ``greedy_by_conflicts``: first what lives together with the most bytes.
* ``hill_climb``: starts from the best greedy order and swaps buffers at the top of the plan with those in their way, keeping
  what lowers the peak; its random choices are seeded, so that a model always gets the same plan.
"""
from __future__ import annotations

import random
from typing import Callable, Sequence

from .buffers import BufferInfo, conflicts, lower_bound

Order = Callable[[Sequence[BufferInfo], Sequence[Sequence[int]]], "list[int]"]
HILL_CLIMB_ROUNDS = 400
HILL_CLIMB_WORK = 400_000  # bounds rounds × buffers, so that large graphs stay quick


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


def hill_climb(buffers: Sequence[BufferInfo], around: Sequence[Sequence[int]]) -> list[int]:
    """An order found by swapping; see the module's text."""
    return _climb(buffers, around, 1)


def _best_greedy(buffers: Sequence[BufferInfo], around: Sequence[Sequence[int]], alignment: int) -> list[int]:
    orders = [order(buffers, around) for order in (by_size, by_conflicts, by_breadth)]
    return min(orders, key=lambda o: peak(buffers, place(buffers, o, around, alignment)))


def _climb(buffers: Sequence[BufferInfo], around: Sequence[Sequence[int]], alignment: int) -> list[int]:
    order = _best_greedy(buffers, around, alignment)
    offsets = place(buffers, order, around, alignment)
    best, bound = peak(buffers, offsets), lower_bound(buffers)
    chance = random.Random(len(buffers))
    for _ in range(min(HILL_CLIMB_ROUNDS, HILL_CLIMB_WORK // max(1, len(buffers)))):
        if best <= bound:
            break
        changed = _swapped(buffers, around, order, offsets, best, chance)
        tried = place(buffers, changed, around, alignment)
        height = peak(buffers, tried)
        if height <= best:
            order, offsets, best = changed, tried, height
    return order


def _swapped(buffers: Sequence[BufferInfo], around: Sequence[Sequence[int]], order: list[int], offsets: list[int], height: int,
             chance: random.Random) -> list[int]:
    """The order with a buffer at the top exchanged for one that was placed before it and lives beside it (or beside one that does)."""
    rank = {b: r for r, b in enumerate(order)}
    top = chance.choice([i for i, o in enumerate(offsets) if o + buffers[i].size == height])
    near = [j for j in around[top] if rank[j] < rank[top]] or list(around[top]) or [top]
    other = chance.choice(near)
    if chance.random() < 0.5 and around[other]:
        other = chance.choice(list(around[other]))
    changed = list(order)
    if chance.random() < 0.5:
        changed[rank[top]], changed[rank[other]] = other, top
    else:  # moved in front of it instead
        changed.remove(top)
        changed.insert(changed.index(other) if other != top else 0, top)
    return changed


ALGORITHMS: dict[str, Order] = {"greedy_by_size": by_size, "greedy_by_conflicts": by_conflicts, "hill_climb": hill_climb}


def plan_offsets(buffers: Sequence[BufferInfo], alignment: int = 16, algorithm: str = "hill_climb") -> list[int]:
    """The byte offset of every buffer in one pool without a limit."""
    around = conflicts(buffers)
    order = _climb(buffers, around, alignment) if algorithm == "hill_climb" else ALGORITHMS[algorithm](buffers, around)
    return place(buffers, order, around, alignment)
