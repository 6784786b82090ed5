"""``StorageRewrite``: scratch buffers whose lives do not overlap share memory.

Within one body (of the function, of a loop, of a branch) allocations come first and the life of each is the span of statements from its
first use to its last.  Two of one scope and dtype share when their lives are disjoint, or when one ends in the very statement in which
the other begins and each element is read there exactly where the other is written (an element-wise step in place).  Small and "local"
scratch is left alone: it lives in registers or on the stack, where sharing would only get in the way.
"""
from __future__ import annotations

from typing import Any, Sequence

from ...ir.expr import IntImm
from .. import expr as tir
from .. import stmt as ts
from ..buffer import BufferLoad
from ..dtypes import info
from ..equal import expr_deep_equal
from ..function import PrimFunc
from ..functor import StmtMutator, post_order, substitute
from .common import func_pass, is_no_op

_SMALL = 4096  # bytes


class _Scratch:
    """One allocation of a body."""

    def __init__(self, alloc: ts.Allocate) -> None:
        self.alloc, self.var = alloc, alloc.buffer_var
        self.first, self.last = -1, -1
        self.opaque = False

    @property
    def scope(self) -> str:
        return getattr(self.var.type_annotation, "storage_scope", "global") or "global"

    def bytes(self) -> int | None:
        """Its size, if known."""
        total = (info(self.alloc.dtype).bits + 7) // 8 * info(self.alloc.dtype).lanes
        for e in self.alloc.extents:
            if not isinstance(e, IntImm):
                return None
            total *= e.value
        return total

    def shareable(self) -> bool:
        size = self.bytes()
        simple = isinstance(self.alloc.condition, IntImm) and not self.alloc.annotations
        return size is not None and size > _SMALL and self.scope == "global" and self.first >= 0 and not self.opaque and simple


class _Block:
    """Memory that several buffers use in turn."""

    def __init__(self, owner: _Scratch) -> None:
        self.owner, self.members, self.size = owner, [owner], owner.bytes() or 0
        self.free_from, self.dtype = owner.last, owner.alloc.dtype


class _StorageRewrite(StmtMutator):
    """Rewrites bodies innermost first."""

    def expr(self, e: Any) -> Any:
        return e

    def func(self, f: PrimFunc) -> PrimFunc:
        return f.replace(body=plan(self._run(f.body)))

    def visit_For(self, s: ts.For) -> Any:
        return s.replace(body=plan((yield s.body)))

    def visit_While(self, s: ts.While) -> Any:
        return s.replace(body=plan((yield s.body)))

    def visit_IfThenElse(self, s: ts.IfThenElse) -> Any:
        then = plan((yield s.then_case))
        return s.replace(then_case=then, else_case=None if s.else_case is None else plan((yield s.else_case)))


def _opened(body: ts.Stmt) -> tuple[list[_Scratch], list[ts.Stmt]]:
    """The allocations of a body, and its statements in order."""
    found: list[_Scratch] = []
    steps: list[ts.Stmt] = []
    pending = [body]
    while pending:
        s = pending.pop()
        if isinstance(s, ts.SeqStmt):
            pending.extend(reversed(s.seq))
        elif isinstance(s, ts.Allocate):
            found.append(_Scratch(s))
            pending.append(s.body)
        elif not is_no_op(s):
            steps.append(s)
    return found, steps


def plan(body: ts.Stmt) -> ts.Stmt:
    """The body with its scratch shared where lives allow; the same object when nothing is shared."""
    scratch, steps = _opened(body)
    if len(scratch) < 2:
        return body
    _lives(scratch, steps)
    blocks = _assign([s for s in scratch if s.shareable()], steps)
    shared = [b for b in blocks if len(b.members) > 1]
    if not shared:
        return body
    moved = {m.var: b.owner.var for b in shared for m in b.members if m is not b.owner}
    result = substitute(ts.seq(*steps), moved)
    sizes = {id(b.owner.var): b for b in shared}
    for s in reversed(scratch):
        if s.var not in moved:
            block = sizes.get(id(s.var))
            result = s.alloc.replace(body=result, extents=s.alloc.extents if block is None else _extents(block))
    return result


def _extents(block: _Block) -> tuple[IntImm, ...]:
    t = info(block.dtype)
    return (IntImm("int64", -(-block.size // ((t.bits + 7) // 8 * t.lanes))),)


def _lives(scratch: Sequence[_Scratch], steps: Sequence[ts.Stmt]) -> None:
    by_var = {id(s.var): s for s in scratch}
    for at, step in enumerate(steps):
        for n in post_order(step):
            if isinstance(n, (BufferLoad, ts.BufferStore)):
                _touch(by_var.get(id(n.buffer.data)), at)
            elif isinstance(n, tir.Var) and n.dtype == "handle" and id(n) in by_var:
                _touch(by_var[id(n)], at)
                by_var[id(n)].opaque = True  # its address goes elsewhere


def _touch(s: _Scratch | None, at: int) -> None:
    if s is not None:
        s.first = at if s.first < 0 else s.first
        s.last = at


def _assign(scratch: Sequence[_Scratch], steps: Sequence[ts.Stmt]) -> list[_Block]:
    blocks: list[_Block] = []
    for s in sorted(scratch, key=lambda x: x.first):
        block = min((b for b in blocks if _free_for(b, s, steps)), key=lambda b: abs(b.size - (s.bytes() or 0)), default=None)
        if block is None:
            blocks.append(_Block(s))
            continue
        block.members.append(s)
        block.size, block.free_from = max(block.size, s.bytes() or 0), s.last
    return blocks


def _free_for(b: _Block, s: _Scratch, steps: Sequence[ts.Stmt]) -> bool:
    if b.dtype != s.alloc.dtype:
        return False
    if b.free_from < s.first:
        return True
    return b.free_from == s.first and _in_place(steps[s.first], b.members[-1].var, s.var)


def _in_place(step: ts.Stmt, old: tir.Var, new: tir.Var) -> bool:
    """Whether in this statement each element of ``old`` is read only in the store to the same element of ``new``."""
    stores = [n for n in post_order(step) if isinstance(n, ts.BufferStore)]
    if any(n.buffer.data is old for n in stores):
        return False
    into = [n for n in stores if n.buffer.data is new]
    if len(into) != 1 or len(into[0].indices) != 1:
        return False
    inside = {id(n) for n in post_order(into[0])}
    for n in post_order(step):
        if isinstance(n, BufferLoad) and n.buffer.data in (old, new):
            if n.buffer.data is new or id(n) not in inside or not expr_deep_equal(n.indices[0], into[0].indices[0]):
                return False
    return _each_once(step, into[0])


def _each_once(step: ts.Stmt, store: ts.BufferStore) -> bool:
    """Whether the store touches each element at most once: every loop around it takes part in the index of a bijection."""
    from ...arith import Analyzer
    from ...ir.expr import Range

    loops: list[ts.For] = []
    s = step
    while s is not store:
        if isinstance(s, ts.For):
            loops.append(s)
            s = s.body
        elif isinstance(s, (ts.AttrStmt, ts.LetStmt)):
            s = s.body
        elif isinstance(s, ts.IfThenElse) and s.else_case is None:
            s = s.then_case
        else:
            return False
    an = Analyzer()
    for loop in loops:
        an.bind(loop.loop_var, Range.from_min_extent(loop.min, loop.extent))
    return _injective(an, loops, store.indices[0])


def _injective(an: Any, loops: Sequence[ts.For], index: Any) -> bool:
    """Whether different iterations give different indices: strides sorted, each at least the span of all smaller ones."""
    from ...arith import detect_linear_equation

    lanes = index.lanes if isinstance(index, tir.Ramp) else 1
    base = index.base if isinstance(index, tir.Ramp) else index
    if isinstance(index, tir.Ramp) and not (isinstance(index.stride, IntImm) and index.stride.value == 1):
        return False
    moving = [f for f in loops if not (isinstance(f.extent, IntImm) and f.extent.value == 1)]
    factors = detect_linear_equation(base, [f.loop_var for f in moving])
    if not factors or not all(isinstance(k, IntImm) for k in factors[:-1]) or not all(isinstance(f.extent, IntImm) for f in moving):
        return False
    span = lanes
    for stride, extent in sorted((abs(k.value), f.extent.value) for k, f in zip(factors, moving)):
        if stride < span:
            return False
        span = stride * (extent - 1) + span
    return True


def storage_rewrite(func: PrimFunc) -> PrimFunc:
    """The function with scratch memory shared by buffers that are not in use at the same time."""
    return _StorageRewrite().func(func)


StorageRewrite = func_pass("StorageRewrite", storage_rewrite)
