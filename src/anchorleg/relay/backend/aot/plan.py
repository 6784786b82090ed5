"""Planning a program's workspace: by the algorithm that was asked for, or by a user's own function."""
from __future__ import annotations

from typing import Any, Callable, Mapping, Sequence

from ....ir.memory_pools import PoolInfoProperties, WorkspacePoolInfo
from ....support.errors import ArgumentError, BuildError
from ....tir.usmp.utils import BufferInfo as UserBuffer
from ....tir.usmp.utils import PoolAllocation as UserPlace
from ..memory import BufferInfo, MemoryLayout, PoolAllocation, lower_bound, plan_pools
from ..memory.buffers import conflicts
from ..memory.pools import PoolUse
from .pools import DeclaredPool

DEFAULT_POOL = "global_workspace"
CUSTOM = "tir.usmp.algo."


def custom_algorithm(name: str) -> Callable[..., Any]:
    """The planning function a user registered as ``tir.usmp.algo.<name>``; ArgumentError when there is none."""
    from ....runtime.registry import get_global_func

    found = get_global_func(CUSTOM + name, allow_missing=True)
    if found is None:
        raise ArgumentError(f"tir.usmp.custom_algorithm: the planning function {name!r} is not known; register it as {CUSTOM + name!r}")
    return found


def plan_workspace(buffers: Sequence[BufferInfo], declared: Sequence[DeclaredPool], target: Any, alignment: int, algorithm: str,
                   custom: str | None = None) -> MemoryLayout:
    """The places of the buffers in the declared pools, or in one of the code's own."""
    pools = [(p.name, p.limit) for p in declared] or [(DEFAULT_POOL, None)]
    if custom is None:
        return plan_pools(buffers, pools, alignment, algorithm)
    infos = {p.name: p.info for p in declared} or {DEFAULT_POOL: WorkspacePoolInfo(DEFAULT_POOL, [target], PoolInfoProperties())}
    return _planned_by(custom, list(buffers), pools, infos, alignment)


def _planned_by(name: str, buffers: list[BufferInfo], pools: list[tuple[str, int | None]], infos: Mapping[str, Any], alignment: int) -> MemoryLayout:
    """Calls ``function(buffers, most bytes alive at once)``, which gives buffer → place, and checks what comes back."""
    around = conflicts(buffers)
    asked = [UserBuffer(b.name, b.size, list(infos.values()), alignment) for b in buffers]
    for one, near in zip(asked, around):
        one.set_conflicts([asked[j] for j in near])
    found = custom_algorithm(name)(asked, lower_bound(buffers))
    if not hasattr(found, "get"):
        raise ArgumentError(f"{CUSTOM}{name} is expected to return a dictionary buffer → PoolAllocation, got {type(found).__name__}")
    names = {id(info): n for n, info in infos.items()}
    places = [_place(name, a, found.get(a), names, dict(pools), alignment) for a in asked]
    for i, near in enumerate(around):
        for j in near:
            if j < i and places[i].pool == places[j].pool and not _apart(buffers, places, i, j):
                raise BuildError(f"{CUSTOM}{name} lets {buffers[i].name} and {buffers[j].name}, which hold something at one time, overlap")
    used = {n: max((p.offset + b.size for b, p in zip(buffers, places) if p.pool == n), default=0) for n, _ in pools}
    return MemoryLayout(buffers, places, [PoolUse(n, limit, used[n]) for n, limit in pools], lower_bound(buffers))


def _place(name: str, asked: UserBuffer, found: Any, names: Mapping[int, str], limits: Mapping[str, int | None], alignment: int) -> PoolAllocation:
    if not isinstance(found, UserPlace) or id(found.pool_info) not in names:
        raise ArgumentError(f"{CUSTOM}{name} is expected to give {asked.name_hint} a PoolAllocation in one of its pool_candidates, got {found!r}")
    pool = names[id(found.pool_info)]
    limit, end = limits[pool], found.byte_offset + asked.size_bytes
    if found.byte_offset < 0 or found.byte_offset % alignment:
        raise BuildError(f"{CUSTOM}{name} puts {asked.name_hint} at {found.byte_offset}, expected a multiple of {alignment}")
    if limit is not None and end > limit:
        raise BuildError(f"{CUSTOM}{name} lets {asked.name_hint} end at {end} in pool {pool!r} of {limit} bytes")
    return PoolAllocation(pool, found.byte_offset)


def _apart(buffers: Sequence[BufferInfo], places: Sequence[PoolAllocation], i: int, j: int) -> bool:
    return places[i].offset + buffers[i].size <= places[j].offset or places[j].offset + buffers[j].size <= places[i].offset
