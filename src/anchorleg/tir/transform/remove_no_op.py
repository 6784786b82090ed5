"""``RemoveNoOp``: statements without effect disappear: empty loops and branches, pure expressions, unused bindings, and memory that nobody reads."""
from __future__ import annotations

from typing import Any

from ...ir.expr import IntImm
from .. import build
from .. import expr as tir
from .. import intrin
from .. import stmt as ts
from ..buffer import BufferLoad
from ..equal import expr_deep_equal
from ..function import PrimFunc
from ..functor import StmtMutator, contains, kids, post_order
from .common import func_pass, is_no_op


def is_pure(e: Any) -> bool:
    """Whether evaluating an expression has no effect (loads have none)."""
    return not contains(e, lambda n: isinstance(n, tir.Call) and intrin.effect_of(n.op) in (
        intrin.CallEffectKind.Opaque, intrin.CallEffectKind.UpdateState, intrin.CallEffectKind.ControlJump))


def _written_only(func: PrimFunc) -> set[int]:
    """The variables (by ``id``) of memory that the function allocates, stores to, and never reads or hands out."""
    own: set[int] = set()
    read: set[int] = set()
    for n in post_order(func.body):
        if isinstance(n, ts.Allocate):
            own.add(id(n.buffer_var))
        elif isinstance(n, BufferLoad):
            read.add(id(n.buffer.data))
        elif isinstance(n, tir.Var):
            read.add(id(n))
    return own - read


class _RemoveNoOp(StmtMutator):
    """Works innermost first; ``used`` gathers the variables of all statements kept so far, ``unread`` has those of memory nobody reads."""

    def __init__(self, unread: set[int]) -> None:
        super().__init__()
        self.unread = unread
        self.used: set[int] = set()
        self._seen: set[int] = set()

    def expr(self, e: Any) -> Any:
        return e

    def use(self, *exprs: Any) -> None:
        """Notes the variables and memory that kept expressions mention."""
        stack = list(exprs)
        while stack:
            e = stack.pop()
            if id(e) in self._seen:
                continue
            self._seen.add(id(e))
            if isinstance(e, tir.Var):
                self.used.add(id(e))
            elif isinstance(e, BufferLoad):
                self.use_buffer(e.buffer)
            stack.extend(kids(e))

    def use_buffer(self, b: Any) -> None:
        """Notes a buffer's memory and the variables of its shape."""
        self.used.add(id(b.data))
        for e in (*b.shape, *b.strides, b.elem_offset):
            if not isinstance(e, IntImm):
                self.use(e)

    def visit_Evaluate(self, s: ts.Evaluate) -> ts.Stmt:
        if not isinstance(s.value, IntImm) and is_pure(s.value):
            return ts.Evaluate(0)
        self.use(s.value)
        return s

    def visit_BufferStore(self, s: ts.BufferStore) -> ts.Stmt:
        v = s.value
        if isinstance(v, BufferLoad) and v.buffer is s.buffer and all(expr_deep_equal(a, b) for a, b in zip(v.indices, s.indices)):
            return ts.Evaluate(0)
        if id(s.buffer.data) in self.unread and is_pure(v):
            return ts.Evaluate(0)
        self.use(v, *s.indices)
        self.use_buffer(s.buffer)
        return s

    def visit_For(self, s: ts.For) -> Any:
        if isinstance(s.extent, IntImm) and s.extent.value <= 0:
            return ts.Evaluate(0)
        body = yield s.body
        self.use(s.min, s.extent)
        return ts.Evaluate(0) if is_no_op(body) else s.replace(body=body)

    def visit_While(self, s: ts.While) -> Any:
        self.use(s.condition)
        return s.replace(body=(yield s.body))

    def visit_IfThenElse(self, s: ts.IfThenElse) -> Any:
        then = yield s.then_case
        other = None if s.else_case is None else (yield s.else_case)
        other = None if other is not None and is_no_op(other) else other
        if is_no_op(then) and other is None and is_pure(s.condition):
            return ts.Evaluate(0)
        self.use(s.condition)
        if is_no_op(then):
            return ts.Evaluate(s.condition) if other is None else ts.IfThenElse(build.logical_not(s.condition), other)
        return s.replace(then_case=then, else_case=other)

    def visit_LetStmt(self, s: ts.LetStmt) -> Any:
        body = yield s.body
        if id(s.var) not in self.used and is_pure(s.value):
            return body
        self.use(s.value)
        return s.replace(body=body)

    def visit_Allocate(self, s: ts.Allocate) -> Any:
        body = yield s.body
        if is_no_op(body) or id(s.buffer_var) not in self.used:
            return body
        self.use(*s.extents)
        return s.replace(body=body)

    visit_AllocateConst = visit_Allocate

    def visit_AttrStmt(self, s: ts.AttrStmt) -> Any:
        body = yield s.body
        self.use(s.value)
        if isinstance(s.node, tir.Var):
            self.used.add(id(s.node))
        return body if is_no_op(body) else s.replace(body=body)

    def visit_AssertStmt(self, s: ts.AssertStmt) -> Any:
        self.use(s.condition, s.message)
        return s.replace(body=(yield s.body))

    def visit_BufferRealize(self, s: ts.BufferRealize) -> Any:
        body = yield s.body
        for r in s.bounds:
            self.use(r.min, r.extent)
        return body if is_no_op(body) else s.replace(body=body)


def remove_no_op(func: PrimFunc) -> PrimFunc:
    """The function without statements that do nothing."""
    return _RemoveNoOp(_written_only(func)).func(func)


RemoveNoOp = func_pass("RemoveNoOp", remove_no_op)
