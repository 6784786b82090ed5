"""The interpreter: arithmetic rules, memory, checks."""
from __future__ import annotations

import math
import time

import ml_dtypes
import numpy as np
import pytest

from anchorleg import tir
from anchorleg.ir.expr import Range
from anchorleg.support.errors import ArgumentError, OutOfBoundsError, TypeMismatchError, UnsupportedOpError
from anchorleg.tir import ForKind, PrimFunc, run_primfunc

TRUE = tir.const(True)


def loop(v, n, body, kind=ForKind.SERIAL):
    return tir.For(v, 0, n, kind, body)


def elementwise(fn, n, dtype, out_dtype=None, inputs=1):
    """The function out[i] = fn(in0[i], ...)."""
    bufs = [tir.decl_buffer((n,), dtype, f"in{q}") for q in range(inputs)]
    i = tir.Var("i")
    value = fn(*(tir.BufferLoad(b, [i]) for b in bufs))
    out = tir.decl_buffer((n,), out_dtype or value.dtype, "out")
    return PrimFunc([*bufs, out], loop(i, n, tir.BufferStore(out, value, [i])))


def apply(fn, *arrays):
    func = elementwise(fn, arrays[0].size, str(arrays[0].dtype), inputs=len(arrays))
    out = np.zeros(arrays[0].shape, np.dtype(func.buffers[-1].dtype) if func.buffers[-1].dtype != "bfloat16" else ml_dtypes.bfloat16)
    run_primfunc(func, *arrays, out)
    return out


def matmul(n):
    a, b, c = (tir.decl_buffer((n, n), name=x) for x in "abc")
    i, j, k = (tir.Var(x) for x in "ijk")
    update = tir.BufferStore(c, tir.BufferLoad(c, [i, j]) + tir.BufferLoad(a, [i, k]) * tir.BufferLoad(b, [k, j]), [i, j])
    body = tir.seq(tir.BufferStore(c, tir.const(0.0), [i, j]), loop(k, n, update))
    return PrimFunc([a, b, c], loop(i, n, loop(j, n, body), ForKind.PARALLEL))


def test_matmul_is_right_and_quick():
    rng = np.random.default_rng(0)
    a, b = rng.standard_normal((2, 32, 32)).astype("float32")
    out = np.empty((32, 32), "float32")
    start = time.perf_counter()
    run_primfunc(matmul(32), a, b, out)
    assert time.perf_counter() - start < 2
    np.testing.assert_allclose(out, a @ b, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int32", "int64", "uint32"])
def test_integers_wrap(dtype):
    t = np.iinfo(dtype)
    a = np.array([t.min, t.max, t.max, 7, 100], dtype)
    b = np.array([1, 1, t.max, 3, 77], dtype)
    with np.errstate(all="ignore"):
        for fn, want in [(lambda x, y: x + y, a + b), (lambda x, y: x - y, a - b), (lambda x, y: x * y, a * b), (tir.floordiv, a // b),
                         (tir.floormod, a % b), (tir.truncmod, np.fmod(a, b)), (tir.min, np.minimum(a, b)), (tir.bitwise_xor, a ^ b),
                         (lambda x, y: x > y, a > b)]:
            np.testing.assert_array_equal(apply(fn, a, b), want)


def test_division_of_negatives():
    a, b = np.array([-7, 7, -7, 7]), np.array([2, -2, -2, 2])
    np.testing.assert_array_equal(apply(tir.truncdiv, a, b), [-3, -3, 3, 3])
    np.testing.assert_array_equal(apply(tir.floordiv, a, b), [-4, -4, 3, 3])
    np.testing.assert_array_equal(apply(tir.truncmod, a, b), [-1, 1, -1, 1])
    with pytest.raises(ArgumentError, match="zero"):
        apply(tir.floordiv, a, b * 0)


X = np.array([0.3, -0.7, 2.5, -2.5, 0.0, -0.0, np.inf, -np.inf, np.nan, 1e30], "float32")


@pytest.mark.parametrize("name, ref", [
    ("exp", np.exp), ("tanh", np.tanh), ("log", np.log), ("sqrt", np.sqrt), ("floor", np.floor), ("ceil", np.ceil), ("trunc", np.trunc),
    ("nearbyint", np.rint), ("abs", np.abs), ("isnan", np.isnan), ("isinf", np.isinf), ("isfinite", np.isfinite), ("sin", np.sin),
    ("atan", np.arctan), ("rsqrt", lambda v: 1 / np.sqrt(v.astype("float64"))), ("log1p", np.log1p),
    ("erf", np.vectorize(math.erf)), ("sigmoid", lambda v: 1 / (1 + np.exp(-v.astype("float64")))),
    ("round", lambda v: np.copysign(np.floor(np.abs(v) + 0.5), v)),
])
def test_mathematics(name, ref):
    with np.errstate(all="ignore"):
        want = ref(X)
    got = apply(getattr(tir, name), X)
    np.testing.assert_allclose(got.astype("float64"), want.astype("float64"), rtol=1e-6)
    zero = np.signbit(got[4:6]) if got.dtype != bool else None
    if name in ("floor", "ceil", "trunc", "nearbyint", "round", "sqrt", "sin"):
        assert zero.tolist() == [False, True]


def test_nan_in_min_and_max():
    y = np.full_like(X, 1.0)
    np.testing.assert_array_equal(apply(tir.max, X, y), np.maximum(X, y))
    np.testing.assert_array_equal(apply(tir.min, y, X), np.minimum(y, X))


def test_casts():
    f = np.array([2.9, -2.9, 0.0, 300.0], "float32")
    np.testing.assert_array_equal(apply(lambda x: tir.cast(x, "int32"), f), [2, -2, 0, 300])
    np.testing.assert_array_equal(apply(lambda x: tir.cast(x, "bool"), f), [True, True, False, True])
    n = np.array([-1, 300, 0, 128], "int64")
    np.testing.assert_array_equal(apply(lambda x: tir.cast(x, "uint8"), n), [255, 44, 0, 128])
    np.testing.assert_array_equal(apply(lambda x: tir.cast(tir.cast(x, "bool"), "int32"), n), [1, 1, 0, 1])
    assert apply(lambda x: tir.cast(x, "float16"), n).dtype == np.float16
    half = np.array([1.0, 1.00390625, 3.0], "float32").astype(ml_dtypes.bfloat16)
    np.testing.assert_array_equal(apply(lambda x: x * x + x, half), (half * half).astype(ml_dtypes.bfloat16) + half)
    np.testing.assert_array_equal(apply(lambda x: tir.reinterpret("int32", x), f), f.view("int32"))


def test_fixed_point():
    x = np.array([100, -100, 12345], "int32")
    got = apply(lambda v: tir.q_multiply_shift(v, tir.const(1 << 30), tir.const(31), tir.const(1)), x)
    np.testing.assert_array_equal(got, x)


def test_vectors_and_flat_memory():
    src, dst = tir.decl_buffer((64,), name="src"), tir.decl_buffer((64,), name="dst")
    i = tir.Var("i")
    at = tir.Ramp(i * 8, tir.const(1, "int64"), 8)
    value = tir.BufferLoad(src, [at]) * tir.Broadcast(tir.const(2.0), 8) + tir.cast(at, "float32x8")
    a, out = np.random.rand(64).astype("float32"), np.zeros(64, "float32")
    run_primfunc(PrimFunc([src, dst], loop(i, 8, tir.BufferStore(dst, value, [at]))), a, out)
    np.testing.assert_allclose(out, a * 2 + np.arange(64))


def test_realize_region_and_allocate_alias():
    a, c = tir.decl_buffer((16,), name="a"), tir.decl_buffer((16,), name="c")
    tile = tir.decl_buffer((16,), name="tile")
    i, j, k = (tir.Var(x) for x in "ijk")
    fill = loop(j, 4, tir.BufferStore(tile, tir.BufferLoad(a, [i * 4 + j]) + 1.0, [i * 4 + j]))
    use = loop(k, 4, tir.BufferStore(c, tir.BufferLoad(tile, [i * 4 + k]) * 2.0, [i * 4 + k]))
    body = tir.BufferRealize(tile, [Range.from_min_extent(i * 4, 4)], TRUE, tir.seq(fill, use))
    data, out = np.arange(16, dtype="float32"), np.zeros(16, "float32")
    run_primfunc(PrimFunc([a, c], loop(i, 4, body)), data, out)
    np.testing.assert_array_equal(out, (data + 1) * 2)
    ptr = tir.Var("ws", "handle")
    view = tir.decl_buffer((16,), name="w", data=ptr)
    shared = tir.decl_buffer((32,), "int16", name="w16", data=ptr)
    s = tir.seq(loop(i, 16, tir.BufferStore(view, tir.BufferLoad(a, [i]), [i])),
                loop(j, 16, tir.BufferStore(c, tir.cast(tir.BufferLoad(shared, [j * 2 + 1]), "float32"), [j])))
    run_primfunc(PrimFunc([a, c], tir.Allocate(ptr, "float32", [16], TRUE, s)), data, out)
    np.testing.assert_array_equal(out, data.view("int16")[1::2].astype("float32"))


def test_reading_what_was_not_written_shows():
    c, ptr = tir.decl_buffer((1,), name="c"), tir.Var("ws", "handle")
    view = tir.decl_buffer((4,), name="w", data=ptr)
    out = np.zeros(1, "float32")
    run_primfunc(PrimFunc([c], tir.Allocate(ptr, "float32", [4], TRUE, tir.BufferStore(c, tir.BufferLoad(view, [0]), [0]))), out)
    assert np.isnan(out[0])


def test_bounds_are_checked():
    i = tir.Var("i")
    a, c = tir.decl_buffer((8,), name="a"), tir.decl_buffer((8,), name="c")
    arrays = np.zeros(8, "float32"), np.zeros(8, "float32")
    off = PrimFunc([a, c], loop(i, 8, tir.BufferStore(c, tir.BufferLoad(a, [i - 1]), [i])))
    with pytest.raises(OutOfBoundsError, match=r"'a'.*index -1 on axis 0 is not in \[0, 8\)"):
        run_primfunc(off, *arrays)
    with pytest.raises(OutOfBoundsError, match="'c'"):
        run_primfunc(PrimFunc([a, c], loop(i, 9, tir.BufferStore(c, tir.const(0.0), [i]))), *arrays)
    at = tir.Ramp(i * 4, tir.const(1, "int64"), 4)
    with pytest.raises(OutOfBoundsError):
        run_primfunc(PrimFunc([a, c], loop(i, 3, tir.BufferStore(c, tir.BufferLoad(a, [at]), [at]))), *arrays)
    guarded = tir.if_then_else(i > 0, tir.BufferLoad(a, [i - 1]), tir.const(5.0))
    run_primfunc(PrimFunc([a, c], loop(i, 8, tir.BufferStore(c, guarded, [i]))), *arrays)
    assert arrays[1][0] == 5
    eager = tir.Select(i > 0, tir.BufferLoad(a, [i - 1]), tir.const(5.0))
    with pytest.raises(OutOfBoundsError):  # both sides of a Select are evaluated
        run_primfunc(PrimFunc([a, c], loop(i, 8, tir.BufferStore(c, eager, [i]))), *arrays)


def test_arguments_are_checked():
    n = tir.SizeVar("n")
    a, c = tir.decl_buffer((n,), name="a"), tir.decl_buffer((n,), name="c")
    i, s = tir.Var("i"), tir.Var("s", "float32")
    func = PrimFunc([a, s, c], loop(i, n, tir.BufferStore(c, tir.BufferLoad(a, [i]) * s, [i])))
    out = np.zeros(5, "float32")
    run_primfunc(func, np.ones(10, "float32")[::2], 3, out)
    assert out.tolist() == [3] * 5
    for bad, error in [((out, 3), ArgumentError), ((out, 3, np.zeros(6, "float32")), TypeMismatchError),
                       ((out, 3, out.astype("int32")), TypeMismatchError), ((out, 3, out[None]), TypeMismatchError)]:
        with pytest.raises(error):
            run_primfunc(func, *bad)


def test_strided_output_is_written_back():
    c = tir.decl_buffer((4,), name="c")
    i = tir.Var("i")
    whole = np.zeros(8, "float32")
    run_primfunc(PrimFunc([c], loop(i, 4, tir.BufferStore(c, tir.cast(i, "float32"), [i]))), whole[::2])
    assert whole.tolist() == [0, 0, 1, 0, 2, 0, 3, 0]


def test_deep_nests_and_expressions():
    c = tir.decl_buffer((1,), name="c")
    body = tir.BufferStore(c, tir.BufferLoad(c, [0]) + 1.0, [0])
    for d in range(30):
        body = loop(tir.Var(f"i{d}"), 1 if d % 15 else 2, body)
    out = np.zeros(1, "float32")
    run_primfunc(PrimFunc([c], body), out)
    assert out[0] == 4
    e = tir.BufferLoad(c, [0])
    for q in range(20000):
        e = e + tir.const(1.0)
    run_primfunc(PrimFunc([c], tir.BufferStore(c, e, [0])), out)
    assert out[0] == 20004


def test_calls_out():
    c = tir.decl_buffer((4,), name="c")

    def fill(x, value):
        x[:] = value
        return 0

    func = PrimFunc([c], tir.Evaluate(tir.call_extern("int32", "fill", tir.address_of(tir.BufferLoad(c, [1])), 7)))
    out = np.zeros(4, "float32")
    run_primfunc(func, out, externs={"fill": fill})
    assert out.tolist() == [0, 7, 7, 7]
    with pytest.raises(UnsupportedOpError, match="fill"):
        run_primfunc(func, out)
    packed = PrimFunc([c], tir.Evaluate(tir.call_packed("double_it", c)))
    run_primfunc(packed, out, externs={"double_it": lambda x: x.__imul__(2)})
    assert out.tolist() == [0, 14, 14, 14]


def test_assert_and_let():
    c = tir.decl_buffer((1,), "int64", name="c")
    n = tir.Var("n")
    s = tir.AssertStmt(n > 3, tir.StringImm("n is too small"), tir.BufferStore(c, n, [0]))
    out = np.zeros(1, "int64")
    run_primfunc(PrimFunc([c], tir.LetStmt(n, tir.const(4, "int64"), s)), out)
    assert out[0] == 4
    with pytest.raises(ArgumentError, match="n is too small"):
        run_primfunc(PrimFunc([c], tir.LetStmt(n, tir.const(2, "int64"), s)), out)
