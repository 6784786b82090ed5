"""Planning over several pools with limits: each buffer goes to the first pool it may use that still holds it."""
from __future__ import annotations

from typing import NamedTuple, Sequence

from ....support.errors import ArgumentError, BuildError
from .algorithms import ALGORITHMS, _climb, lowest_gap
from .buffers import BufferInfo, PoolAllocation, conflicts, lower_bound


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
    around = conflicts(buffers)
    orders = [_climb(buffers, around, alignment) if algorithm == "hill_climb" else ALGORITHMS[algorithm](buffers, around)]
    orders += [order(buffers, around) for name, order in ALGORITHMS.items() if name not in (algorithm, "hill_climb")]
    failed: BuildError | None = None
    for order in orders:  # another order may fit where the one asked for does not
        try:
            return _place_all(list(buffers), order, around, list(pools), alignment, what)
        except BuildError as exc:
            failed = failed or exc
    raise failed or BuildError(f"no {what} pool to plan in")


def _place_all(buffers: list[BufferInfo], order: Sequence[int], around: Sequence[Sequence[int]], pools: list[tuple[str, int | None]],
               alignment: int, what: str) -> MemoryLayout:
    offsets = {name: [-1] * len(buffers) for name, _ in pools}
    places: list[PoolAllocation | None] = [None] * len(buffers)
    for i in order:
        places[i] = _place_one(buffers, i, around[i], pools, offsets, alignment, what)
        offsets[places[i].pool][i] = places[i].offset  # type: ignore[union-attr]
    used = {name: max((o + b.size for b, o in zip(buffers, offsets[name]) if o >= 0), default=0) for name, _ in pools}
    return MemoryLayout(buffers, [p for p in places if p is not None], [PoolUse(n, limit, used[n]) for n, limit in pools], lower_bound(buffers))


def _place_one(buffers: list[BufferInfo], i: int, around: Sequence[int], pools: list[tuple[str, int | None]], offsets: dict[str, list[int]],
               alignment: int, what: str) -> PoolAllocation:
    buffer, missing = buffers[i], []
    for name, limit in pools:
        if buffer.pools and name not in buffer.pools:
            continue
        at = lowest_gap(buffers, offsets[name], around, buffer.size, alignment)
        if limit is None or at + buffer.size <= limit:
            return PoolAllocation(name, at)
        missing.append((at + buffer.size - limit, name, limit))
    if not missing:
        raise BuildError(f"{buffer.name} may lie in the {what} pools {', '.join(buffer.pools)} only, and none of them was declared")
    least, name, limit = min(missing)
    where = f" of {buffer.origin}" if buffer.origin else ""
    alive = lower_bound(buffers)
    raise BuildError(f"the {what} pools ({', '.join(f'{n}: {size} bytes' for n, size in pools)}) are too small: {buffer.name}{where} needs "
                     f"{buffer.size} bytes, and pool {name!r} lacks {least} of them; all {what} together needs at least {alive} bytes. "
                     "Enlarge the pool (size_hint_bytes) or add another one")
