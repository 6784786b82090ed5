"""Every pass keeps the meaning of scheduled programs, shown by running them before and after each pass."""
from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anchorleg import te, tir
from anchorleg.driver.build_module import schedule_to_module
from anchorleg.tir import run_primfunc
from anchorleg.tir import transform as T
from anchorleg.tir.functor import contains, post_order

ORDER = [T.flatten, T.loop_partition, T.vectorize_loop, T.storage_rewrite, T.unroll_loop, T.simplify, T.remove_no_op, T.hoist_if_then_else,
         T.lower_intrin, T.unroll_all]
C_ORDER = [T.flatten, lambda f: T.vectorize_loop(f, False), T.simplify, T.unfuse_loops, T.hint_moves, lambda f: T.loop_partition(f, True), T.simplify,
           T.hoist_moves, T.merge_loops, T.storage_rewrite, T.simplify, T.lower_intrin]


def run(func, arrays, out_shape, dtype="float32"):
    out = np.full(out_shape, 7, dtype)
    run_primfunc(func, *arrays, out)
    return out


def check(sch, args, arrays, want, passes=ORDER, rtol=1e-4):
    """Runs the program after each pass, of the order for C source as well; returns the last function."""
    if passes is ORDER:
        check(sch, args, arrays, want, C_ORDER, rtol)
    func = schedule_to_module(sch, args)["main"]
    for p in [lambda f: f, *passes]:
        func = p(func)
        np.testing.assert_allclose(run(func, arrays, want.shape, want.dtype), want, rtol=rtol, atol=1e-5, err_msg=getattr(p, "__name__", ""))
    assert not contains(func, lambda n: isinstance(n, (tir.FloorDiv, tir.FloorMod)) and "int" in n.dtype)
    return func


def has_likely(func):
    return contains(func.body, lambda n: isinstance(n, tir.Call) and getattr(n.op, "name", "") == "tir.likely")


def loops(func, kind):
    return [s for s in post_order(func.body) if isinstance(s, tir.For) and s.kind == kind]


SIZE = st.integers(1, 21)


@settings(max_examples=25, deadline=None)
@given(SIZE, SIZE, SIZE, st.sampled_from([1, 2, 3, 4]), st.sampled_from([1, 4, 8]), st.sampled_from([1, 3, 4]), st.booleans(), st.booleans())
def test_matmul_with_any_tile(n, m, k, ti, tj, tk, parallel, cached):
    a, b = te.placeholder((n, k), name="A"), te.placeholder((k, m), name="B")
    kk = te.reduce_axis((0, k), name="k")
    c = te.compute((n, m), lambda i, j: te.sum(a[i, kk] * b[kk, j], axis=kk), name="C")
    d = te.compute((n, m), lambda i, j: tir.max(c[i, j], 0.0) + 1.0, name="D")
    s = te.create_schedule(d.op)
    io, jo, ii, ji = s[d].tile(d.op.axis[0], d.op.axis[1], ti, tj)
    s[d].vectorize(ji)
    s[d].unroll(ii)
    if parallel:
        s[d].parallel(io)
    s[c].compute_at(s[d], jo)
    ci, cj = s[c].op.axis
    ko, ki = s[c].split(s[c].op.reduce_axis[0], tk)
    s[c].reorder(ko, ki, ci, cj)
    s[c].vectorize(cj)
    s[c].unroll(ki)
    if cached:
        bb = s.cache_read(b, "global", [c])
        s[bb].compute_at(s[c], ko)
    rng = np.random.default_rng(0)
    x, y = rng.standard_normal((n, k)).astype("float32"), rng.standard_normal((k, m)).astype("float32")
    func = check(s, [a, b, d], [x, y], np.maximum(x @ y, 0) + 1)
    assert not has_likely(func)


@settings(max_examples=15, deadline=None)
@given(st.integers(3, 9), st.integers(3, 11), st.sampled_from([1, 3]), st.sampled_from([1, 2]), st.sampled_from([1, 2, 4]), st.booleans())
def test_padded_convolution(h, w, kernel, stride, tile, inline_pad):
    ci, co, p = 3, 5, kernel // 2
    x, k = te.placeholder((ci, h, w), name="x"), te.placeholder((co, ci, kernel, kernel), name="k")
    pad = te.compute((ci, h + 2 * p, w + 2 * p), lambda c, i, j: tir.if_then_else(
        tir.all(i >= p, i < h + p, j >= p, j < w + p), x[c, i - p, j - p], 0.0), name="pad")
    rc, ry, rx = (te.reduce_axis((0, e), n) for e, n in ((ci, "rc"), (kernel, "ry"), (kernel, "rx")))
    oh, ow = (h + 2 * p - kernel) // stride + 1, (w + 2 * p - kernel) // stride + 1
    y = te.compute((co, oh, ow), lambda f, i, j: te.sum(pad[rc, i * stride + ry, j * stride + rx] * k[f, rc, ry, rx], axis=[rc, ry, rx]), "y")
    s = te.create_schedule(y.op)
    f, i, j = y.op.axis
    jo, ji = s[y].split(j, tile)
    s[y].reorder(f, i, jo, rc, ry, rx, ji)
    s[y].vectorize(ji)
    fused = s[y].fuse(f, i)
    s[y].parallel(fused)
    if inline_pad:
        s[pad].compute_inline()
    else:
        s[pad].compute_at(s[y], jo)
    rng = np.random.default_rng(1)
    a, b = rng.standard_normal((ci, h, w)).astype("float32"), rng.standard_normal((co, ci, kernel, kernel)).astype("float32")
    padded = np.pad(a, ((0, 0), (p, p), (p, p)))
    want = np.zeros((co, oh, ow), "float32")
    for q in range(kernel):
        for r in range(kernel):
            part = padded[:, q:q + (oh - 1) * stride + 1:stride, r:r + (ow - 1) * stride + 1:stride]
            want += np.einsum("fc,cij->fij", b[:, :, q, r], part)
    check(s, [x, k, y], [a, b], want)


@settings(max_examples=15, deadline=None)
@given(st.integers(1, 60), st.sampled_from([1, 2, 5, 8]), st.sampled_from([2, 3, 4]), st.booleans())
def test_reshaping_index_arithmetic(n, outer, inner, fuse):
    src = te.placeholder((n, outer * inner), "int32", name="src")
    dst = te.compute((n, inner, outer), lambda i, a, b: src[i, b * inner + a] * 3 + tir.cast((i + a) % 4, "int32"), name="dst")
    flat = te.compute((n * outer * inner,), lambda q: dst[q // (outer * inner), q % (outer * inner) // outer, q % outer], name="flat")
    s = te.create_schedule(flat.op)
    if fuse:
        s[dst].compute_inline()
    o, i = s[flat].split(flat.op.axis[0], 4)
    s[flat].vectorize(i)
    x = np.arange(n * outer * inner, dtype="int32").reshape(n, -1)
    moved = x.reshape(n, outer, inner).transpose(0, 2, 1)
    i_, a_ = np.arange(n, dtype="int32")[:, None, None], np.arange(inner, dtype="int32")[None, :, None]
    check(s, [src, flat], [x], (moved * 3 + (i_ + a_) % 4).astype("int32").reshape(-1))


def test_the_main_part_has_no_conditions_and_no_copy_of_the_loop_when_parallel():
    a = te.placeholder((50, 30), name="a")
    b = te.compute((50, 30), lambda i, j: a[i, j] * 2.0, name="b")
    s = te.create_schedule(b.op)
    io, jo, ii, ji = s[b].tile(b.op.axis[0], b.op.axis[1], 4, 16)
    s[b].parallel(io)
    s[b].vectorize(ji)
    x = np.random.rand(50, 30).astype("float32")
    func = check(s, [a, b], [x], x * 2, ORDER[:-1])
    assert not has_likely(func) and len(loops(func, tir.ForKind.PARALLEL)) == 1
    assert {n.lanes for n in post_order(func.body) if isinstance(n, tir.Ramp)} == {16, 14}


def test_dynamic_shapes():
    n = te.size_var("n")
    a = te.placeholder((n, 8), name="a")
    b = te.compute((n, 8), lambda i, j: a[i, j] + tir.cast(i, "float32"), name="b")
    s = te.create_schedule(b.op)
    io, ii = s[b].split(b.op.axis[0], 4)
    s[b].vectorize(b.op.axis[1])
    s[b].parallel(io)
    for rows in (1, 3, 4, 11):
        x = np.random.rand(rows, 8).astype("float32")
        check(s, [a, b], [x], x + np.arange(rows, dtype="float32")[:, None])


def test_passes_are_pure_and_keep_what_they_do_not_change():
    a = te.placeholder((8, 16), name="a")
    b = te.compute((8, 16), lambda i, j: a[i, j] * 2.0, name="b")
    func = T.flatten(schedule_to_module(te.create_schedule(b.op), [a, b])["main"])
    for p in ORDER:
        func = p(func)
    before = func.body
    for p in ORDER:
        assert p(func) is func, p.__name__
    assert func.body is before


def test_registered_passes():
    from anchorleg.ir import IRModule
    from anchorleg.ir.transform import get_pass

    a = te.placeholder((8, 16), name="a")
    b = te.compute((8, 16), lambda i, j: a[i, j] * 2.0, name="b")
    mod = schedule_to_module(te.create_schedule(b.op), [a, b])
    for name in ("StorageFlatten", "LoopPartition", "VectorizeLoop", "StorageRewrite", "UnrollLoop", "Simplify", "RemoveNoOp", "LowerIntrin"):
        mod = get_pass(f"tir.{name}")(mod)
        assert isinstance(mod, IRModule) and getattr(T, name)().info.name == f"tir.{name}"


@pytest.mark.parametrize("kind", ["serial", "vectorize"])
def test_scan_like_stores_are_not_vectorised_wrongly(kind):
    buf, out = tir.decl_buffer((9,), name="buf"), tir.decl_buffer((1,), name="out")
    i = tir.Var("i")
    body = tir.BufferStore(out, tir.BufferLoad(out, [0]) + tir.BufferLoad(buf, [i]), [0])
    loop = tir.For(i, 0, 9, tir.ForKind.SERIAL if kind == "serial" else tir.ForKind.VECTORIZED, body)
    func = T.vectorize_loop(tir.PrimFunc([buf, out], loop))
    x, y = np.arange(9, dtype="float32"), np.zeros(1, "float32")
    run_primfunc(func, x, y)
    assert y[0] == x.sum()
