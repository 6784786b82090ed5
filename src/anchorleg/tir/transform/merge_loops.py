"""``MergeLoops``: two loops that together count one number become one loop.

Before: ``for i in range(5): for j in range(40): A[i * 40 + j] = B[i * 40 + j + 7]``; after: ``for j in range(200): A[j] = B[j + 7]``.
"""
from __future__ import annotations

from typing import Any

from ...ir.expr import IntImm, PrimExpr
from .. import expr as tir
from .. import stmt as ts
from ..buffer import BufferLoad
from ..function import PrimFunc
from ..functor import StmtMutator, StmtVisitor, kids, substitute, uses_var
from .common import const_int, func_pass


def steps_of(index: PrimExpr, variables: list[tir.Var]) -> list[int] | None:
    """By how much a sum moves with each variable; None where that is not in plain sight."""
    steps, known = [0] * len(variables), {id(v): i for i, v in enumerate(variables)}
    stack: list[tuple[Any, int]] = [(index, 1)]
    while stack:
        n, factor = stack.pop()
        if id(n) in known:
            steps[known[id(n)]] += factor
        elif isinstance(n, (tir.Add, tir.Sub)):
            stack += [(n.a, factor), (n.b, factor if isinstance(n, tir.Add) else -factor)]
        elif isinstance(n, tir.Mul) and isinstance(n.b, IntImm):
            stack.append((n.a, factor * n.b.value))
        elif uses_var(n, variables):
            return None
    return steps


class _Uses(StmtVisitor):
    """Whether two loop variables are wanted only as ``outer * length + inner``, within indices."""

    def __init__(self, outer: tir.Var, inner: tir.Var, length: int) -> None:
        super().__init__()
        self.variables, self.length, self.fit = [outer, inner], length, True

    def index(self, e: PrimExpr) -> None:
        steps = steps_of(e, self.variables)
        self.fit &= steps is not None and steps[0] == steps[1] * self.length

    def expr(self, e: PrimExpr) -> None:
        stack: list[Any] = [e]
        while stack and self.fit:
            n = stack.pop()
            if isinstance(n, BufferLoad):
                for i in n.indices:
                    self.index(i)
            elif isinstance(n, tir.Var):
                self.fit &= not any(n is v for v in self.variables)
            else:
                stack.extend(kids(n))

    def visit_BufferStore(self, s: ts.BufferStore) -> None:
        for i in s.indices:
            self.index(i)
        self.expr(s.value)


class _Merge(StmtMutator):
    def expr(self, e: PrimExpr) -> PrimExpr:
        return e

    def visit_For(self, s: ts.For) -> Any:
        s = s.replace(body=(yield s.body))
        inner = s.body
        if not (_plain(s) and isinstance(inner, ts.For) and _plain(inner)):
            return s
        uses = _Uses(s.loop_var, inner.loop_var, inner.extent.value)  # type: ignore[attr-defined]
        uses.visit(inner.body)
        if not uses.fit:
            return s
        whole = tir.Var(inner.loop_var.name, inner.loop_var.dtype)
        body = substitute(inner.body, {s.loop_var: IntImm(s.loop_var.dtype, 0), inner.loop_var: whole})
        return ts.For(whole, 0, s.extent.value * inner.extent.value, s.kind, body)  # type: ignore[attr-defined]


def _plain(s: ts.For) -> bool:
    return s.kind in (ts.ForKind.SERIAL, ts.ForKind.PARALLEL) and const_int(s.min) == 0 and const_int(s.extent) is not None and not s.annotations


def merge_loops(func: PrimFunc) -> PrimFunc:
    """The function with nested loops that count one number made one."""
    return _Merge().func(func)


MergeLoops = func_pass("MergeLoops", merge_loops)
