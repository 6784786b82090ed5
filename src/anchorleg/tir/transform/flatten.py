"""Buffers in one dimension: what ``StorageFlatten`` (``FlattenBuffer``) does.

Before: ``realize C[0:4, 0:16] { C[i, j] = A[i, j] }``; after: ``allocate C[64] { C[i * 16 + j] = A[i * 30 + j] }``.  ``buffer_map``
keeps the shapes the caller sees.  ``DeclBuffer`` disappears.
"""
from __future__ import annotations

from typing import Any, NamedTuple, Sequence

from ...ir.expr import INDEX_DTYPE, IntImm, PrimExpr
from .. import build
from .. import stmt as ts
from ..buffer import Buffer, BufferLoad
from ..dtypes import lanes_of
from ..function import PrimFunc
from ..functor import StmtMutator
from .common import func_pass
from .lower_blocks import compact_strides, lower_blocks

_ZERO, _ONE = IntImm(INDEX_DTYPE, 0), IntImm(INDEX_DTYPE, 1)


class _Layout(NamedTuple):
    """Where the elements of a buffer lie: at offset + Σ (index - min) * stride of the flat buffer."""

    original: Buffer
    flat: Buffer
    mins: Sequence[PrimExpr]
    strides: Sequence[PrimExpr]
    offset: PrimExpr


def _extent(shape: Sequence[PrimExpr], strides: Sequence[PrimExpr], offset: PrimExpr) -> PrimExpr:
    """How many elements there are up to and including the last one (offset + 1 + Σ (d - 1) * stride)."""
    total: PrimExpr = build.add(offset, _ONE)
    for d, s in zip(shape, strides):
        total = build.add(total, build.mul(build.sub(d, _ONE), s))
    return total


def _product(shape: Sequence[PrimExpr]) -> PrimExpr:
    total: PrimExpr = _ONE
    for d in shape:
        total = build.mul(total, d)
    return total


def _is_flat(b: Buffer) -> bool:
    return len(b.shape) == 1 and not b.strides and isinstance(b.elem_offset, IntImm) and b.elem_offset.value == 0


def _layout(b: Buffer, shape: Sequence[PrimExpr], mins: Sequence[PrimExpr] = ()) -> _Layout:
    offset = build.cast(INDEX_DTYPE, b.elem_offset)
    if b.strides:
        strides: Sequence[PrimExpr] = [build.cast(INDEX_DTYPE, s) for s in b.strides]
        size = _extent(shape, strides, offset)
    else:
        shape = [build.cast(INDEX_DTYPE, d) for d in shape]
        strides = compact_strides(shape)
        size = build.add(_product(shape), offset)
    flat = Buffer(b.data, b.dtype, [size], (), 0, b.name, b.data_alignment, b.scope_name)
    return _Layout(b, flat, mins, strides, offset)


class _Flatten(StmtMutator):
    def __init__(self) -> None:
        super().__init__()
        self.layouts: dict[int, _Layout | None] = {}
        self._keep: list[Buffer] = []

    def layout(self, b: Buffer) -> _Layout | None:
        """Where a buffer's elements lie; None when it is flat already."""
        if id(b) not in self.layouts:
            self._keep.append(b)
            self.layouts[id(b)] = None if _is_flat(b) else _layout(b, b.shape)
        return self.layouts[id(b)]

    def _index(self, where: _Layout, indices: Sequence[PrimExpr]) -> PrimExpr:
        total: PrimExpr = where.offset
        for axis, (i, stride) in enumerate(zip(indices, where.strides)):
            low = where.mins[axis] if where.mins else _ZERO
            total = _vadd(total, _vmul(_vsub(_index_typed(i), low), stride))
        return total

    def mutate_BufferLoad(self, e: BufferLoad) -> PrimExpr:
        where = self.layout(e.buffer)
        return e if where is None else BufferLoad(where.flat, [self._index(where, e.indices)])

    def visit_BufferStore(self, s: ts.BufferStore) -> ts.Stmt:
        value, indices = self.expr(s.value), [self.expr(i) for i in s.indices]
        where = self.layout(s.buffer)
        if where is None:
            return s.replace(value=value, indices=tuple(indices))
        return ts.BufferStore(where.flat, value, [self._index(where, indices)])

    def visit_BufferRealize(self, s: ts.BufferRealize) -> Any:
        b = s.buffer
        mins = [self.expr(r.min) for r in s.bounds]
        extents = [self.expr(r.extent) for r in s.bounds]
        shifted = any(not isinstance(m, IntImm) or m.value for m in mins)
        where = _layout(b, b.shape if b.strides else extents, mins if shifted else ())
        self.layouts[id(b)] = where
        self._keep.append(b)
        self.memo.clear()
        body = yield s.body
        return ts.Allocate(b.data, b.dtype, where.flat.shape, self.expr(s.condition), body)

    def visit_Allocate(self, s: ts.Allocate) -> Any:
        body = yield s.body
        extents = [self.expr(e) for e in s.extents]
        if len(extents) != 1:
            extents = [_product([build.cast(INDEX_DTYPE, e) for e in extents])]
        return s.replace(extents=tuple(extents), condition=self.expr(s.condition), body=body)

    def visit_DeclBuffer(self, s: ts.DeclBuffer) -> Any:
        return (yield s.body)


def _index_typed(i: PrimExpr) -> PrimExpr:
    """An index in the index type (with its lanes)."""
    lanes = lanes_of(i.dtype)
    want = INDEX_DTYPE if lanes == 1 else f"{INDEX_DTYPE}x{lanes}"
    return i if i.dtype == want else build.cast(want, i)


def _matched(a: PrimExpr, b: PrimExpr) -> tuple[PrimExpr, PrimExpr]:
    if a.dtype == b.dtype:
        return a, b
    lanes = max(lanes_of(a.dtype), lanes_of(b.dtype))
    return (a if lanes_of(a.dtype) == lanes else build.broadcast(a, lanes)), (b if lanes_of(b.dtype) == lanes else build.broadcast(b, lanes))


def _vadd(a: PrimExpr, b: PrimExpr) -> PrimExpr:
    return build.add(*_matched(a, b))


def _vsub(a: PrimExpr, b: PrimExpr) -> PrimExpr:
    return build.sub(*_matched(a, b))


def _vmul(a: PrimExpr, b: PrimExpr) -> PrimExpr:
    return build.mul(*_matched(a, b))


def flatten(func: PrimFunc, cache_line_size: int = 64, create_bound_attributes: bool = False) -> PrimFunc:
    """The function with all buffers in one dimension, and ``Allocate`` in place of ``BufferRealize``; blocks become loops first."""
    return _Flatten().func(lower_blocks(func))


StorageFlatten = func_pass("StorageFlatten", flatten)
FlattenBuffer = func_pass("FlattenBuffer", flatten)
