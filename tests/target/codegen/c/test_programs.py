"""Loop programs in C: what the compiled source does is what the interpreter says, without a warning and without undefined behaviour."""
from __future__ import annotations

import ctypes
import shutil
import subprocess

import numpy as np
import pytest

from anchorleg.runtime.dtype import numpy_dtype
from anchorleg.support.errors import UnsupportedOpError
from anchorleg.target.codegen.c import CSource, emit_c_kernel
from anchorleg.target.codegen.c.types import float_text, identifier, int_text
from anchorleg.tir import expr as tir
from anchorleg.tir import op
from anchorleg.tir import stmt as st
from anchorleg.tir.buffer import BufferLoad, decl_buffer
from anchorleg.tir.interpreter import run_primfunc

from ..kernels import SERIAL, elementwise, imm, primfunc, ramp, values
from ..random_programs import Program

needs_compiler = pytest.mark.skipif(shutil.which("gcc") is None, reason="needs gcc")
FLAGS = "-std=c99 -O1 -Wall -Wextra -Wpedantic -Wconversion -Werror -shared -fPIC -fsanitize=undefined -fno-sanitize-recover=all".split()


def compile_c(funcs, folder, *more):
    """The functions of one source file, ready to be called with arrays."""
    kernels = [emit_c_kernel(f, f"kernel{i}") for i, f in enumerate(funcs)]
    (folder / "k.c").write_text(CSource("kernels", kernels).text)
    done = subprocess.run(["gcc", *FLAGS, *more, "k.c", "-o", "k.so", "-lm"], cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[:3000]
    library = ctypes.CDLL(str(folder / "k.so"))

    def call(number, arrays):
        kernel = kernels[number]
        scratch = [np.zeros(kernel.workspace_bytes + 16, np.uint8)] if kernel.workspace_bytes else []
        return getattr(library, kernel.symbol)(*(a.ctypes.data_as(ctypes.c_void_p) for a in [*arrays, *scratch]))

    return call


@needs_compiler
def test_random_programs(tmp_path):
    funcs = [Program(seed).func() for seed in range(40)]
    call = compile_c(funcs, tmp_path, "-Wno-unused-variable", "-Wno-unused-but-set-variable")  # random programs compute what nobody reads
    for seed, func in enumerate(funcs):
        rng = np.random.default_rng(seed)
        arrays = [values(b.dtype, b.shape[0].value, rng) for b in func.buffers]
        arrays = [np.rint(a * 4) / 4 if a.dtype.kind == "f" else a for a in arrays]
        ours, theirs = ([a.astype(numpy_dtype(b.dtype)) for a, b in zip(arrays, func.buffers)] for _ in range(2))
        assert call(seed, ours) == 0
        run_primfunc(func, *theirs)
        for x, y, b in zip(ours, theirs, func.buffers):
            exact = not b.dtype.startswith("float")
            np.testing.assert_allclose(x, y, rtol=0 if exact else 1e-4, atol=0 if exact else 1e-3, err_msg=f"seed {seed}, {b.name}")


INTEGERS = ["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"]
BINARY = {"add": lambda a, b: a + b, "sub": lambda a, b: a - b, "mul": lambda a, b: a * b, "floordiv": op.floordiv, "floormod": op.floormod,
          "truncdiv": op.truncdiv, "truncmod": op.truncmod, "min": tir.Min, "max": tir.Max, "and": op.bitwise_and, "or": op.bitwise_or, "xor": op.bitwise_xor}


@needs_compiler
@pytest.mark.parametrize("dtype", INTEGERS)
def test_integer_arithmetic_wraps(dtype, tmp_path):
    info = np.iinfo(dtype)
    edge = np.array([info.min, info.min + 1, 1, 2, 3, 7, info.max // 3, info.max - 1, info.max, 5], dtype)
    a, b = (g.reshape(-1).copy() for g in np.meshgrid(edge, edge[edge != 0]))
    funcs = [elementwise(fn, [dtype, dtype, dtype], len(a)) for fn in BINARY.values()]
    call = compile_c(funcs, tmp_path)
    for number, (name, func) in enumerate(zip(BINARY, funcs)):
        ours, theirs = np.zeros_like(a), np.zeros_like(a)
        assert call(number, [a, b, ours]) == 0
        run_primfunc(func, a, b, theirs)
        np.testing.assert_array_equal(ours, theirs, err_msg=name)


@needs_compiler
def test_conversions(tmp_path):
    pairs = [(s, t) for s in ["float32", "float64", "int8", "int64", "uint32", "bool", "float16", "bfloat16"]
             for t in ["int8", "int32", "uint8", "uint32", "int64", "float32", "float16", "bfloat16", "bool"] if s != t]
    rng, n = np.random.default_rng(0), 64
    funcs = [elementwise(lambda v, t=t: tir.Cast(t, v), [s, t], n) for s, t in pairs]
    call = compile_c(funcs, tmp_path)
    for number, ((s, t), func) in enumerate(zip(pairs, funcs)):
        x = (rng.standard_normal(n) * 50).astype(numpy_dtype(s)) if s != "bool" else rng.random(n) > 0.5
        ours, theirs = (np.zeros(n, numpy_dtype(t)) for _ in range(2))
        assert call(number, [x, ours]) == 0
        run_primfunc(func, x, theirs)
        np.testing.assert_array_equal(ours.view(np.uint8), theirs.view(np.uint8), err_msg=f"{s} -> {t}")


@needs_compiler
def test_floats_out_of_range_saturate(tmp_path):
    func = elementwise(lambda v: tir.Cast("int32", v), ["float32", "int32"], 6)
    x, y = np.array([np.inf, -np.inf, np.nan, 1e30, -3.7, 2147483520.0], np.float32), np.zeros(6, np.int32)
    assert compile_c([func], tmp_path)(0, [x, y]) == 0
    assert y.tolist() == [2**31 - 1, -(2**31), 0, 2**31 - 1, -3, 2147483520]


@needs_compiler
def test_extremes_keep_nan(tmp_path):
    funcs = [elementwise(fn, ["float32"] * 3, 4) for fn in (tir.Max, tir.Min)]
    call = compile_c(funcs, tmp_path)
    a, b = np.array([np.nan, 1, 2, -0.0], np.float32), np.array([1, np.nan, 3, 5], np.float32)
    for number, fn in enumerate((np.maximum, np.minimum)):
        y = np.zeros(4, np.float32)
        call(number, [a, b, y])
        np.testing.assert_array_equal(y, fn(a, b))


@needs_compiler
def test_limits_keep_nan(tmp_path):
    zero, six = op.const(0.0, "float32"), op.const(6.0, "float32")
    funcs = [elementwise(fn, ["float32"] * 2, 5) for fn in (lambda v: tir.Max(v, zero), lambda v: tir.Min(six, v), lambda v: tir.Min(tir.Max(v, zero), six))]
    assert "al_at_least_f32(" in emit_c_kernel(funcs[0], "k").body and "al_at_most_f32(" in emit_c_kernel(funcs[1], "k").body
    call = compile_c(funcs, tmp_path)
    x = np.array([np.nan, -1, 3, 9, np.inf], np.float32)
    for number, wanted in enumerate((np.maximum(x, 0), np.minimum(x, 6), np.clip(x, 0, 6))):
        y = np.zeros(5, np.float32)
        call(number, [x, y])
        np.testing.assert_array_equal(y, wanted)
    nan = tir.Max(BufferLoad(decl_buffer((1,), name="A"), [imm(0)]), op.const(float("nan"), "float32"))
    assert "al_max_f32" in emit_c_kernel(primfunc([nan.a.buffer], st.BufferStore(nan.a.buffer, nan, [imm(0)])), "k").body


@needs_compiler
def test_vectors_are_stored_after_they_are_read(tmp_path):
    a = decl_buffer((9,), name="A")
    shifted = st.BufferStore(a, BufferLoad(a, [ramp(0, 8)]), [ramp(1, 8)])
    call = compile_c([primfunc([a], shifted)], tmp_path)
    x = np.arange(9, dtype=np.float32)
    assert call(0, [x]) == 0
    assert x.tolist() == [0, 0, 1, 2, 3, 4, 5, 6, 7]


@needs_compiler
def test_only_the_taken_side_is_evaluated(tmp_path):
    a, b = decl_buffer((4,), name="A"), decl_buffer((8,), name="B")
    i = tir.Var("i")
    value = op.if_then_else(i < 4, BufferLoad(a, [i]) * BufferLoad(a, [i]) + BufferLoad(a, [i]), op.const(-1.0, "float32"))
    call = compile_c([primfunc([a, b], st.For(i, 0, 8, SERIAL, st.BufferStore(b, value, [i])))], tmp_path)
    x, y = np.arange(4, dtype=np.float32), np.zeros(8, np.float32)
    assert call(0, [x, y]) == 0
    assert y.tolist() == [0, 2, 6, 12, -1, -1, -1, -1]


def test_deep_expressions():
    a = decl_buffer((1,), "int32", name="A")
    value = BufferLoad(a, [imm(0)])
    for _ in range(20_000):
        value = tir.Add(value, BufferLoad(a, [imm(0)]))
    assert "int32_t kernel" in emit_c_kernel(primfunc([a], st.BufferStore(a, value, [imm(0)])), "kernel").prototype


def test_shared_parts_are_written_once():
    """A value that doubles itself forty times is forty locals, not 2**40 terms."""
    a = decl_buffer((1,), "float32", name="A")
    value = BufferLoad(a, [imm(0)])
    for _ in range(40):
        value = op.exp(value * value + value)
    text = emit_c_kernel(primfunc([a], st.BufferStore(a, value, [imm(0)])), "k").definition
    assert len(text) < 10_000


def test_spelling():
    assert float_text(0.1, "float32") == "0.1f" and float(float_text(1e-30, "float32")[:-1]) == pytest.approx(1e-30)
    for v in (1 / 3, 1e20, 16777217.0, -2.5e-9, 3.0e38):
        assert np.float32(float_text(v, "float32").strip("()").rstrip("f")) == np.float32(v)
    assert int_text(-(2**31), "int32") == "INT32_MIN" and int_text(-(2**63), "int64") == "INT64_MIN"
    assert identifier("a.b:0") == "a_b_0" and identifier("for") == "for_" and identifier("3d")[0].isalpha()


def test_unknown_intrinsics_are_refused():
    with pytest.raises(UnsupportedOpError, match="no C form"):
        emit_c_kernel(elementwise(lambda v: tir.Call("float32", "tir.call_llvm_intrin", [tir.StringImm("llvm.x"), v]), ["float32", "float32"], 4))


def _copy_of(value_of, n=12, m=5):
    """for i < n: for j < m: B[i * m + j] = value_of(A, i, j)"""
    a, b = decl_buffer((200,), name="A"), decl_buffer((n * m + 1,), name="B")
    i, j = tir.Var("i"), tir.Var("j")
    store = st.BufferStore(b, value_of(a, i, j), [i * m + j])
    return primfunc([a, b], st.For(i, 0, n, SERIAL, st.For(j, 0, m, SERIAL, store)))


@needs_compiler
def test_copies_and_fills_are_library_calls(tmp_path):
    funcs = [_copy_of(lambda a, i, j: BufferLoad(a, [i * 5 + j + 3])), _copy_of(lambda a, i, j: BufferLoad(a, [i * 10 + j])),
             _copy_of(lambda a, i, j: op.const(0.0, "float32"))]
    for func, wanted in zip(funcs, ("memcpy(&B[0], &A[3], 240);", "memcpy(&B[i * 5], &A[i * 10], 20);", "memset(&B[0], 0, 240);")):
        assert wanted in emit_c_kernel(func, "k").body
    call = compile_c(funcs, tmp_path)
    x = np.random.default_rng(0).random(200).astype("float32")
    for number, wanted in enumerate((x[3:63], x[:120].reshape(12, 10)[:, :5].reshape(-1), np.zeros(60))):
        y = np.full(61, 7, "float32")
        assert call(number, [x, y]) == 0
        np.testing.assert_array_equal(y, [*wanted, 7])


def test_what_is_no_copy_stays_a_loop():
    for value in (lambda a, i, j: BufferLoad(a, [i * 5 + j * 2]), lambda a, i, j: BufferLoad(a, [i * 4 + 30 - j]), lambda a, i, j: BufferLoad(a, [i * 5 + j]) + 1.0,
                  lambda a, i, j: op.const(-0.0, "float32"), lambda a, i, j: op.const(1.0, "float32")):
        body = emit_c_kernel(_copy_of(value), "k").body
        assert "memcpy" not in body and "memset" not in body
    assert "memcpy" not in emit_c_kernel(_copy_of(lambda a, i, j: BufferLoad(a, [i * 5 + j])), "k", may_alias=True).body  # it may be the same memory


@needs_compiler
def test_amounts_of_shifts_and_offsets_of_comparisons(tmp_path):
    a, n, b = (decl_buffer((9,), "int32", name=name) for name in "ANB")
    i = tir.Var("i")
    x, amount = BufferLoad(a, [i]), BufferLoad(n, [i])
    safe = tir.Select(tir.And(tir.GE(amount, op.const(0, "int32")), tir.LT(amount, op.const(32, "int32"))), amount, op.const(31, "int32"))
    shifted = op.shift_right(x, safe)
    above = tir.Select(tir.LT(x - 5, op.const(2, "int32")), op.const(1, "int32"), op.const(0, "int32"))
    funcs = [primfunc([a, n, b], st.For(i, 0, 9, SERIAL, st.BufferStore(b, value, [i]))) for value in (shifted, above)]
    assert "al_shr_i32(A[i], (uint32_t)N[i])" in emit_c_kernel(funcs[0], "k").body and "A[i] < 7" in emit_c_kernel(funcs[1], "k").body
    call = compile_c(funcs, tmp_path)
    values_, amounts = np.array([-(2**31), -5, -1, 0, 6, 7, 8, 2**31 - 1, 100], "int32"), np.array([31, 1, 40, -1, 0, 2, 33, 30, -2**31], "int32")
    y = np.zeros(9, "int32")
    assert call(0, [values_, amounts, y]) == 0
    assert y.tolist() == [int(v) >> (int(k) if 0 <= k < 32 else 31) for v, k in zip(values_, amounts)]
    assert call(1, [values_, amounts, y]) == 0
    assert y.tolist() == [int(int(v) - 5 < 2) for v in values_]
