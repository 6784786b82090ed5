"""Memory that a model may use at run time, as its user declares it: named pools with sizes and speeds."""
from __future__ import annotations

from typing import Any, Mapping, Sequence

from ..support.errors import ArgumentError, TypeMismatchError

UNRESTRICTED = -1


class PoolInfoProperties:
    """Facts about a pool: its size in bytes (-1: no limit), clock, bandwidths and latencies."""

    def __init__(self, size_hint_bytes: int = UNRESTRICTED, clock_frequency_hz: int = -1, read_bandwidth_bytes_per_cycle: int = -1,
                 write_bandwidth_bytes_per_cycle: int = -1, read_latency_cycles: int = 0, write_latency_cycles: int = 0,
                 target_burst_bytes: Mapping[Any, int] | None = None) -> None:
        try:
            self.size_hint_bytes, self.clock_frequency_hz = int(size_hint_bytes), clock_frequency_hz
        except (TypeError, ValueError):
            raise ArgumentError(f"size_hint_bytes is expected to be a number of bytes, or -1 for no limit, got {size_hint_bytes!r}") from None
        self.read_bandwidth_bytes_per_cycle, self.write_bandwidth_bytes_per_cycle = read_bandwidth_bytes_per_cycle, write_bandwidth_bytes_per_cycle
        self.read_latency_cycles, self.write_latency_cycles = read_latency_cycles, write_latency_cycles
        self.target_burst_bytes = dict(target_burst_bytes or {})


class PoolInfo:
    """Base of the pools: a name, the targets that reach the memory (none: all do), its properties.

    ``targets`` is a list, or a dictionary target → "rw" (or "ro", for constants).
    ``is_internal`` is true for a pool that the generated code defines itself rather than taking it from its caller.
    """

    is_internal = False

    def __init__(self, pool_name: str = "", targets: Sequence[Any] = (), pool_info_properties: PoolInfoProperties | None = None) -> None:
        if isinstance(targets, str) or not isinstance(targets, (Sequence, Mapping)):
            raise TypeMismatchError(f"the targets of the memory pool {pool_name!r} are expected to be a list, got {type(targets).__name__} {targets}")
        self.pool_name, self.targets = str(pool_name), dict(targets) if isinstance(targets, Mapping) else list(targets)
        self.properties = pool_info_properties or PoolInfoProperties()

    def __getattr__(self, name: str) -> Any:
        if name != "properties" and not name.startswith("__") and hasattr(PoolInfoProperties(), name):
            return getattr(self.properties, name)
        raise AttributeError(f"{type(self).__name__} has no attribute {name!r}")

    @property
    def limit(self) -> int | None:
        """Bytes it holds; None when it is not limited."""
        size = self.properties.size_hint_bytes
        return None if size == UNRESTRICTED else size

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.pool_name!r}, {'unlimited' if self.limit is None else f'{self.limit} bytes'})"


class WorkspacePoolInfo(PoolInfo):
    """Memory for intermediate results, readable and writable."""


class ConstantInfo:
    """A constant's place in a constant pool."""

    def __init__(self, name_hint: str, byte_offset: int, data: Any) -> None:
        self.name_hint, self.byte_offset, self.data = name_hint, int(byte_offset), data


class ConstantPoolInfo(PoolInfo):
    """Memory for constants, read only."""

    def __init__(self, pool_name: str = "", targets: Sequence[Any] = (), constant_info_arr: Sequence[ConstantInfo] | None = None,
                 pool_info_properties: PoolInfoProperties | None = None) -> None:
        super().__init__(pool_name, targets, pool_info_properties)
        self.constant_info_array = list(constant_info_arr or ())


class AllocatedPoolInfo:
    """A pool with the bytes that planning took of it."""

    def __init__(self, allocated_pool: PoolInfo, allocated_size: int, pool_var_idx: int | None = None) -> None:
        self.pool_info, self.allocated_size, self.pool_var_idx = allocated_pool, int(allocated_size), pool_var_idx


class _Pools:
    kind: type[PoolInfo] = PoolInfo

    def __init__(self, pools: Sequence[PoolInfo]) -> None:
        for pool in pools:
            if not isinstance(pool, self.kind):
                raise TypeMismatchError(f"{type(self).__name__} is made of {self.kind.__name__} objects, got {type(pool).__name__}")
        names = [p.pool_name for p in pools]
        if len(set(names)) != len(names):
            raise ArgumentError(f"{type(self).__name__}: every pool needs a name of its own, got {', '.join(names)}")
        self.pools = list(pools)


class WorkspaceMemoryPools(_Pools):
    """The pools that intermediate results may lie in, the preferred one first."""

    kind = WorkspacePoolInfo


class ConstantMemoryPools(_Pools):
    """The pools that constants may lie in, the preferred one first."""

    kind = ConstantPoolInfo


__all__ = ["AllocatedPoolInfo", "ConstantInfo", "ConstantMemoryPools", "ConstantPoolInfo", "PoolInfo", "PoolInfoProperties",
           "WorkspaceMemoryPools", "WorkspacePoolInfo"]
