"""Pools of memory as their user declares them: checked at once, named for C; and the places of constants in them."""
from __future__ import annotations

from typing import Any, Mapping, NamedTuple, Sequence

from ....ir.memory_pools import UNRESTRICTED, ConstantMemoryPools, WorkspaceMemoryPools
from ....support.errors import ArgumentError, BuildError
from ....support.names import c_identifier
from .program import Tensor


class DeclaredPool(NamedTuple):
    """A pool: its C name, its bytes (None: no limit), what its user declared."""

    name: str
    limit: int | None
    info: Any


class ConstantPool(NamedTuple):
    """A pool of constants: its name, its bytes, number of a constant → its offset."""

    name: str
    size: int
    offsets: dict[int, int]


def declared_pools(workspace: Any, constants: Any, c_interface: bool, target: Any) -> tuple[list[DeclaredPool], list[DeclaredPool]]:
    """The pools for workspace and for constants that code for ``target`` reaches.

    ArgumentError for pools of the wrong kind, without a name or a size, of one name in C, or of which none can be reached.
    """
    found = [_declared(workspace, "workspace_memory_pools", WorkspaceMemoryPools, target), _declared(constants, "constant_memory_pools", ConstantMemoryPools, target)]
    names: dict[str, str] = {}
    for pool in (*found[0], *found[1]):
        if pool.name in names:
            raise ArgumentError(f"the memory pools {names[pool.name]!r} and {pool.info.pool_name!r} are both {pool.name!r} in C; rename one of them")
        names[pool.name] = pool.info.pool_name
    if names and not c_interface:
        raise ArgumentError('workspace_memory_pools and constant_memory_pools need interface-api == "c" (got: packed): '
                            "the caller hands the pools over in a structure, which packed calls do not have")
    return found[0], found[1]


def _declared(given: Any, what: str, kind: type, target: Any) -> list[DeclaredPool]:
    if given is None:
        return []
    if not isinstance(given, kind):
        raise ArgumentError(f"{what} is expected to be a {kind.__name__}, got {type(given).__name__}: write {kind.__name__}([…])")
    reached = [p for p in given.pools if _reaches(p, target, what)]
    if given.pools and not reached:
        told = "; ".join(f"{p.pool_name!r} is for {', '.join(str(t) for t in p.targets)}" for p in given.pools)
        raise ArgumentError(f"none of the {what} can be reached by code for {target}: {told}. Name the target that the model is built for "
                            "among a pool's targets, or none for a pool that all targets reach")
    return [DeclaredPool(_c_name(p, what), _limit(p), p) for p in reached]


def _reaches(pool: Any, target: Any, what: str) -> bool:
    from ....target.target import Target

    access = pool.targets if isinstance(pool.targets, Mapping) else {}
    targets = [(t if isinstance(t, Target) else Target(t), access.get(t, "rw")) for t in pool.targets]
    for one, way in targets:
        if way not in ("rw", "ro") or way == "ro" and what == "workspace_memory_pools":
            raise ArgumentError(f'{what}: {one} is expected to have the access "rw" to pool {pool.pool_name!r}, got {way!r}')
    return not targets or any(str(one) == str(target) for one, _ in targets)


def _c_name(pool: Any, what: str) -> str:
    if not pool.pool_name:
        raise ArgumentError(f"{what}: every pool needs a name, which becomes a member of a C structure; got an empty one")
    return c_identifier(pool.pool_name)


def _limit(pool: Any) -> int | None:
    size = pool.properties.size_hint_bytes
    if size != UNRESTRICTED and size < 1:
        raise ArgumentError(f"size_hint_bytes of the memory pool {pool.pool_name!r} is expected to be positive, or {UNRESTRICTED} for no limit, got {size}")
    return None if size == UNRESTRICTED else size


def place_constants(constants: Sequence[Tensor], declared: Sequence[DeclaredPool], alignment: int) -> list[ConstantPool]:
    """Constants in the declared pools, in order, each in the first pool that holds it; BuildError when one has no place."""
    pools = [ConstantPool(p.name, 0, {}) for p in declared]
    for i, constant in enumerate(constants if pools else ()):
        for k, (limits, pool) in enumerate(zip(declared, pools)):
            at = -(-pool.size // alignment) * alignment
            if limits.limit is None or at + constant.nbytes <= limits.limit:
                pool.offsets[i] = at
                pools[k] = pool._replace(size=at + constant.nbytes)
                break
        else:
            raise BuildError(_no_place(constant, constants, declared))
    return [p for p in pools if p.offsets]


def _no_place(constant: Tensor, constants: Sequence[Tensor], declared: Sequence[DeclaredPool]) -> str:
    needed, there = sum(c.nbytes for c in constants), sum(p.limit or 0 for p in declared)
    sizes = ", ".join(f"{p.name}: {p.limit} bytes" for p in declared)
    return (f"the constant pools ({sizes}) are too small: constant {constant.name} of {constant.nbytes} bytes has no place; all constants together "
            f"need {needed} bytes, at least {max(0, needed - there)} more than there are. Enlarge a pool or add another one")
