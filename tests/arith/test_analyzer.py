"""Simplification, bounds and proofs: known cases, and random expressions against brute force."""
from __future__ import annotations


import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anchorleg import arith, tir
from anchorleg.ir.expr import Range
from anchorleg.tir.dtypes import wrap
from anchorleg.tir.equal import expr_deep_equal
from anchorleg.tir.functor import post_order

DOMAIN = {"x": (-6, 10), "y": (0, 6), "z": (-3, 3), "w": (1, 5)}  # min, extent
VARS = {n: tir.Var(n) for n in DOMAIN}
X, Y, Z, W = VARS.values()
NARROW = {n: tir.Var(n, d) for n, d in (("a", "int8"), ("b", "uint8"), ("c", "int32"))}


def trunc_div(a, b):
    q = np.abs(a) // np.abs(b)
    return np.where((a >= 0) == (b >= 0), q, -q)


OPS = {
    tir.Add: lambda a, b: a + b, tir.Sub: lambda a, b: a - b, tir.Mul: lambda a, b: a * b, tir.FloorDiv: lambda a, b: a // b,
    tir.FloorMod: lambda a, b: a % b, tir.Div: trunc_div, tir.Mod: lambda a, b: a - trunc_div(a, b) * b, tir.Min: np.minimum,
    tir.Max: np.maximum, tir.EQ: lambda a, b: a == b, tir.NE: lambda a, b: a != b, tir.LT: lambda a, b: a < b,
    tir.LE: lambda a, b: a <= b, tir.GT: lambda a, b: a > b, tir.GE: lambda a, b: a >= b, tir.And: np.logical_and, tir.Or: np.logical_or,
}


def evaluate(expr, env):
    """The value by the machine's rules (wrapping to each node's dtype), for arrays of variable values."""
    values = {}
    for e in post_order(expr):
        if isinstance(e, tir.Var):
            v = env[e.name]
        elif isinstance(e, tir.IntImm):
            v = np.array(e.value)
        elif type(e) in OPS:
            v = OPS[type(e)](values[id(e.a)], values[id(e.b)])
        elif isinstance(e, tir.Not):
            v = np.logical_not(values[id(e.a)])
        elif isinstance(e, tir.Select):
            v = np.where(values[id(e.condition)], values[id(e.true_value)], values[id(e.false_value)])
        elif isinstance(e, tir.Cast):
            v = np.not_equal(values[id(e.value)], 0) if e.dtype == "bool" else values[id(e.value)]
        else:
            args = [values[id(a)] for a in e.args]
            v = {"tir.if_then_else": lambda: np.where(*args), "tir.likely": lambda: args[0], "tir.shift_left": lambda: args[0] << args[1],
                 "tir.shift_right": lambda: args[0] >> args[1], "tir.bitwise_and": lambda: args[0] & args[1]}[e.op.name]()
        if e.dtype not in ("bool", "int64"):
            v = np.vectorize(lambda q, d=e.dtype: wrap(int(q), d), otypes=[np.int64])(v)
        values[id(e)] = np.asarray(v, dtype=bool if e.dtype == "bool" else np.int64)
    return values[id(expr)]


def grid(domain):
    axes = np.meshgrid(*[np.arange(lo, lo + n) for lo, n in domain.values()], indexing="ij")
    return {name: a.ravel() for name, a in zip(domain, axes)}


GRID = grid(DOMAIN)
NARROW_GRID = {n: v.ravel() for n, v in zip("abc", np.meshgrid(
    [-128, -127, -3, -1, 0, 1, 5, 100, 127], [0, 1, 2, 7, 128, 255], [-(1 << 31), -5, 0, 1, 77, (1 << 31) - 1], indexing="ij"))}
CONST = st.integers(-9, 9)
NONZERO = CONST.filter(bool)


def bound_analyzer():
    an = arith.Analyzer()
    for name, (lo, n) in DOMAIN.items():
        an.bind(VARS[name], Range.from_min_extent(lo, n))
    return an


def int_exprs():
    leaf = st.one_of(st.sampled_from(list(VARS.values())), CONST.map(lambda c: tir.const(c, "int64")))

    def extend(inner):
        cond = st.tuples(st.sampled_from([tir.LT, tir.LE, tir.EQ, tir.NE, tir.GT, tir.GE]), inner, inner).map(lambda t: t[0](t[1], t[2]))
        return st.one_of(
            st.tuples(st.sampled_from([tir.Add, tir.Sub, tir.Add, tir.Sub, tir.Min, tir.Max]), inner, inner).map(lambda t: t[0](t[1], t[2])),
            st.tuples(inner, CONST).map(lambda t: tir.Mul(t[0], tir.const(t[1], "int64"))),
            st.tuples(inner, inner).map(lambda t: tir.Mul(*t)),
            st.tuples(st.sampled_from([tir.FloorDiv, tir.FloorMod, tir.Div, tir.Mod]), inner, NONZERO).map(
                lambda t: t[0](t[1], tir.const(t[2], "int64"))),
            st.tuples(st.sampled_from([tir.FloorDiv, tir.FloorMod, tir.Div, tir.Mod]), inner).map(lambda t: t[0](t[1], W)),
            st.tuples(st.sampled_from([tir.Select, tir.if_then_else]), cond, inner, inner).map(lambda t: t[0](t[1], t[2], t[3])),
            st.tuples(cond).map(lambda t: tir.Cast("int64", t[0])),
        )

    return st.recursive(leaf, extend, max_leaves=10)


def bool_exprs():
    cmp = st.tuples(st.sampled_from([tir.LT, tir.LE, tir.EQ, tir.NE, tir.GT, tir.GE]), int_exprs(), int_exprs()).map(
        lambda t: t[0](t[1], t[2]))
    return st.recursive(cmp, lambda inner: st.one_of(
        st.tuples(st.sampled_from([tir.And, tir.Or]), inner, inner).map(lambda t: t[0](t[1], t[2])), inner.map(tir.Not),
        inner.map(tir.likely)), max_leaves=4)


@settings(max_examples=400, deadline=None)
@given(int_exprs())
def test_random_integers(e):
    an = bound_analyzer()
    want = np.broadcast_to(evaluate(e, GRID), GRID["x"].shape)
    simple = an.simplify(e)
    assert np.array_equal(np.broadcast_to(evaluate(simple, GRID), want.shape), want)
    bound, modular = an.const_int_bound(e), an.modular_set(e)
    assert bound.min_value <= want.min() and want.max() <= bound.max_value
    assert np.all((want - modular.base) % modular.coeff == 0 if modular.coeff else want == modular.base)
    for _ in range(4):
        last, simple = simple, an.simplify(simple)
    assert last is simple
    unbound = evaluate(arith.Analyzer().simplify(e), GRID)
    safe = np.broadcast_to(unbound, want.shape)
    assert np.array_equal(safe, want)


@settings(max_examples=300, deadline=None)
@given(bool_exprs(), int_exprs())
def test_random_conditions(c, e):
    an = bound_analyzer()
    want = np.broadcast_to(evaluate(c, GRID), GRID["x"].shape)
    assert np.array_equal(np.broadcast_to(evaluate(an.simplify(c), GRID), want.shape), want)
    if an.can_prove(c):
        assert want.all()
    with an.constraint_scope(c):
        under = np.broadcast_to(evaluate(an.simplify(e), GRID), want.shape)
        bound = an.const_int_bound(e)
    value = np.broadcast_to(evaluate(e, GRID), want.shape)
    assert np.array_equal(under[want], value[want])
    assert not want.any() or bound.min_value <= value[want].min() and value[want].max() <= bound.max_value
    assert np.array_equal(np.broadcast_to(evaluate(an.simplify(e), GRID), want.shape), value)


def narrow_exprs():
    leaf = st.one_of(st.sampled_from(list(NARROW.values())), st.tuples(CONST, st.sampled_from(["int8", "int32"])).map(lambda t: tir.const(*t)))

    def same(t):
        dtype = t[1].dtype
        return t[0](t[1], tir.Cast(dtype, t[2]) if t[2].dtype != dtype else t[2])

    return st.recursive(leaf, lambda inner: st.one_of(
        st.tuples(st.sampled_from([tir.Add, tir.Sub, tir.Mul, tir.Min, tir.Max]), inner, inner).map(same),
        st.tuples(st.sampled_from([tir.FloorDiv, tir.FloorMod, tir.Div, tir.Mod]), inner, st.integers(1, 9)).map(
            lambda t: t[0](t[1], tir.const(t[2], t[1].dtype))),
        st.tuples(st.sampled_from(["int8", "uint8", "int16", "int32", "uint32", "int64", "bool"]), inner).map(
            lambda t: tir.Cast(t[0], t[1]) if t[0] != "bool" else tir.Cast("int32", tir.Cast("bool", t[1])))), max_leaves=7)


@settings(max_examples=400, deadline=None)
@given(narrow_exprs())
def test_narrow_integers_wrap(e):
    want = np.broadcast_to(evaluate(e, NARROW_GRID), NARROW_GRID["a"].shape)
    an = arith.Analyzer()
    got = an.simplify(e)
    assert got.dtype == e.dtype and np.array_equal(np.broadcast_to(evaluate(got, NARROW_GRID), want.shape), want)
    bound = an.const_int_bound(e)
    assert bound.min_value <= want.min() and want.max() <= bound.max_value


@settings(max_examples=200, deadline=None)
@given(int_exprs())
def test_eval_set_covers(e):
    an = bound_analyzer()
    s = arith.eval_set(e, {X: Range.from_min_extent(*DOMAIN["x"]), Z: Range.from_min_extent(*DOMAIN["z"])}, an)
    want = np.broadcast_to(evaluate(e, GRID), GRID["x"].shape)
    if s.has_lower_bound():
        assert np.all(evaluate(s.min_value, GRID) <= want)
    if s.has_upper_bound():
        assert np.all(evaluate(s.max_value, GRID) >= want)


@settings(max_examples=150, deadline=None)
@given(int_exprs())
def test_linear_equations(e):
    found = arith.detect_linear_equation(e, [X, Z])
    if found:
        fx, fz, rest = found
        assert not any(n is X or n is Z for part in found for n in post_order(part))
        total = evaluate(fx, GRID) * GRID["x"] + evaluate(fz, GRID) * GRID["z"] + evaluate(rest, GRID)
        assert np.array_equal(np.broadcast_to(total, GRID["x"].shape), np.broadcast_to(evaluate(e, GRID), GRID["x"].shape))


I, J, U, V = tir.Var("i"), tir.Var("j"), tir.Var("u"), tir.Var("v")
N, M = tir.SizeVar("n"), tir.SizeVar("m")
K = tir.Var("k")


def an_ij():
    an = arith.Analyzer()
    an.bind(I, Range(0, 8))
    an.bind(J, Range(0, 4))
    an.bind(K, Range(0, N))
    return an


@pytest.mark.parametrize("expr, want", [
    ((I * 4 + J) // 4, I), ((I * 4 + J) % 4, J), ((I * 4 + J) // 8, I // 2), ((I * 4 + J) % 8, I % 2 * 4 + J),
    ((U // 2) * 2 + U % 2, U), (U // 4 * 4 + U // 2 % 2 * 2 + U % 2, U), (U - U // 4 * 4, U % 4), (U - U % 4, U // 4 * 4),
    (tir.truncdiv(I * 4 + J, 4), I), (tir.truncmod(I * 4 + J, 4), J), (U // 4 // 5, U // 20), (U % 20 // 4, U // 4 % 5), (U % 20 % 4, U % 4),
    ((U % 20) // 2 * 2 % 4, U // 2 % 2 * 2),  # a case in which i mod 4 is the tempting and wrong answer
    ((5 * U) // 4 * 4 + (5 * U) % 4, U * 5), ((U * 8 + 3) % 4, 3), ((U * 8 + 3) // 4, U * 2), (tir.min(U + 1, U + 3), U + 1), (tir.max(I, 7), 7),
    (tir.max(tir.min(U, 7), 9), 9), (tir.if_then_else(I < 4, tir.Select(I < 5, U, V), 3), tir.if_then_else(I < 4, U, 3)),
    (tir.cast(tir.cast(I, "int32"), "int64"), I), ((U << 3) >> 1, U * 4), (U & 7, U % 8), (I * 4 + J < 12, I < 3),
    (tir.likely(I * 4 + J < 32), True), (tir.all(U < 3, U < 5), U < 3), (tir.any(U < 3, U >= 3), True), (tir.all(U < 3, U >= 3), False),
    (2 * U == 7, False), (2 * U == 6, U == 3), ((U == V) & (U != V), False), ((K * N + K) // N, K), ((I * N + K) % N, K), (K < N, True),
    (U // N * N + U % N, U), (tir.truncdiv(U, N) * N * 4 + V + tir.truncmod(U, N) * 4, U * 4 + V), (U // N // M * N * M + U // N % M * N + U % N, U),
    (U // N // M // 8 * 8 * M * N + U // N // M % 8 * M * N + U // N % M * N + U % N, U), (U // N * M + U % N, U % N + U // N * M), (U // (N + 1) * (N + 1) + U % (N + 1), U),
    (tir.min((N + 7) // 8, N // 8), N // 8), (tir.max(N // 8, (N - 9) // 8), N // 8), (N // 8 * 8 <= N, True), (tir.min(N // 4, N // 8), tir.min(N // 4, N // 8)),
    (U % N < N, True), (tir.truncmod(U, N * M) < N * M, True), (U % V < V, U % V < V), (U % N < N - 1, U % N + 1 < N),
    (tir.Select(U < 3, True, U < 5), U < 5), (tir.FloorDiv(tir.Ramp(I * 8, tir.const(1, "int64"), 8), tir.Broadcast(tir.const(8, "int64"), 8)),
                                              tir.Broadcast(I, 8)),
    (tir.FloorMod(tir.Ramp(I * 8, tir.const(1, "int64"), 8), tir.Broadcast(tir.const(8, "int64"), 8)),
     tir.Ramp(tir.const(0, "int64"), tir.const(1, "int64"), 8)),
])
def test_known_forms(expr, want):
    want = tir.const(want, expr.dtype) if isinstance(want, (int, bool)) else want
    got = an_ij().simplify(expr)
    assert expr_deep_equal(got, want), f"{expr!r} gave {got!r}"


def test_unchanged_expressions_keep_their_identity():
    an = arith.Analyzer()
    for e in (I * 4 + J, tir.exp(tir.Var("f", "float32")) + 1.0, tir.likely(U < V), tir.if_then_else(U < V, U, V)):
        assert an.simplify(e) is e


def test_the_last_index_does_not_bind_in_whole_tiles():
    an = arith.Analyzer()
    an.bind(I, Range(0, tir.min((N + 7) // 8 - 1, N // 8 - 1) + 1))
    an.bind(J, Range(0, 8))
    assert expr_deep_equal(an.simplify(tir.min(N - 1, I * 8 + J)), I * 8 + J)
    assert an.can_prove(I * 8 + J < N) and not an.can_prove(I * 8 + J + 1 < N)


def test_constraint_scope_ends():
    an = arith.Analyzer()
    with an.constraint_scope((U >= 0) & (U < 4)):
        assert an.can_prove(U // 4 == 0) and an.const_int_bound(U * 3).max_value == 9
        with an.constraint_scope(U > V):
            assert an.can_prove(V < 3) and an.can_prove(V + 1 <= U)
        assert not an.can_prove(U > V)
    assert not an.can_prove(U // 4 == 0) and an.const_int_bound(U).max_value == arith.ConstIntBound.POS_INF


def test_conditions_on_loads_are_not_remembered():
    buf = tir.decl_buffer((8,), "int64")
    load = tir.BufferLoad(buf, [I])
    an = arith.Analyzer()
    with an.constraint_scope(load < 4):
        assert not an.can_prove(tir.BufferLoad(buf, [I]) < 4)


def test_bind_to_an_expression():
    an = an_ij()
    an.bind(U, I * 4 + J)
    assert an.simplify(U // 4) is I and an.const_int_bound(U).max_value == 31
    an.bind_like(V, I * 4)
    assert an.const_int_bound(V).max_value == 28 and an.modular_set(V).coeff == 4 and an.simplify(V + 1) is not None


def test_deep_expressions():
    an = arith.Analyzer()
    for step in (lambda e, q: e + tir.Var("v") * q, lambda e, q: (e + V) // 3, lambda e, q: tir.if_then_else(U < q, e, V)):
        e = U
        for q in range(5000):
            e = step(e, q)
        assert an.simplify(e).dtype == "int64"


def test_sets():
    s = arith.eval_set((I * 16 + J) // 4, {J: Range(0, 16)})
    r = s.cover_range(None)
    assert expr_deep_equal(r.min, I * 4) and r.extent.value == 4
    both = arith.union([arith.IntSet.interval(I, I + 3), arith.IntSet.interval(I + 2, I + 9)])
    assert both.min_value is I and expr_deep_equal(both.max_value, I + 9)
    assert arith.intersect([both, arith.IntSet.single_point(I + 4)]).is_single_point()
    assert arith.eval_set(U + 1, {U: arith.IntSet.everything()}).is_everything()
    assert arith.eval_set(I % 4, {I: Range(0, 64)}).max_value.value == 3
    assert arith.union([]).is_nothing()


def test_clip_bounds():
    lo, hi = arith.detect_clip_bound((U >= 2) & (U < V), [U])
    assert lo.value == 2 and expr_deep_equal(hi, V - 1)
    assert arith.detect_clip_bound(U * U < 3, [U]) == []


