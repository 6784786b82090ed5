"""Loop programs: what the compiled code does is what the interpreter says."""
from __future__ import annotations

import numpy as np
import pytest

from anchorleg.runtime.dtype import numpy_dtype
from anchorleg.support.errors import InternalError, UnsupportedOpError
from anchorleg.target.codegen.llvm import emit_kernel
from anchorleg.tir import expr as tir
from anchorleg.tir import op
from anchorleg.tir import stmt as st
from anchorleg.tir.buffer import BufferLoad, decl_buffer
from anchorleg.tir.interpreter import run_primfunc

from .kernels import (PARALLEL, SERIAL, UNROLLED, Built, allocate, elementwise, f32, imm, local, primfunc, ramp, run,
                      same_as_interpreter, values)
from .random_programs import Program


@pytest.mark.parametrize("first", range(0, 60, 10))
def test_random_programs(first):
    for seed in range(first, first + 10):
        func, rng = Program(seed).func(), np.random.default_rng(seed)
        arrays = [values(b.dtype, b.shape[0].value, rng) for b in func.buffers]
        arrays = [np.rint(a * 4) / 4 if a.dtype.kind == "f" else a for a in arrays]
        ours, theirs = ([a.astype(numpy_dtype(b.dtype)) for a, b in zip(arrays, func.buffers)] for _ in range(2))
        run(func, *ours)
        run_primfunc(func, *theirs)
        for x, y, b in zip(ours, theirs, func.buffers):
            exact = not b.dtype.startswith("float")
            np.testing.assert_allclose(x, y, rtol=0 if exact else 1e-4, atol=0 if exact else 1e-3, err_msg=f"seed {seed}, {b.name}")


def matmul(m, n, k, lanes=8, parallel=False):
    """A register-tiled product: 2 rows × 2 vectors are accumulated in a local buffer."""
    a, b, c = decl_buffer((m * k,), name="A"), decl_buffer((k * n,), name="B"), decl_buffer((m * n,), name="C")
    var, acc = local("acc", 4 * lanes)
    i, j, x, r, v, r2, v2, r3, v3 = (tir.Var(s) for s in "i j k r v r2 v2 r3 v3".split())
    at = lambda row, vec: ramp(row * (2 * lanes) + vec * lanes, lanes)  # noqa: E731
    col = lambda vec: j * (2 * lanes) + vec * lanes  # noqa: E731
    tile = lambda p, q, s: st.For(p, 0, 2, UNROLLED, st.For(q, 0, 2, UNROLLED, s))  # noqa: E731
    product = tir.Broadcast(BufferLoad(a, [(i * 2 + r2) * k + x]), lanes) * BufferLoad(b, [ramp(x * n + col(v2), lanes)])
    body = st.SeqStmt([
        tile(r, v, st.BufferStore(acc, tir.Broadcast(f32(0), lanes), [at(r, v)])),
        st.For(x, 0, k, SERIAL, tile(r2, v2, st.BufferStore(acc, BufferLoad(acc, [at(r2, v2)]) + product, [at(r2, v2)]))),
        tile(r3, v3, st.BufferStore(c, BufferLoad(acc, [at(r3, v3)]), [ramp((i * 2 + r3) * n + col(v3), lanes)]))])
    loops = st.For(i, 0, m // 2, PARALLEL if parallel else SERIAL, st.For(j, 0, n // (2 * lanes), SERIAL, allocate(var, acc, body)))
    return primfunc([a, b, c], loops)


@pytest.mark.parametrize("parallel", [False, True])
def test_register_tiles(parallel):
    rng = np.random.default_rng(0)
    a, b = (rng.standard_normal(s).astype(np.float32) for s in ((6, 20), (20, 32)))
    c = np.zeros((6, 32), np.float32)
    built = Built(matmul(6, 32, 20, parallel=parallel))
    assert built.fast(a, b, c) == 0
    np.testing.assert_allclose(c, a @ b, rtol=1e-5, atol=1e-5)
    assert "alloca [256" not in built.kernel.ir_text and "phi <8 x float>" in built.kernel.ir_text  # the tile lives in registers


def test_unrolled_iterations_share_their_base_address():
    a, b = decl_buffer((64,), name="A"), decl_buffer((64,), name="B")
    i, u = tir.Var("i"), tir.Var("u")
    body = st.For(i, 0, 8, SERIAL, st.For(u, 0, 8, UNROLLED, st.BufferStore(b, BufferLoad(a, [i * 8 + u]) + f32(1), [i * 8 + u])))
    text = emit_kernel(primfunc([a, b], body), "llvm").ir_text
    assert text.count("shl i64") == 1  # i·8 once for all sixteen accesses
    same_as_interpreter(primfunc([a, b], body), [np.arange(64, dtype=np.float32), np.zeros(64, np.float32)])


def test_parallel_loops_use_a_workspace_for_each_task():
    a, b = decl_buffer((40,), name="A"), decl_buffer((40,), name="B")
    var, scratch = local("scratch", 2048, scope="global")
    i, j, k = tir.Var("i"), tir.Var("j"), tir.Var("k")
    fill = st.For(j, 0, 2048, SERIAL, st.BufferStore(scratch, BufferLoad(a, [i]) + tir.Cast("float32", j), [j]))
    total = st.For(k, 0, 2048, SERIAL, st.BufferStore(b, BufferLoad(b, [i]) + BufferLoad(scratch, [k]), [i]))
    func = primfunc([a, b], st.For(i, 0, 40, PARALLEL, allocate(var, scratch, st.SeqStmt([fill, total]))))
    kernel = emit_kernel(func)
    assert kernel.workspace_bytes == 0 and kernel.workspace_bytes_per_task == 8192
    x, out = np.arange(40, dtype=np.float32), np.zeros(40, np.float32)
    run(func, x, out)
    np.testing.assert_allclose(out, 2048 * x + 2048 * 2047 / 2, rtol=1e-4)


def test_buffers_that_never_live_at_once_share_the_workspace():
    out = decl_buffer((4,), name="O")
    parts = []
    for n in range(3):
        var, b = local(f"w{n}", 4096, scope="global")
        i = tir.Var("i")
        fill = st.For(i, 0, 4096, SERIAL, st.BufferStore(b, tir.Cast("float32", i), [i]))
        parts.append(allocate(var, b, st.SeqStmt([fill, st.BufferStore(out, BufferLoad(b, [imm(4095 - n)]), [imm(n)])])))
    func = primfunc([out], st.SeqStmt(parts))
    assert emit_kernel(func).workspace_bytes == 16384
    same_as_interpreter(func, [np.zeros(4, np.float32)])


def test_serial_loops_of_unknown_extent_may_be_empty():
    n, a = tir.SizeVar("n"), decl_buffer((8,), name="A")
    i = tir.Var("i")
    func = primfunc([n, a], st.For(i, 0, n, SERIAL, st.BufferStore(a, f32(1), [i])))
    for count in (0, 1, 8):
        x = np.zeros(8, np.float32)
        run(func, count, x)
        assert x.sum() == count


def test_registers_carried_through_a_loop_that_may_be_empty():
    n, out = tir.SizeVar("n"), decl_buffer((1,), name="O")
    var, acc = local("acc", 1)
    i = tir.Var("i")
    body = st.SeqStmt([st.BufferStore(acc, f32(5), [imm(0)]),
                       st.For(i, 0, n, SERIAL, st.BufferStore(acc, BufferLoad(acc, [imm(0)]) + f32(1), [imm(0)])),
                       st.BufferStore(out, BufferLoad(acc, [imm(0)]), [imm(0)])])
    func = primfunc([n, out], allocate(var, acc, body))
    for count in (0, 3):
        x = np.zeros(1, np.float32)
        run(func, count, x)
        assert x[0] == 5 + count


def test_only_the_taken_side_of_if_then_else_is_evaluated():
    a, b = decl_buffer((4,), name="A"), decl_buffer((1000000,), name="B")
    i = tir.Var("i")
    wild = BufferLoad(a, [i * 1000000000])  # far outside unless i is 0
    func = primfunc([a, b], st.For(i, 0, 3, SERIAL, st.BufferStore(b, op.if_then_else(tir.EQ(i, imm(0)), wild, f32(7)), [i])))
    x, out = np.full(4, 3, np.float32), np.zeros(1000000, np.float32)
    run(func, x, out)
    assert out[:4].tolist() == [3, 7, 7, 0]


def test_and_does_not_load_when_its_left_side_fails():
    a, b = decl_buffer((4,), name="A"), decl_buffer((4,), "bool", name="B")
    i = tir.Var("i")
    guarded = tir.And(tir.LT(i, imm(1)), tir.GT(BufferLoad(a, [i * 1000000000]), f32(0)))
    out = np.ones(4, bool)
    run(primfunc([a, b], st.For(i, 0, 4, SERIAL, st.BufferStore(b, guarded, [i]))), np.full(4, 3, np.float32), out)
    assert out.tolist() == [True, False, False, False]


@pytest.mark.parametrize("depth", [256, 20000])
def test_deep_expressions(depth):
    a = decl_buffer((2,), name="A")
    e = BufferLoad(a, [imm(0)])
    for k in range(depth):
        e = tir.Add(e, f32(1.0)) if k % 2 else tir.Max(e, f32(0.5))
    out = np.array([0, 0], np.float32)
    run(primfunc([a], st.BufferStore(a, e, [imm(1)])), out)
    assert out[1] == 0.5 + depth // 2


def test_deeply_nested_conditions():
    n = 400
    a, b = decl_buffer((n,), "int32", name="A"), decl_buffer((n,), "int32", name="B")
    i = tir.Var("i")
    e = tir.IntImm("int32", -1)
    for k in range(n):
        e = op.if_then_else(tir.EQ(i, imm(k)), BufferLoad(a, [imm(k)]) + tir.IntImm("int32", k), e)
    x, out = np.arange(n, dtype=np.int32)[::-1].copy(), np.zeros(n, np.int32)
    run(primfunc([a, b], st.For(i, 0, n, SERIAL, st.BufferStore(b, e, [i]))), x, out)
    assert (out == n - 1).all()


def test_deeply_nested_statements_are_emitted():
    a = decl_buffer((1,), "int32", name="A")
    body = st.BufferStore(a, tir.IntImm("int32", 1), [imm(0)])
    for k in range(20000):
        body = st.IfThenElse(tir.GE(BufferLoad(a, [imm(0)]), tir.IntImm("int32", 0)), body) if k % 10 == 0 else st.AttrStmt(None, "note", 0, body)
    assert emit_kernel(primfunc([a], body)).ir_text.count("br i1") >= 2000


def test_scratch_of_unknown_size():
    n, out = tir.SizeVar("n"), decl_buffer((1,), name="O")
    var, b = local("w", 1, scope="global")
    i = tir.Var("i")
    fill = st.For(i, 0, n, SERIAL, st.BufferStore(b, tir.Cast("float32", i), [i]))
    body = st.Allocate(var, "float32", [n], tir.IntImm("bool", 1), st.SeqStmt([fill, st.BufferStore(out, BufferLoad(b, [n - 1]), [imm(0)])]))
    x = np.zeros(1, np.float32)
    run(primfunc([n, out], body), 1000, x)
    assert x[0] == 999


def test_constant_data():
    out = decl_buffer((5,), "int16", name="O")
    var, b = local("table", 5, "int16", "global")
    i = tir.Var("i")
    table = np.array([3, -1, 4, -1, 5], np.int16)
    body = st.AllocateConst(var, "int16", [5], table, st.For(i, 0, 5, SERIAL, st.BufferStore(out, BufferLoad(b, [i]), [i])))
    x = np.zeros(5, np.int16)
    run(primfunc([out], body), x)
    assert (x == table).all()


def test_strided_buffers_of_several_dimensions():
    a = decl_buffer((3, 4), name="A", strides=(6, 1))
    b = decl_buffer((3, 4), name="B")
    i, j = tir.Var("i"), tir.Var("j")
    body = st.For(i, 0, 3, SERIAL, st.For(j, 0, 4, SERIAL, st.BufferStore(b, BufferLoad(a, [i, j]), [i, j])))
    store = np.arange(18, dtype=np.float32)
    out = np.zeros((3, 4), np.float32)
    run(primfunc([a, b], body), store, out)
    np.testing.assert_array_equal(out, store.reshape(3, 6)[:, :4])


def test_assertions_leave_an_error_text():
    from anchorleg.runtime.native import last_error_text

    n, a = tir.Var("n"), decl_buffer((1,), name="A")
    func = primfunc([n, a], st.AssertStmt(tir.GT(n, imm(3)), tir.StringImm("n is too small"), st.BufferStore(a, f32(1), [imm(0)])))
    x = np.zeros(1, np.float32)
    built = Built(func)
    assert built.fast(5, x) == 0 and x[0] == 1
    assert built.fast(2, x) == -1 and "n is too small" in last_error_text()


def test_undefined_variables_and_foreign_loops_are_refused():
    a = decl_buffer((4,), name="A")
    with pytest.raises(InternalError, match="stray"):
        emit_kernel(primfunc([a], st.BufferStore(a, f32(0), [tir.Var("stray")])))
    bound = st.For(tir.Var("t"), 0, 4, st.ForKind.THREAD_BINDING, st.BufferStore(a, f32(0), [imm(0)]))
    with pytest.raises(UnsupportedOpError, match="hardware thread"):
        emit_kernel(primfunc([a], bound))
    with pytest.raises(UnsupportedOpError, match="has no spelling"):
        emit_kernel(elementwise(lambda x: tir.Call("float32", "tir.tvm_warp_shuffle", [x] * 5), ["float32", "float32"], 4))


def test_the_same_program_gives_the_same_text():
    assert emit_kernel(matmul(4, 32, 8)).ir_text == emit_kernel(matmul(4, 32, 8)).ir_text


def call_into_python(name):
    a, b, out = decl_buffer((2, 3), name="A"), decl_buffer((2, 3), name="B"), decl_buffer((1,), name="O")
    called = op.call_packed(name, a, b, 7, f32(0.5), "text")
    return primfunc([a, b, out], st.BufferStore(out, tir.Cast("float32", called), [imm(0)]))


def test_calls_of_registered_functions():
    from anchorleg.runtime.registry import register_func, remove_global_func

    def double(a, b, number, factor, word):
        assert (number, factor, word) == (7, 0.5, "text")
        b.copyfrom(a.numpy() * 2)
        return 42

    register_func("test.codegen.double", double)
    try:
        x, y, out = np.arange(6, dtype=np.float32).reshape(2, 3), np.zeros((2, 3), np.float32), np.zeros(1, np.float32)
        run(call_into_python("test.codegen.double"), x, y, out)
        np.testing.assert_array_equal(y, x * 2)
        assert out[0] == 42
    finally:
        remove_global_func("test.codegen.double")


def test_failures_of_registered_functions_fail_the_kernel():
    from anchorleg.runtime.native import last_error_text

    x = np.zeros((2, 3), np.float32)
    assert Built(call_into_python("test.codegen.missing")).fast(x, x.copy(), np.zeros(1, np.float32)) == -1
    assert "test.codegen.missing" in last_error_text()


def test_parallel_loops_over_many_buffers_keep_sums_in_registers():
    ins, out = [decl_buffer((8,), "float32", name=f"in{i}") for i in range(12)], decl_buffer((8,), "float32", name="out")
    i, k = tir.Var("i"), tir.Var("k")
    var, acc = local("acc", 1)
    total = BufferLoad(acc, [imm(0)])
    for b in ins:
        total = total + BufferLoad(b, [k])
    body = st.SeqStmt([st.BufferStore(acc, f32(0), [imm(0)]), st.For(k, 0, 8, SERIAL, st.BufferStore(acc, total, [imm(0)])),
                       st.BufferStore(out, BufferLoad(acc, [imm(0)]), [i])])
    func = primfunc([*ins, out], st.For(i, 0, 8, PARALLEL, allocate(var, acc, body)))
    got = np.zeros(8, np.float32)
    assert Built(func).fast(*(np.full(8, n, np.float32) for n in range(12)), got) == 0
    assert (got == 8 * sum(range(12))).all()
