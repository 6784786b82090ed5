"""``UnrollLoop``: applies ``pragma_auto_unroll_max_step`` and the like; :func:`unroll_all` unrolls every UNROLLED loop in place.

UNROLLED loops stay loops otherwise: the code generator unrolls them, which keeps trees small.
"""
from __future__ import annotations

from typing import Any

from ...ir.transform import PassContext
from .. import build
from .. import stmt as ts
from ..function import PrimFunc
from ..functor import StmtMutator
from .common import const_int, fresh_copy, func_pass

_PRAGMA_STEP, _PRAGMA_EXPLICIT = "pragma_auto_unroll_max_step", "pragma_unroll_explicit"


class _AutoUnroll(StmtMutator):
    """Marks serial loops UNROLLED whose whole nest takes few enough steps."""

    def __init__(self, max_step: int, max_depth: int, max_extent: int) -> None:
        super().__init__()
        self.max_step, self.max_depth, self.max_extent = max_step, max_depth, max_extent
        self.steps, self.depth = 0, 0  # of the statement just rewritten

    def visit_AttrStmt(self, s: ts.AttrStmt) -> Any:
        if s.attr_key == _PRAGMA_STEP:
            saved, self.max_step = self.max_step, const_int(s.value) or 0
            body = yield s.body
            self.max_step = saved
            return body
        if s.attr_key == _PRAGMA_EXPLICIT:
            return (yield s.body)
        return s.replace(body=(yield s.body))

    def visit_For(self, s: ts.For) -> Any:
        body = yield s.body
        extent = const_int(s.extent)
        if s.kind == ts.ForKind.UNROLLED:
            self.steps *= extent or 1
        elif extent is not None and s.kind == ts.ForKind.SERIAL and self._worth(extent):
            self.steps *= extent
            self.depth += 1
            return s.replace(body=body, kind=ts.ForKind.UNROLLED)
        else:
            self.depth += 1
            self.steps = self.max_step + 1
        return s.replace(body=body)

    def _worth(self, extent: int) -> bool:
        return extent == 1 and self.max_step > 0 or (
            extent * max(self.steps, 1) <= self.max_step and self.depth < self.max_depth or 0 < extent <= self.max_extent)

    def visit_While(self, s: ts.While) -> Any:
        body = yield s.body
        self.depth += 1
        self.steps = self.max_step + 1
        return s.replace(body=body)

    def visit_SeqStmt(self, s: ts.SeqStmt) -> Any:
        steps = depth = 0
        new = []
        for each in s.seq:
            new.append((yield each))
            steps, depth = steps + self.steps, max(depth, self.depth)
        self.steps, self.depth = steps, depth
        return s if all(a is b for a, b in zip(new, s.seq)) else ts.seq(*new)

    def visit_BufferStore(self, s: ts.BufferStore) -> ts.Stmt:
        self.steps, self.depth = 1, 0
        return s

    def visit_Evaluate(self, s: ts.Evaluate) -> ts.Stmt:
        self.steps, self.depth = 1, 0
        return s

    def visit_IfThenElse(self, s: ts.IfThenElse) -> Any:
        then = yield s.then_case
        steps, depth = self.steps, self.depth
        other = None if s.else_case is None else (yield s.else_case)
        self.steps, self.depth = max(steps, self.steps), max(depth, self.depth)
        return s.replace(then_case=then, else_case=other)


def unroll_loop(func: PrimFunc) -> PrimFunc:
    """The function with the loops UNROLLED that pragmas (or the config ``tir.UnrollLoop``) ask for."""
    config = PassContext.current().get("tir.UnrollLoop", {})
    step, depth, extent = (config.get(k, d) for k, d in (("auto_max_step", 0), ("auto_max_depth", 8), ("auto_max_extent", 0)))
    return _AutoUnroll(int(step), int(depth), int(extent)).func(func)


class _UnrollAll(StmtMutator):
    def visit_For(self, s: ts.For) -> Any:
        body = yield s.body
        extent = const_int(s.extent)
        if s.kind != ts.ForKind.UNROLLED or extent is None:
            return s.replace(body=body)
        at = [build.add(s.min, build.make_const(i, s.min.dtype)) for i in range(extent)]
        return ts.seq(*(fresh_copy(body, {s.loop_var: build.cast(s.loop_var.dtype, x)}) for x in at))


def unroll_all(func: PrimFunc) -> PrimFunc:
    """The function with every UNROLLED loop of constant extent written out."""
    return _UnrollAll().func(func)


UnrollLoop = func_pass("UnrollLoop", unroll_loop)
UnrollAll = func_pass("UnrollAll", unroll_all)
