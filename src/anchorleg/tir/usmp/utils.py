"""What memory planning speaks of: buffers to place, their places, how large pools get."""
from __future__ import annotations

from typing import Any, Mapping, Sequence

from ...ir.memory_pools import AllocatedPoolInfo


class BufferInfo:
    """A buffer to place: bytes, the pools it may lie in (the preferred first), its alignment, and the buffers it must not overlap."""

    def __init__(self, name_hint: str, size_bytes: int, pool_candidates: Sequence[Any], alignment: int | None = None) -> None:
        self.name_hint, self.size_bytes, self.pool_candidates = str(name_hint), int(size_bytes), list(pool_candidates)
        self.alignment = 1 if alignment is None else int(alignment)
        self.conflicts: list[BufferInfo] = []

    def set_conflicts(self, conflicts: Sequence[BufferInfo]) -> None:
        """States which buffers hold something while this one does."""
        self.conflicts = list(conflicts)

    def __repr__(self) -> str:
        return f"BufferInfo({self.name_hint!r}, {self.size_bytes} bytes, {len(self.conflicts)} conflicts)"


class PoolAllocation:
    """A buffer's place: a pool and a byte offset in it."""

    def __init__(self, pool_info: Any, byte_offset: int) -> None:
        self.pool_info, self.byte_offset = pool_info, int(byte_offset)

    def __repr__(self) -> str:
        return f"PoolAllocation({self.pool_info!r}, {self.byte_offset})"


class BufferInfoAnalysis:
    """All buffers of a program by the statement that allocates them, and a lower bound of the memory they need."""

    def __init__(self, buffer_info_stmts: Mapping[BufferInfo, Any], memory_pressure: int) -> None:
        self.buffer_info_stmts, self.memory_pressure = dict(buffer_info_stmts), int(memory_pressure)


__all__ = ["AllocatedPoolInfo", "BufferInfo", "BufferInfoAnalysis", "PoolAllocation"]
