"""Accesses to buffers as user code writes them: vectors of elements, pointers, positions in flat memory."""
from __future__ import annotations

from typing import Any, Sequence

from ..ir.expr import INDEX_DTYPE, IntImm, PrimExpr
from ..support.errors import ArgumentError, TypeMismatchError
from . import build, op
from . import expr as tir
from .buffer import Buffer, BufferLoad
from .dtypes import lanes_of, scalar_of, with_lanes
from .stmt import BufferStore

_MASKS = {"r": Buffer.READ, "w": Buffer.WRITE}


def _start(b: Buffer, begin: Any) -> list[PrimExpr]:
    found = [op.convert(i) for i in (begin if isinstance(begin, (tuple, list)) else (begin,))]
    if len(found) != len(b.shape):
        raise ArgumentError(f"buffer {b.name!r} has {len(b.shape)} dimensions, but is accessed with {len(found)} indices")
    return found


def _vector_start(b: Buffer, begin: Any, dtype: str) -> list[PrimExpr]:
    """Indices of the vector of ``dtype`` that starts at ``begin``."""
    indices, lanes = _start(b, begin), lanes_of(dtype)
    if scalar_of(dtype) != scalar_of(b.dtype) or lanes % lanes_of(b.dtype):
        raise TypeMismatchError(f"buffer {b.name!r} holds {b.dtype}, but is accessed as {dtype}")
    count = lanes // lanes_of(b.dtype)
    if count > 1:
        indices[-1] = tir.Ramp(indices[-1], IntImm(indices[-1].dtype, 1), count)
    return indices


def vload(b: Buffer, begin: Any, dtype: str | None = None) -> BufferLoad:
    """See ``Buffer.vload``."""
    return BufferLoad(b, _vector_start(b, begin, str(dtype or b.dtype)))


def vstore(b: Buffer, begin: Any, value: PrimExpr) -> BufferStore:
    """See ``Buffer.vstore``."""
    value = op.const(value, b.dtype) if not isinstance(value, PrimExpr) else value
    return BufferStore(b, value, _vector_start(b, begin, value.dtype))


def _strides(b: Buffer) -> list[PrimExpr]:
    if b.strides:
        return list(b.strides)
    found: list[PrimExpr] = []
    step: PrimExpr = IntImm(INDEX_DTYPE, 1)
    for d in reversed(b.shape):
        found.append(step)
        step = build.mul(*op.match_types(step, d))
    return found[::-1]


def offset_of(b: Buffer, indices: Sequence[Any]) -> list[PrimExpr]:
    """See ``Buffer.offset_of``."""
    total = b.elem_offset
    for i, s in zip(_start(b, indices), _strides(b)):
        total = op.add(total, op.multiply(i, s))
    return [total]


def _size(b: Buffer) -> PrimExpr:
    """How many elements a buffer spans."""
    total: PrimExpr = IntImm(INDEX_DTYPE, 1)
    for d in b.shape if not b.strides else (b.shape[0], b.strides[0]):
        total = op.multiply(total, d)
    return total


def access_ptr(b: Buffer, access_mask: int | str, ptr_type: str = "handle", content_lanes: int = 1, offset: Any = 0, extent: Any = None) -> PrimExpr:
    """See ``Buffer.access_ptr``."""
    if isinstance(access_mask, str):
        if not access_mask or any(c not in _MASKS for c in access_mask):
            raise ArgumentError(f"access_ptr: the mask is expected to be made of r and w, got {access_mask!r}")
        access_mask = sum({_MASKS[c] for c in access_mask})
    first, size = op.add(b.elem_offset, offset), op.subtract(_size(b), offset)
    dtype = b.dtype
    if content_lanes > 1:
        dtype, first, size = with_lanes(scalar_of(dtype), content_lanes), op.floordiv(first, content_lanes), op.floordiv(size, content_lanes)
    touched = size if extent is None else op.convert(extent)
    return tir.Call(ptr_type, "tir.tvm_access_ptr", [op.type_annotation(dtype), b.data, first, touched, IntImm("int32", access_mask)])


def flattened(b: Buffer) -> Buffer:
    """See ``Buffer.get_flattened_buffer``."""
    if len(b.shape) == 1 and not b.strides:
        return b
    return Buffer(b.data, b.dtype, [_size(b)], (), b.elem_offset, b.name, b.data_alignment, b.scope_name)
