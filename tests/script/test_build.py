"""Programs written as script, compiled and run."""
from __future__ import annotations

import numpy as np
import pytest

from anchorleg.driver.build_module import build, lower
from anchorleg.ir import IRModule
from anchorleg.runtime import ndarray as nd
from anchorleg.script import from_source
from anchorleg.script import ir as I  # noqa: E741
from anchorleg.script import tir as T
from anchorleg.tir import PrimFunc, run_primfunc


@T.prim_func
def matmul(a: T.handle, b: T.handle, c: T.handle):
    m = T.int64(is_size_var=True)
    A = T.match_buffer(a, (m, 24), "float32")
    B = T.match_buffer(b, (24, 16), "float32")
    C = T.match_buffer(c, (m, 16), "float32")
    D = T.alloc_buffer((m, 16), "float32")
    for i, j, k in T.grid(m, 16, 24):
        with T.block("product"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                D[vi, vj] = T.float32(0)
            D[vi, vj] += A[vi, vk] * B[vk, vj]
    for i in T.parallel(m):
        for j in T.vectorized(16):
            with T.block("relu"):
                vi, vj = T.axis.remap("SS", [i, j])
                C[vi, vj] = T.max(D[vi, vj], T.float32(0))


@pytest.mark.parametrize("size", [1, 7, 32])
def test_blocks_run_as_machine_code(size: int) -> None:
    a, b = np.random.rand(size, 24).astype("float32") - 0.5, np.random.rand(24, 16).astype("float32")
    out = nd.array(np.zeros((size, 16), "float32"))
    build(matmul, target="llvm")(nd.array(a), nd.array(b), out)
    np.testing.assert_allclose(out.numpy(), np.maximum(a @ b, 0), rtol=1e-5, atol=1e-5)


def test_lowered_programs_read_back_run_the_same() -> None:
    flat = lower(matmul)
    again = from_source(flat.script())
    assert isinstance(again, IRModule)
    a, b = np.random.rand(5, 24).astype("float32"), np.random.rand(24, 16).astype("float32")
    out = nd.array(np.zeros((5, 16), "float32"))
    build(again, target="llvm")(nd.array(a), nd.array(b), out)
    np.testing.assert_allclose(out.numpy(), a @ b, rtol=1e-5)


def test_two_dimensional_allocations_and_constants() -> None:
    @I.ir_module
    class Module:
        @T.prim_func
        def main(A: T.Buffer((3, 4), "int32"), n: T.int32):
            p = T.allocate([3, 4], "int32", "global")
            P = T.decl_buffer((3, 4), "int32", data=p)
            c = T.allocate_const([1, 2, 3, 4], "int32", [2, 2])
            C = T.decl_buffer((2, 2), "int32", data=c)
            for i, j in T.grid(3, 4):
                P[i, j] = C[i % 2, j % 2] * n
            for i, j in T.grid(3, 4):
                A[i, j] = P[2 - i, 3 - j]

    out = nd.array(np.zeros((3, 4), "int32"))
    build(Module, target="llvm")(out, 10)
    want = np.array([[1, 2, 1, 2], [3, 4, 3, 4], [1, 2, 1, 2]])[::-1, ::-1] * 10
    np.testing.assert_array_equal(out.numpy(), want)


def test_scalar_results() -> None:
    @T.prim_func
    def collatz(n: T.int64) -> T.int64:
        count = T.allocate([2], "int64", "local")
        S = T.Buffer((2,), "int64", data=count)
        S[0] = n
        S[1] = 0
        while S[0] != 1:
            S[0] = T.if_then_else(S[0] % 2 == 0, S[0] // 2, S[0] * 3 + 1)
            S[1] += 1
        return S[1]

    assert build(collatz, target="llvm")(27) == 111


@T.prim_func
def loops(A: T.Buffer((8,), "int32"), n: T.int32):
    a = T.allocate([1], "int32", "local")
    X = T.Buffer((1,), "int32", data=a)
    X[0] = n
    while X[0] > 0 and A[7] < 100:
        b = T.allocate([2], "int32", "local")
        Y = T.Buffer((2,), "int32", data=b)
        Y[0] = X[0]
        Y[1] = 0
        while T.if_then_else(Y[0] > 3, Y[1] < 5, Y[1] < 2):
            Y[1] += 1
            for i in range(7):
                A[i] = A[i] + Y[1]
        if Y[0] % 2 == 0:
            X[0] -= 1
        else:
            X[0] = X[0] - 2
        A[7] += Y[1]


@T.prim_func
def kept(A: T.Buffer((64,), "int32"), n: T.int32):
    first = T.allocate([64], "int32", "global")
    F = T.Buffer((64,), "int32", data=first)
    second = T.allocate([64], "int32", "global")
    S = T.Buffer((64,), "int32", data=second)
    count = T.allocate([1], "int32", "local")
    C = T.Buffer((1,), "int32", data=count)
    C[0] = 0
    for i in range(64):
        F[i] = A[i]
    while C[0] < n:
        for i in range(64):
            A[i] = A[i] + F[i]
        for i in range(64):
            S[i] = A[i] * 2
        for i in range(64):
            A[i] = S[63 - i]
        C[0] += 1


@pytest.mark.parametrize("func", [loops, kept])
def test_while_loops_do_what_the_interpreter_says(func: PrimFunc) -> None:
    for n in (0, 1, 2, 9):
        want = np.arange(func.buffers[0].shape[0].value, dtype="int32")
        out = nd.array(want.copy())
        run_primfunc(func, want, n)
        build(func, target="llvm")(out, n)
        np.testing.assert_array_equal(out.numpy(), want)
