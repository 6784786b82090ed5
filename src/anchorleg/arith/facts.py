"""What is known about variables and sums: bounds from ranges and conditions, and proofs that a sum is not negative."""
from __future__ import annotations

from math import gcd
from typing import Any

from ..tir.dtypes import int_range
from . import interval as iv
from .terms import Atom, Lin, Space

_MAX_FACTS = 24
_MAX_DEPTH = 48  # atoms nested deeper than this get the bounds of their kind only
_ABSENT = object()
REMAINDERS = ("f%", "t%")  # by divisors that are not known
_BOUNDED = ("min", "//", *REMAINDERS)  # kinds of atoms that have symbolic bounds of their own


class Facts:
    """Bounds and conditions in force.  ``snapshot``/``restore`` open and close a scope."""

    def __init__(self, space: Space) -> None:
        self.space = space
        self.bounds: dict[Atom, tuple[int, int]] = {}  # from ranges and conditions
        self.shapes: dict[tuple[tuple[int, int], ...], tuple[int, int]] = {}  # of sums without their constant
        self.conditions: tuple[Lin, ...] = ()  # each is >= 0
        self.lower: dict[Atom, tuple[Lin, ...]] = {}  # symbolic bounds of variables
        self.upper: dict[Atom, tuple[Lin, ...]] = {}
        self.moduli: dict[Atom, tuple[int, int]] = {}
        self._undo: list[tuple[dict[Any, Any], Any, Any]] = []
        self._atom_cache: dict[Atom, tuple[int, int]] = {}
        self._lin_cache: dict[Lin, tuple[int, int]] = {}

    def snapshot(self) -> tuple[Any, ...]:
        """Marks the present state: what is learned from here on is written down, to be undone."""
        return len(self._undo), self.conditions, self._atom_cache, self._lin_cache

    def restore(self, saved: tuple[Any, ...]) -> None:
        """Back to a former state."""
        mark, self.conditions, self._atom_cache, self._lin_cache = saved
        while len(self._undo) > mark:
            table, key, old = self._undo.pop()
            if old is _ABSENT:
                table.pop(key, None)
            else:
                table[key] = old

    def set(self, table: dict[Any, Any], key: Any, value: Any) -> None:
        """Changes an entry of one of the tables, so that `restore` can undo it."""
        self._undo.append((table, key, table.get(key, _ABSENT)))
        table[key] = value

    def forget(self) -> None:
        """Drops what was derived; to be called when a fact is added."""
        self._atom_cache, self._lin_cache = {}, {}

    # ------------------------------------------------------------ bounds

    def bound(self, lin: Lin) -> tuple[int, int]:
        """Constant bounds of a sum."""
        found = self._lin_cache.get(lin)
        if found is None:
            found = self._lin_cache[lin] = self._lin_bound(lin)
        return found

    def _lin_bound(self, lin: Lin) -> tuple[int, int]:
        low = high = lin.const
        for a, k in lin.terms:
            lo, hi = self.atom_bound(a)
            if k > 0:
                low, high = low + lo * k, high + hi * k
            else:
                low, high = low + hi * k, high + lo * k
        result = iv.clamp(low), iv.clamp(high)
        if self.shapes and len(lin.terms) > 1:
            result = iv.meet(result, self._shape_bound(lin))
        return result

    def _shape_bound(self, lin: Lin) -> tuple[int, int]:
        shape, factor = normal_shape(lin)
        known = self.shapes.get(shape)
        if known is None:
            return iv.EVERYTHING
        low, high = iv.scale(known, factor)
        return iv.clamp(low + lin.const), iv.clamp(high + lin.const)

    def atom_bound(self, a: Atom) -> tuple[int, int]:
        """Constant bounds of an atom."""
        found = self._atom_cache.get(a)
        if found is None:
            found = _KIND_BOUNDS.get(a.kind, _dtype_bound)(self, a) if a.depth <= _MAX_DEPTH else _shallow_bound(a)
            extra = self.bounds.get(a)
            if extra is not None:
                found = iv.meet(found, extra)
            self._atom_cache[a] = found
        return found

    # ------------------------------------------------------------ remainders

    def modulus(self, lin: Lin, depth: int = 0) -> tuple[int, int]:
        """(m, r) with lin ≡ r modulo m; m = 0 says that it is the number r, m = 1 nothing."""
        m, r = 0, lin.const
        for a, k in lin.terms:
            am, ar = self._atom_modulus(a, depth)
            m, r = gcd(m, am * k), r + ar * k
            if m == 1:
                return 1, 0
        return m, r % m if m else r

    def _atom_modulus(self, a: Atom, depth: int) -> tuple[int, int]:
        known = self.moduli.get(a)
        if known is not None:
            return known
        low, high = self.atom_bound(a)
        if low == high:
            return 0, low
        if depth > 8:
            return 1, 0
        if a.kind == "%":
            m, r = self.modulus(a.args[0], depth + 1)
            m = gcd(m, a.args[1])
            return m, r % m
        if a.kind in ("min", "max", "select"):
            return self._joined_modulus([x for x in a.args if isinstance(x, Lin)], depth)
        if a.kind == "sum":
            return self.modulus(a.args[0], depth + 1)
        if a.kind == "*":
            m, r = 0, 1
            for f in a.args:
                fm, fr = self._atom_modulus(f, depth + 1)
                m, r = gcd(gcd(m * fm, m * fr), fm * r), r * fr
            return m, r % m if m else r
        return 1, 0

    def _joined_modulus(self, lins: list[Lin], depth: int) -> tuple[int, int]:
        m, r = self.modulus(lins[0], depth + 1)
        for other in lins[1:]:
            om, orr = self.modulus(other, depth + 1)
            m = gcd(gcd(m, om), r - orr)
        return m, r % m if m else r

    # ------------------------------------------------------------ learning

    def narrow(self, a: Atom, low: int, high: int, depth: int = 0) -> None:
        """Learns ``low <= a <= high``."""
        old = self.bounds.get(a, iv.EVERYTHING)
        new = max(old[0], low), min(old[1], high)
        if new == old or new[0] > new[1]:
            return
        self.set(self.bounds, a, new)
        self.forget()
        if depth < 3:
            self._narrow_inside(a, new, depth)

    def _narrow_inside(self, a: Atom, bound: tuple[int, int], depth: int) -> None:
        if a.kind == "//":
            inner, c = a.args
            low = bound[0] * c if iv.finite(bound[0]) else -iv.INF
            high = bound[1] * c + c - 1 if iv.finite(bound[1]) else iv.INF
            self._learn_sum(inner, low, high, depth + 1)
        elif a.kind == "%" and bound[0] == bound[1] and a.args[0].single() is not None:
            self.set(self.moduli, a.args[0].single(), (a.args[1], bound[0]))
        elif a.kind == "min" and iv.finite(bound[0]):
            for x in a.args:
                self._learn_sum(x, bound[0], iv.INF, depth + 1)
        elif a.kind == "max" and iv.finite(bound[1]):
            for x in a.args:
                self._learn_sum(x, -iv.INF, bound[1], depth + 1)

    def _learn_sum(self, lin: Lin, low: int, high: int, depth: int) -> None:
        if iv.finite(low):
            self.learn(self.space.shift(lin, -low), depth)
        if iv.finite(high):
            self.learn(self.space.shift(self.space.scale(lin, -1), high), depth)

    def learn(self, lin: Lin, depth: int = 0) -> None:
        """Learns that ``lin >= 0``."""
        if not lin.pure or not lin.terms:
            return
        if len(lin.terms) > 1:
            self._remember(lin)
        for a, k in lin.terms:
            rest = self._rest_high(lin, a)
            if not iv.finite(rest):
                continue
            if k > 0:  # k * a >= -rest
                self.narrow(a, -(rest // k), iv.INF, depth)
            else:  # a <= rest / -k
                self.narrow(a, -iv.INF, rest // -k, depth)

    def _rest_high(self, lin: Lin, a: Atom) -> int:
        """The greatest value of the sum without the term in ``a``."""
        return iv.clamp(lin.const + sum(self.atom_bound(t)[k > 0] * k for t, k in lin.terms if t is not a))

    def _remember(self, lin: Lin) -> None:
        shape, factor = normal_shape(lin)
        old = self.shapes.get(shape, iv.EVERYTHING)
        if factor > 0:  # factor * shape >= -const
            new = max(old[0], -(lin.const // factor)), old[1]
        else:
            new = old[0], min(old[1], lin.const // -factor)
        if new != old and new[0] <= new[1]:
            self.set(self.shapes, shape, new)
        self.conditions = (*self.conditions, lin)[-_MAX_FACTS:]
        self.forget()

    # ------------------------------------------------------------ proofs

    def nonnegative(self, lin: Lin, depth: int = 0) -> bool:
        """Whether ``lin >= 0`` can be proved."""
        if self.bound(lin)[0] >= 0:
            return True
        if depth >= 3 or not lin.terms or not (self.conditions or self.lower or self.upper or any(a.kind in _BOUNDED for a, _ in lin.terms)):
            return False
        return self._by_condition(lin, depth) or self._by_symbolic_bound(lin, depth) or self._by_quotients(lin, depth)

    def _by_condition(self, lin: Lin, depth: int) -> bool:
        factors = dict(lin.terms)
        for fact in self.conditions:
            for a, k in fact.terms:
                have = factors.get(a, 0)
                if have and have % k == 0 and have // k > 0:
                    rest = self.space.add(lin, fact, -(have // k))
                    if len(rest.terms) <= len(lin.terms) and (self.bound(rest)[0] >= 0 or depth < 1 and self.nonnegative(rest, depth + 1)):
                        return True
                    break
        return False

    def _by_symbolic_bound(self, lin: Lin, depth: int) -> bool:
        for a, k in lin.terms:
            for other in self.lower.get(a, ()) if k > 0 else self._above(a, k):
                rest = self.space.add(lin, self.space.add(self.space.of_atom(a), other, -1), -k)
                if self.nonnegative(rest, depth + 1):
                    return True
        return False

    def _above(self, a: Atom, k: int) -> tuple[Lin, ...]:
        """Symbolic upper bounds of an atom that occurs with the factor ``k``: those learnt, and those that its kind has."""
        known = self.upper.get(a, ())
        if a.kind in REMAINDERS and self.bound(a.args[1])[0] >= 0:  # where it is evaluated, the divisor is not 0
            return (*known, self.space.shift(a.args[1], -1))
        return (*known, *a.args) if a.kind == "min" else known

    def _by_quotients(self, lin: Lin, depth: int) -> bool:
        """By ``c * floor(x / c) <= x``, and by the difference of two quotients of which one is of a number greater by a constant."""
        quotients = [(a, k) for a, k in lin.terms if a.kind == "//"]
        for a, k in quotients:
            x, c = a.args
            if k < 0 and k % c == 0:
                without = self.space.add(lin, self.space.of_atom(a), -k)
                if self.nonnegative(self.space.add(without, x, k // c), depth + 1):
                    return True
            for b, m in quotients:
                more = self.space.add(x, b.args[0], -1) if m == -k and k > 0 and b.args[1] == c else None
                if more is not None and more.is_const:
                    without = self.space.add(self.space.add(lin, self.space.of_atom(a), -k), self.space.of_atom(b), -m)
                    if self.nonnegative(self.space.shift(without, more.const // c * k), depth + 1):
                        return True
        return False


def normal_shape(lin: Lin) -> tuple[tuple[tuple[int, int], ...], int]:
    """The terms divided by their common factor, the first one made positive; and what was divided out."""
    factor = 0
    for _, k in lin.terms:
        factor = gcd(factor, k)
    if lin.terms[0][1] < 0:
        factor = -factor
    return (lin.shape, 1) if factor == 1 else (tuple([(u, k // factor) for u, k in lin.shape]), factor)


# ---------------------------------------------------------------- bounds by kind of atom


def _dtype_bound(f: Facts, a: Atom) -> tuple[int, int]:
    return iv.EVERYTHING if a.dtype == "int64" else int_range(a.dtype)


def _var_bound(f: Facts, a: Atom) -> tuple[int, int]:
    return a.base if a.base is not None else _dtype_bound(f, a)


def _floor_div(f: Facts, a: Atom) -> tuple[int, int]:
    low, high = f.bound(a.args[0])
    return iv.floor_div_bound(low, a.args[1]), iv.floor_div_bound(high, a.args[1])


def _floor_mod(f: Facts, a: Atom) -> tuple[int, int]:
    c = a.args[1]
    low, high = f.bound(a.args[0])
    if iv.finite(low) and iv.finite(high) and low // c == high // c:
        return low % c, high % c
    m, r = f.modulus(a.args[0])
    g = gcd(m, c)
    return (r % g, c - g + r % g) if g > 1 else (0, c - 1)


def _floor_div_any(f: Facts, a: Atom) -> tuple[int, int]:
    return iv.quotient(f.bound(a.args[0]), f.bound(a.args[1]), iv.floor_div_bound)


def _trunc_div(f: Facts, a: Atom) -> tuple[int, int]:
    low, high = iv.quotient(f.bound(a.args[0]), f.bound(a.args[1]), iv.trunc_div_bound)
    return low, high


def _floor_mod_any(f: Facts, a: Atom) -> tuple[int, int]:
    low, high = f.bound(a.args[1])
    return min(0, low + 1), max(0, high - 1)


def _trunc_mod(f: Facts, a: Atom) -> tuple[int, int]:
    (xl, xh), (dl, dh) = f.bound(a.args[0]), f.bound(a.args[1])
    most = max(abs(dl), abs(dh)) - 1
    return (max(-most, xl) if xl < 0 else 0), (min(most, xh) if xh > 0 else 0)


def _product(f: Facts, a: Atom) -> tuple[int, int]:
    result = (1, 1)
    for x in a.args:
        result = iv.mul(result, f.atom_bound(x))
    if len(a.args) == 2 and a.args[0] is a.args[1]:
        result = max(result[0], 0), result[1]
    return result


def _minimum(f: Facts, a: Atom) -> tuple[int, int]:
    bounds = [f.bound(x) for x in a.args]
    return min(b[0] for b in bounds), min(b[1] for b in bounds)


def _maximum(f: Facts, a: Atom) -> tuple[int, int]:
    bounds = [f.bound(x) for x in a.args]
    return max(b[0] for b in bounds), max(b[1] for b in bounds)


def _select(f: Facts, a: Atom) -> tuple[int, int]:
    return iv.join(f.bound(a.args[1]), f.bound(a.args[2]))


def _shallow_bound(a: Atom) -> tuple[int, int]:
    if a.kind == "%":
        return 0, a.args[1] - 1
    return (0, 1) if a.kind == "bool" else iv.EVERYTHING if a.dtype == "int64" else int_range(a.dtype)


_KIND_BOUNDS = {
    "var": _var_bound, "//": _floor_div, "%": _floor_mod, "f/": _floor_div_any, "f%": _floor_mod_any, "t/": _trunc_div,
    "t%": _trunc_mod, "*": _product, "min": _minimum, "max": _maximum, "select": _select, "bool": lambda f, a: (0, 1),
    "sum": lambda f, a: f.bound(a.args[0]),
}
