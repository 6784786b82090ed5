"""The normal form of integers: a sum of atoms with integer factors and a constant.

``Lin`` is such a sum, ``Atom`` what cannot be taken apart by addition (a variable, a floor quotient, a product of
variables, a minimum, a load …).  Both are interned by a :class:`Space`: equal ones are one object, so comparison is ``is``
and every fact can be remembered in a dict.

The value of a ``Lin`` is meant mathematically: whoever makes one for an expression of a narrow type has made sure that the machine
computes that very number.
"""
from __future__ import annotations

from typing import Any, Iterable, Mapping

from ..ir.expr import INDEX_DTYPE, PrimExpr
from ..tir import build
from ..tir.dtypes import info

_MAX_TERMS = 48  # longer sums are folded into one atom, which keeps the work on endless sums linear


class Atom:
    """An interned term.  ``rank`` orders terms: outer loop variables first, so that what a loop leaves alone is summed first."""

    __slots__ = ("uid", "kind", "args", "dtype", "expr", "rank", "depth", "pure", "base")
    uid: int
    kind: str
    args: tuple[Any, ...]
    dtype: str
    expr: PrimExpr
    rank: int
    depth: int
    pure: bool
    base: tuple[int, int] | None


class Lin:
    """An interned sum: ``terms`` is a tuple of (atom, factor) sorted by ``uid``, factors not 0."""

    __slots__ = ("terms", "const", "uid", "depth", "pure", "shape")
    terms: tuple[tuple[Atom, int], ...]
    const: int
    uid: int
    depth: int
    pure: bool
    shape: tuple[tuple[int, int], ...]

    @property
    def is_const(self) -> bool:
        """Whether it is just a number."""
        return not self.terms

    def single(self) -> Atom | None:
        """The atom, when the sum is exactly one atom."""
        if len(self.terms) == 1 and self.const == 0 and self.terms[0][1] == 1:
            return self.terms[0][0]
        return None


class Space:
    """The table of atoms and sums."""

    def __init__(self) -> None:
        self._atoms: dict[Any, Atom] = {}
        self._lins: dict[Any, Lin] = {}
        self._consts: dict[int, Lin] = {}
        self._emitted: dict[tuple[int, str], PrimExpr] = {}
        self._next = 0
        self._rank = 0

    # ------------------------------------------------------------ making

    def next_rank(self) -> int:
        """A rank above all given so far."""
        self._rank += 1
        return self._rank

    def find(self, key: Any) -> Atom | None:
        """The atom of that key, if there is one."""
        return self._atoms.get(key)

    def atom(self, key: Any, kind: str, args: tuple[Any, ...], dtype: str, expr: PrimExpr, rank: int, depth: int,
             pure: bool = True) -> Atom:
        """The atom of that key, made when new."""
        found = self._atoms.get(key)
        if found is not None:
            return found
        self._next += 1
        a = Atom()
        a.uid, a.kind, a.args, a.dtype, a.expr = self._next, kind, args, dtype, expr
        a.rank, a.depth, a.pure, a.base = rank, depth, pure, None
        self._atoms[key] = a
        return a

    def const(self, value: int) -> Lin:
        """The number as a sum."""
        found = self._consts.get(value)
        if found is None:
            found = self._consts[value] = self.lin((), value)
        return found

    def of_atom(self, a: Atom, factor: int = 1, const: int = 0) -> Lin:
        """factor * a + const"""
        return self.lin(((a, factor),) if factor else (), const)

    def lin(self, terms: tuple[tuple[Atom, int], ...], const: int) -> Lin:
        """The sum of these terms, which must be sorted and without zero factors."""
        shape = tuple([(a.uid, k) for a, k in terms])
        key = (shape, const)
        found = self._lins.get(key)
        if found is not None:
            return found
        self._next += 1
        new = Lin()
        new.terms, new.const, new.uid, new.shape = terms, const, self._next, shape
        new.depth, new.pure = 0, True
        for a, _ in terms:
            if a.depth > new.depth:
                new.depth = a.depth
            if not a.pure:
                new.pure = False
        self._lins[key] = new
        return new

    def from_dict(self, terms: Mapping[Atom, int], const: int) -> Lin:
        """The sum of the atoms with their factors (zeros allowed)."""
        items = [(a, k) for a, k in terms.items() if k]
        if len(items) > 1:
            items.sort(key=_uid)
        if len(items) > _MAX_TERMS:
            return self.of_atom(self.wrapped(self.lin(tuple(items), 0)), 1, const)
        return self.lin(tuple(items), const)

    def wrapped(self, lin: Lin) -> Atom:
        """A whole sum as one atom."""
        return self.atom(("sum", lin.uid), "sum", (lin,), INDEX_DTYPE, self.emit(lin, INDEX_DTYPE), self.rank(lin), lin.depth + 1, lin.pure)

    @staticmethod
    def rank(lin: Lin) -> int:
        """The highest rank in a sum."""
        return max((a.rank for a, _ in lin.terms), default=0)

    # ------------------------------------------------------------ ring operations

    def add(self, a: Lin, b: Lin, factor: int = 1) -> Lin:
        """a + factor * b"""
        if not b.terms:
            return a if not b.const else self.lin(a.terms, a.const + factor * b.const)
        if not a.terms and factor == 1:
            return b if not a.const else self.lin(b.terms, a.const + b.const)
        terms = dict(a.terms)
        for t, k in b.terms:
            terms[t] = terms.get(t, 0) + factor * k
        return self.from_dict(terms, a.const + factor * b.const)

    def scale(self, a: Lin, k: int) -> Lin:
        """k * a"""
        if k == 1:
            return a
        return self.lin(tuple([(t, c * k) for t, c in a.terms]), a.const * k) if k else self.const(0)

    def shift(self, a: Lin, k: int) -> Lin:
        """a + k"""
        return self.lin(a.terms, a.const + k) if k else a

    # ------------------------------------------------------------ back to expressions

    def emit(self, lin: Lin, dtype: str) -> PrimExpr:
        """The expression of a sum, in ``dtype``."""
        key = (lin.uid, dtype)
        found = self._emitted.get(key)
        if found is None:
            wide = self._width(lin, dtype)
            found = self._emitted[key] = build.cast(dtype, self._sum(lin, wide))
        return found

    @staticmethod
    def _width(lin: Lin, dtype: str) -> str:
        """The type to add up in: ``dtype``, or the widest of the atoms' when that is wider."""
        best, bits = dtype, info(dtype).bits
        for a, _ in lin.terms:
            t = info(a.dtype)
            if t.bits > bits:
                best, bits = a.dtype, t.bits
        return best

    @staticmethod
    def _sum(lin: Lin, dtype: str) -> PrimExpr:
        terms = sorted(lin.terms, key=_rank) if len(lin.terms) > 1 else list(lin.terms)
        const = lin.const
        start = next((i for i, (_, k) in enumerate(terms) if k > 0), None)
        if start is None:
            acc: PrimExpr = build.make_const(const, dtype)
            const = 0
        else:
            acc = _product(terms[start], dtype)
        for i, term in enumerate(terms):
            if i != start:
                acc = (build.add if term[1] > 0 else build.sub)(acc, _product(term, dtype))
        if const > 0:
            return build.add(acc, build.make_const(const, dtype))
        return build.sub(acc, build.make_const(-const, dtype)) if const else acc


def _uid(term: tuple[Atom, int]) -> int:
    return term[0].uid


def _rank(term: tuple[Atom, int]) -> tuple[int, int]:
    return term[0].rank, term[0].uid


def _product(term: tuple[Atom, int], dtype: str) -> PrimExpr:
    """The atom times the absolute value of its factor."""
    a, k = term
    x = a.expr if a.dtype == dtype else build.cast(dtype, a.expr)
    return x if k in (1, -1) else build.mul(x, build.make_const(abs(k), dtype))


def common_rank(lins: Iterable[Lin]) -> tuple[int, int, bool]:
    """(highest rank, depth of an atom over them, whether all are pure)."""
    rank = depth = 0
    pure = True
    for lin in lins:
        rank, depth, pure = max(rank, Space.rank(lin)), max(depth, lin.depth), pure and lin.pure
    return rank, depth + 1, pure
