"""Parts of buffers, as subscripts with slices say them."""
from __future__ import annotations

from typing import Any

from ..arith import Analyzer
from ..ir.expr import INDEX_DTYPE, IntImm, PrimExpr, Range, as_dim_expr
from ..support.errors import ArgumentError
from ..tir import build
from ..tir import expr as tir
from ..tir.block import BufferRegion
from ..tir.buffer import Buffer, BufferLoad
from ..tir.functor import ExprMutator


def subscript(buffer: Buffer, index: Any) -> BufferLoad | BufferRegion:
    """``buffer[index]``: an element; with slices that have a step a vector of elements, with other slices (or ranges) a region."""
    parts = list(index) if isinstance(index, (tuple, list)) else [index]
    _check_rank(buffer, parts)
    if not any(isinstance(p, (slice, Range)) for p in parts):
        return BufferLoad(buffer, [_index(buffer, p) for p in parts])
    if any(isinstance(p, slice) and p.step is not None for p in parts):
        return BufferLoad(buffer, vector_indices(buffer, parts))
    return BufferRegion(buffer, [_range(buffer, p, d) for p, d in zip(parts, buffer.shape)])


def _check_rank(buffer: Buffer, parts: list[Any]) -> None:
    if len(parts) != len(buffer.shape):
        raise ArgumentError(f"buffer {buffer.name!r} has {len(buffer.shape)} dimensions, but {len(parts)} subscripts are given")


def _index(buffer: Buffer, value: Any) -> PrimExpr:
    if isinstance(value, tir.IterVar):
        return value.var
    if isinstance(value, PrimExpr):
        return value
    if isinstance(value, int) and not isinstance(value, bool):
        return as_dim_expr(value)
    if hasattr(value, "__index__"):
        return as_dim_expr(value.__index__())
    raise ArgumentError(f"buffer {buffer.name!r}: a subscript is an integer expression, got {type(value).__name__} {value!r}")


def _range(buffer: Buffer, part: Any, dim: PrimExpr) -> Range:
    if isinstance(part, Range):
        return part
    if not isinstance(part, slice):
        return Range.from_min_extent(_index(buffer, part), 1)
    low = as_dim_expr(0) if part.start is None else _index(buffer, part.start)
    high = dim if part.stop is None else _index(buffer, part.stop)
    return Range.from_min_extent(low, extent_between(low, high))


def extent_between(low: PrimExpr, high: PrimExpr) -> PrimExpr:
    """``high - low``, as a constant where terms cancel."""
    if low.dtype != high.dtype:
        low, high = build.cast("int64", low), build.cast("int64", high)
    plain = build.sub(high, low)
    if isinstance(plain, IntImm) or isinstance(low, IntImm) and low.value == 0:
        return plain
    simple = Analyzer().simplify(plain)
    if isinstance(simple, IntImm) or low.dtype == INDEX_DTYPE:
        return simple
    wide = Analyzer().simplify(_Widened().expr(plain))  # positions do not overflow, whatever their dtype
    return build.make_const(wide.value, low.dtype) if isinstance(wide, IntImm) else simple


class _Widened(ExprMutator):
    """Sums and products of narrow integers as those of indices; anything else stands for itself, as a variable."""

    def __init__(self) -> None:
        super().__init__()
        self.table: dict[int, tuple[PrimExpr, tir.Var]] = {}

    def _atom(self, e: PrimExpr) -> tir.Var:
        return self.table.setdefault(id(e), (e, tir.Var("t", INDEX_DTYPE)))[1]

    enter_Cast = enter_Call = enter_BufferLoad = enter_Select = enter_Let = _atom
    mutate_Var = _atom

    def mutate_IntImm(self, e: IntImm) -> IntImm:
        return IntImm(INDEX_DTYPE, e.value)


def vector_indices(buffer: Buffer, parts: list[Any]) -> list[PrimExpr]:
    """Subscripts with slices as vectors of positions; ArgumentError unless every slice has a constant length."""
    _check_rank(buffer, parts)
    return [_ramp(buffer, p, d) if isinstance(p, slice) else _index(buffer, p) for p, d in zip(parts, buffer.shape)]


def _ramp(buffer: Buffer, part: slice, dim: PrimExpr) -> PrimExpr:
    where, step = _range(buffer, slice(part.start, part.stop), dim), _index(buffer, 1 if part.step is None else part.step)
    if not isinstance(where.extent, IntImm) or not isinstance(step, IntImm) or step.value == 0:
        raise ArgumentError(f"buffer {buffer.name!r}: a slice that stands for a vector has a constant length and step")
    lanes = -(-where.extent.value // step.value)
    return where.min if lanes == 1 else tir.Ramp(where.min, build.make_const(step.value, where.min.dtype), lanes)


def region_load(region: BufferRegion) -> BufferLoad:
    """A region as a vector load: one element along every dimension but those cut out."""
    indices: list[PrimExpr] = []
    for r in region.region:
        if not isinstance(r.extent, IntImm):
            raise ArgumentError(f"buffer {region.buffer.name!r}: a slice that stands for a vector has a constant length")
        indices.append(r.min if r.extent.value == 1 else tir.Ramp(r.min, build.make_const(1, r.min.dtype), r.extent.value))
    return BufferLoad(region.buffer, indices)


def as_region(value: Any) -> BufferRegion:
    """A region from one, from a whole buffer, or from one element."""
    if isinstance(value, BufferRegion):
        return value
    if isinstance(value, Buffer):
        return BufferRegion(value, [Range.from_min_extent(0, d) for d in value.shape])
    if isinstance(value, BufferLoad):
        return BufferRegion(value.buffer, [_ramp_range(i) for i in value.indices])
    raise ArgumentError(f"a part of a buffer is expected, such as A[0:4, j], got {type(value).__name__}")


def _ramp_range(index: PrimExpr) -> Range:
    if isinstance(index, tir.Ramp):
        return Range.from_min_extent(index.base, build.mul(index.stride, build.make_const(index.lanes, index.stride.dtype)))
    return Range.from_min_extent(index, 1)
