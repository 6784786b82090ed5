"""The analyzer: what is known about integer expressions, and their simplification.

    >>> an = Analyzer()
    >>> an.bind(i, Range(0, 8)); an.bind(j, Range(0, 4))
    >>> an.simplify((i * 4 + j) // 4)    # i
    >>> an.can_prove(i * 4 + j < 32)     # True
"""
from __future__ import annotations

from contextlib import contextmanager
from enum import IntEnum
from typing import Any, Iterator, Mapping

from ..ir.expr import PrimExpr, Range
from ..support.errors import ArgumentError
from ..tir import build
from ..tir import expr as tir
from ..tir.equal import expr_deep_equal
from . import interval as iv
from .normalize import Normalizer
from .terms import Lin


class ProofStrength(IntEnum):
    """How hard to try (both are the same here)."""

    DEFAULT = 0
    SYMBOLIC_BOUND = 1


class ConstIntBound:
    """Constant bounds, both inclusive; ``NEG_INF`` and ``POS_INF`` stand for none."""

    POS_INF = (1 << 63) - 1
    NEG_INF = -POS_INF

    __slots__ = ("min_value", "max_value")

    def __init__(self, min_value: int, max_value: int) -> None:
        self.min_value, self.max_value = min_value, max_value

    def __repr__(self) -> str:
        return f"ConstIntBound[{self.min_value}, {self.max_value}]"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ConstIntBound) and (self.min_value, self.max_value) == (other.min_value, other.max_value)

    __hash__ = None  # type: ignore[assignment]


class ModularSet:
    """The numbers ``coeff * n + base``."""

    __slots__ = ("coeff", "base")

    def __init__(self, coeff: int, base: int) -> None:
        self.coeff, self.base = coeff, base

    def __repr__(self) -> str:
        return f"ModularSet({self.coeff}, {self.base})"


class Analyzer:
    """Facts about variables, and what follows from them."""

    def __init__(self) -> None:
        self._n = Normalizer()
        self._simplified: dict[int, tuple[PrimExpr, PrimExpr]] = {}
        self._memo_of: Any = self._n.memo

    # ------------------------------------------------------------ facts

    def bind(self, var: tir.Var, expr: PrimExpr | Range | int, allow_override: bool = False) -> None:
        """States that ``var`` is ``expr``, or that it lies in a range."""
        if isinstance(expr, Range):
            self._bind_range(var, expr)
        else:
            value = expr if isinstance(expr, PrimExpr) else build.make_const(expr, var.dtype)
            self._n.set_var(var, self._n.value(value))

    def _bind_range(self, var: tir.Var, r: Range) -> None:
        n = self._n
        low, extent = n.lin(r.min), n.lin(r.extent)
        if extent.is_const and extent.const == 1:
            n.set_var(var, low)
            return
        last = n.space.shift(n.space.add(low, extent), -1)
        self.bind_bounds(var, n.facts.bound(low)[0], n.facts.bound(last)[1])
        value = n.var(var)
        atom = value.single() if isinstance(value, Lin) else None
        if atom is None:
            return
        if not low.is_const:
            n.facts.set(n.facts.lower, atom, (low, *n.facts.lower.get(atom, ())))
        if not last.is_const:
            n.facts.set(n.facts.upper, atom, (last, *n.facts.upper.get(atom, ())))

    def bind_bounds(self, var: tir.Var, low: int, high: int) -> None:
        """States that ``low <= var <= high``."""
        n = self._n
        if n.known(var):
            n.forget()
        value = n.var(var)
        if isinstance(value, Lin) and value.single() is not None:
            n.facts.narrow(value.terms[0][0], low, high)

    def bind_like(self, var: tir.Var, expr: PrimExpr) -> None:
        """States that ``var`` has the bounds and remainders of ``expr``, without replacing it by ``expr``."""
        n = self._n
        value = n.value(expr)
        if not isinstance(value, Lin):
            return
        self.bind_bounds(var, *n.facts.bound(value))
        own = n.var(var)
        if isinstance(own, Lin) and own.single() is not None:
            n.facts.set(n.facts.moduli, own.terms[0][0], n.facts.modulus(value))

    @contextmanager
    def constraint_scope(self, constraint: PrimExpr) -> Iterator[None]:
        """A ``with`` block in which the condition holds."""
        saved = self._n.enter()
        try:
            self._n.assume(self._n.cond(constraint))
            yield
        finally:
            self._n.leave(saved)

    def enter_constraint(self, constraint: PrimExpr) -> Any:
        """Opens a constraint scope by hand; hand the result to `exit_constraint`."""
        saved = self._n.enter()
        self._n.assume(self._n.cond(constraint))
        return saved

    def exit_constraint(self, saved: Any) -> None:
        """Closes the scope."""
        self._n.leave(saved)

    def update(self, var: tir.Var, info: Any, override: bool = False) -> None:
        """States bounds (`ConstIntBound`) or remainders (`ModularSet`) of a variable."""
        if isinstance(info, ConstIntBound):
            self.bind_bounds(var, _inner(info.min_value), _inner(info.max_value))
        elif isinstance(info, ModularSet):
            value = self._n.var(var)
            if isinstance(value, Lin) and value.single() is not None:
                self._n.facts.set(self._n.facts.moduli, value.terms[0][0], (info.coeff, info.base))
                self._n.forget()
        else:
            raise ArgumentError(f"expected ConstIntBound or ModularSet, got {type(info).__name__}")

    # ------------------------------------------------------------ questions

    def bounds(self, expr: PrimExpr | int) -> tuple[int, int]:
        """Constant bounds as a pair of ints (`anchorleg.arith.INF` where there are none)."""
        return self._n.facts.bound(self._n.lin(expr))

    def const_int_bound(self, expr: PrimExpr) -> ConstIntBound:
        """Constant bounds of an integer expression."""
        low, high = self.bounds(expr)
        return ConstIntBound(low if iv.finite(low) else ConstIntBound.NEG_INF, high if iv.finite(high) else ConstIntBound.POS_INF)

    def modular_set(self, expr: PrimExpr) -> ModularSet:
        """(coeff, base) with every value of the expression being coeff * n + base (coeff 0: the value is base)."""
        return ModularSet(*self._n.facts.modulus(self._n.lin(expr)))

    def can_prove(self, expr: PrimExpr | bool, strength: ProofStrength = ProofStrength.DEFAULT) -> bool:
        """Whether a condition certainly holds."""
        return self._n.cond(expr) is True

    def can_prove_greater_equal(self, expr: PrimExpr, lower: int) -> bool:
        """Whether ``expr >= lower`` certainly holds."""
        return self._n.facts.nonnegative(self._n.space.shift(self._n.lin(expr), -lower))

    def can_prove_less(self, expr: PrimExpr, upper: int) -> bool:
        """Whether ``expr < upper`` certainly holds."""
        space = self._n.space
        return self._n.facts.nonnegative(space.shift(space.scale(self._n.lin(expr), -1), upper - 1))

    def can_prove_equal(self, lhs: PrimExpr | int, rhs: PrimExpr | int) -> bool:
        """Whether both certainly have the same value."""
        n = self._n
        a, b = n.lin(lhs), n.lin(rhs)
        if a is b:
            return True
        difference = n.algebra.add(a, b, -1)
        if difference.is_const:
            return difference.const == 0
        return n.facts.nonnegative(difference) and n.facts.nonnegative(n.space.scale(difference, -1))

    # ------------------------------------------------------------ simplification

    def simplify(self, expr: Any, steps: int = 2) -> Any:
        """An equal, simpler expression; the same object when there is nothing to do."""
        if isinstance(expr, (tir.Var, tir.IntImm, tir.FloatImm)) and not self._n.known(expr) or not isinstance(expr, PrimExpr):  # type: ignore[arg-type]
            return expr
        if self._n.memo is not self._memo_of:
            self._memo_of, self._simplified = self._n.memo, {}
        hit = self._simplified.get(id(expr))
        if hit is not None:
            return hit[1]
        new = self._n.emit(self._n.value(expr), expr.dtype)
        if new is not expr and expr_deep_equal(new, expr):
            new = expr
        self._simplified[id(expr)] = (expr, new)
        return new

    rewrite_simplify = simplify
    canonical_simplify = simplify

    def int_set(self, expr: PrimExpr, dom_map: Mapping[tir.Var, Any] | None = None) -> Any:
        """The interval that the expression covers when the variables of ``dom_map`` cover theirs."""
        from .int_set import eval_set

        return eval_set(expr, dom_map or {}, self)


def _inner(value: int) -> int:
    if value <= ConstIntBound.NEG_INF:
        return -iv.INF
    return iv.INF if value >= ConstIntBound.POS_INF else value


__all__ = ["Analyzer", "ConstIntBound", "ModularSet", "ProofStrength"]
