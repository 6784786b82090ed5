"""What memory planning speaks of: buffers to place, their places, how large pools get."""
from __future__ import annotations

from enum import IntEnum
from typing import Any, Mapping, Sequence

from ...ir.memory_pools import AllocatedPoolInfo
from ...ir.module import NodeMap
from ..dtypes import info
from ..stmt import Allocate, AllocateConst

CANDIDATE_MEMORY_POOL_ATTR = "candidate_memory_pools"  # annotation of an allocation: the pools it may lie in, the preferred first
INPUT_TENSOR_ATTR, OUTPUT_TENSOR_ATTR = "input_tensor", "output_tensor"  # annotation: the name of the input or output that it holds


class Bytes(int):
    """A number of bytes, or an offset in bytes; ``value`` is the same as a plain int."""

    __slots__ = ()

    @property
    def value(self) -> int:
        """The number."""
        return int(self)

    def __add__(self, other: int) -> Bytes:
        return Bytes(int(self) + int(other))

    __radd__ = __add__


class BufferInfoKind(IntEnum):
    """What a buffer holds."""

    Intermediate = 0
    Input = 1
    Output = 2


class BufferInfo:
    """A buffer to place: bytes, the pools it may lie in (the preferred first), its alignment, and the buffers it must not overlap."""

    def __init__(self, name_hint: str, size_bytes: int, pool_candidates: Sequence[Any], alignment: int | None = None,
                 kind: BufferInfoKind = BufferInfoKind.Intermediate) -> None:
        self.name_hint, self.size_bytes, self.pool_candidates = str(name_hint), Bytes(size_bytes), list(pool_candidates)
        self.alignment, self.kind = 1 if alignment is None else int(alignment), kind
        self.conflicts: list[BufferInfo] = []

    def set_conflicts(self, conflicts: Sequence[BufferInfo]) -> None:
        """States which buffers hold something while this one does."""
        self.conflicts = list(conflicts)

    def __repr__(self) -> str:
        return f"BufferInfo({self.name_hint!r}, {self.size_bytes} bytes, {len(self.conflicts)} conflicts)"


class PoolAllocation:
    """A buffer's place: a pool and a byte offset in it."""

    def __init__(self, pool_info: Any, byte_offset: int) -> None:
        self.pool_info, self.byte_offset = pool_info, Bytes(byte_offset)

    def __repr__(self) -> str:
        return f"PoolAllocation({self.pool_info!r}, {self.byte_offset})"


class BufferInfoAnalysis:
    """All buffers of a program by the statement that allocates them, and the most bytes that they hold at once."""

    def __init__(self, buffer_info_stmts: Mapping[BufferInfo, Any], memory_pressure: int) -> None:
        self.buffer_info_stmts, self.memory_pressure = NodeMap(buffer_info_stmts), int(memory_pressure)


def extents_bytes(s: Allocate | AllocateConst) -> int | None:
    """Bytes of an allocation; None when its size is not known while compiling."""
    from ...ir.expr import IntImm

    if not all(isinstance(e, IntImm) for e in s.extents):
        return None
    t = info(s.dtype)
    size = (t.bits + 7) // 8 * t.lanes
    for e in s.extents:
        size *= e.value  # type: ignore[attr-defined]
    return size


def create_array_buffer_info(buffer_info_map: Mapping[BufferInfo, Any]) -> list[BufferInfo]:
    """The buffers of an analysis, in order."""
    return list(buffer_info_map)


def assign_stmt_pool_allocations(buffer_info_to_stmt: Mapping[BufferInfo, Any], buffer_info_to_pool_allocation: Mapping[BufferInfo, PoolAllocation]) -> NodeMap:
    """Allocation statement → place, from buffer → statement and buffer → place."""
    return NodeMap({buffer_info_to_stmt[b]: place for b, place in buffer_info_to_pool_allocation.items()})


def get_io_pool_allocations(buffer_info_to_pool_allocation: Mapping[BufferInfo, PoolAllocation]) -> NodeMap:
    """Name → place of the buffers that hold inputs and outputs."""
    return NodeMap({b.name_hint: place for b, place in buffer_info_to_pool_allocation.items() if b.kind != BufferInfoKind.Intermediate})


__all__ = ["AllocatedPoolInfo", "BufferInfo", "BufferInfoAnalysis", "BufferInfoKind", "CANDIDATE_MEMORY_POOL_ATTR", "INPUT_TENSOR_ATTR",
           "OUTPUT_TENSOR_ATTR", "PoolAllocation", "assign_stmt_pool_allocations", "create_array_buffer_info", "extents_bytes", "get_io_pool_allocations"]
