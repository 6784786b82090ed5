"""Programs written with the builder."""
from __future__ import annotations

import numpy as np
import pytest

from anchorleg import tir
from anchorleg.support.errors import ArgumentError, TypeMismatchError
from anchorleg.tir import PrimFunc, ir_builder, run_primfunc
from anchorleg.tir import transform as T
from anchorleg.tir.printer import stmt_text
from anchorleg.tir.verify import verify


def test_scopes_and_memory():
    a, b = tir.decl_buffer((4, 6), name="a"), tir.decl_buffer((24,), name="b")
    ib = ir_builder.create()
    x, y = ib.buffer_ptr(a), ib.buffer_ptr(b)
    tmp = ib.allocate("float32", (2, 3), "tmp")
    scale = ib.let("scale", tir.const(2.0))
    with ib.for_range(0, 24, "q") as q:
        tmp[q % 2, 1] = x[q] * scale  # one subscript into two dimensions counts elements
        with ib.if_scope(x[q] > 0.5):
            y[q] = tmp[q % 2, 1]
        with ib.else_scope():
            y[q] = 0
    func = PrimFunc([a, b], ib.get())
    assert verify(func) == []
    data, out = np.random.rand(4, 6).astype("float32"), np.zeros(24, "float32")
    want = np.where(data.ravel() > 0.5, data.ravel() * 2, 0)
    for f in (func, T.simplify(T.flatten(func))):
        run_primfunc(f, data, out)
        np.testing.assert_array_equal(out, want)
    assert "a[q]" in stmt_text(T.simplify(T.flatten(func)).body)


def test_while_loop():
    a, out = tir.decl_buffer((16,), "int32", name="a"), tir.decl_buffer((1,), "int64", name="out")
    ib = ir_builder.create()
    x, y = ib.buffer_ptr(a), ib.buffer_ptr(out)
    lo, hi = (ib.allocate("int64", (1,), n, scope="local") for n in ("lo", "hi"))
    lo[0], hi[0] = 0, 16
    with ib.while_loop(lo[0] < hi[0]):
        mid = ib.let("mid", (lo[0] + hi[0]) // 2)
        with ib.if_scope(x[mid] < 37):
            lo[0] = mid + 1
        with ib.else_scope():
            hi[0] = mid
    y[0] = lo[0]
    func = PrimFunc([a, out], ib.get())
    data, result = np.arange(16, dtype="int32") * 5, np.zeros(1, "int64")
    for f in (func, T.remove_no_op(T.simplify(T.storage_rewrite(T.vectorize_loop(T.loop_partition(T.flatten(func))))))):
        run_primfunc(f, data, result)
        assert result[0] == np.searchsorted(data, 37)


def test_loops_of_each_kind():
    ib = ir_builder.create()
    for kind in ("serial", "parallel", "vectorize", "unroll"):
        with ib.for_range(1, 5, kind=kind) as i:
            ib.emit(tir.call_extern("int32", "f", i))
    text = stmt_text(ib.get())
    assert "for i in range(1, 5)" in text and "for j in T.parallel(1, 5)" in text and "for i_0 in T.unroll(1, 5)" in text


def test_errors():
    ib = ir_builder.create()
    a = ib.buffer_ptr(tir.decl_buffer((4, 6), name="a"))
    with pytest.raises(ArgumentError, match="if_scope"):
        ib.else_scope()
    with pytest.raises(ArgumentError, match="kind"):
        ib.for_range(0, 4, kind="fast")
    with pytest.raises(TypeMismatchError, match="float32"):
        a[0, 0] = tir.const(1, "int32")
    with pytest.raises(ArgumentError, match="2 dimensions"):
        a[0, 0, 0]
    ib.for_range(0, 4).__enter__()
    with pytest.raises(ArgumentError, match="open"):
        ib.get()
