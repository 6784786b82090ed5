"""``UnfuseLoops``: a loop whose variable is only wanted in parts becomes the loops that count the parts.

Before: ``for f in range(15): A[f] = B[f % 3 * 5 + f // 3]``; after: ``for i in range(5): for j in range(3): A[i * 3 + j] = B[j * 5 + i]``.
Small processors divide slowly or not at all; elsewhere the divisions vanish in the time of memory, and one loop is shared more easily.
"""
from __future__ import annotations

import math
from typing import Any

from ...ir.expr import IntImm, PrimExpr
from .. import build
from .. import expr as tir
from .. import stmt as ts
from ..function import PrimFunc
from ..functor import StmtVisitor, contains, post_order, substitute, uses_var
from .common import const_int, func_pass
from .simplify import AnalyzerMutator, _Simplify

_DIVISIONS = (tir.FloorDiv, tir.FloorMod, tir.Div, tir.Mod)


class _Divisions(StmtVisitor):
    """The integer divisions of something that depends on a variable."""

    def __init__(self, variables: list[tir.Var]) -> None:
        super().__init__()
        self.variables = variables
        self.found: list[Any] = []

    def expr(self, e: PrimExpr) -> None:
        self.found += [n for n in post_order(e) if isinstance(n, _DIVISIONS) and isinstance(n.b, IntImm) and uses_var(n.a, self.variables)]


def _divisions(s: ts.Stmt, *variables: tir.Var) -> list[Any]:
    visitor = _Divisions(list(variables))
    visitor.visit(s)
    return visitor.found


def _step(e: PrimExpr, var: tir.Var) -> int:
    """How far a term of a sum moves with the variable: the greatest common divisor of its factors; 0 where it is not in plain sight."""
    step, stack = 0, [e]
    while stack:
        n = stack.pop()
        if n is var:
            step = math.gcd(step, 1)
        elif isinstance(n, (tir.Add, tir.Sub)):
            stack += [n.a, n.b]
        elif isinstance(n, tir.Mul) and n.a is var and isinstance(n.b, IntImm):
            step = math.gcd(step, n.b.value)
    return step


def _factors(s: ts.For, extent: int) -> list[int]:
    """The lengths that an inner loop could have."""
    found = set()
    for n in _divisions(s.body, s.loop_var):
        step = _step(n.a, s.loop_var)
        if step > 0 and n.b.value % step == 0:
            found.add(n.b.value // step)
    return sorted(d for d in found if 1 < d < extent and extent % d == 0)


class _Unfuse(AnalyzerMutator):
    def expr(self, e: PrimExpr) -> PrimExpr:
        return e

    def visit_For(self, s: ts.For) -> Any:
        self.bind_loop(s)
        apart = self._apart(s)
        if apart is not None:
            return (yield apart)
        return (yield from self.default(s))

    def _apart(self, s: ts.For) -> ts.For | None:
        """The loop as two, with fewer divisions; None where that is not to be had."""
        extent = const_int(s.extent)
        if s.kind not in (ts.ForKind.SERIAL, ts.ForKind.PARALLEL) or const_int(s.min) != 0 or extent is None or s.annotations:
            return None
        best, least = None, len(_divisions(s.body, s.loop_var))
        for inner in _factors(s, extent):
            made, count = self._in_two(s, extent // inner, inner)
            if count < least:
                best, least = made, count
        return best

    def _in_two(self, s: ts.For, outer: int, inner: int) -> tuple[ts.For, int]:
        v = s.loop_var
        i, j = tir.Var(f"{v.name}_o", v.dtype), tir.Var(f"{v.name}_i", v.dtype)
        body = substitute(s.body, {v: build.add(build.mul(i, IntImm(v.dtype, inner)), j)})
        whole = ts.For(i, 0, outer, s.kind, ts.For(j, 0, inner, ts.ForKind.SERIAL, body))
        made = _Simplify(self.analyzer).stmt(whole)
        return made, len(_divisions(made, i, j))


def unfuse_loops(func: PrimFunc) -> PrimFunc:
    """The function with loops taken apart where that saves divisions."""
    if not contains(func.body, lambda n: isinstance(n, _DIVISIONS)):
        return func
    return _Unfuse().func(func)


UnfuseLoops = func_pass("UnfuseLoops", unfuse_loops)
