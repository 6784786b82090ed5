"""Marks parts of a program for an external compiler, for tests of the way there."""
from __future__ import annotations

from typing import Any

from ...ir.expr import RelayExpr
from .. import op
from ..expr import Call, Var
from ..expr_functor import ExprMutator
from ..op.annotation import compiler_begin, compiler_end

COMPILER = "ccompiler"


class CcompilerAnnotator(ExprMutator):
    """``(a + b - c) * d`` becomes one region of the compiler ``ccompiler``: begin before the sum, end after the product."""

    def __init__(self) -> None:
        super().__init__()
        self.in_compiler = 0  # 0 outside, 1 inside a product, 2 once the region has begun

    def visit_call(self, call: Call) -> RelayExpr:
        """Marks products, and the differences and sums inside them."""
        name = getattr(call.op, "name", "")
        if name == "multiply":
            return self._product(call)
        if self.in_compiler == 1 and name == "subtract":
            return op.subtract(*(self._entering(a) for a in call.args))
        if self.in_compiler == 1 and name == "add":
            parts = [compiler_begin(self.visit(a), COMPILER) for a in call.args]
            self.in_compiler = 2
            return op.add(*parts)
        return super().visit_call(call)

    def _entering(self, arg: RelayExpr) -> Any:
        new = self.visit(arg)
        return compiler_begin(new, COMPILER) if isinstance(new, Var) else new

    def _product(self, call: Call) -> RelayExpr:
        self.in_compiler = 1
        product = op.multiply(*(self._entering(a) for a in call.args))
        if self.in_compiler == 2:
            product = compiler_end(product, COMPILER)
        self.in_compiler = 0
        return product


__all__ = ["CcompilerAnnotator"]
