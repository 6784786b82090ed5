"""Sets of integers as intervals with symbolic ends, and the set an expression covers (bound inference rests on this)."""
from __future__ import annotations

from typing import Any, Iterable, Mapping, Sequence

from ..ir.expr import INDEX_DTYPE, IntImm, PrimExpr, Range
from ..support.errors import ArgumentError
from ..tir import build
from ..tir import expr as tir
from ..tir.functor import contains
from . import interval as iv
from .analyzer import Analyzer
from .normalize import Normalizer
from .terms import Atom, Lin

_POS_INF = tir.Var("pos_inf", "handle")
_NEG_INF = tir.Var("neg_inf", "handle")


def pos_inf() -> PrimExpr:
    """The symbol for no upper end."""
    return _POS_INF


def neg_inf() -> PrimExpr:
    """The symbol for no lower end."""
    return _NEG_INF


class IntSet:
    """A set of integers: base and factory of :class:`IntervalSet`."""

    __slots__ = ()

    @staticmethod
    def single_point(point: PrimExpr | int) -> IntervalSet:
        """The set of one number."""
        return IntervalSet(point, point)

    @staticmethod
    def interval(min_value: PrimExpr | int, max_value: PrimExpr | int) -> IntervalSet:
        """All from ``min_value`` to ``max_value``, both included."""
        return IntervalSet(min_value, max_value)

    @staticmethod
    def from_range(r: Range) -> IntervalSet:
        """The members of a range."""
        if isinstance(r.extent, IntImm) and r.extent.value == 1:
            return IntervalSet(r.min, r.min)
        return IntervalSet(r.min, build.add(r.min, build.sub(r.extent, build.make_const(1, r.extent.dtype))))

    @staticmethod
    def vector(vec: PrimExpr) -> IntervalSet:
        """The lanes of a vector index."""
        if isinstance(vec, tir.Ramp):
            end = build.add(vec.base, build.mul(vec.stride, build.make_const(vec.lanes - 1, vec.stride.dtype)))
            down = isinstance(vec.stride, IntImm) and vec.stride.value < 0
            return IntervalSet(end, vec.base) if down else IntervalSet(vec.base, end)
        return IntSet.single_point(vec.value if isinstance(vec, tir.Broadcast) else vec)

    @staticmethod
    def everything() -> IntervalSet:
        """All integers."""
        return IntervalSet(_NEG_INF, _POS_INF)

    @staticmethod
    def nothing() -> IntervalSet:
        """The empty set."""
        return IntervalSet(_POS_INF, _NEG_INF)


class IntervalSet(IntSet):
    """All integers from ``min_value`` to ``max_value``, both included (`pos_inf`/`neg_inf`: no end)."""

    __slots__ = ("min_value", "max_value")

    def __init__(self, min_value: PrimExpr | int, max_value: PrimExpr | int) -> None:
        self.min_value, self.max_value = _expr(min_value), _expr(max_value)

    def is_nothing(self) -> bool:
        """Whether it is the empty set."""
        return self.min_value is _POS_INF or self.max_value is _NEG_INF

    def is_everything(self) -> bool:
        """Whether it has no end on either side."""
        return self.min_value is _NEG_INF and self.max_value is _POS_INF

    def is_single_point(self) -> bool:
        """Whether it has exactly one member."""
        a, b = self.min_value, self.max_value
        return a is b or isinstance(a, IntImm) and isinstance(b, IntImm) and a.value == b.value

    def has_lower_bound(self) -> bool:
        """Whether there is a least member."""
        return self.min_value is not _NEG_INF

    def has_upper_bound(self) -> bool:
        """Whether there is a greatest member."""
        return self.max_value is not _POS_INF

    def cover_range(self, default: Range, analyzer: Analyzer | None = None) -> Range:
        """The set as a range; ``default`` when it has no ends."""
        if self.is_nothing() or not (self.has_lower_bound() and self.has_upper_bound()):
            return default
        an = analyzer or Analyzer()
        n = an._n
        low, high = n.lin(self.min_value), n.lin(self.max_value)
        extent = n.space.shift(n.algebra.add(high, low, -1), 1)
        return Range.from_min_extent(n.space.emit(low, INDEX_DTYPE), n.space.emit(extent, INDEX_DTYPE))

    def __repr__(self) -> str:
        return f"IntervalSet[{self.min_value!r}, {self.max_value!r}]"


def _expr(value: PrimExpr | int) -> PrimExpr:
    return value if isinstance(value, PrimExpr) else build.make_const(value, INDEX_DTYPE)


_Ends = "tuple[Lin | None, Lin | None]"


class _Cover:
    """The intervals that normal forms cover when some atoms (variables) cover theirs."""

    def __init__(self, n: Normalizer, dom: dict[Atom, Any], variables: set[int]) -> None:
        self.n, self.dom, self.variables = n, dom, variables
        self.memo: dict[Atom, Any] = dict(dom)

    def lin(self, x: Lin) -> Any:
        """(lower end, upper end) of a sum; None for no end."""
        space = self.n.space
        low: Lin | None = space.const(x.const)
        high: Lin | None = low
        for a, k in x.terms:
            lo, hi = self.atom(a)
            if k < 0:
                lo, hi = hi, lo
            low = None if low is None or lo is None else self.n.algebra.add(low, lo, k)
            high = None if high is None or hi is None else self.n.algebra.add(high, hi, k)
        return low, high

    def atom(self, a: Atom) -> Any:
        """The same of an atom."""
        found = self.memo.get(a)
        if found is None:
            if a.depth > 60:
                found = (None, None)
            elif not self._depends(a):
                point = self.n.space.of_atom(a)
                found = (point, point)
            else:
                found = _COVER.get(a.kind, _Cover._unknown)(self, a)
            self.memo[a] = found
        return found

    def _depends(self, a: Atom) -> bool:
        if a.kind == "var":
            return a in self.dom
        return contains(a.expr, lambda e: id(e) in self.variables)

    def _unknown(self, a: Atom) -> Any:
        low, high = self.n.facts.atom_bound(a)
        const = self.n.space.const
        return (const(low) if iv.finite(low) else None), (const(high) if iv.finite(high) else None)

    def _quotient(self, a: Atom) -> Any:
        x, c = a.args
        low, high = self.lin(x)
        div = self.n.algebra.floor_div
        return (None if low is None else div(low, c)), (None if high is None else div(high, c))

    def _remainder(self, a: Atom) -> Any:
        x, c = a.args
        n = self.n
        low, high = self.lin(x)
        if low is not None and high is not None and n.algebra.floor_div(low, c) is n.algebra.floor_div(high, c):
            return n.algebra.floor_mod(low, c), n.algebra.floor_mod(high, c)
        last = n.space.const(c - 1)
        if low is not None and high is not None and n.facts.nonnegative(low):
            last = n.algebra.extreme("min", last, high)
        return n.space.const(0), last

    def _extreme(self, a: Atom) -> Any:
        ends = [self.lin(x) for x in a.args]
        lows, highs = [e[0] for e in ends], [e[1] for e in ends]
        if a.kind == "min":
            return self._all(a.kind, lows), self._some(a.kind, highs)
        return self._some(a.kind, lows), self._all(a.kind, highs)

    def _all(self, kind: str, ends: Sequence[Lin | None]) -> Lin | None:
        """The extreme of ends, all of which must be there."""
        return None if any(e is None for e in ends) else self._some(kind, ends)

    def _some(self, kind: str, ends: Sequence[Lin | None]) -> Lin | None:
        """The extreme of those ends that are there."""
        result: Lin | None = None
        for e in ends:
            if e is not None:
                result = e if result is None else self.n.algebra.extreme(kind, result, e)
        return result

    def _select(self, a: Atom) -> Any:
        ends = [self.lin(x) for x in a.args[1:]]
        return self._all("min", [e[0] for e in ends]), self._all("max", [e[1] for e in ends])

    def _product(self, a: Atom) -> Any:
        moving = [f for f in a.args if self._depends(f)]
        fixed = [f for f in a.args if not self._depends(f)]
        if len(moving) != 1 or not all(self.n.facts.atom_bound(f)[0] >= 0 for f in fixed):
            return self._unknown(a)
        factor = self.n.space.const(1)
        for f in fixed:
            factor = self.n.algebra.mul(factor, self.n.space.of_atom(f))
        low, high = self.atom(moving[0])
        mul = self.n.algebra.mul
        return (None if low is None else mul(low, factor)), (None if high is None else mul(high, factor))

    def _sum(self, a: Atom) -> Any:
        return self.lin(a.args[0])


_COVER = {"//": _Cover._quotient, "%": _Cover._remainder, "min": _Cover._extreme, "max": _Cover._extreme, "select": _Cover._select,
          "*": _Cover._product, "sum": _Cover._sum}


def _as_set(s: Any) -> IntervalSet:
    if isinstance(s, Range):
        return IntSet.from_range(s)
    if isinstance(s, IntervalSet):
        return s
    if isinstance(s, (PrimExpr, int)):
        return IntSet.single_point(s)
    raise ArgumentError(f"expected an IntSet or a Range as the domain of a variable, got {type(s).__name__}")


def eval_set(expr: PrimExpr | int | Range, dom_map: Mapping[Any, Any], analyzer: Analyzer | None = None) -> IntervalSet:
    """The least interval found to hold every value of ``expr`` when the variables of ``dom_map`` (Var or IterVar → IntSet or
    Range) run over their sets; all other variables stay symbols."""
    an = analyzer or Analyzer()
    n = an._n
    if isinstance(expr, Range):
        first = eval_set(expr.min, dom_map, an)
        last = eval_set(build.sub(build.add(expr.min, expr.extent), build.make_const(1, expr.min.dtype)), dom_map, an)
        return IntervalSet(first.min_value, last.max_value)
    dom: dict[Atom, Any] = {}
    variables: set[int] = set()
    for key, domain in dom_map.items():
        v = key.var if isinstance(key, tir.IterVar) else key
        value = n.var(v)
        a = value.single() if isinstance(value, Lin) else None
        if a is not None:
            dom[a] = _ends(n, _as_set(domain))
            variables.add(id(v))
    return _interval(n, _Cover(n, dom, variables).lin(n.lin(expr)))


def _ends(n: Normalizer, s: IntervalSet) -> Any:
    return (n.lin(s.min_value) if s.has_lower_bound() else None), (n.lin(s.max_value) if s.has_upper_bound() else None)


def _interval(n: Normalizer, ends: Any) -> IntervalSet:
    low, high = ends
    return IntervalSet(_NEG_INF if low is None else n.space.emit(low, INDEX_DTYPE), _POS_INF if high is None else n.space.emit(high, INDEX_DTYPE))


def union(sets: Iterable[Any], analyzer: Analyzer | None = None) -> IntervalSet:
    """The least interval that holds all the sets."""
    return _combine(sets, analyzer, "min", "max", True)


def intersect(sets: Iterable[Any], analyzer: Analyzer | None = None) -> IntervalSet:
    """What lies in all the sets (the result may be empty without being seen to be)."""
    return _combine(sets, analyzer, "max", "min", False)


def _combine(sets: Iterable[Any], analyzer: Analyzer | None, on_low: str, on_high: str, need_all: bool) -> IntervalSet:
    n = (analyzer or Analyzer())._n
    members = [s for s in map(_as_set, sets)]
    if need_all:
        members = [s for s in members if not s.is_nothing()]
    elif any(s.is_nothing() for s in members):
        return IntSet.nothing()
    if not members:
        return IntSet.nothing() if need_all else IntSet.everything()
    cover = _Cover(n, {}, set())
    ends = [_ends(n, s) for s in members]
    join = cover._all if need_all else cover._some
    return _interval(n, (join(on_low, [e[0] for e in ends]), join(on_high, [e[1] for e in ends])))


__all__ = ["IntSet", "IntervalSet", "eval_set", "intersect", "neg_inf", "pos_inf", "union"]
