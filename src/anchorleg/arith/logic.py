"""The normal form of conditions: comparisons of sums with zero, joined by and, or, not.

A ``Cond`` is interned; True and False are Python's.  Comparisons are ``sum >= 0``, ``sum == 0`` and ``sum != 0``; factors common to all
terms are divided out, and terms too small to matter are dropped: ``4*i + j < 12`` with ``0 <= j < 4`` is ``i < 3``.
"""
from __future__ import annotations

from math import gcd
from typing import Any, Callable, Iterable, Union

from ..ir.expr import INDEX_DTYPE, PrimExpr
from ..tir import build
from ..tir import expr as tir
from ..tir import intrin
from ..tir.dtypes import info
from . import interval as iv
from .integers import Algebra, fits
from .terms import Lin, Space


class Cond:
    """An interned condition: ``kind`` is ge, eq, ne (of a sum), and, or, not, likely (of conditions), expr (of an expression)."""

    __slots__ = ("uid", "kind", "args", "expr", "pure")
    uid: int
    kind: str
    args: tuple[Any, ...]
    expr: PrimExpr
    pure: bool


Truth = Union[Cond, bool]


class Logic:
    """Builds conditions over an :class:`Algebra`."""

    def __init__(self, algebra: Algebra) -> None:
        self.algebra, self.space, self.facts = algebra, algebra.space, algebra.facts
        self._table: dict[Any, Cond] = {}

    def _make(self, kind: str, args: tuple[Any, ...], build_expr: Callable[[], PrimExpr], pure: bool) -> Cond:
        key = (kind, *(id(a) for a in args))
        found = self._table.get(key)
        if found is None:
            found = self._table[key] = Cond()
            found.uid, found.kind, found.args, found.expr, found.pure = len(self._table), kind, args, build_expr(), pure
        return found

    def of_expr(self, e: PrimExpr, pure: bool = True) -> Cond:
        """A bool expression nothing is known about."""
        return self._make("expr", (e,), lambda: e, pure)

    # ------------------------------------------------------------ comparisons

    def ge0(self, x: Lin) -> Truth:
        """x >= 0"""
        if not x.terms:
            return x.const >= 0
        low, high = self.facts.bound(x)
        if low >= 0:
            return True
        if high < 0:
            return False
        x = self._reduced(x)
        if self.facts.nonnegative(x):
            return True
        if self.facts.nonnegative(self.space.shift(self.space.scale(x, -1), -1)):
            return False
        return self._make("ge", (x,), lambda: _emit_ge(self.algebra, x), x.pure)

    def _reduced(self, x: Lin) -> Lin:
        """A sum that is >= 0 exactly when x is, with smaller factors."""
        while x.terms:
            g = gcd(*(k for _, k in x.terms))
            if g > 1:
                x = self.space.lin(tuple([(a, k // g) for a, k in x.terms]), x.const // g)
            coarse = self._drop_small(x)
            if coarse is None:
                return x
            x = coarse
        return x

    def _drop_small(self, x: Lin) -> Lin | None:
        for g in sorted({abs(k) for _, k in x.terms} - {1}, reverse=True):
            small = self.space.lin(tuple([(a, k) for a, k in x.terms if k % g]), x.const)
            if len(small.terms) in (0, len(x.terms)):
                continue
            low, high = self.facts.bound(small)
            if iv.finite(low) and iv.finite(high) and low // g == high // g:
                return self.space.lin(tuple([(a, k // g) for a, k in x.terms if k % g == 0]), low // g)
        return None

    def eq0(self, x: Lin) -> Truth:
        """x == 0"""
        known = self._equality(x)
        if isinstance(known, bool):
            return known
        return self._make("eq", (known,), lambda: _emit_equality(self.algebra, known, build.equal), known.pure)

    def ne0(self, x: Lin) -> Truth:
        """x != 0"""
        known = self._equality(x)
        if isinstance(known, bool):
            return not known
        return self._make("ne", (known,), lambda: _emit_equality(self.algebra, known, build.not_equal), known.pure)

    def _equality(self, x: Lin) -> Lin | bool:
        """True or False when it is known whether x is 0, else the sum in its normal form."""
        if not x.terms:
            return x.const == 0
        low, high = self.facts.bound(x)
        if low > 0 or high < 0:
            return False
        if low == 0 == high:
            return True
        m, r = self.facts.modulus(x)
        if r and (m == 0 or r % m):
            return False
        g = gcd(*(k for _, k in x.terms))
        if x.const % g:
            return False
        if x.terms[0][1] < 0:
            g = -g
        return self.space.lin(tuple([(a, k // g) for a, k in x.terms]), x.const // g) if g != 1 else x

    # ------------------------------------------------------------ connectives

    def negate(self, c: Truth) -> Truth:
        """not c"""
        if isinstance(c, bool):
            return not c
        if c.kind == "ge":
            return self.ge0(self.space.shift(self.space.scale(c.args[0], -1), -1))
        if c.kind in ("eq", "ne"):
            return (self.ne0 if c.kind == "eq" else self.eq0)(c.args[0])
        if c.kind in ("and", "or"):
            parts = [self.negate(p) for p in c.args]
            return self.any(parts) if c.kind == "and" else self.all(parts)
        if c.kind == "not":
            return c.args[0]
        return self._make("not", (c,), lambda: build.logical_not(c.expr), c.pure)

    def likely(self, c: Truth) -> Truth:
        """c, marked as nearly always true."""
        if isinstance(c, bool) or c.kind == "likely":
            return c
        return self._make("likely", (c,), lambda: tir.Call("bool", intrin.LIKELY, (c.expr,)), c.pure)

    def all(self, parts: Iterable[Truth]) -> Truth:
        """The conjunction."""
        return self._joined("and", parts)

    def any(self, parts: Iterable[Truth]) -> Truth:
        """The disjunction."""
        return self._joined("or", parts)

    def _joined(self, kind: str, parts: Iterable[Truth]) -> Truth:
        neutral = kind == "and"
        kept: dict[int, Cond] = {}
        for p in parts:
            for q in (p.args if isinstance(p, Cond) and p.kind == kind else (p,)):
                if q is neutral:
                    continue
                if isinstance(q, bool) or not self._merge(kind, kept, q):
                    return not neutral
        found = list(kept.values())
        if not found:
            return neutral
        return found[0] if len(found) == 1 else self._make(kind, tuple(found), lambda: _chain(kind, found), all(c.pure for c in found))

    def _merge(self, kind: str, kept: dict[int, Cond], c: Cond) -> bool:
        """Adds c to the operands; False when it decides the whole (false for and, true for or)."""
        for uid, other in list(kept.items()):
            verdict = self._compare(kind, other, c)
            if verdict == "decided":
                return False
            if verdict == "first":
                return True
            if verdict == "second":
                del kept[uid]
        kept[c.uid] = c
        return True

    def _compare(self, kind: str, a: Cond, b: Cond) -> str | None:
        """Of two operands: which alone says it all, that they decide the whole, or neither (None)."""
        if a is b:
            return "first"
        if a.kind == "not" and a.args[0] is b or b.kind == "not" and b.args[0] is a:
            return "decided"
        if a.kind in ("ge", "eq", "ne") and b.kind in ("ge", "eq", "ne"):
            x, y = a.args[0], b.args[0]
            if x.shape == y.shape:
                return _same_shape(kind, a.kind, b.kind, x.const, y.const)
            if a.kind == b.kind == "ge" and x.shape == tuple([(u, -k) for u, k in y.shape]):
                total = x.const + y.const  # -x.const <= shape <= y.const
                if kind == "and" and total < 0 or kind == "or" and total >= -1:
                    return "decided"
        return None


def _same_shape(kind: str, ka: str, kb: str, ca: int, cb: int) -> str | None:
    """Two comparisons of shape + constant with 0 (the shape is the same)."""
    if ka == kb == "ge":
        return _pick(kind, "first" if ca >= cb else "second")
    if {ka, kb} == {"eq", "ne"} and ca == cb:
        return "decided"
    if ka == kb == "eq" and ca != cb and kind == "and" or ka == kb == "ne" and ca != cb and kind == "or":
        return "decided"
    return None


def _pick(kind: str, weaker: str) -> str:
    """The operand to keep: the stronger for and, the weaker for or."""
    if kind == "or":
        return weaker
    return "second" if weaker == "first" else "first"


# ---------------------------------------------------------------- back to expressions


def _chain(kind: str, parts: list[Cond]) -> PrimExpr:
    expr = parts[0].expr
    for p in parts[1:]:
        expr = (build.logical_and if kind == "and" else build.logical_or)(expr, p.expr)
    return expr


def _sides(x: Lin, space: Space) -> tuple[Lin, Lin]:
    """(positive terms, negative terms made positive), without the constant."""
    return (space.lin(tuple([(a, k) for a, k in x.terms if k > 0]), 0), space.lin(tuple([(a, -k) for a, k in x.terms if k < 0]), 0))


def _compare_width(algebra: Algebra, sides: Iterable[Lin]) -> str:
    """The type to compare in: the terms' own if they share one that holds both sides, else the index type."""
    sides = list(sides)
    dtypes = {a.dtype for s in sides for a, _ in s.terms}
    if len(dtypes) == 1:
        dtype = dtypes.pop()
        if info(dtype).bits >= 8 and all(fits(algebra.facts.bound(s), dtype) for s in sides):
            return dtype
    return INDEX_DTYPE


def _emit_ge(algebra: Algebra, x: Lin) -> PrimExpr:
    """x >= 0 as ``negative terms < positive terms + constant`` (or ``<=`` without one, or ``positive terms >= number``)."""
    space = algebra.space
    pos, neg = _sides(x, space)
    if not neg.terms:
        right = space.const(-x.const)
        dtype = _compare_width(algebra, (pos, right))
        return build.greater_equal(space.emit(pos, dtype), space.emit(right, dtype))
    if x.const == 0:  # no "+ 1", which could overflow where the terms are data rather than indices
        dtype = _compare_width(algebra, (pos, neg))
        return build.less_equal(space.emit(neg, dtype), space.emit(pos, dtype))
    if x.const + 1 < 0:
        neg, right = space.shift(neg, -x.const - 1), pos
    else:
        right = space.shift(pos, x.const + 1)
    dtype = _compare_width(algebra, (neg, right))
    return build.less(space.emit(neg, dtype), space.emit(right, dtype))


def _emit_equality(algebra: Algebra, x: Lin, make: build.Builder) -> PrimExpr:
    space = algebra.space
    pos, neg = _sides(x, space)
    if not pos.terms:
        pos, neg = neg, space.const(x.const)
    elif x.const > 0 and neg.terms:
        pos = space.shift(pos, x.const)
    else:
        neg = space.shift(neg, -x.const)
    dtype = _compare_width(algebra, (pos, neg))
    return make(space.emit(pos, dtype), space.emit(neg, dtype))
