"""Index arithmetic as sums: constant + Σ coefficient · atom, with bounds.

Lowering asks the same few things of thousands of index expressions: add, scale, divide, bound, compare, write out.  A :class:`Lin`
answers them without building trees.  An *atom* is what is not a sum: a variable, a floor quotient or remainder by a
constant, a minimum, a product, or any other expression.  Atoms are numbered in one :class:`Affine` context, so that equal
sums have equal keys; an atom is always made after the atoms inside it.

Sums stand for index values, which do not overflow.  Atoms that are data (loads) may wrap, so no division is taken apart over them.
"""
from __future__ import annotations

from math import gcd
from typing import Any, Iterable

from ...ir.expr import INDEX_DTYPE, PrimExpr
from ...tir.expr import Add, FloorDiv, FloorMod, IntImm, Max, Min, Mul, SizeVar, Sub, Var

VAR, DIV, MOD, MIN, MAX, MUL, FDIV, FMOD, OPAQUE = "var", "div", "mod", "min", "max", "mul", "fdiv", "fmod", "opaque"
Bounds = tuple["int | None", "int | None"]


class Lin:
    """``const + Σ terms[atom] · atom``; never changed."""

    __slots__ = ("const", "terms", "_key")

    def __init__(self, const: int, terms: dict[int, int]) -> None:
        self.const, self.terms, self._key = const, terms, None

    @property
    def key(self) -> Any:
        """Equal for equal sums of one context."""
        if self._key is None:
            self._key = (self.const, *sorted(self.terms.items())) if self.terms else self.const
        return self._key

    @property
    def value(self) -> int | None:
        """The number, when it is a constant."""
        return None if self.terms else self.const

    def __repr__(self) -> str:
        return " + ".join([f"{c}*a{a}" for a, c in self.terms.items()] + [str(self.const)])


class Atom:
    """What a sum is made of: ``kind``, its parts, its bounds, the expression it is written as."""

    __slots__ = ("kind", "args", "lo", "hi", "expr")

    def __init__(self, kind: str, args: tuple[Any, ...], lo: int | None, hi: int | None, expr: PrimExpr) -> None:
        self.kind, self.args, self.lo, self.hi, self.expr = kind, args, lo, hi, expr


_INDEX_LIMIT = 1 << 63


class Affine:
    """Makes, combines and bounds sums."""

    def __init__(self) -> None:
        self.atoms: list[Atom] = []
        self._index: dict[Any, int] = {}
        self._exprs: dict[Any, PrimExpr] = {}
        self._small = [Lin(i, {}) for i in range(65)]
        self._has_mod = False

    # ------------------------------------------------------------ making

    def const(self, value: int) -> Lin:
        """A constant."""
        return self._small[value] if 0 <= value <= 64 else Lin(value, {})

    def var(self, var: Var, lo: int | None = None, hi: int | None = None) -> Lin:
        """A variable; the bounds count when it is met for the first time."""
        if lo is None and isinstance(var, SizeVar):
            lo = 0
        return self._atom((VAR, id(var)), VAR, (var,), lo, hi, var)

    def opaque(self, expr: PrimExpr) -> Lin:
        """Any expression of the index type, taken as it is."""
        if type(expr) is IntImm:
            return self.const(expr.value)
        if isinstance(expr, Var):
            return self.var(expr)
        return self._atom((OPAQUE, id(expr)), OPAQUE, (expr,), None, None, expr)

    def _atom(self, key: Any, kind: str, args: tuple[Any, ...], lo: int | None, hi: int | None, expr: PrimExpr | None) -> Lin:
        at = self._index.get(key)
        if at is None:
            at = self._index[key] = len(self.atoms)
            self.atoms.append(Atom(kind, args, lo, hi, expr if expr is not None else self._atom_expr(kind, args)))
        return Lin(0, {at: 1})

    def _atom_expr(self, kind: str, args: tuple[Any, ...]) -> PrimExpr:
        a, b = (self.expr(x) if isinstance(x, Lin) else IntImm(INDEX_DTYPE, x) for x in args)
        return _NODES[kind](a, b)

    # ------------------------------------------------------------ arithmetic

    def add(self, a: Lin, b: Lin) -> Lin:
        """a + b"""
        if not b.terms:
            return a if not b.const else Lin(a.const + b.const, a.terms)
        if not a.terms:
            return b if not a.const else Lin(a.const + b.const, b.terms)
        return self._combine(a, b, 1)

    def sub(self, a: Lin, b: Lin) -> Lin:
        """a - b"""
        if not b.terms:
            return a if not b.const else Lin(a.const - b.const, a.terms)
        return self._combine(a, b, -1)

    def _combine(self, a: Lin, b: Lin, factor: int) -> Lin:
        terms = dict(a.terms)
        for at, c in b.terms.items():
            total = terms.get(at, 0) + c * factor
            if total:
                terms[at] = total
            else:
                del terms[at]
        result = Lin(a.const + factor * b.const, terms)
        return self._rejoin(result) if self._has_mod else result

    def scale(self, a: Lin, factor: int) -> Lin:
        """a * factor"""
        if factor == 1:
            return a
        if factor == 0:
            return self.const(0)
        return Lin(a.const * factor, {at: c * factor for at, c in a.terms.items()})

    def mul(self, a: Lin, b: Lin) -> Lin:
        """a * b"""
        if not a.terms:
            return self.scale(b, a.const)
        if not b.terms:
            return self.scale(a, b.const)
        a, b = sorted((a, b), key=_sort_key)
        (alo, ahi), (blo, bhi) = self.bounds(a), self.bounds(b)
        known = alo is not None and blo is not None and alo >= 0 and blo >= 0
        hi = ahi * bhi if known and ahi is not None and bhi is not None else None
        return self._atom((MUL, a.key, b.key), MUL, (a, b), alo * blo if known else None, hi, None)  # type: ignore[operator]

    def _rejoin(self, a: Lin) -> Lin:
        """``c·k·(x // c) + k·(x % c)`` is ``k·x``."""
        for at in a.terms:
            atom = self.atoms[at]
            if atom.kind == MOD:
                x, c = atom.args
                k = a.terms[at]
                quotient = self.div(x, c)
                if quotient.terms and all(a.terms.get(q, 0) == k * c * n for q, n in quotient.terms.items()):
                    rest = dict(a.terms)
                    del rest[at]
                    for q in quotient.terms:
                        del rest[q]
                    part = self.sub(x, Lin(quotient.const * c, {}))
                    return self.add(Lin(a.const, rest), self.scale(part, k))
        return a

    def bounds(self, a: Lin) -> Bounds:
        """The least and greatest value that can be shown; None: no bound."""
        lo: int | None = a.const
        hi: int | None = a.const
        for at, c in a.terms.items():
            atom = self.atoms[at]
            below, above = (atom.lo, atom.hi) if c > 0 else (atom.hi, atom.lo)
            lo = None if lo is None or below is None else lo + c * below
            hi = None if hi is None or above is None else hi + c * above
        return lo, hi

    def _difference(self, a: Lin, b: Lin) -> Bounds:
        return (None, None) if self._wraps(a) or self._wraps(b) else self.bounds(self.sub(a, b))

    def compare(self, a: Lin, b: Lin) -> Bounds:
        """The bounds of a - b, for deciding comparisons; none over data, which may wrap."""
        return self._difference(a, b)

    def _wraps(self, a: Lin) -> bool:
        return any(self.atoms[at].kind == OPAQUE for at in a.terms)

    def div(self, a: Lin, c: int) -> Lin:
        """floor(a / c), c > 0"""
        if c == 1:
            return a
        if not a.terms:
            return self.const(a.const // c)
        if self._wraps(a):
            return self._quotient(a, c)
        whole, rest = self._divide_out(a, c)
        if not rest.terms and 0 <= rest.const < c:
            return whole
        k = self._constant_quotient(rest, c)
        if k is not None:
            return self.add(whole, self.const(k))
        group = self._coarse(rest, c)
        if group is not None:
            return self.add(whole, self.div(group[0], c // group[1]))
        return self.add(whole, self._quotient(rest, c))

    def mod(self, a: Lin, c: int) -> Lin:
        """a - floor(a / c) * c, c > 0"""
        if c == 1:
            return self.const(0)
        if not a.terms:
            return self.const(a.const % c)
        if self._wraps(a):
            return self._remainder(a, c)
        _, rest = self._divide_out(a, c)
        k = self._constant_quotient(rest, c)
        if k is not None:
            return self.sub(rest, self.const(k * c))
        group = self._coarse(rest, c)
        if group is not None:
            coarse, g, fine = group
            return self.add(self.scale(self.mod(coarse, c // g), g), fine)
        return self._remainder(rest, c)

    def _divide_out(self, a: Lin, c: int) -> tuple[Lin, Lin]:
        """(q, r) with a = c·q + r, taking into q what divides."""
        quotient, rest = {}, {}
        for at, n in a.terms.items():
            q = n // c if n % c == 0 or n > c else 0
            if q:
                quotient[at] = q
            if n - q * c:
                rest[at] = n - q * c
        return Lin(a.const // c, quotient), Lin(a.const % c, rest)

    def _constant_quotient(self, a: Lin, c: int) -> int | None:
        lo, hi = self.bounds(a)
        return lo // c if lo is not None and hi is not None and lo // c == hi // c else None

    def _coarse(self, a: Lin, c: int) -> tuple[Lin, int, Lin] | None:
        """(x, g, s) with a = g·x + s, g | c, g > 1, 0 <= s < g: then a // c is x // (c / g)."""
        for g in sorted({gcd(n, c) for n in a.terms.values()} - {1}, reverse=True):
            coarse = {at: n // g for at, n in a.terms.items() if n % g == 0}
            fine = Lin(a.const % g, {at: n for at, n in a.terms.items() if n % g})
            lo, hi = self.bounds(fine)
            if lo is not None and hi is not None and lo >= 0 and hi < g:
                return Lin(a.const // g, coarse), g, fine
        return None

    def _single(self, a: Lin) -> Atom | None:
        if len(a.terms) == 1:
            (at, n), = a.terms.items()
            if n == 1:
                return self.atoms[at]
        return None

    def _quotient(self, a: Lin, c: int) -> Lin:
        atom = self._single(a)
        if atom is not None and atom.kind == DIV:
            inner, d = atom.args
            return self.div(self.add(inner, self.const(a.const * d)), c * d)
        if atom is not None and atom.kind == MOD and a.const == 0 and atom.args[1] % c == 0:
            inner, m = atom.args
            return self.mod(self.div(inner, c), m // c)
        lo, hi = self.bounds(a)
        return self._atom((DIV, a.key, c), DIV, (a, c), None if lo is None else lo // c, None if hi is None else hi // c, None)

    def _remainder(self, a: Lin, c: int) -> Lin:
        atom = self._single(a)
        if atom is not None and atom.kind == MOD and atom.args[1] % c == 0:
            return self.mod(self.add(atom.args[0], self.const(a.const)), c)
        self._has_mod = True
        return self._atom((MOD, a.key, c), MOD, (a, c), 0, c - 1, None)

    def floor_div(self, a: Lin, b: Lin) -> Lin:
        """floor(a / b)"""
        if not b.terms and b.const > 0:
            return self.div(a, b.const)
        return self._free(FDIV, a, b)

    def floor_mod(self, a: Lin, b: Lin) -> Lin:
        """The floor remainder of a / b."""
        if not b.terms and b.const > 0:
            return self.mod(a, b.const)
        return self._free(FMOD, a, b)

    def _free(self, kind: str, a: Lin, b: Lin) -> Lin:
        (alo, _), (blo, bhi) = self.bounds(a), self.bounds(b)
        known = alo is not None and alo >= 0 and blo is not None and blo >= 1
        hi = bhi - 1 if kind == FMOD and known and bhi is not None else None
        return self._atom((kind, a.key, b.key), kind, (a, b), 0 if known else None, hi, None)

    def min(self, a: Lin, b: Lin) -> Lin:
        """The smaller."""
        lo, hi = self._difference(a, b)
        if hi is not None and hi <= 0:
            return a
        if lo is not None and lo >= 0:
            return b
        a, b = sorted((a, b), key=_sort_key)
        (alo, ahi), (blo, bhi) = self.bounds(a), self.bounds(b)
        low = None if alo is None or blo is None else min(alo, blo)
        highs = [h for h in (ahi, bhi) if h is not None]
        return self._atom((MIN, a.key, b.key), MIN, (a, b), low, min(highs) if highs else None, None)

    def max(self, a: Lin, b: Lin) -> Lin:
        """The larger."""
        lo, hi = self._difference(a, b)
        if lo is not None and lo >= 0:
            return a
        if hi is not None and hi <= 0:
            return b
        a, b = sorted((a, b), key=_sort_key)
        (alo, ahi), (blo, bhi) = self.bounds(a), self.bounds(b)
        high = None if ahi is None or bhi is None else max(ahi, bhi)
        lows = [v for v in (alo, blo) if v is not None]
        return self._atom((MAX, a.key, b.key), MAX, (a, b), max(lows) if lows else None, high, None)

    # ------------------------------------------------------------ facts

    def always_at_least(self, a: Lin, floor: int) -> bool:
        """Whether a >= floor is certain."""
        lo = self.bounds(a)[0]
        return lo is not None and lo >= floor

    def always_at_most(self, a: Lin, ceiling: int) -> bool:
        """Whether a <= ceiling is certain."""
        hi = self.bounds(a)[1]
        return hi is not None and hi <= ceiling

    def variables(self, lins: Iterable[Lin]) -> set[int]:
        """The ids of the variables inside (those inside opaque atoms not counted)."""
        found: set[int] = set()
        seen: set[int] = set()
        stack = [at for a in lins for at in a.terms]
        while stack:
            at = stack.pop()
            if at in seen:
                continue
            seen.add(at)
            atom = self.atoms[at]
            if atom.kind == VAR:
                found.add(id(atom.args[0]))
            else:
                stack.extend(inner for arg in atom.args if isinstance(arg, Lin) for inner in arg.terms)
        return found

    # ------------------------------------------------------------ writing out

    def expr(self, a: Lin) -> PrimExpr:
        """The sum as an expression; the same object for equal sums."""
        found = self._exprs.get(a.key)
        if found is None:
            found = self._exprs[a.key] = self._write(a)
        return found

    def _write(self, a: Lin) -> PrimExpr:
        result: PrimExpr | None = None
        for at, n in sorted(a.terms.items(), key=lambda t: (t[1] < 0, -abs(t[1]), t[0])):
            term = self.atoms[at].expr
            if n < 0 and result is not None:
                result = Sub(result, term if n == -1 else Mul(term, _imm(-n)))
            else:
                term = term if n == 1 else Mul(term, _imm(n))
                result = term if result is None else Add(result, term)
        if result is None:
            return _imm(a.const)
        if a.const == 0:
            return result
        return Add(result, _imm(a.const)) if a.const > 0 else Sub(result, _imm(-a.const))


def _imm(value: int) -> IntImm:
    """An index constant, wrapped to 64 bits."""
    return IntImm(INDEX_DTYPE, (value + _INDEX_LIMIT) % (2 * _INDEX_LIMIT) - _INDEX_LIMIT)


_NODES = {DIV: FloorDiv, MOD: FloorMod, MIN: Min, MAX: Max, MUL: Mul, FDIV: FloorDiv, FMOD: FloorMod}


def _sort_key(lin: Lin) -> str:
    return repr(lin.key)
