"""Values: conversions, integer division, shifts, vectors with every stride, intrinsics."""
from __future__ import annotations

import itertools

import numpy as np
import pytest

from anchorleg.ir.expr import FloatImm, IntImm
from anchorleg.runtime.dtype import numpy_dtype
from anchorleg.target.codegen.llvm import emit_kernel
from anchorleg.tir import expr as tir
from anchorleg.tir import op
from anchorleg.tir import stmt as st
from anchorleg.tir.buffer import BufferLoad, decl_buffer
from anchorleg.tir.dtypes import with_lanes

from .kernels import SERIAL, elementwise, imm, primfunc, ramp, run, same_as_interpreter, values

DTYPES = ["bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16", "bfloat16", "float32", "float64",
          "e4m3_float8", "e5m2_float8"]
OLD_X86 = "llvm -mtriple=x86_64-unknown-linux-gnu -mcpu=x86-64"


def cast_of(source, target, x, lanes, cpu="llvm"):
    out = np.zeros(x.size, numpy_dtype(target))
    run(elementwise(lambda a: tir.Cast(with_lanes(target, lanes), a), [source, target], x.size, lanes), x, out, target=cpu)
    return out


@pytest.mark.parametrize("source", DTYPES)
def test_conversions_between_all_types(source):
    x = values(source, 32, np.random.default_rng(3))
    for target, lanes in itertools.product(DTYPES, (1, 8)):
        safe = np.abs(x.astype(np.float64)) if target.startswith("u") and source.startswith(("float", "bfloat", "e")) else x
        safe = np.asarray(safe).astype(x.dtype)
        with np.errstate(all="ignore"):
            want = (safe != 0) if target == "bool" else safe.astype(np.float32 if x.dtype.kind == "V" else x.dtype).astype(numpy_dtype(target))
        got = cast_of(source, target, safe, lanes)
        np.testing.assert_array_equal(got.astype(np.float64), want.astype(np.float64), err_msg=f"{source} -> {target} x{lanes}")


@pytest.mark.parametrize("cpu", ["llvm", OLD_X86])
@pytest.mark.parametrize("target", ["float16", "bfloat16", "e4m3_float8", "e5m2_float8"])
def test_small_floats_round_as_numpy_does(target, cpu):
    bits = np.random.default_rng(0).integers(0, 1 << 32, 4096, dtype=np.uint32)
    small = np.random.default_rng(1).standard_normal(4096).astype(np.float32) * np.float32(2.0) ** np.random.default_rng(2).integers(-20, 12, 4096)
    edge = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 65519.0, 65520.0, 464.0, 465.0, 480.0, 61440.0, 57344.0, 2.0**-24, 2.0**-25, 2.0**-10, 3 * 2.0**-11], np.float32)
    x = np.concatenate([bits.view(np.float32), small.astype(np.float32), edge])
    with np.errstate(all="ignore"):
        want = x.astype(numpy_dtype(target))
    got = cast_of("float32", target, x, 16, cpu)
    both_nan = np.isnan(got.astype(np.float32)) & np.isnan(want.astype(np.float32))
    kind = np.uint16 if got.itemsize == 2 else np.uint8
    assert (both_nan | (got.view(kind) == want.view(kind))).all()
    back = cast_of(target, "float32", want, 16, cpu)
    np.testing.assert_array_equal(back, want.astype(np.float32))


def test_float64_to_float16_rounds_once():
    x = np.array([1 + 2**-11 + 2**-40, 1 + 2**-11 - 2**-40, 65519.999999, 2**-25 + 2**-60, 1 + 2**-11, 1e300, -1e-300, np.nan], np.float64)
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(cast_of("float64", "float16", x, 1), x.astype(np.float16))


def test_float_to_integer_is_defined_everywhere():
    x = np.array([1e20, -1e20, np.nan, 3.9, -3.9, 2147483648.0, 300.0, -1.0], np.float32)
    assert cast_of("float32", "int32", x, 8).tolist() == [2147483647, -2147483648, 0, 3, -3, 2147483647, 300, -1]
    assert cast_of("float32", "uint8", x, 1)[[3, 6, 7]].tolist() == [3, 44, 255]


@pytest.mark.parametrize("dtype", ["int8", "int32", "int64", "uint8", "uint32"])
@pytest.mark.parametrize("lanes", [1, 8])
def test_integer_division(dtype, lanes):
    info = np.iinfo(dtype)
    edge = np.array([0, 1, 2, 3, 7, 100, info.max, info.min, info.max - 1, info.min + 1, 5, 6], dtype=np.int64 if info.min < 0 else np.uint64).astype(dtype)
    a, b = (v.ravel().copy() for v in np.meshgrid(edge, edge))
    a, b = a[:len(a) // 8 * 8], b[:len(b) // 8 * 8]
    for cls in (tir.FloorDiv, tir.FloorMod, tir.Div, tir.Mod):
        out = np.zeros(a.size, dtype)
        run(elementwise(cls, [dtype] * 3, a.size, lanes), a, b, out)
        assert out.tolist() == [_divide(cls, int(x), int(y), dtype) for x, y in zip(a, b)], cls.__name__
    for d in (1, 3, 8, -1, -3, 7):
        if d < 0 and info.min == 0:
            continue
        for cls in (tir.FloorDiv, tir.FloorMod, tir.Div, tir.Mod):
            constant = IntImm(dtype, d) if lanes == 1 else tir.Broadcast(IntImm(dtype, d), lanes)
            out = np.zeros(a.size, dtype)
            run(elementwise(lambda x: cls(x, constant), [dtype] * 2, a.size, lanes), a, out)
            assert out.tolist() == [_divide(cls, int(x), d, dtype) for x in a], (cls.__name__, d)


def _divide(cls, a, b, dtype):
    if b == 0:
        return 0 if cls in (tir.FloorDiv, tir.Div) else 0
    quotient = a // b if cls in (tir.FloorDiv, tir.FloorMod) else int(abs(a) // abs(b)) * (1 if (a < 0) == (b < 0) else -1)
    result = quotient if cls in (tir.FloorDiv, tir.Div) else a - quotient * b
    bits = np.iinfo(dtype).bits
    result &= (1 << bits) - 1
    return result - (1 << bits) if np.iinfo(dtype).min < 0 and result >> (bits - 1) else result


@pytest.mark.parametrize("dtype", ["int32", "int64", "uint8", "uint64"])
def test_shifts_from_the_width_on(dtype):
    bits = np.iinfo(dtype).bits
    amounts = np.array([0, 1, bits - 1, bits, bits + 1, 100, 3, 2], np.int64).astype(dtype)
    x = np.array([1, 3, 1, 1, 200, 7, 90, 1], np.int64).astype(dtype)
    if np.iinfo(dtype).min < 0:
        x[5] = -7
    for name, fn in (("shift_left", lambda a, s: a << s), ("shift_right", lambda a, s: a >> s)):
        for lanes in (1, 8):
            out = np.zeros(8, dtype)
            run(elementwise(lambda a, b: tir.Call(a.dtype, f"tir.{name}", [a, b]), [dtype] * 3, 8, lanes), x, amounts, out)
            want = np.array([fn(int(a), int(s)) & ((1 << bits) - 1) for a, s in zip(x, amounts)], np.uint64).astype(dtype)
            assert (out == want).all()


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64", "e4m3_float8"])
@pytest.mark.parametrize("lanes", [1, 8])
def test_min_and_max_keep_nan(dtype, lanes):
    x = np.array([np.nan, 1, np.nan, -2, 3, 0, -0.0, 4], np.float32).astype(numpy_dtype(dtype))
    y = np.array([1, np.nan, np.nan, 5, -3, 0, 0, 4], np.float32).astype(numpy_dtype(dtype))
    for cls, fn in ((tir.Max, np.maximum), (tir.Min, np.minimum)):
        out = np.zeros(8, x.dtype)
        run(elementwise(cls, [dtype] * 3, 8, lanes), x, y, out)
        np.testing.assert_array_equal(out.astype(np.float32), fn(x.astype(np.float32), y.astype(np.float32)))
        zero = FloatImm(dtype, 0.0) if lanes == 1 else tir.Broadcast(FloatImm(dtype, 0.0), lanes)
        run(elementwise(lambda a: cls(a, zero), [dtype] * 2, 8, lanes), x, out)
        np.testing.assert_array_equal(out.astype(np.float32), fn(x.astype(np.float32), np.float32(0)))


@pytest.mark.parametrize("dtype", ["float32", "int64", "int8", "bool", "float16"])
@pytest.mark.parametrize("stride", [1, 0, 2, 3, 4, 5, -1, -2, 7])
def test_vector_loads_and_stores_with_every_stride(dtype, stride):
    n, lanes = 64, 8
    a, b = decl_buffer((n,), dtype, name="A"), decl_buffer((lanes,), dtype, name="B")
    start = 60 if stride < 0 else 3
    same_as_interpreter(primfunc([a, b], st.BufferStore(b, BufferLoad(a, [ramp(start, lanes, stride)]), [ramp(0, lanes)])),
                        [values(dtype, n, np.random.default_rng(1)), np.zeros(lanes, numpy_dtype(dtype))])
    if stride:
        same_as_interpreter(primfunc([b, a], st.BufferStore(a, BufferLoad(b, [ramp(0, lanes)]), [ramp(start, lanes, stride)])),
                            [values(dtype, lanes, np.random.default_rng(1)), np.zeros(n, numpy_dtype(dtype))])


def test_strided_loads_stay_inside_the_buffer():
    """The last vector of a strided load ends exactly at the last element: the page behind it is not readable."""
    import mmap

    page = mmap.PAGESIZE
    memory = mmap.mmap(-1, 2 * page)
    _protect(memory, page)
    n = page // 4
    x = np.frombuffer(memory, np.float32, n)
    x[:] = np.arange(n)
    a, b = decl_buffer((n,), name="A"), decl_buffer((8,), name="B")
    for stride in (2, 3, 4, -2, 1):
        start = n - 1 - 7 * stride if stride > 0 else n - 1
        out = np.zeros(8, np.float32)
        run(primfunc([a, b], st.BufferStore(b, BufferLoad(a, [ramp(start, 8, stride)]), [ramp(0, 8)])), x, out)
        np.testing.assert_array_equal(out, x[start] + stride * np.arange(8))
    del x


def _protect(memory, page):
    import ctypes

    address = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    assert ctypes.CDLL(None).mprotect(ctypes.c_void_p(address + page), page, 0) == 0


def test_gathers_and_scatters():
    n = 32
    a, p, b = decl_buffer((n,), name="A"), decl_buffer((n,), "int64", name="P"), decl_buffer((n,), name="B")
    i = tir.Var("i")
    index = BufferLoad(p, [ramp(i * 8, 8)])
    order = np.random.default_rng(0).permutation(n).astype(np.int64)
    x = np.arange(n, dtype=np.float32)
    same_as_interpreter(primfunc([a, p, b], st.For(i, 0, 4, SERIAL, st.BufferStore(b, BufferLoad(a, [index]), [ramp(i * 8, 8)]))), [x, order, np.zeros_like(x)])
    same_as_interpreter(primfunc([a, p, b], st.For(i, 0, 4, SERIAL, st.BufferStore(b, BufferLoad(a, [ramp(i * 8, 8)]), [index]))), [x, order, np.zeros_like(x)])


def test_index_arithmetic_on_vectors():
    n = 64
    a, b = decl_buffer((n,), name="A"), decl_buffer((n,), name="B")
    lane = ramp(0, 16)
    wide = lambda v: tir.Broadcast(imm(v), 16)  # noqa: E731
    index = tir.Add(tir.Mul(tir.FloorDiv(lane, wide(4)), wide(8)), tir.FloorMod(lane, wide(4)))
    same_as_interpreter(primfunc([a, b], st.BufferStore(b, BufferLoad(a, [index]), [tir.Mul(lane, wide(2))])),
                        [np.arange(n, dtype=np.float32), np.zeros(n, np.float32)])


def test_bits_and_counts():
    x = np.array([0, 1, 255, 1 << 20, -1, 12345, -98765, 7], np.int32)
    for lanes in (1, 8):
        out = np.zeros(8, np.int32)
        run(elementwise(op.popcount, ["int32", "int32"], 8, lanes), x, out)
        assert out.tolist() == [bin(int(v) & 0xFFFFFFFF).count("1") for v in x]
        run(elementwise(op.clz, ["int32", "int32"], 8, lanes), x, out)
        assert out.tolist() == [32 - (int(v) & 0xFFFFFFFF).bit_length() for v in x]
        run(elementwise(op.bitwise_not, ["int32", "int32"], 8, lanes), x, out)
        assert (out == ~x).all()


def test_fixed_point_multiplication():
    x = np.array([100, -100, 12345, -54321, 0, 1, 2**30, -(2**30)], np.int32)
    for shift in (-3, 0, 2):
        same_as_interpreter(elementwise(lambda a: op.q_multiply_shift(a, IntImm("int32", 1395864371), 31, shift), ["int32", "int32"], 8),
                            [x, np.zeros(8, np.int32)])


def test_integer_powers():
    x, y = np.array([2, -3, 7, 0, 1, -1, 10, 5], np.int64), np.array([10, 3, 0, 0, 50, 7, 9, 1], np.int64)
    out = np.zeros(8, np.int64)
    run(elementwise(op.power, ["int64"] * 3, 8), x, y, out)
    assert out.tolist() == [int(a) ** int(b) for a, b in zip(x, y)]


def test_vector_reductions_and_halves():
    a, b = decl_buffer((16,), name="A"), decl_buffer((4,), name="B")
    x = BufferLoad(a, [ramp(0, 16)])
    total = [tir.Call("float32", f"tir.vector_reduce_{n}", [x]) for n in ("add", "max", "min")]
    high = tir.Call("float32x8", "tir.vectorhigh", [x])
    last = tir.Call("float32", "tir.vector_reduce_min", [high])
    body = st.SeqStmt([st.BufferStore(b, v, [imm(k)]) for k, v in enumerate([*total, last])])
    v, out = np.random.default_rng(0).standard_normal(16).astype(np.float32), np.zeros(4, np.float32)
    run(primfunc([a, b], body), v, out)
    np.testing.assert_allclose(out, [v.sum(), v.max(), v.min(), v[8:].min()], rtol=1e-5)


def test_calls_of_c_functions_and_llvm_intrinsics():
    x = np.array([1, 4, 9, 16, 25, 36, 49, 64], np.float32)
    for lanes in (1, 8):
        out = np.zeros(8, np.float32)
        run(elementwise(lambda a: op.call_pure_extern(a.dtype, "cbrtf", a), ["float32"] * 2, 8, lanes), x, out)
        np.testing.assert_allclose(out, np.cbrt(x), rtol=1e-6)
        run(elementwise(lambda a: op.call_llvm_pure_intrin(a.dtype, "llvm.sqrt", IntImm("uint32", 1), a), ["float32"] * 2, 8, lanes), x, out)
        np.testing.assert_array_equal(out, np.sqrt(x))


def test_reinterpret():
    x = np.array([1.0, -2.5, 0.0, np.inf], np.float32)
    out = np.zeros(4, np.int32)
    run(elementwise(lambda a: op.reinterpret("int32", a), ["float32", "int32"], 4), x, out)
    assert (out == x.view(np.int32)).all()


def test_classification():
    x = np.array([1.0, np.nan, np.inf, -np.inf], np.float32)
    for name, fn in (("isnan", np.isnan), ("isinf", np.isinf), ("isfinite", np.isfinite)):
        out = np.zeros(4, bool)
        run(elementwise(lambda a: tir.Call("bool", f"tir.{name}", [a]), ["float32", "bool"], 4), x, out)
        assert (out == fn(x)).all()


@pytest.mark.parametrize("target", ["llvm", OLD_X86])
@pytest.mark.parametrize("to", ["int8", "uint8", "int16", "int32", "int64"])
def test_vectors_of_floats_saturate(to, target):
    edges = [np.nan, np.inf, -np.inf, 2147483648.0, 2147483520.0, -2147483648.0, -2147483904.0, 9.3e18, -9.3e18, 0.5, -0.5, 255.9, -128.9, 3e9, -3e9, -0.0]
    for dtype in ("float32", "float64"):
        x = np.array(edges, dtype)
        one, many = (cast_of(dtype, to, x, lanes, target) for lanes in (1, 16))
        np.testing.assert_array_equal(many, one, err_msg=f"{dtype} -> {to}")


@pytest.mark.parametrize("to", ["int8", "uint8", "int32"])
def test_clipped_floats_become_integers(to):
    x = np.array([np.nan, np.inf, -np.inf, 300.0, -300.0, 1.5, -1.5, 99.99] * 2, np.float32)
    high = tir.Broadcast(FloatImm("float32", 100.0), 16)
    low = tir.Broadcast(FloatImm("float32", -3.0), 16)

    def clipped(a):
        a = tir.Select(tir.LT(a, low), low, a)
        return tir.Cast(with_lanes(to, 16), tir.Select(tir.GT(a, high), high, a))

    out = np.zeros(16, to)
    func = elementwise(clipped, ["float32", to], 16, 16)
    run(func, x, out)
    want = np.where(np.isnan(x), 0, np.clip(x, -3, 100)).astype(np.int32).astype(to)
    np.testing.assert_array_equal(out, want)
    assert "sat" not in emit_kernel(func, "llvm").ir_text
