"""``LowerIntrin``: operations in terms of what every code generator has.

Floor division and remainder become the truncated ones where the bounds say that both agree (the rule for index arithmetic), shifts and
masks for powers of two, and a corrected truncated division else.  ``likely`` marks are dropped from values, and kept in branches.
"""
from __future__ import annotations

from typing import Any

from ...arith import Analyzer
from ...arith.interval import INF
from ...ir.expr import PrimExpr
from .. import build, op
from .. import expr as tir
from ..dtypes import info, with_lanes
from ..function import PrimFunc
from .common import func_pass
from .simplify import AnalyzerMutator


class _Lower(AnalyzerMutator):
    def __init__(self) -> None:
        super().__init__(Analyzer())

    def visit_IfThenElse(self, s: Any) -> Any:
        self.memo.clear()
        result = yield from super().visit_IfThenElse(s)
        self.memo.clear()
        return result

    def low(self, e: PrimExpr) -> int:
        """The least value of any lane, as far as known."""
        if isinstance(e, tir.Broadcast):
            return self.low(e.value)
        if isinstance(e, tir.Ramp):
            step = build.const_value(e.stride)
            return self.low(e.base) + min(int(step) * (e.lanes - 1), 0) if step is not None else -INF
        if info(e.dtype).lanes > 1:
            if isinstance(e, tir.Add):
                return max(self.low(e.a) + self.low(e.b), -INF)
            if isinstance(e, tir.Mul) and min(self.low(e.a), self.low(e.b)) >= 0:
                return 0
            return 0 if info(e.dtype).kind == "uint" else -INF
        return self.analyzer.bounds(e)[0]

    def _mutate(self, e: Any, remainder: bool) -> PrimExpr:
        if info(e.dtype).is_float:
            return e
        divisor = build.const_value(e.b)
        nonnegative = self.low(e.a) >= 0
        if nonnegative and (divisor is not None and divisor > 0 or self.low(e.b) >= 0):
            return (build.trunc_mod if remainder else build.trunc_div)(e.a, e.b)
        if divisor is not None and divisor > 0 and divisor & (divisor - 1) == 0:
            return self._by_shift(e, int(divisor), remainder)
        return self._corrected(e, divisor, remainder)

    @staticmethod
    def _by_shift(e: Any, divisor: int, remainder: bool) -> PrimExpr:
        t = info(e.dtype)
        amount = build.make_const(divisor - 1 if remainder else divisor.bit_length() - 1, with_lanes(t.scalar, t.lanes))
        return op.bitwise_and(e.a, amount) if remainder else op.call_intrin(e.dtype, "tir.shift_right", e.a, amount)

    @staticmethod
    def _corrected(e: Any, divisor: Any, remainder: bool) -> PrimExpr:
        """The truncated result, put right where the remainder has not the divisor's sign."""
        rest = build.trunc_mod(e.a, e.b)
        zero, one = build.zero_of(e.a), build.make_const(1, e.a.dtype)
        if divisor is not None and divisor > 0:
            wrong = build.less(rest, zero)
        else:
            differ = build.not_equal(build.less(rest, zero), build.less(e.b, zero))
            wrong = build.logical_and(build.not_equal(rest, zero), differ)
        if remainder:
            return build.select(wrong, build.add(rest, e.b), rest)
        quotient = build.trunc_div(e.a, e.b)
        return build.select(wrong, build.sub(quotient, one), quotient)

    def mutate_FloorDiv(self, e: tir.FloorDiv) -> PrimExpr:
        return self._mutate(e, False)

    def mutate_FloorMod(self, e: tir.FloorMod) -> PrimExpr:
        return self._mutate(e, True)


def lower_intrin(func: PrimFunc) -> PrimFunc:
    """The function without floor divisions and remainders of integers."""
    return _Lower().func(func)


LowerIntrin = func_pass("LowerIntrin", lower_intrin)
