"""Extents and values along the relations of a stage: from root axes down to loops, and from loops up to root axes."""
from __future__ import annotations

from typing import Callable, Sequence

from ...support.errors import ArgumentError
from ...tir.expr import IterVar
from ..relations import Fuse, Relation, Split
from .affine import Affine, Lin

Extents = dict[int, Lin]
Values = dict[int, Lin]
Interval = tuple[Lin, Lin]


def pass_down(ctx: Affine, relations: Sequence[Relation], extents: Extents, index: Callable[..., Lin]) -> None:
    """Adds the extents of derived axes to ``extents`` (by axis id); ``index`` turns a factor into a sum."""
    for r in relations:
        if isinstance(r, Split):
            parent = extents[id(r.parent)]
            if r.factor is not None:
                inner = _clipped(ctx, index(r.factor), parent)
                outer = ceil_div(ctx, parent, inner)
            else:
                outer = _clipped(ctx, index(r.nparts), parent)
                inner = ceil_div(ctx, parent, outer)
            extents[id(r.outer)], extents[id(r.inner)] = outer, inner
        elif isinstance(r, Fuse):
            extents[id(r.fused)] = ctx.mul(extents[id(r.outer)], extents[id(r.inner)])
        else:
            extents[id(r.iter)] = ctx.const(1)


def _clipped(ctx: Affine, size: Lin, parent: Lin) -> Lin:
    """A factor larger than what it splits is that extent."""
    if size.value is None or parent.value is None:
        return size
    return ctx.const(min(size.value, max(parent.value, 1)))


def ceil_div(ctx: Affine, a: Lin, b: Lin) -> Lin:
    """a / b rounded up."""
    return ctx.floor_div(ctx.add(a, ctx.sub(b, ctx.const(1))), b)


def pass_up(ctx: Affine, relations: Sequence[Relation], extents: Extents, values: Values) -> None:
    """Adds to ``values`` (of loops, by axis id, each counted from 0) those of the axes they descend from."""
    for r in reversed(relations):
        if isinstance(r, Split):
            step = extents[id(r.inner)]
            values[id(r.parent)] = ctx.add(ctx.mul(values[id(r.outer)], step), values[id(r.inner)])
        elif isinstance(r, Fuse):
            fused, size = values[id(r.fused)], extents[id(r.inner)]
            values[id(r.outer)], values[id(r.inner)] = ctx.floor_div(fused, size), ctx.floor_mod(fused, size)


def overshoots(ctx: Affine, relations: Sequence[Relation], extents: Extents, values: Values) -> list[tuple[Lin, Lin]]:
    """(value, extent) of each split axis whose loops may run past its end; inside means value < extent."""
    found = []
    for r in relations:
        if isinstance(r, Split):
            parent, outer, inner = (extents[id(iv)] for iv in (r.parent, r.outer, r.inner))
            value = values[id(r.parent)]
            if ctx.mul(outer, inner).key != parent.key and not ctx.always_at_most(ctx.sub(value, parent), -1):
                found.append((value, parent))
    return found


def interval(ctx: Affine, a: Lin, known: dict[int, Interval]) -> Interval | None:
    """The range of ``a`` when each atom of ``known`` (by number) takes every value in its interval; None: no range can be told.

    Atoms that are in ``known`` neither themselves nor by their parts stay symbols, in both ends.
    """
    atoms, todo, stack = ctx.atoms, [], [at for at in a.terms]
    seen: set[int] = set()
    while stack:
        at = stack.pop()
        if at in seen or at in known:
            continue
        seen.add(at)
        todo.append(at)
        if atoms[at].kind != "var":
            stack.extend(inner for arg in atoms[at].args if isinstance(arg, Lin) for inner in arg.terms)
    ranges: dict[int, Interval | None] = dict(known)
    for at in sorted(todo):
        ranges[at] = _atom_interval(ctx, at, ranges)
    return _sum_interval(ctx, a, ranges)


def _sum_interval(ctx: Affine, a: Lin, ranges: dict[int, Interval | None]) -> Interval | None:
    lo = hi = ctx.const(a.const)
    for at, n in a.terms.items():
        r = ranges[at]
        if r is None:
            return None
        low, high = r if n > 0 else (r[1], r[0])
        same = lo is hi and low is high
        lo = ctx.add(lo, ctx.scale(low, n))
        hi = lo if same else ctx.add(hi, ctx.scale(high, n))
    return lo, hi


def _atom_interval(ctx: Affine, at: int, ranges: dict[int, Interval | None]) -> Interval | None:
    atom = ctx.atoms[at]
    itself = Lin(0, {at: 1})
    if atom.kind == "var":
        return itself, itself
    if atom.kind == "opaque":
        return None
    parts = [_sum_interval(ctx, arg, ranges) if isinstance(arg, Lin) else arg for arg in atom.args]
    if any(p is None for p in parts):
        return (ctx.const(0), ctx.const(atom.args[1] - 1)) if atom.kind == "mod" else None
    if all(not isinstance(p, tuple) or p[0] is p[1] for p in parts):
        point = _POINT[atom.kind](ctx, *(p[0] if isinstance(p, tuple) else p for p in parts))
        return point, point
    rule = _RANGE.get(atom.kind)
    return rule(ctx, *parts) if rule is not None else None


def div_interval(ctx: Affine, a: Interval, c: int) -> Interval:
    """The range of the floor quotient by ``c``."""
    lo, hi = ctx.div(a[0], c), ctx.div(a[1], c)
    span = ctx.sub(a[1], a[0]).value
    if span is not None and ctx.sub(hi, lo).value is None:
        hi = ctx.add(lo, ctx.const((span + c - 1) // c))
    return lo, hi


def mod_interval(ctx: Affine, a: Interval, c: int) -> Interval:
    """The range of the floor remainder by ``c``."""
    span = ctx.sub(a[1], a[0]).value
    if span is not None:
        lo = ctx.mod(a[0], c)
        if ctx.always_at_most(lo, c - 1 - span):
            return lo, ctx.add(lo, ctx.const(span))
    return ctx.const(0), ctx.const(c - 1)


def _mul_interval(ctx: Affine, a: Interval, b: Interval) -> Interval | None:
    if ctx.always_at_least(a[0], 0) and ctx.always_at_least(b[0], 0):
        return ctx.mul(a[0], b[0]), ctx.mul(a[1], b[1])
    return None


_POINT = {"div": Affine.div, "mod": Affine.mod, "min": Affine.min, "max": Affine.max, "mul": Affine.mul,
          "fdiv": Affine.floor_div, "fmod": Affine.floor_mod}
_RANGE = {"div": div_interval, "mod": mod_interval, "mul": _mul_interval,
          "min": lambda ctx, a, b: (ctx.min(a[0], b[0]), ctx.min(a[1], b[1])),
          "max": lambda ctx, a, b: (ctx.max(a[0], b[0]), ctx.max(a[1], b[1]))}


def legal_leaf(relations: Sequence[Relation], leaves: Sequence[IterVar], iv: IterVar, where: str) -> IterVar:
    """``iv`` if it is a loop still; else the loop it became (the inner of a split, the fused of a fuse)."""
    leaf_ids = {id(leaf) for leaf in leaves}
    for r in relations:
        if id(iv) in leaf_ids:
            break
        if isinstance(r, Split) and r.parent is iv:
            iv = r.inner
        elif isinstance(r, Fuse) and (r.outer is iv or r.inner is iv):
            iv = r.fused
    if id(iv) not in leaf_ids:
        raise ArgumentError(f"compute_at: {iv.var.name} is no loop of stage {where}")
    return iv

