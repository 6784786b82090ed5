"""Better orders of placement, found by trying.

A plan follows from the order in which buffers are placed, each at the lowest offset that is free.  One step takes a buffer at the top
of the plan and exchanges it with, or moves it in front of, a buffer in its way (or one in the way of that), and keeps the change unless
the plan grows by more than a slack, which mostly is nothing.  Only what the change touches is placed anew.  Several climbs start from
different orders.  Random choices are seeded and work is counted, not timed: one set of buffers, one plan.
"""
from __future__ import annotations

import random
from heapq import heapify, heappop, heappush
from typing import Iterable, Sequence

STARTS = 6
ROUNDS = 4_000  # steps of one climb
WORK = 3_000_000  # neighbours looked at in one climb, a fraction of a second
SLACK_CHANCE, SLACK = 0.1, 2.0  # how often a plan may grow, and by how many times its distance from the bound


def climb(sizes: Sequence[int], around: Sequence[Sequence[int]], orders: Sequence[Sequence[int]], alignment: int, bound: int,
          starts: int = STARTS, work: int = WORK) -> list[int]:
    """The best order found.

    ``sizes`` in bytes, ``around[i]`` the buffers that live beside buffer i, ``orders`` to start from (the best first), ``bound`` what no
    plan can go below; ``starts`` climbs of at most ``work`` each.
    """
    best: list[int] = list(orders[0])
    least: int | None = None
    for start in range(starts):
        one = _Climb(sizes, around, orders[start % len(orders)], alignment, random.Random(len(sizes) + start))
        height, order = one.run(bound, work)
        if least is None or height < least:
            least, best = height, order
        if least <= bound:
            break
    return best


class _Climb:
    """One order, as a key for each buffer (smaller is placed earlier), and the offsets that follow from it."""

    def __init__(self, sizes: Sequence[int], around: Sequence[Sequence[int]], order: Sequence[int], alignment: int, chance: random.Random) -> None:
        self.sizes, self.around, self.alignment, self.chance = sizes, around, alignment, chance
        self.key = [0.0] * len(sizes)
        for rank, i in enumerate(order):
            self.key[i] = float(rank)
        self.offsets = [-1] * len(sizes)
        self.work = 0
        self._accept(self._placed(range(len(sizes)), None) or {})

    def order(self) -> list[int]:
        """The buffers in the order of placement."""
        return sorted(range(len(self.key)), key=lambda i: (self.key[i], i))

    def run(self, bound: int, work: int) -> tuple[int, list[int]]:
        """Steps until the bound is reached or the work is done: the lowest height seen, and its order."""
        best, order = self.height, self.order()
        for _ in range(ROUNDS):
            if best <= bound or self.work >= work:
                break
            slack = int((best - bound) * SLACK * self.chance.random()) if self.chance.random() < SLACK_CHANCE else 0
            if self._step(slack) and self.height < best:
                best, order = self.height, self.order()
        return best, order

    def _accept(self, moved: dict[int, int]) -> None:
        for i, offset in moved.items():
            self.offsets[i] = offset
        self.work += len(self.sizes) // 4
        ends = [o + s for o, s in zip(self.offsets, self.sizes)]
        self.height = max(ends, default=0)
        self.tops = [i for i, end in enumerate(ends) if end == self.height]

    def _placed(self, start: Iterable[int], limit: int | None) -> dict[int, int] | None:
        """New offsets of what moves when the buffers ``start`` are placed anew; None when one would end above ``limit``."""
        key, sizes = self.key, self.sizes
        heap = [(key[i], i) for i in start]
        heapify(heap)
        queued, moved = {i for _, i in heap}, {}
        while heap:
            k, i = heappop(heap)
            at = self._gap(i, k, moved)
            if limit is not None and at + sizes[i] > limit:
                return None
            if at == self.offsets[i]:
                continue
            moved[i] = at
            for j in self.around[i]:
                if (key[j], j) > (k, i) and j not in queued:
                    queued.add(j)
                    heappush(heap, (key[j], j))
        return moved

    def _gap(self, i: int, k: float, moved: dict[int, int]) -> int:
        """The lowest offset of buffer ``i`` beside those placed before it."""
        key, sizes, offsets, alignment, size = self.key, self.sizes, self.offsets, self.alignment, self.sizes[i]
        self.work += len(self.around[i]) + 1
        at = 0
        for offset, j in sorted([(moved.get(j, offsets[j]), j) for j in self.around[i] if (key[j], j) < (k, i)]):
            if at + size <= offset:
                return at
            end = offset + sizes[j]
            if end > at:
                at = -(-end // alignment) * alignment
        return at

    def _step(self, slack: int) -> bool:
        top = self.chance.choice(self.tops)
        other = self._in_the_way(top)
        if other is None:
            return False
        before = (self.key[top], self.key[other])
        start = self._exchange(top, other) if self.chance.random() < 0.5 else self._move(top, other)
        moved = self._placed(start, self.height + slack)
        if moved is None:
            self.key[top], self.key[other] = before
            return False
        self._accept(moved)
        return True

    def _in_the_way(self, top: int) -> int | None:
        """A buffer placed before ``top`` that lives beside it, or beside one that does."""
        key = self.key
        near = [j for j in self.around[top] if key[j] < key[top]]
        if not near:
            return None
        other = self.chance.choice(near)
        further = [j for j in self.around[other] if key[j] < key[top]] if self.chance.random() < 0.5 else []
        return self.chance.choice(further) if further else other

    def _between(self, i: int, low: float, high: float) -> list[int]:
        return [j for j in self.around[i] if low < self.key[j] < high]

    def _exchange(self, top: int, other: int) -> set[int]:
        high, low = self.key[top], self.key[other]
        self.key[top], self.key[other] = low, high
        return {top, other, *self._between(top, low, high), *self._between(other, low, high)}

    def _move(self, top: int, other: int) -> set[int]:
        """``top`` in front of ``other``, behind what it meets before that."""
        high, low = self.key[top], self.key[other]
        below = max((self.key[j] for j in self.around[top] if self.key[j] < low), default=low - 2)
        self.key[top] = below + (low - below) * (0.25 + 0.5 * self.chance.random())
        return {top, *self._between(top, self.key[top], high)}
