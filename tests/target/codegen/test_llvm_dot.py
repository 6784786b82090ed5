"""Words of four bytes and their dot products, under the instruction sets that spell them differently."""
from __future__ import annotations

import numpy as np
import pytest

from anchorleg.ir.op import Op
from anchorleg.target.build.llvm import compile_text
from anchorleg.target.codegen.llvm import emit_kernel
from anchorleg.tir import expr as tir
from anchorleg.tir import op
from anchorleg.tir import stmt as st
from anchorleg.tir.buffer import BufferLoad, decl_buffer
from anchorleg.tir.interpreter import run_primfunc

from .kernels import SERIAL, imm, primfunc, ramp, run

X86 = "llvm -mtriple=x86_64-unknown-linux-gnu -mcpu="
HOST = ["llvm", "llvm -mattr=-avx512vnni", "llvm -mattr=-avx512vnni,-avxvnni", X86 + "x86-64-v3", X86 + "x86-64"]
CASES = [("uint8", "u8s8"), ("int8", "s8s8")]


def words(buffer, base, lanes, stride=4):
    """Four neighbouring bytes at each of ``lanes`` places."""
    return op.pack4x8(*(BufferLoad(buffer, [ramp(base + j, lanes, stride) if lanes > 1 else base + j]) for j in range(4)))


def dot_program(dtype, steps, lanes):
    """out[l] = the sum over k of a[4k..] · b[4(k lanes + l)..], as the inner loops of a product are."""
    a, b = decl_buffer((4 * steps,), dtype, name="a"), decl_buffer((4 * steps * lanes,), "int8", name="b")
    out = decl_buffer((lanes,), "int32", name="out")
    k, place = tir.Var("k"), [ramp(0, lanes)] if lanes > 1 else [imm(0)]
    left = words(a, k * 4, 1)
    left = tir.Broadcast(left, lanes) if lanes > 1 else left
    name = f"tir.dot4_{'u8s8' if dtype == 'uint8' else 's8s8'}"
    zero = tir.Broadcast(op.const(0, "int32"), lanes) if lanes > 1 else op.const(0, "int32")
    dot = tir.Call(f"int32x{lanes}" if lanes > 1 else "int32", Op.get(name), (left, words(b, k * (4 * lanes), lanes), zero))
    body = st.BufferStore(out, BufferLoad(out, place) + dot, place)
    return primfunc([a, b, out], st.For(k, 0, steps, SERIAL, body))


def operands(dtype, steps, lanes, kind, rng):
    low, high = (0, 255) if dtype == "uint8" else (-128, 127)
    if kind == "random":
        return rng.integers(low, high + 1, 4 * steps).astype(dtype), rng.integers(-128, 128, 4 * steps * lanes).astype(np.int8)
    return np.full(4 * steps, {"low": low, "high": high}[kind[0]], dtype), np.full(4 * steps * lanes, {"low": -128, "high": 127}[kind[1]], np.int8)


@pytest.mark.parametrize("target", HOST)
@pytest.mark.parametrize("dtype, name", CASES)
@pytest.mark.parametrize("lanes", [1, 4, 6, 16, 28])
def test_products_are_exact(target, dtype, name, lanes):
    rng = np.random.default_rng(lanes)
    for steps in (1, 3, 250):
        func = dot_program(dtype, steps, lanes)
        for kind in ("random", ("low", "low"), ("high", "low"), ("high", "high"), ("low", "high")):
            a, b = operands(dtype, steps, lanes, kind, rng)
            out = np.full(lanes, 7, np.int32)
            run(func, a, b, out, target=target)
            whole = b.astype(np.int64).reshape(steps, lanes, 4)
            want = 7 + np.einsum("kj,klj->l", a.astype(np.int64).reshape(steps, 4), whole)
            np.testing.assert_array_equal(out, want, err_msg=f"{steps} steps, {kind}")


@pytest.mark.parametrize("dtype, name", CASES)
def test_the_interpreter_agrees(dtype, name):
    func = dot_program(dtype, 3, 8)
    a, b = operands(dtype, 3, 8, "random", np.random.default_rng(0))
    mine, theirs = np.zeros(8, np.int32), np.zeros(8, np.int32)
    run(func, a, b, mine)
    run_primfunc(func, a, b, theirs)
    np.testing.assert_array_equal(mine, theirs)


def test_sums_wrap():
    func = dot_program("uint8", 1, 4)
    out = np.array([2**31 - 1] * 4, np.int32)
    run(func, np.full(4, 255, np.uint8), np.full(16, 127, np.int8), out)
    assert (out == 2**31 - 1 + 4 * 255 * 127 - 2**32).all()


@pytest.mark.parametrize("stride", [1, 3, 5])
def test_bytes_that_are_apart_are_put_together(stride):
    data, out = decl_buffer((64,), "int8", name="data"), decl_buffer((4,), "int32", name="out")
    func = primfunc([data, out], st.BufferStore(out, words(data, imm(2), 4, stride), [ramp(0, 4)]))
    x, got = np.random.default_rng(1).integers(-128, 128, 64).astype(np.int8), np.zeros(4, np.int32)
    run(func, x, got)
    want = [int.from_bytes(x[2 + stride * i:6 + stride * i].tobytes(), "little", signed=True) for i in range(4)]
    assert got.tolist() == want


def instructions(target, dtype="uint8", lanes=16):
    return emit_kernel(dot_program(dtype, 8, lanes), target).ir_text


@pytest.mark.parametrize("target, dtype, wanted", [
    (X86 + "znver4", "uint8", "llvm.x86.avx512.vpdpbusd.512"), (X86 + "alderlake", "uint8", "llvm.x86.avx512.vpdpbusd.256"),
    (X86 + "x86-64-v3", "uint8", "mul <32 x i32>"), (X86 + "znver4", "int8", "mul <32 x i32>"),
    ("llvm -mtriple=aarch64-linux-gnu -mcpu=neoverse-n1", "int8", "llvm.aarch64.neon.sdot"),
    ("llvm -mtriple=aarch64-linux-gnu -mcpu=neoverse-n1", "uint8", "mul <32 x i32>"),
    ("llvm -mtriple=aarch64-linux-gnu -mcpu=neoverse-v1", "uint8", "llvm.aarch64.neon.usdot"),
    ("llvm -mtriple=riscv64-unknown-linux-gnu", "uint8", "mul <32 x i32>")])
def test_the_processors_own_instruction_is_used(target, dtype, wanted):
    text = instructions(target, dtype)
    assert wanted in text
    assert len(compile_text(text, target)) > 0


def test_neighbouring_bytes_are_one_load():
    text = instructions("llvm")
    assert "load <16 x i32>" in text and "load i32" in text and "load i8" not in text
