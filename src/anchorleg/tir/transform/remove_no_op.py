"""``RemoveNoOp``: statements without effect disappear: empty loops and branches, pure expressions, unused bindings and memory."""
from __future__ import annotations

from typing import Any

from ...ir.expr import IntImm
from .. import expr as tir
from .. import intrin
from .. import stmt as ts
from ..buffer import BufferLoad
from ..equal import expr_deep_equal
from ..function import PrimFunc
from ..functor import StmtMutator, contains, uses_var
from .common import func_pass, is_no_op


def is_pure(e: Any) -> bool:
    """Whether evaluating an expression has no effect (loads have none)."""
    return not contains(e, lambda n: isinstance(n, tir.Call) and intrin.effect_of(n.op) in (
        intrin.CallEffectKind.Opaque, intrin.CallEffectKind.UpdateState, intrin.CallEffectKind.ControlJump))


class _RemoveNoOp(StmtMutator):
    def expr(self, e: Any) -> Any:
        return e

    def visit_Evaluate(self, s: ts.Evaluate) -> ts.Stmt:
        return s if isinstance(s.value, IntImm) or not is_pure(s.value) else ts.Evaluate(0)

    def visit_BufferStore(self, s: ts.BufferStore) -> ts.Stmt:
        v = s.value
        same = isinstance(v, BufferLoad) and v.buffer is s.buffer and all(expr_deep_equal(a, b) for a, b in zip(v.indices, s.indices))
        return ts.Evaluate(0) if same else s

    def visit_For(self, s: ts.For) -> Any:
        if isinstance(s.extent, IntImm) and s.extent.value <= 0:
            return ts.Evaluate(0)
        body = yield s.body
        return ts.Evaluate(0) if is_no_op(body) else s.replace(body=body)

    def visit_IfThenElse(self, s: ts.IfThenElse) -> Any:
        then = yield s.then_case
        other = None if s.else_case is None else (yield s.else_case)
        other = None if other is not None and is_no_op(other) else other
        if is_no_op(then):
            if other is None:
                return ts.Evaluate(s.condition) if not is_pure(s.condition) else ts.Evaluate(0)
            from .. import build

            return ts.IfThenElse(build.logical_not(s.condition), other)
        return s.replace(then_case=then, else_case=other)

    def visit_LetStmt(self, s: ts.LetStmt) -> Any:
        body = yield s.body
        if is_no_op(body) or is_pure(s.value) and not uses_var(body, s.var):
            return body
        return s.replace(body=body)

    def visit_Allocate(self, s: ts.Allocate) -> Any:
        body = yield s.body
        return body if is_no_op(body) or not uses_var(body, s.buffer_var) else s.replace(body=body)

    def visit_AttrStmt(self, s: ts.AttrStmt) -> Any:
        body = yield s.body
        return body if is_no_op(body) else s.replace(body=body)

    visit_AllocateConst = visit_Allocate

    def visit_BufferRealize(self, s: ts.BufferRealize) -> Any:
        body = yield s.body
        return body if is_no_op(body) else s.replace(body=body)


def remove_no_op(func: PrimFunc) -> PrimFunc:
    """The function without statements that do nothing."""
    return _RemoveNoOp().func(func)


RemoveNoOp = func_pass("RemoveNoOp", remove_no_op)
