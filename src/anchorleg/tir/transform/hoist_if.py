"""``HoistIfThenElse``: a branch that does not depend on the loop around it moves out of the loop.

Before: ``for i: if n < 4: S``; after: ``if n < 4: for i: S``.
"""
from __future__ import annotations

from typing import Any

from .. import intrin
from .. import stmt as ts
from ..buffer import BufferLoad
from ..expr import Call
from ..function import PrimFunc
from ..functor import StmtMutator, contains, uses_var
from .common import fresh_copy, func_pass


def _invariant(cond: Any, s: ts.For) -> bool:
    return not uses_var(cond, s.loop_var) and not contains(
        cond, lambda n: isinstance(n, BufferLoad) or isinstance(n, Call) and not intrin.is_pure_op(n.op))


class _Hoist(StmtMutator):
    def expr(self, e: Any) -> Any:
        return e

    def visit_For(self, s: ts.For) -> Any:
        body = yield s.body
        s = s.replace(body=body)
        if s.kind == ts.ForKind.THREAD_BINDING or s.kind == ts.ForKind.PARALLEL:
            return s
        if isinstance(body, ts.IfThenElse) and _invariant(body.condition, s):
            other = None if body.else_case is None else fresh_copy(s.replace(body=body.else_case))
            return body.replace(then_case=s.replace(body=body.then_case), else_case=other)
        return s


def hoist_if_then_else(func: PrimFunc, variant: str | None = None) -> PrimFunc:
    """The function with loop-invariant branches outside of the loops."""
    return _Hoist().func(func)


HoistIfThenElse = func_pass("HoistIfThenElse", hoist_if_then_else)
