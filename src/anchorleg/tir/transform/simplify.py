"""``Simplify``: all expressions simplified under what loops and branches say; branches decided, trivial loops removed.

Before: ``for i in range(1): if i * 4 < 8: A[(i * 4 + 3) // 4] = …``; after: ``A[0] = …``.
"""
from __future__ import annotations

from typing import Any

from ...arith import Analyzer
from ...ir.expr import FloatImm, IntImm, PrimExpr, Range
from .. import expr as tir
from .. import stmt as ts
from ..function import PrimFunc
from ..functor import StmtMutator
from .common import func_pass, is_no_op


class AnalyzerMutator(StmtMutator):
    """A mutator that keeps an analyzer informed of the loops, branches and bindings around the present statement."""

    def __init__(self, analyzer: Analyzer | None = None) -> None:
        super().__init__()
        self.analyzer = analyzer or Analyzer()

    def under(self, condition: PrimExpr, s: ts.Stmt) -> Any:
        """Rewrites ``s`` where ``condition`` holds: ``result = yield from self.under(c, s)``."""
        saved = self.analyzer.enter_constraint(condition)
        result = yield s
        self.analyzer.exit_constraint(saved)
        return result

    def bind_loop(self, s: ts.For) -> None:
        """Tells the analyzer the range of a loop's variable."""
        self.analyzer.bind(s.loop_var, Range.from_min_extent(s.min, s.extent))

    def visit_For(self, s: ts.For) -> Any:
        self.bind_loop(s)
        return (yield from self.default(s))

    def visit_IfThenElse(self, s: ts.IfThenElse) -> Any:
        cond = self.expr(s.condition)
        then = yield from self.under(cond, s.then_case)
        other = None
        if s.else_case is not None:
            other = yield from self.under(tir.Not(cond), s.else_case)
        return s.replace(condition=cond, then_case=then, else_case=other)

    def visit_AttrStmt(self, s: ts.AttrStmt) -> Any:
        bind_thread(self.analyzer, s)
        return (yield from self.default(s))

    def visit_LetStmt(self, s: ts.LetStmt) -> Any:
        self.analyzer.bind_like(s.var, s.value)
        return (yield from self.default(s))


def bind_thread(analyzer: Analyzer, s: ts.AttrStmt) -> None:
    """Tells the analyzer the range of a thread axis that an attribute opens."""
    if s.attr_key in ("thread_extent", "virtual_thread"):
        v = s.node.var if isinstance(s.node, tir.IterVar) else s.node
        if isinstance(v, tir.Var):
            analyzer.bind(v, Range.from_min_extent(0, s.value))


class _Simplify(AnalyzerMutator):
    def expr(self, e: PrimExpr) -> PrimExpr:
        return self.analyzer.simplify(e)

    def visit_For(self, s: ts.For) -> Any:
        low, extent = self.expr(s.min), self.expr(s.extent)
        if isinstance(extent, IntImm):
            if extent.value <= 0:
                return ts.Evaluate(0)
            if extent.value == 1 and s.kind != ts.ForKind.THREAD_BINDING:
                self.analyzer.bind(s.loop_var, low)
                return (yield s.body)
        self.analyzer.bind(s.loop_var, Range.from_min_extent(low, extent))
        body = yield s.body
        return s.replace(min=_kept(s.min, low), extent=_kept(s.extent, extent), body=body)

    def visit_IfThenElse(self, s: ts.IfThenElse) -> Any:
        cond = self.expr(s.condition)
        if isinstance(cond, IntImm):
            taken = s.then_case if cond.value else s.else_case
            return ts.Evaluate(0) if taken is None else (yield taken)
        then = yield from self.under(cond, s.then_case)
        other = None
        if s.else_case is not None:
            other = yield from self.under(tir.Not(cond), s.else_case)
            other = None if is_no_op(other) else other
        if is_no_op(then) and other is None:
            return ts.Evaluate(0)
        return s.replace(condition=cond, then_case=then, else_case=other)

    def visit_LetStmt(self, s: ts.LetStmt) -> Any:
        value = self.expr(s.value)
        if isinstance(value, (IntImm, FloatImm, tir.Var)) and value.dtype == s.var.dtype:
            self.analyzer.bind(s.var, value)
            return (yield s.body)
        self.analyzer.bind_like(s.var, value)
        return s.replace(value=value, body=(yield s.body))


def _kept(old: PrimExpr, new: PrimExpr) -> PrimExpr:
    """The old object for an equal constant."""
    return old if isinstance(old, IntImm) and isinstance(new, IntImm) and old.value == new.value and old.dtype == new.dtype else new


def simplify(func: PrimFunc) -> PrimFunc:
    """The function with its expressions simplified."""
    return _Simplify().func(func)


Simplify = func_pass("Simplify", simplify)
