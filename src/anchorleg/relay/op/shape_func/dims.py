"""Sizes as formulas: integers, sizes of arguments, their sums, products, quotients …

A formula is kept as a polynomial over *atoms* (an argument's dimension, an element of an argument, a quotient that is no
polynomial …), which makes equal sizes equal objects: ``(1·s·384) // 384`` is ``s`` again.  Plain ints stand for themselves.
"""
from __future__ import annotations

from typing import Any, Union

Dim = Union[int, "Size"]


class DimTable:
    """The atoms of one analysis.  An atom is ``(operation, …operands)``; equal atoms are one."""

    def __init__(self) -> None:
        self.atoms: list[tuple[Any, ...]] = []
        self._index: dict[tuple[Any, ...], int] = {}

    def atom(self, *what: Any) -> Size:
        """The size that an operation gives."""
        at = self._index.get(what)
        if at is None:
            at = self._index[what] = len(self.atoms)
            self.atoms.append(what)
        return Size(self, (((at,), 1),))

    def fresh(self) -> Size:
        """A size nothing is known of."""
        return self.atom("fresh", len(self.atoms))

    def maximum(self, a: Dim, b: Dim) -> Dim:
        """The larger one."""
        return self._choose("max", max, a, b)

    def minimum(self, a: Dim, b: Dim) -> Dim:
        """The smaller one."""
        return self._choose("min", min, a, b)

    def _choose(self, name: str, plain: Any, a: Dim, b: Dim) -> Dim:
        if a == b:
            return a
        return plain(a, b) if isinstance(a, int) and isinstance(b, int) else self.atom(name, *sorted((a, b), key=repr))

    def equal(self, a: Dim, b: Dim) -> Dim:
        """1 when equal, else 0."""
        if a == b:
            return 1
        return 0 if isinstance(a, int) and isinstance(b, int) else self.atom("eq", a, b)

    def less(self, a: Dim, b: Dim) -> Dim:
        """1 when ``a < b``, else 0."""
        return int(a < b) if isinstance(a, int) and isinstance(b, int) else 0 if a == b else self.atom("lt", a, b)

    def select(self, condition: Dim, yes: Dim, no: Dim) -> Dim:
        """``yes`` when the condition is not 0."""
        if isinstance(condition, int):
            return yes if condition else no
        return yes if yes == no else self.atom("select", condition, yes, no)

    def quotient(self, a: Dim, b: Dim) -> Dim:
        """``a // b``, rounded down."""
        if isinstance(a, int) and isinstance(b, int):
            return a // b if b else 0
        exact = _divide(self, a, b)
        return exact if exact is not None else self.atom("div", a, b)

    def remainder(self, a: Dim, b: Dim) -> Dim:
        """``a % b``, with the sign of ``b``."""
        if isinstance(a, int) and isinstance(b, int):
            return a % b if b else 0
        return 0 if _divide(self, a, b) is not None else self.atom("mod", a, b)


class Size:
    """A polynomial over atoms: ``terms`` maps products of atoms to coefficients, in a fixed order."""

    __slots__ = ("table", "terms", "_hash")

    def __init__(self, table: DimTable, terms: tuple[tuple[tuple[int, ...], int], ...]) -> None:
        self.table, self.terms, self._hash = table, terms, hash(terms)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Size) and self.terms == other.terms

    def __hash__(self) -> int:
        return self._hash

    def __repr__(self) -> str:
        return f"Size{self.terms}"

    def __add__(self, other: Dim) -> Dim:
        return _sum(self.table, self, other, 1)

    __radd__ = __add__

    def __sub__(self, other: Dim) -> Dim:
        return _sum(self.table, self, other, -1)

    def __rsub__(self, other: Dim) -> Dim:
        return _sum(self.table, other, self, -1)

    def __mul__(self, other: Dim) -> Dim:
        found: dict[tuple[int, ...], int] = {}
        for m1, c1 in self.terms:
            for m2, c2 in _terms(other):
                key = tuple(sorted(m1 + m2))
                found[key] = found.get(key, 0) + c1 * c2
        return _made(self.table, found)

    __rmul__ = __mul__

    def __floordiv__(self, other: Dim) -> Dim:
        return self.table.quotient(self, other)

    def __rfloordiv__(self, other: Dim) -> Dim:
        return self.table.quotient(other, self)

    def __mod__(self, other: Dim) -> Dim:
        return self.table.remainder(self, other)


def _terms(value: Dim) -> tuple[tuple[tuple[int, ...], int], ...]:
    return value.terms if isinstance(value, Size) else (((), value),) if value else ()


def _made(table: DimTable, found: dict[tuple[int, ...], int]) -> Dim:
    terms = tuple(sorted((m, c) for m, c in found.items() if c))
    if not terms:
        return 0
    return terms[0][1] if terms == (((), terms[0][1]),) else Size(table, terms)


def _sum(table: DimTable, a: Dim, b: Dim, sign: int) -> Dim:
    found = dict(_terms(a))
    for m, c in _terms(b):
        found[m] = found.get(m, 0) + sign * c
    return _made(table, found)


def _divide(table: DimTable, a: Dim, b: Dim) -> Dim | None:
    """``a / b`` when it is a polynomial for certain (``b`` a product of atoms, not 0), else None."""
    if len(_terms(b)) != 1:
        return None
    (atoms, factor), found = _terms(b)[0], {}
    for m, c in _terms(a):
        rest = list(m)
        for x in atoms:
            if x not in rest:
                return None
            rest.remove(x)
        if c % factor:
            return None
        found[tuple(rest)] = c // factor
    return _made(table, found)


def product(dims: Any) -> Dim:
    """The product of sizes."""
    result: Dim = 1
    for d in dims:
        result = d * result if isinstance(d, Size) else result * d
    return result


__all__ = ["Dim", "DimTable", "Size", "product"]
