"""Blocks as plain loops.

Before → after::

    for i, k in T.grid(16, 32):                       for i, k in T.grid(16, 32):
        with T.block("sum"):                              if k == 0:
            vi, vk = T.axis.remap("SR", [i, k])               C[i] = 0
            with T.init():                                C[i] = C[i] + A[i, k]
                C[vi] = 0
            C[vi] = C[vi] + A[vi, vk]

The buffers of a block are allocated around it; a buffer that stands for a part of another is replaced by that part.
``LowerInitBlock``, ``ConvertBlocksToOpaque``, ``LowerMatchBuffer`` and ``LowerOpaqueBlock`` are the single steps of it.
"""
from __future__ import annotations

from typing import Any, Sequence

from ...ir.expr import INDEX_DTYPE, IntImm, PrimExpr, Range
from .. import build
from .. import expr as tir
from .. import stmt as ts
from ...support.errors import ArgumentError
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


_ALL = frozenset({"init", "axes", "match", "opaque"})


class _LowerBlocks(StmtMutator):
    """``values`` maps the axes of blocks (and variables of loops that run once) to what they stand for, ``matches`` buffers to parts of
    others; ``steps`` says what is done to a block."""

    def __init__(self, steps: frozenset[str]) -> None:
        super().__init__()
        self.steps = steps
        self.values: dict[int, PrimExpr] = {}
        self.matches: dict[int, _Match] = {}
        self.kept: list[Any] = []
        self._identity_exprs = True  # until the first variable is replaced

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
        values = tuple(self.expr(v) for v in s.iter_values)
        condition = self.expr(s.predicate)
        self.kept.append(block)
        if "axes" in self.steps and block.iter_vars:
            self._identity_exprs = False
            self.values.update((id(a.var), build.cast(a.var.dtype, v)) for a, v in zip(block.iter_vars, values))
        if "match" in self.steps and block.match_buffers:
            self._identity_exprs = False
            for m in block.match_buffers:
                self._part(m)
        block = yield from self._inside(block)
        if "opaque" in self.steps:
            return self._opened(block, condition, s)
        return BlockRealize(values if block.iter_vars else (), condition, block, s.span)

    def visit_Block(self, s: Block) -> Any:
        """A block without values for its axes; it has none then."""
        if "opaque" in self.steps:
            return (yield BlockRealize((), True, s))
        return (yield from self._inside(s))

    def _inside(self, block: Block) -> Any:
        """The block with its parts rewritten: without ``init``, axes or matched buffers where those are lowered."""
        first = self._first_round(block)
        new = yield from self._default_block(block.replace(match_buffers=()) if "match" in self.steps else block)
        if "init" in self.steps and new.init is not None:
            new = new.replace(init=None, body=_in_order(new.init if first is None else ts.IfThenElse(first, new.init), new.body))
        return new.replace(iter_vars=()) if "axes" in self.steps else new

    def _opened(self, block: Block, condition: PrimExpr, s: BlockRealize) -> ts.Stmt:
        """What a block without axes, ``init`` and matched buffers does, as plain statements."""
        if block.iter_vars or block.init is not None or block.match_buffers:
            raise ArgumentError(f"LowerOpaqueBlock: block {block.name_hint!r} is expected to have no axes, init or matched buffers any more: run "
                                "LowerInitBlock, ConvertBlocksToOpaque and LowerMatchBuffer first")
        body = block.body if _is_true(condition) else ts.IfThenElse(condition, block.body, None, s.span)
        for b in reversed(block.alloc_buffers):
            body = ts.Allocate(b.data, b.dtype, _memory_shape(b), build.make_const(True, "bool"), ts.DeclBuffer(b, body))
        return body

    def visit_For(self, s: ts.For) -> Any:
        """With ``loops``: a loop that runs once is its body, one over a hardware axis an annotation."""
        if "loops" not in self.steps:
            return (yield from self.default(s))
        low, extent = self.expr(s.min), self.expr(s.extent)
        if s.kind is not ts.ForKind.THREAD_BINDING and isinstance(extent, IntImm) and extent.value == 1 and not s.annotations:
            self.values[id(s.loop_var)] = build.cast(s.loop_var.dtype, low)
            self._identity_exprs = False
            return (yield s.body)
        body = yield s.body
        if s.kind is not ts.ForKind.THREAD_BINDING:
            return s.replace(min=low, extent=extent, body=body)
        tag = s.thread_binding.thread_tag
        axis = tir.IterVar(Range.from_min_extent(low, extent), s.loop_var, tir.IterVar.ThreadIndex, tag)
        return ts.AttrStmt(axis, "virtual_thread" if tag.startswith("vthread") else "thread_extent", extent, body, s.span)

    def _first_round(self, block: Block) -> PrimExpr | None:
        """Whether this is the first round of the reduction; None when there is no axis of one."""
        found: PrimExpr | None = None
        for axis in block.iter_vars if block.init is not None else ():
            if axis.iter_type == tir.IterVar.CommReduce and axis.dom is not None:
                value = self.expr(axis.var)
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


def _in_order(first: ts.Stmt, then: ts.Stmt) -> ts.Stmt:
    return ts.SeqStmt([*(first.seq if isinstance(first, ts.SeqStmt) else (first,)), *(then.seq if isinstance(then, ts.SeqStmt) else (then,))])


def _memory_shape(b: Buffer) -> Sequence[PrimExpr]:
    """The extents of the memory a buffer needs: its shape, widened along inner dimensions where its strides leave gaps."""
    if not b.strides:
        return b.shape
    dims = [b.shape[0], *(build.floor_div(a, c) for a, c in zip(b.strides, b.strides[1:]))]
    return [*dims[:-1], build.mul(*_one_dtype(dims[-1], b.strides[-1]))]


def _one_dtype(a: PrimExpr, b: PrimExpr) -> tuple[PrimExpr, PrimExpr]:
    return build.cast(INDEX_DTYPE, a), build.cast(INDEX_DTYPE, b)


def _is_true(e: PrimExpr) -> bool:
    return isinstance(e, IntImm) and bool(e.value)


def lower_blocks(func: PrimFunc) -> PrimFunc:
    """Blocks as plain loops; see the module's description."""
    return _LowerBlocks(_ALL).func(func)


def lower_init_block(func: PrimFunc) -> PrimFunc:
    """The ``init`` of a block as a branch in its body, taken in the first round of its reduction axes."""
    return _LowerBlocks(frozenset({"init"})).func(func)


def convert_blocks_to_opaque(func: PrimFunc) -> PrimFunc:
    """Blocks without axes: each is replaced by the value it stands for."""
    return _LowerBlocks(frozenset({"axes"})).func(func)


def lower_match_buffer(func: PrimFunc) -> PrimFunc:
    """Buffers that stand for parts of others replaced by those parts."""
    return _LowerBlocks(frozenset({"match"})).func(func)


def lower_opaque_block(func: PrimFunc) -> PrimFunc:
    """Blocks without axes as plain statements, their buffers as allocations; loops that run once are their bodies."""
    return _LowerBlocks(frozenset({"opaque", "loops"})).func(func)


LowerBlocks = func_pass("LowerBlocks", lower_blocks)
LowerInitBlock = func_pass("LowerInitBlock", lower_init_block)
ConvertBlocksToOpaque = func_pass("ConvertBlocksToOpaque", convert_blocks_to_opaque)
LowerMatchBuffer = func_pass("LowerMatchBuffer", lower_match_buffer)
LowerOpaqueBlock = func_pass("LowerOpaqueBlock", lower_opaque_block)
