"""Blocks as plain loops.

Before → after::

    for i, k in T.grid(16, 32):                       for i, k in T.grid(16, 32):
        with T.block("sum"):                              if k == 0:
            vi, vk = T.axis.remap("SR", [i, k])               C[i] = 0
            with T.init():                                C[i] = C[i] + A[i, k]
                C[vi] = 0
            C[vi] = C[vi] + A[vi, vk]

The buffers of a block become ``BufferRealize`` around it; a buffer that stands for a part of another is replaced by that part.
"""
from __future__ import annotations

from typing import Any, Sequence

from ...ir.expr import INDEX_DTYPE, IntImm, PrimExpr, Range
from .. import build
from .. import expr as tir
from .. import stmt as ts
from ..block import Block, BlockRealize, MatchBufferRegion
from ..buffer import Buffer, BufferLoad
from ..dtypes import lanes_of
from ..function import PrimFunc
from ..functor import StmtMutator
from .common import func_pass


def compact_strides(shape: Sequence[PrimExpr]) -> list[PrimExpr]:
    """The strides of a row-major array."""
    strides: list[PrimExpr] = []
    step: PrimExpr = IntImm(INDEX_DTYPE, 1)
    for d in reversed(shape):
        strides.append(step)
        step = build.mul(step, d)
    return strides[::-1]


class _Match:
    """Where a buffer that stands for a part of another lies in it."""

    def __init__(self, buffer: Buffer, mins: Sequence[PrimExpr], rank: int) -> None:
        self.buffer, self.mins, self.rank = buffer, list(mins), rank

    def indices(self, given: Sequence[PrimExpr]) -> list[PrimExpr]:
        """Positions in the other buffer; dimensions that the part lacks are those in front."""
        first = len(self.mins) - self.rank
        return [*self.mins[:first], *(_plus(m, i) for m, i in zip(self.mins[first:], given))]


def _plus(low: PrimExpr, index: PrimExpr) -> PrimExpr:
    lanes = lanes_of(index.dtype)
    low = build.cast(index.dtype.partition("x")[0], low)
    return build.add(low if lanes == 1 else build.broadcast(low, lanes), index)


class _LowerBlocks(StmtMutator):
    """``values`` maps the axes of blocks to what they stand for, ``matches`` buffers to parts of others."""

    def __init__(self) -> None:
        super().__init__()
        self.values: dict[int, PrimExpr] = {}
        self.matches: dict[int, _Match] = {}
        self.kept: list[Any] = []
        self._identity_exprs = True  # until the first axis

    def _finish(self, e: PrimExpr) -> PrimExpr:
        found = self.values.get(id(e))
        if found is not None:
            return found
        match = self.matches.get(id(e.buffer)) if type(e) is BufferLoad else None
        return e if match is None else BufferLoad(match.buffer, match.indices(e.indices))

    def visit_BufferStore(self, s: ts.BufferStore) -> ts.Stmt:
        if self._identity_exprs:
            return s
        value, indices = self.expr(s.value), [self.expr(i) for i in s.indices]
        match = self.matches.get(id(s.buffer))
        if match is not None:
            return ts.BufferStore(match.buffer, value, match.indices(indices), s.span)
        return s.replace(value=value, indices=tuple(indices))

    def visit_BlockRealize(self, s: BlockRealize) -> Any:
        block = s.block
        values = [self.expr(v) for v in s.iter_values]
        condition = self.expr(s.predicate)
        self._identity_exprs = False
        for axis, value in zip(block.iter_vars, values):
            self.values[id(axis.var)] = build.cast(axis.var.dtype, value)
        for m in block.match_buffers:
            self._part(m)
        self.kept.append(block)
        first = self._first_round(block)
        body = yield block.body
        if block.init is not None:
            init = yield block.init
            body = ts.seq(init if first is None else ts.IfThenElse(first, init), body)
        if not _is_true(condition):
            body = ts.IfThenElse(condition, body, None, s.span)
        for b in reversed(block.alloc_buffers):
            body = ts.BufferRealize(b, [Range.from_min_extent(0, self.expr(d)) for d in b.shape], build.make_const(True, "bool"), body)
        return body

    def visit_Block(self, s: Block) -> Any:
        """A block without values for its axes; it has none then."""
        return (yield BlockRealize((), True, s))

    def _first_round(self, block: Block) -> PrimExpr | None:
        """Whether this is the first round of the reduction; None when there is no axis of one."""
        found: PrimExpr | None = None
        for axis in block.iter_vars:
            if axis.iter_type == tir.IterVar.CommReduce and axis.dom is not None:
                value = self.values[id(axis.var)]
                here = build.equal(value, build.cast(value.dtype, self.expr(axis.dom.min)))
                found = here if found is None else build.logical_and(found, here)
        return None if found is not None and _is_true(found) else found

    def _part(self, m: MatchBufferRegion) -> None:
        source = m.source
        mins = [self.expr(r.min) for r in source.region]
        outer = self.matches.get(id(source.buffer))
        base = outer.buffer if outer is not None else source.buffer
        self.matches[id(m.buffer)] = _Match(base, outer.indices(mins) if outer is not None else mins, len(m.buffer.shape))
        self.kept.append(m)
        self._offsets(m.buffer, base, self.matches[id(m.buffer)].mins)

    def _offsets(self, b: Buffer, base: Buffer, mins: Sequence[PrimExpr]) -> None:
        """The pointer, the strides and the offset of a part, where they are variables that the program may speak of."""
        strides = list(base.strides) or compact_strides([build.cast("int64", d) for d in base.shape])
        offset: PrimExpr = build.cast("int64", base.elem_offset)
        for low, stride in zip(mins, strides):
            offset = build.add(offset, build.mul(build.cast("int64", low), build.cast("int64", stride)))
        self.values[id(b.data)] = base.data
        if isinstance(b.elem_offset, tir.Var):
            self.values[id(b.elem_offset)] = build.cast(b.elem_offset.dtype, offset)
        for v, stride in zip(b.strides, strides[len(strides) - len(b.strides):]):
            if isinstance(v, tir.Var):
                self.values[id(v)] = build.cast(v.dtype, stride)


def _is_true(e: PrimExpr) -> bool:
    return isinstance(e, IntImm) and bool(e.value)


def lower_blocks(func: PrimFunc) -> PrimFunc:
    """Blocks as plain loops; see the module's description."""
    return _LowerBlocks().func(func)


LowerBlocks = func_pass("LowerBlocks", lower_blocks)
