"""Single passes: what each does, by before and after."""
from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from anchorleg import te, tir
from anchorleg.driver.build_module import schedule_to_module
from anchorleg.ir.transform import PassContext
from anchorleg.support.errors import UnsupportedOpError
from anchorleg.tir import ForKind, PrimFunc, run_primfunc
from anchorleg.tir import transform as T
from anchorleg.tir.functor import contains, post_order
from anchorleg.tir.printer import stmt_text

I, J = tir.Var("i"), tir.Var("j")


def chain(stages, n=4096):
    """Stages one after the other, each with a buffer of its own."""
    a = t = te.placeholder((n,), name="a")

    def stage(source, k):
        return te.compute((n,), lambda i: source[i] * 1.5 + float(k), name=f"t{k}")

    for k in range(stages):
        t = stage(t, k)
    return T.flatten(schedule_to_module(te.create_schedule(t.op), [a, t])["main"])


def allocations(func):
    return [s for s in post_order(func.body) if isinstance(s, tir.Allocate)]


def same(before, after, *arrays):
    outs = []
    for f in (before, after):
        copies = [a.copy() for a in arrays]
        run_primfunc(f, *copies)
        outs.append(copies[-1])
    np.testing.assert_array_equal(outs[0], outs[1])


def test_storage_is_shared_in_place_along_a_chain():
    func = chain(5)
    new = T.storage_rewrite(func)
    assert len(allocations(func)) == 4 and len(allocations(new)) == 1
    same(func, new, np.random.rand(4096).astype("float32"), np.zeros(4096, "float32"))


def test_storage_is_not_shared_in_place_when_elements_move():
    n = 4096
    a = te.placeholder((n,), name="a")
    b = te.compute((n,), lambda i: a[i] + 1.0, name="b")
    c = te.compute((n,), lambda i: b[n - 1 - i] * 2.0, name="c")
    d = te.compute((n,), lambda i: c[i] + 3.0, name="d")
    e = te.compute((n,), lambda i: d[i] + 3.0, name="e")
    func = T.flatten(schedule_to_module(te.create_schedule(e.op), [a, e])["main"])
    new = T.storage_rewrite(func)
    assert len(allocations(new)) == 2
    same(func, new, np.random.rand(n).astype("float32"), np.zeros(n, "float32"))


def test_small_scratch_is_left_alone():
    func = chain(5, n=64)
    assert T.storage_rewrite(func) is func


def test_simplify_decides_branches_and_drops_trivial_loops():
    a = tir.decl_buffer((8,), name="a")
    inner = tir.IfThenElse(I * 4 + J < 32, tir.BufferStore(a, tir.const(1.0), [(I * 4 + J) // 4]), tir.BufferStore(a, tir.const(2.0), [0]))
    s = tir.For(I, 0, 8, ForKind.SERIAL, tir.For(J, 0, 4, ForKind.SERIAL, inner))
    assert stmt_text(T.simplify(PrimFunc([a], s)).body) == "for i in range(8):\n    for j in range(4):\n        a[i] = T.float32(1.0)"
    one = tir.For(I, 3, 1, ForKind.SERIAL, tir.BufferStore(a, tir.const(1.0), [I + 1]))
    assert stmt_text(T.simplify(PrimFunc([a], one)).body) == "a[4] = T.float32(1.0)"
    none = tir.For(I, 0, 0, ForKind.SERIAL, tir.BufferStore(a, tir.const(1.0), [I]))
    assert stmt_text(T.simplify(PrimFunc([a], none)).body) == "T.evaluate(0)"


def test_remove_no_op():
    a = tir.decl_buffer((8,), name="a")
    v = tir.Var("v", "float32")
    s = tir.SeqStmt([tir.Evaluate(I * 2), tir.BufferStore(a, tir.BufferLoad(a, [I]), [I]), tir.LetStmt(v, tir.const(1.0), tir.Evaluate(0)),
                     tir.Allocate(tir.Var("w", "handle"), "int8", [4], tir.const(True), tir.BufferStore(a, tir.const(0.0), [0])),
                     tir.IfThenElse(I < 3, tir.Evaluate(0), tir.BufferStore(a, tir.const(1.0), [0])),
                     tir.For(J, 0, 4, ForKind.SERIAL, tir.Evaluate(0)), tir.Evaluate(tir.call_extern("int32", "go"))])
    assert stmt_text(T.remove_no_op(PrimFunc([a, I], s)).body) == (
        'a[0] = T.float32(0.0)\nif i >= 3:\n    a[0] = T.float32(1.0)\nT.call_extern("int32", "go")')


def test_memory_that_nobody_reads_goes():
    a, v, w = tir.decl_buffer((8,), name="a"), tir.Var("v", "handle"), tir.Var("w", "handle")
    dead, handed = (tir.Buffer(x, "float32", (4,), name=x.name) for x in (v, w))
    s = tir.SeqStmt([tir.BufferStore(dead, tir.BufferLoad(a, [I]), [0]), tir.BufferStore(a, tir.const(1.0), [0]), tir.BufferStore(dead, tir.const(1.0), [1])])
    text = stmt_text(T.remove_no_op(PrimFunc([a, I], tir.Allocate(v, "float32", [4], tir.const(True), s))).body)
    assert text == "a[0] = T.float32(1.0)"
    s = tir.SeqStmt([tir.BufferStore(handed, tir.const(1.0), [0]), tir.Evaluate(tir.call_extern("int32", "go", w))])
    kept = PrimFunc([a], tir.Allocate(w, "float32", [4], tir.const(True), s))
    assert T.remove_no_op(kept) is kept


def test_vectorize_forms():
    a, b = tir.decl_buffer((64,), name="a"), tir.decl_buffer((64,), name="b")

    def text(value, index=I):
        return stmt_text(T.vectorize_loop(PrimFunc([a, b], tir.For(I, 0, 8, ForKind.VECTORIZED, tir.BufferStore(b, value, [index])))).body)

    load = tir.BufferLoad(a, [I])
    assert text(load + 1.0) == "b[0:8] = a[0:8] + T.Broadcast(T.float32(1.0), 8)"
    assert text(tir.exp(load), I * 2) == "b[0:16:2] = T.exp(a[0:8])"
    assert text(tir.BufferLoad(a, [I // 4])) == "b[0:8] = a[T.Ramp(0, 1, 8) // T.Broadcast(4, 8)]"
    assert text(tir.Select(I < 4, load, 0.0)) == "b[0:8] = T.Select(T.Ramp(0, 1, 8) < T.Broadcast(4, 8), a[0:8], T.Broadcast(T.float32(0.0), 8))"
    assert text(tir.const(0.0), tir.const(3, "int64")) == "b[3] = T.float32(0.0)"
    serial = "for i in range(8):\n    "
    assert text(tir.if_then_else(I > 0, tir.BufferLoad(a, [I - 1]), 0.0)).startswith(serial)  # must not read a[-1]
    assert text(tir.call_extern("float32", "f", load)).startswith(serial)
    assert text(tir.BufferLoad(b, [0]) + load, tir.const(0, "int64")).startswith(serial)


def test_vectorize_uniform_branches_and_lets():
    a, n, v = tir.decl_buffer((64,), name="a"), tir.Var("n"), tir.Var("v", "float32")
    store = tir.BufferStore(a, v * 2.0, [I])
    body = tir.IfThenElse(n < 4, tir.LetStmt(v, tir.BufferLoad(a, [I + 8]), store))
    func = PrimFunc([a, n], tir.For(I, 0, 8, ForKind.VECTORIZED, body))
    new = T.vectorize_loop(func)
    assert not contains(new.body, lambda s: isinstance(s, tir.For))
    x = np.arange(64, dtype="float32")
    y = x.copy()
    run_primfunc(func, x, 3)
    run_primfunc(new, y, 3)
    np.testing.assert_array_equal(x, y)
    skipped = T.vectorize_loop(func, False)
    assert skipped.body.kind == ForKind.SERIAL


def test_partition_hint():
    a, b = tir.decl_buffer((16,), name="a"), tir.decl_buffer((16,), name="b")
    value = tir.if_then_else(tir.all(I >= 1, I < 15), tir.BufferLoad(a, [I - 1]) + tir.BufferLoad(a, [I + 1]), 0.0)
    loop = tir.For(I, 0, 16, ForKind.SERIAL, tir.BufferStore(b, value, [I]))
    func = PrimFunc([a, b], tir.AttrStmt(None, "pragma_loop_partition_hint", 1, loop))
    new = T.simplify(T.loop_partition(func))
    assert stmt_text(new.body) == ("b[0] = T.float32(0.0)\nfor i in range(14):\n    b[i + 1] = a[i] + a[i + 2]\nb[15] = T.float32(0.0)")
    assert T.loop_partition(PrimFunc([a, b], loop)).body is loop


def test_unroll_pragmas():
    a = tir.decl_buffer((64,), name="a")
    nest = tir.For(I, 0, 4, ForKind.SERIAL, tir.For(J, 0, 4, ForKind.SERIAL, tir.BufferStore(a, tir.const(0.0), [I * 4 + J])))

    def kinds(f):
        return [s.kind for s in post_order(f.body) if isinstance(s, tir.For)]

    assert kinds(T.unroll_loop(PrimFunc([a], nest))) == [ForKind.SERIAL] * 2
    for step, want in ((16, [ForKind.UNROLLED] * 2), (8, [ForKind.UNROLLED, ForKind.SERIAL])):
        assert kinds(T.unroll_loop(PrimFunc([a], tir.AttrStmt(None, "pragma_auto_unroll_max_step", step, nest)))) == want
    with PassContext(config={"tir.UnrollLoop": {"auto_max_step": 16}}):
        assert kinds(T.unroll_loop(PrimFunc([a], nest))) == [ForKind.UNROLLED] * 2
    full = T.unroll_all(T.unroll_loop(PrimFunc([a], tir.AttrStmt(None, "pragma_auto_unroll_max_step", 16, nest))))
    assert len(full.body.seq) == 16 and full.body.seq[5].indices[0].value == 5


def test_virtual_threads():
    a = tir.decl_buffer((16,), name="a")
    s = tir.AttrStmt(tir.IterVar(None, I, 0, "vthread"), "virtual_thread", 4, tir.For(J, 0, 4, ForKind.SERIAL, tir.BufferStore(
        a, tir.cast(I, "float32"), [I * 4 + J])))
    new = T.inject_virtual_thread(PrimFunc([a], s))
    assert stmt_text(new.body).startswith("for i in T.unroll(4):")
    same(PrimFunc([a], s), new, np.zeros(16, "float32"))
    barrier = s.replace(body=tir.Evaluate(tir.tvm_storage_sync(tir.StringImm("shared"))))
    with pytest.raises(UnsupportedOpError, match="barrier"):
        T.inject_virtual_thread(PrimFunc([a], barrier))


def test_hoist_if():
    a, n = tir.decl_buffer((64,), name="a"), tir.Var("n")
    s = tir.For(I, 0, 4, ForKind.SERIAL, tir.IfThenElse(n < 3, tir.BufferStore(a, tir.const(1.0), [I]), tir.BufferStore(a, tir.const(2.0), [I])))
    assert stmt_text(T.hoist_if_then_else(PrimFunc([a, n], s)).body) == (
        "if n < 3:\n    for i in range(4):\n        a[i] = T.float32(1.0)\nelse:\n    for i_1 in range(4):\n        a[i_1] = T.float32(2.0)")
    depends = tir.For(I, 0, 4, ForKind.SERIAL, tir.IfThenElse(I < 3, tir.BufferStore(a, tir.const(1.0), [I])))
    assert T.hoist_if_then_else(PrimFunc([a], depends)).body is depends


@pytest.mark.parametrize("dtype", ["int64", "int32", "int8"])
@pytest.mark.parametrize("divisor", [1, 3, 4, -3, -4, None])
def test_floor_division_of_any_sign(dtype, divisor):
    a, b, c = (tir.decl_buffer((64,), dtype, n) for n in "abc")
    x = tir.BufferLoad(a, [I])
    d = tir.BufferLoad(b, [I]) if divisor is None else tir.const(divisor, dtype)
    func = PrimFunc([a, b, c], tir.For(I, 0, 64, ForKind.SERIAL, tir.BufferStore(c, tir.cast(tir.floordiv(x, d) * 3 + tir.floormod(x, d), dtype), [I])))
    new = T.lower_intrin(func)
    assert divisor == 1 or not contains(new.body, lambda n: isinstance(n, (tir.FloorDiv, tir.FloorMod)))
    rng = np.random.default_rng(0)
    same(func, new, rng.integers(-100, 100, 64).astype(dtype), rng.choice([-7, -2, -1, 1, 2, 5], 64).astype(dtype), np.zeros(64, dtype))


def test_nonnegative_index_division_is_plain():
    a = tir.decl_buffer((64,), name="a")
    s = tir.For(I, 0, 64, ForKind.SERIAL, tir.BufferStore(a, tir.const(0.0), [I // 8 * 8 + I % 8]))
    assert stmt_text(T.lower_intrin(PrimFunc([a], s)).body.body) == "a[T.truncdiv(i, 8) * 8 + T.truncmod(i, 8)] = T.float32(0.0)"


def test_bfloat16_is_computed_in_float32():
    a, b = tir.decl_buffer((16,), "bfloat16", "a"), tir.decl_buffer((16,), "bfloat16", "b")
    value = tir.exp(tir.BufferLoad(a, [I])) * tir.BufferLoad(a, [I]) + tir.const(0.1, "bfloat16")
    func = T.bf16_compute_legalize(PrimFunc([a, b], tir.For(I, 0, 16, ForKind.SERIAL, tir.BufferStore(b, value, [I]))))
    narrow = [n for n in post_order(func.body) if isinstance(n, tir.PrimExpr) and n.dtype == "bfloat16"]
    assert all(isinstance(n, (tir.BufferLoad, tir.Cast)) for n in narrow)
    x = np.linspace(-2, 2, 16).astype(ml_dtypes.bfloat16)
    y = np.zeros(16, ml_dtypes.bfloat16)
    run_primfunc(func, x, y)
    wide = x.astype("float32")
    np.testing.assert_array_equal(y, (np.exp(wide) * wide + np.float32(ml_dtypes.bfloat16(0.1))).astype(ml_dtypes.bfloat16))


def test_flatten_regions_and_strides():
    strided = tir.decl_buffer((4, 4), name="s", strides=(8, 1))
    out = tir.decl_buffer((4, 4), name="o")
    f = PrimFunc([strided, out], tir.For(I, 0, 4, ForKind.SERIAL, tir.For(J, 0, 4, ForKind.SERIAL, tir.BufferStore(
        out, tir.BufferLoad(strided, [I, J]), [I, J]))))
    flat = T.flatten(f)
    assert "o[i * 4 + j] = s[i * 8 + j]" in stmt_text(flat.body)
    whole = np.arange(32, dtype="float32").reshape(4, 8)
    result = np.zeros((4, 4), "float32")
    run_primfunc(flat, whole[:, :4], result)
    np.testing.assert_array_equal(result, whole[:, :4])


def test_passes_run_on_programs_nested_deeply():
    a = tir.decl_buffer((8,), name="a")
    s = tir.BufferStore(a, tir.const(1.0), [I])
    for k in range(20000):
        v = tir.Var(f"v{k}")
        s = tir.LetStmt(v, I + k, s) if k % 2 else tir.IfThenElse(I < k + 9, s)
    func = PrimFunc([a, I], s)
    for p in (T.flatten, T.loop_partition, T.vectorize_loop, T.storage_rewrite, T.unroll_loop, T.remove_no_op, T.simplify, T.lower_intrin):
        func = p(func)
