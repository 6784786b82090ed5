"""Algebra on sums: products, quotients and remainders (floor and truncated), minima and maxima, in normal form.

Each function takes the :class:`Algebra` (terms and facts) and sums, and gives a sum.  The rules, for a constant c > 0:

* ``floor((c*q + r) / c) = q + floor(r / c)``, and ``floor(r / c)`` is a number when r's bounds lie in one period of c;
* ``floor((g*s + t) / c) = floor(s / (c/g))`` when g divides c and 0 <= t < g, and the remainder is ``g*(s mod c/g) + t``;
* ``floor(floor(x / a + k) / b) = floor((x + k*a) / (a*b))``; ``floor((x mod a*b) / b) = floor(x / b) mod a``;
* ``x mod n`` counts as ``x`` modulo any divisor of n;
* in sums, ``c*floor(x / c) + x mod c = x``, also for divisors c that are not known.
"""
from __future__ import annotations

from math import gcd
from typing import Callable, Mapping

from ..ir.expr import INDEX_DTYPE
from ..tir import build
from ..tir.dtypes import info, int_range
from . import interval as iv
from .facts import REMAINDERS, Facts
from .terms import Atom, Lin, Space, common_rank

_MAX_DEGREE = 5
_MAX_ROUNDS = 8


class Algebra:
    """Sums, what is known about them, and tables of results (valid for the present facts)."""

    def __init__(self) -> None:
        self.space = Space()
        self.facts = Facts(self.space)
        self.divs: dict[tuple[int, int], Lin] = {}
        self.mods: dict[tuple[int, int], Lin] = {}

    # ------------------------------------------------------------ sums

    def add(self, a: Lin, b: Lin, factor: int = 1) -> Lin:
        """a + factor * b, quotients and remainders of one number joined again."""
        return self.recombine(self.space.add(a, b, factor))

    def recombine(self, lin: Lin) -> Lin:
        """The sum with its floor quotients and remainders joined where they belong together."""
        for _ in range(_MAX_ROUNDS):
            if len(lin.terms) < 2:
                return lin
            new = self._recombine_once(lin)
            if new is None:
                return lin
            lin = new
        return lin

    def _recombine_once(self, lin: Lin) -> Lin | None:
        terms: dict[Atom, int] | None = None
        for a, k in lin.terms:
            rule = self._JOINS.get(a.kind)
            if rule is None:
                continue
            terms = terms if terms is not None else dict(lin.terms)
            new = rule(self, lin, terms, a, k)
            if new is not None:
                return new
        return None

    def _join_mod(self, lin: Lin, terms: Mapping[Atom, int], a: Atom, k: int) -> Lin | None:
        """k*(x % c) + k*c*(x // c) → k*x;  k*(x % c) - k*x → -k*c*(x // c);  k*((x // b) % c) + k/b*(x % b) → k/b*(x % (b*c))."""
        x, c = a.args
        quotient = self.floor_div(x, c)
        if quotient.terms and _holds(terms, quotient, k * c):
            left = self._without(lin, quotient, k * c)
            return self.space.add(self.space.add(left, self.space.of_atom(a), -k), x, k)
        if x.terms and _holds(terms, x, -k):
            left = self.space.add(self._without(lin, x, -k), self.space.of_atom(a), -k)
            return self.space.add(left, quotient, -k * c)
        inner = x.single()
        if inner is not None and inner.kind == "//" and k % inner.args[1] == 0:
            y, b = inner.args
            small = self.floor_mod(y, b)
            if small.terms and _holds(terms, small, k // b):
                left = self._without(lin, small, k // b)
                return self.space.add(self.space.add(left, self.space.of_atom(a), -k), self.floor_mod(y, b * c), k // b)
        return None

    def _join_div(self, lin: Lin, terms: Mapping[Atom, int], a: Atom, k: int) -> Lin | None:
        """k*c*(x // c) - k*x → -k*(x % c)"""
        x, c = a.args
        if k % c or not x.terms or not _holds(terms, x, -k // c):
            return None
        factor = -k // c
        left = self.space.add(self._without(lin, x, factor), self.space.of_atom(a), -k)
        return self.space.add(left, self.floor_mod(x, c), factor)

    def _join_unknown(self, lin: Lin, terms: Mapping[Atom, int], a: Atom, k: int) -> Lin | None:
        """k*r*(x % d) + k*r*d*(x / d) → k*r*x, where r is a product, or 1; the divisor d need not be known."""
        for f in _factors(a):
            multiple = self._multiple_below(f)
            if multiple is None:
                continue
            x, rest = f.args[0], self._others(a, f)
            whole = self.mul(rest, multiple)
            if whole.terms and not whole.const and _holds(terms, whole, k):
                left = self._without(self._without(lin, whole, k), self.space.of_atom(a), k)
                return self.space.add(left, self.mul(rest, x), k)
        return None

    def _multiple_below(self, f: Atom) -> Lin | None:
        """For a remainder ``x % d`` the product ``d * (x / d)``, where that quotient has been met."""
        if f.kind == "%":
            return self.space.scale(self.floor_div(*f.args), f.args[1])
        if f.kind not in REMAINDERS:
            return None
        x, d = f.args
        quotient = self.space.find((f.kind[0] + "/", f.dtype, x.uid, d.uid))
        return None if quotient is None else self.mul(d, self.space.of_atom(quotient))

    def _others(self, a: Atom, factor: Atom) -> Lin:
        """The product of an atom's other factors."""
        rest = list(_factors(a))
        rest.remove(factor)
        return self.space.const(1) if not rest else self.space.of_atom(rest[0] if len(rest) == 1 else self._product(tuple(rest)))

    _JOINS = {"%": _join_mod, "//": _join_div, "f%": _join_unknown, "t%": _join_unknown, "*": _join_unknown}

    def _without(self, lin: Lin, part: Lin, factor: int) -> Lin:
        return self.space.add(lin, part, -factor)

    # ------------------------------------------------------------ products

    def mul(self, a: Lin, b: Lin) -> Lin:
        """a * b"""
        if not b.terms:
            return self.space.scale(a, b.const)
        if not a.terms:
            return self.space.scale(b, a.const)
        if len(a.terms) + bool(a.const) > 1 and len(b.terms) + bool(b.const) > 1:
            a, b = self.space.of_atom(self.space.wrapped(a)), self.space.of_atom(self.space.wrapped(b))
        result: dict[Atom, int] = {}
        const = a.const * b.const
        for x, k in a.terms:
            for y, m in b.terms:
                p = self._times(x, y)
                result[p] = result.get(p, 0) + k * m
        for lin, c in ((a, b.const), (b, a.const)):
            if c:
                for x, k in lin.terms:
                    result[x] = result.get(x, 0) + k * c
        return self.recombine(self.space.from_dict(result, const))

    def _times(self, x: Atom, y: Atom) -> Atom:
        factors = sorted((*_factors(x), *_factors(y)), key=lambda f: f.uid)
        if len(factors) > _MAX_DEGREE:
            factors = sorted((x, y), key=lambda f: f.uid)
        return self._product(tuple(factors))

    def _product(self, factors: tuple[Atom, ...]) -> Atom:
        key = ("*", *(f.uid for f in factors))
        found = self.space.find(key)
        if found is not None:
            return found
        dtype = self._product_width(factors)
        ordered = sorted(factors, key=lambda f: (f.rank, f.uid))
        expr = build.cast(dtype, ordered[0].expr)
        for f in ordered[1:]:
            expr = build.mul(expr, build.cast(dtype, f.expr))
        return self.space.atom(key, "*", factors, dtype, expr, ordered[-1].rank, max(f.depth for f in factors) + 1,
                               all(f.pure for f in factors))

    def _product_width(self, factors: tuple[Atom, ...]) -> str:
        """A type that holds the product, and every product of its first factors."""
        bound = (1, 1)
        for f in factors:
            bound = iv.join(bound, iv.mul(bound, self.facts.atom_bound(f)))
        return next(d for d in (_widest(factors), "int32", INDEX_DTYPE) if fits(bound, d))

    # ------------------------------------------------------------ division by a positive constant

    def floor_div(self, x: Lin, c: int) -> Lin:
        """floor(x / c) for c > 0"""
        if c == 1:
            return x
        key = (x.uid, c)
        found = self.divs.get(key)
        if found is None:
            found = self.divs[key] = self._floor_div(x, c)
        return found

    def floor_mod(self, x: Lin, c: int) -> Lin:
        """x - c * floor(x / c) for c > 0"""
        if c == 1:
            return self.space.const(0)
        key = (x.uid, c)
        found = self.mods.get(key)
        if found is None:
            found = self.mods[key] = self._floor_mod(x, c)
        return found

    def _split(self, x: Lin, c: int) -> tuple[Lin, Lin]:
        """(q, r) with x = c*q + r and r's factors and constant smaller than c."""
        q: list[tuple[Atom, int]] = []
        r: list[tuple[Atom, int]] = []
        for a, k in x.terms:
            if -c < k < c:
                r.append((a, k))
                continue
            q.append((a, k // c))
            if k % c:
                r.append((a, k % c))
        return self.space.lin(tuple(q), x.const // c), self.space.lin(tuple(r), x.const % c)

    def _period(self, x: Lin, c: int) -> int | None:
        """floor(x / c), when the bounds of x say what it is."""
        low, high = self.facts.bound(x)
        if iv.finite(low) and iv.finite(high) and low // c == high // c:
            return low // c
        return None

    def _floor_div(self, x: Lin, c: int) -> Lin:
        k = self._period(x, c)
        if k is not None:
            return self.space.const(k)
        q, r = self._split(x, c)
        k = self._period(r, c)
        if k is not None:
            return self.space.shift(q, k)
        parts = self._coarse(r, c)
        if parts is not None:
            g, s, _ = parts
            return self.add(q, self.floor_div(s, c // g))
        return self.add(q, self._quotient(r, c))

    def _floor_mod(self, x: Lin, c: int) -> Lin:
        k = self._period(x, c)
        if k is not None:
            return self.space.shift(x, -k * c)
        x = self._strip_mods(x, c)
        _, r = self._split(x, c)
        k = self._period(r, c)
        if k is not None:
            return self.space.shift(r, -k * c)
        parts = self._coarse(r, c)
        if parts is not None:
            g, s, t = parts
            return self.add(t, self.floor_mod(s, c // g), g)
        return self.space.of_atom(self._divided("%", r, c))

    def _strip_mods(self, x: Lin, c: int) -> Lin:
        """x with every ``y % n`` whose period does not show modulo c replaced by ``y``."""
        for _ in range(_MAX_ROUNDS):
            for a, k in x.terms:
                if a.kind == "%" and a.args[1] * k % c == 0:
                    x = self.space.add(self.space.add(x, self.space.of_atom(a), -k), a.args[0], k)
                    break
            else:
                return x
        return x

    def _coarse(self, r: Lin, c: int) -> tuple[int, Lin, Lin] | None:
        """(g, s, t) with r = g*s + t, g a divisor of c greater than 1, and 0 <= t < g."""
        for g in sorted({gcd(k, c) for _, k in r.terms} - {1}, reverse=True):
            t = self.space.lin(tuple([(a, k) for a, k in r.terms if k % g]), r.const)
            k = self._period(t, g)
            if k is not None:
                s = self.space.lin(tuple([(a, f // g) for a, f in r.terms if f % g == 0]), k)
                return g, s, self.space.shift(t, -k * g)
        return None

    def _quotient(self, r: Lin, c: int) -> Lin:
        """floor(r / c) where nothing can be taken out of r; quotients of quotients and of remainders are merged."""
        if len(r.terms) == 1 and r.terms[0][1] == 1:
            a = r.terms[0][0]
            if a.kind == "//":
                y, b = a.args
                return self.floor_div(self.space.shift(y, r.const * b), b * c)
            if a.kind == "%" and r.const == 0 and a.args[1] % c == 0:
                return self.floor_mod(self.floor_div(a.args[0], c), a.args[1] // c)
        return self.space.of_atom(self._divided("//", r, c))

    def _divided(self, kind: str, x: Lin, c: int) -> Atom:
        key = (kind, x.uid, c)
        found = self.space.find(key)
        if found is not None:
            return found
        dtype = self._width(x, c)
        make = build.floor_div if kind == "//" else build.floor_mod
        expr = make(self.space.emit(x, dtype), build.make_const(c, dtype))
        return self.space.atom(key, kind, (x, c), dtype, expr, Space.rank(x), x.depth + 1, x.pure)

    def _width(self, x: Lin, c: int) -> str:
        """A type in which x and c are what they are: the atoms' own if it holds them, else the index type."""
        dtype = _widest([a for a, _ in x.terms])
        return dtype if dtype != INDEX_DTYPE and fits(self.facts.bound(x), dtype) and fits((c, c), dtype) else INDEX_DTYPE

    # ------------------------------------------------------------ any division

    def divide(self, x: Lin, d: Lin, floor: bool) -> Lin | None:
        """The floor or truncated quotient; None when it is nothing known (and must stay as it is)."""
        sign = self._sign(x, d, floor)
        if sign is None:
            return None
        c = d.const
        if not d.terms:
            q = self.floor_div(self.space.scale(x, 1 if c > 0 else -1), abs(c)) if floor else self._trunc_div(x, c)
            return q
        return self._symbolic(x, d)[0]

    def modulo(self, x: Lin, d: Lin, floor: bool) -> Lin | None:
        """The floor or truncated remainder; None when it must stay as it is."""
        if self._sign(x, d, floor) is None:
            return None
        c = d.const
        if not d.terms:
            if not floor:
                return self._trunc_mod(x, abs(c))
            if c > 0:
                return self.floor_mod(x, c)
            return self.space.scale(self.floor_mod(self.space.scale(x, -1), -c), -1)
        return self._symbolic(x, d)[1]

    def _sign(self, x: Lin, d: Lin, floor: bool) -> bool | None:
        """None when the rules for positive divisors say nothing about this division."""
        if not d.terms:
            if d.const == 0:
                return None
            return True if floor else (self._trunc_known(x, abs(d.const)) or None)
        if self.facts.bound(d)[0] < 0:  # zero would be a fault, so at least 0 means at least 1
            return None
        return True if floor or self.facts.bound(x)[0] >= 0 else None

    def _trunc_known(self, x: Lin, c: int) -> bool:
        low, high = self.facts.bound(x)
        return low >= 0 or high <= 0 or low > -c and high < c or self._exact(x, c)

    def _exact(self, x: Lin, c: int) -> bool:
        m, r = self.facts.modulus(x)
        return m % c == 0 and r % c == 0

    def _trunc_div(self, x: Lin, c: int) -> Lin:
        positive, c = c > 0, abs(c)
        low, high = self.facts.bound(x)
        if low > -c and high < c:
            return self.space.const(0)
        if low >= 0 or self._exact(x, c):
            q = self.floor_div(x, c)
        else:
            q = self.space.scale(self.floor_div(self.space.scale(x, -1), c), -1)
        return q if positive else self.space.scale(q, -1)

    def _trunc_mod(self, x: Lin, c: int) -> Lin:
        low, high = self.facts.bound(x)
        if low > -c and high < c:
            return x
        if low >= 0 or self._exact(x, c):
            return self.floor_mod(x, c)
        return self.space.scale(self.floor_mod(self.space.scale(x, -1), c), -1)

    def _symbolic(self, x: Lin, d: Lin) -> tuple[Lin | None, Lin | None]:
        """(quotient, remainder) by an unknown divisor >= 1, when x is a multiple of it plus something provably between 0 and it."""
        q, r = self._multiple(x, d)
        below = self.space.shift(self.space.add(d, r, -1), -1)
        if self.facts.nonnegative(r) and self.facts.nonnegative(below):
            return q, r
        return None, None

    def _multiple(self, x: Lin, d: Lin) -> tuple[Lin, Lin]:
        if len(d.terms) != 1 or d.const or d.terms[0][1] != 1:
            return (self.space.const(1), self.space.const(0)) if x is d else (self.space.const(0), x)
        want = _factors(d.terms[0][0])
        q: dict[Atom, int] = {}
        r: dict[Atom, int] = {}
        const = 0
        for a, k in x.terms:
            rest = _take_out(_factors(a), want)
            if rest is None:
                r[a] = k
            elif not rest:
                const += k
            else:
                p = rest[0] if len(rest) == 1 else self._product(rest)
                q[p] = q.get(p, 0) + k
        return self.space.from_dict(q, const), self.space.from_dict(r, x.const)

    # ------------------------------------------------------------ minimum and maximum

    def extreme(self, kind: str, a: Lin, b: Lin) -> Lin:
        """min(a, b) or max(a, b)"""
        sign = 1 if kind == "min" else -1
        difference = self.add(b, a, -1)
        if self.facts.nonnegative(self.space.scale(difference, sign)):
            return a
        if self.facts.nonnegative(self.space.scale(difference, -sign)):
            return b
        shared = _shared(a, b)
        if shared:
            common = self.space.from_dict(shared, 0)
            return self.add(common, self.extreme(kind, self.space.add(a, common, -1), self.space.add(b, common, -1)))
        return self._extreme_atom(kind, a, b)

    def _extreme_atom(self, kind: str, a: Lin, b: Lin) -> Lin:
        parts: dict[int, Lin] = {}
        for x in (*_alternatives(a, kind), *_alternatives(b, kind)):
            self._keep_extreme(kind, parts, x)
        args = tuple(sorted(parts.values(), key=lambda p: (not p.terms, p.uid)))
        if len(args) == 1:
            return args[0]
        key = (kind, *(p.uid for p in args))
        found = self.space.find(key)
        if found is None:
            rank, depth, pure = common_rank(args)
            dtype = self._common_width(args)
            expr = self.space.emit(args[0], dtype)
            for p in args[1:]:
                expr = (build.minimum if kind == "min" else build.maximum)(expr, self.space.emit(p, dtype))
            found = self.space.atom(key, kind, args, dtype, expr, rank, depth, pure)
        return self.space.of_atom(found)

    def _keep_extreme(self, kind: str, parts: dict[int, Lin], x: Lin) -> None:
        """Adds x to the operands, unless one of them makes it superfluous; drops those it makes superfluous."""
        sign = 1 if kind == "min" else -1
        for uid, p in list(parts.items()):
            difference = self.space.scale(self.add(x, p, -1), sign)
            if self.facts.bound(difference)[0] >= 0:
                return
            if self.facts.bound(difference)[1] <= 0:
                del parts[uid]
        parts[x.uid] = x

    def _common_width(self, lins: tuple[Lin, ...]) -> str:
        dtype = _widest([a for lin in lins for a, _ in lin.terms])
        return dtype if all(fits(self.facts.bound(lin), dtype) for lin in lins) else INDEX_DTYPE


def fits(bound: tuple[int, int], dtype: str) -> bool:
    """Whether all values in the bound are values of an integer dtype (of the index type: always, by agreement)."""
    if dtype == INDEX_DTYPE:
        return True
    low, high = int_range(dtype)
    return low <= bound[0] and bound[1] <= high


def _holds(terms: Mapping[Atom, int], part: Lin, factor: int) -> bool:
    """Whether the terms contain factor * part, factor for factor."""
    get: Callable[[Atom, int], int] = terms.get  # type: ignore[assignment]
    return all(get(a, 0) == k * factor for a, k in part.terms)


def _factors(a: Atom) -> tuple[Atom, ...]:
    return a.args if a.kind == "*" else (a,)


def _take_out(have: tuple[Atom, ...], want: tuple[Atom, ...]) -> tuple[Atom, ...] | None:
    rest = list(have)
    for w in want:
        if w not in rest:
            return None
        rest.remove(w)
    return tuple(rest)


def _widest(atoms: "list[Atom] | tuple[Atom, ...]") -> str:
    """The narrowest type that has all values of the atoms' types (the index type, when there is nothing narrower)."""
    dtypes = {a.dtype for a in atoms}
    if len(dtypes) == 1:
        only = dtypes.pop()
        return only if only != "bool" else "int32"
    if not dtypes or INDEX_DTYPE in dtypes:
        return INDEX_DTYPE
    bits = max(t.bits * (1 if t.kind == "int" else 2) for t in map(info, dtypes))
    return f"int{bits}" if 8 <= bits <= 64 else INDEX_DTYPE


def _shared(a: Lin, b: Lin) -> dict[Atom, int]:
    other = dict(b.terms)
    return {t: k for t, k in a.terms if other.get(t) == k}


def _alternatives(x: Lin, kind: str) -> tuple[Lin, ...]:
    a = x.single()
    return a.args if a is not None and a.kind == kind else (x,)


