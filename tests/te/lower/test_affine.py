"""Sums agree with Python's integers, and their bounds hold."""
from __future__ import annotations

import itertools

from hypothesis import given, settings
from hypothesis import strategies as st

from anchorleg.te.lower.affine import Affine, Lin
from anchorleg.te.lower.domains import interval
from anchorleg.tir import Var
from anchorleg.tir import expr as tir

EXTENTS = {"x": 4, "y": 6, "z": 3}
POINTS = [dict(zip(EXTENTS, p)) for p in itertools.product(*(range(e) for e in EXTENTS.values()))]


def context() -> tuple[Affine, dict[str, Var], dict[str, Lin]]:
    ctx = Affine()
    variables = {n: Var(n) for n in EXTENTS}
    return ctx, variables, {n: ctx.var(v, 0, EXTENTS[n] - 1) for n, v in variables.items()}


OPS = {"+": (Affine.add, lambda a, b: a + b), "-": (Affine.sub, lambda a, b: a - b), "*": (Affine.mul, lambda a, b: a * b),
       "min": (Affine.min, min), "max": (Affine.max, max)}
leaf = st.one_of(st.sampled_from(sorted(EXTENTS)), st.integers(-7, 13))
trees = st.recursive(leaf, lambda t: st.one_of(
    st.tuples(st.sampled_from(["+", "-", "*", "min", "max"]), t, t),
    st.tuples(st.sampled_from(["//", "%"]), t, st.integers(1, 12))), max_leaves=9)


def make(tree: object, ctx: Affine, lins: dict[str, Lin]) -> Lin:
    if isinstance(tree, int):
        return ctx.const(tree)
    if isinstance(tree, str):
        return lins[tree]
    op, a, b = tree  # type: ignore[misc]
    if op in OPS:
        return OPS[op][0](ctx, make(a, ctx, lins), make(b, ctx, lins))
    return (ctx.div if op == "//" else ctx.mod)(make(a, ctx, lins), b)


def value(tree: object, point: dict[str, int]) -> int:
    if isinstance(tree, int):
        return tree
    if isinstance(tree, str):
        return point[tree]
    op, a, b = tree  # type: ignore[misc]
    x = value(a, point)
    return x // b if op == "//" else x % b if op == "%" else OPS[op][1](x, value(b, point))


def run(e: object, point: dict[str, int]) -> int:
    """The value of a written-out expression."""
    if isinstance(e, tir.IntImm):
        return e.value
    if isinstance(e, Var):
        return point[e.name]
    fn = {tir.Add: lambda a, b: a + b, tir.Sub: lambda a, b: a - b, tir.Mul: lambda a, b: a * b, tir.FloorDiv: lambda a, b: a // b,
          tir.FloorMod: lambda a, b: a % b, tir.Min: min, tir.Max: max}[type(e)]
    return fn(run(e.a, point), run(e.b, point))  # type: ignore[attr-defined]


@settings(max_examples=300, deadline=None)
@given(trees)
def test_expression_written_out_has_the_value_of_the_tree(tree: object) -> None:
    ctx, _, lins = context()
    lin = make(tree, ctx, lins)
    expr = ctx.expr(lin)
    lo, hi = ctx.bounds(lin)
    for point in POINTS:
        want = value(tree, point)
        assert run(expr, point) == want
        assert (lo is None or lo <= want) and (hi is None or want <= hi)


@settings(max_examples=300, deadline=None)
@given(trees, st.sets(st.sampled_from(sorted(EXTENTS))))
def test_interval_contains_every_value_of_the_moving_variables(tree: object, moving: set[str]) -> None:
    ctx, _, lins = context()
    lin = make(tree, ctx, lins)
    known = {next(iter(lins[n].terms)): (ctx.const(0), ctx.const(EXTENTS[n] - 1)) for n in moving}
    found = interval(ctx, lin, known)
    if found is None:
        return
    lo, hi = (ctx.expr(end) for end in found)
    for point in POINTS:
        still = {n: v for n, v in point.items() if n not in moving}
        assert run(lo, still) <= value(tree, point) <= run(hi, still)


def test_quotients_and_remainders_of_fused_axes_come_apart_and_together() -> None:
    ctx, v, lins = context()
    fused = ctx.add(ctx.scale(lins["x"], 6), lins["y"])
    assert ctx.expr(ctx.div(fused, 6)) is v["x"]
    assert ctx.expr(ctx.mod(fused, 6)) is v["y"]
    f = ctx.var(Var("f"), 0, 23)
    assert ctx.add(ctx.scale(ctx.div(f, 6), 6), ctx.mod(f, 6)).key == f.key


def test_three_way_reshape_comes_together() -> None:
    ctx = Affine()
    f = ctx.var(Var("f"), 0, 2 * 3 * 4 - 1)
    a, b, c = ctx.div(f, 12), ctx.div(ctx.mod(f, 12), 4), ctx.mod(f, 4)
    total = ctx.add(ctx.add(ctx.scale(a, 12), ctx.scale(b, 4)), c)
    assert total.key == f.key


def test_data_is_not_taken_apart_by_division() -> None:
    ctx = Affine()
    data = ctx.opaque(tir.Call("int64", "tir.call_pure_extern", []))
    quotient = ctx.expr(ctx.div(ctx.scale(data, 4), 4))
    assert isinstance(quotient, tir.FloorDiv)


def test_equal_sums_are_one_expression() -> None:
    ctx, _, lins = context()
    a = ctx.add(lins["x"], ctx.scale(lins["y"], 2))
    b = ctx.add(ctx.add(lins["y"], lins["x"]), lins["y"])
    assert ctx.expr(a) is ctx.expr(b)
