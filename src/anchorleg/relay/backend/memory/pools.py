"""Planning over several pools with limits: each buffer goes to the first pool it may use that still holds it."""
from __future__ import annotations

from typing import NamedTuple, Sequence

from ....support.errors import ArgumentError, BuildError
from .algorithms import ALGORITHMS, lowest_gap, order_by
from .buffers import BufferInfo, PoolAllocation, conflicts, lower_bound


RETRIES = 50


class PoolUse(NamedTuple):
    """A pool's name, its limit (None: none) and the bytes planned in it."""

    name: str
    limit: int | None
    used: int


class MemoryLayout(NamedTuple):
    """The plan: the place of every buffer, the use of every pool, and what no plan could do without."""

    buffers: list[BufferInfo]
    places: list[PoolAllocation]
    pools: list[PoolUse]
    lower_bound: int

    @property
    def total(self) -> int:
        """Bytes of all pools together."""
        return sum(p.used for p in self.pools)

    def report(self) -> str:
        """The plan in words."""
        lines = [f"{p.name}: {p.used} bytes" + (f" of {p.limit}" if p.limit is not None else "") for p in self.pools]
        share = f" ({self.total / self.lower_bound:.3f} of it)" if self.lower_bound else ""
        return "\n".join([*lines, f"at most {self.lower_bound} bytes live at once; planned are {self.total}{share}"])


def plan_pools(buffers: Sequence[BufferInfo], pools: Sequence[tuple[str, int | None]], alignment: int = 16, algorithm: str = "hill_climb",
               what: str = "workspace") -> MemoryLayout:
    """Places buffers in named pools (name, limit in bytes or None), the first pool preferred.

    Raises ArgumentError for an algorithm that does not exist, BuildError when the pools are too small: it says by how much and where.
    """
    if algorithm not in ALGORITHMS:
        raise ArgumentError(f"memory planning algorithm {algorithm!r} is not known; available: {', '.join(ALGORITHMS)}")
    planner = _Planner(list(buffers), list(pools), alignment, what)
    chosen = order_by(algorithm, buffers, planner.around, alignment)
    others = (order(buffers, planner.around) for name, order in ALGORITHMS.items() if name not in (algorithm, "hill_climb"))
    first: _NoPlace | None = None
    for order in (chosen, *others):  # another order may fit where the one asked for does not
        try:
            return planner.layout(order)
        except _NoPlace as failed:
            first = first or failed
    raise BuildError(planner.told(first, chosen))  # type: ignore[arg-type]


class _NoPlace(Exception):
    """A buffer has no place: its number, and (bytes missing, pool) of each pool it may lie in."""

    def __init__(self, buffer: int, missing: list[tuple[int, str]]) -> None:
        super().__init__(buffer)
        self.buffer, self.missing = buffer, missing


class _Planner:
    def __init__(self, buffers: list[BufferInfo], pools: list[tuple[str, int | None]], alignment: int, what: str) -> None:
        self.buffers, self.pools, self.alignment, self.what = buffers, pools, alignment, what
        self.around = conflicts(buffers)

    def layout(self, order: Sequence[int]) -> MemoryLayout:
        """The plan that follows from an order; what found no place is put in front and the rest planned again, a number of times."""
        order = list(order)
        for _ in range(RETRIES):
            try:
                return self._placed(order, self.pools)
            except _NoPlace as failed:
                if not failed.missing or order[0] == failed.buffer:
                    raise
                order.remove(failed.buffer)
                order.insert(0, failed.buffer)
        return self._placed(order, self.pools)

    def _placed(self, order: Sequence[int], pools: Sequence[tuple[str, int | None]]) -> MemoryLayout:
        offsets = {name: [-1] * len(self.buffers) for name, _ in pools}
        places: list[PoolAllocation] = [PoolAllocation("", -1)] * len(self.buffers)
        for i in order:
            places[i] = self._place(i, pools, offsets)
            offsets[places[i].pool][i] = places[i].offset
        used = {name: max((o + b.size for b, o in zip(self.buffers, offsets[name]) if o >= 0), default=0) for name, _ in pools}
        return MemoryLayout(self.buffers, places, [PoolUse(n, limit, used[n]) for n, limit in pools], lower_bound(self.buffers))

    def _place(self, i: int, pools: Sequence[tuple[str, int | None]], offsets: dict[str, list[int]]) -> PoolAllocation:
        buffer, missing = self.buffers[i], []
        for name, limit in pools:
            if buffer.pools and name not in buffer.pools:
                continue
            at = lowest_gap(self.buffers, offsets[name], self.around[i], buffer.size, self.alignment)
            if limit is None or at + buffer.size <= limit:
                return PoolAllocation(name, at)
            missing.append((at + buffer.size - limit, name))
        raise _NoPlace(i, missing)

    def told(self, failed: _NoPlace, order: Sequence[int]) -> str:
        """What to say of a buffer without a place."""
        buffer = self.buffers[failed.buffer]
        if not failed.missing:
            return f"{buffer.name} may lie in the {self.what} pools {', '.join(buffer.pools)} only, and none of them was declared"
        least, name = min(failed.missing)
        where = f" of {buffer.origin}" if buffer.origin else ""
        return (f"the {self.what} pools ({', '.join(f'{n}: {size} bytes' for n, size in self.pools)}) are too small: {buffer.name}{where} needs "
                f"{buffer.size} bytes, and pool {name!r} lacks {least} of them; all {self.what} together needs at least "
                f"{lower_bound(self.buffers)} bytes{self._enough(name, order)}. Enlarge the pool (size_hint_bytes) or add another one")

    def _enough(self, name: str, order: Sequence[int]) -> str:
        """With how many bytes in a pool there is a plan."""
        try:
            found = self._placed(order, [(n, None if n == name else limit) for n, limit in self.pools])
        except _NoPlace:
            return ""
        return f", and with {next(p.used for p in found.pools if p.name == name)} bytes in {name!r} the plan fits"
