"""Recognising linear forms and clips in expressions."""
from __future__ import annotations

from typing import Any, Sequence

from ..ir.expr import INDEX_DTYPE, PrimExpr
from ..tir import expr as tir
from ..tir.functor import contains
from .analyzer import Analyzer
from .logic import Cond
from .normalize import Normalizer
from .terms import Atom, Lin


def detect_linear_equation(expr: PrimExpr, variables: Sequence[tir.Var]) -> list[PrimExpr]:
    """The factors of the variables and the rest, when ``expr = f0 * v0 + f1 * v1 + ... + rest`` with none of them depending on the
    variables; an empty list when it is not of that form."""
    n = Analyzer()._n
    lin = n.lin(expr)
    ids = {id(v): i for i, v in enumerate(variables)}
    factors = [n.space.const(0)] * len(variables)
    rest = n.space.const(lin.const)
    for a, k in lin.terms:
        found = _linear_in(n, a, ids)
        if found is None:
            return []
        index, factor = found
        if index < 0:
            rest = n.space.add(rest, n.space.of_atom(a), k)
        else:
            factors[index] = n.space.add(factors[index], factor, k)
    return [n.space.emit(x, expr.dtype if x.is_const else INDEX_DTYPE) for x in (*factors, rest)]


def _linear_in(n: Normalizer, a: Atom, ids: dict[int, int]) -> tuple[int, Lin] | None:
    """(index of the variable or -1, factor) of an atom that is linear in at most one of the variables, else None."""
    hits = [f for f in (a.args if a.kind == "*" else (a,)) if f.kind == "var" and id(f.args[0]) in ids]
    others = [f for f in (a.args if a.kind == "*" else (a,)) if f not in hits]
    if len(hits) > 1 or any(contains(f.expr, lambda e: id(e) in ids) for f in others):
        return None
    factor = n.space.const(1)
    for f in others:
        factor = n.algebra.mul(factor, n.space.of_atom(f))
    return (ids[id(hits[0].args[0])], factor) if hits else (-1, factor)


def detect_clip_bound(expr: PrimExpr, variables: Sequence[tir.Var]) -> list[PrimExpr | None]:
    """For a conjunction of bounds on variables: least and greatest value of each in turn (None: no bound).

    An empty list when some condition is not a bound of one variable.
    """
    n = Analyzer()._n
    c = n.cond(expr)
    if isinstance(c, bool):
        return []
    ends: dict[int, list[Lin | None]] = {id(v): [None, None] for v in variables}
    for part in c.args if c.kind == "and" else (c,):
        if not _clip(n, part, ends):
            return []
    return [None if x is None else n.space.emit(x, INDEX_DTYPE) for v in variables for x in ends[id(v)]]


def _clip(n: Normalizer, c: Any, ends: dict[int, list[Lin | None]]) -> bool:
    if not isinstance(c, Cond) or c.kind not in ("ge", "eq"):
        return False
    hits = [(a, k) for a, k in c.args[0].terms if a.kind == "var" and id(a.args[0]) in ends]
    if len(hits) != 1 or abs(hits[0][1]) != 1:
        return False
    a, k = hits[0]
    rest = n.space.add(c.args[0], n.space.of_atom(a), -k)
    if any(contains(x.expr, lambda e: id(e) in ends) for x, _ in rest.terms):
        return False
    slot, value = ends[id(a.args[0])], n.space.scale(rest, -k)
    for side in ((0, 1) if c.kind == "eq" else (0,) if k > 0 else (1,)):
        old = slot[side]
        slot[side] = value if old is None else n.algebra.extreme("min" if side else "max", old, value)
    return True
