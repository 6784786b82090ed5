"""Analyses and the verifier."""
from __future__ import annotations

import numpy as np
import pytest

from anchorleg import te, tir
from anchorleg.driver.build_module import schedule_to_module
from anchorleg.ir.expr import Range
from anchorleg.support.errors import InternalError
from anchorleg.tir import ForKind, PrimFunc
from anchorleg.tir import transform as T
from anchorleg.tir.analysis import (buffer_access, calculate_allocated_bytes, estimate_tir_flops, expr_deep_equal, undefined_vars,
                                    verify_well_formed)
from anchorleg.tir.verify import verify

X, Y = tir.Var("x"), tir.Var("y")


def matmul():
    a, b = te.placeholder((8, 4), name="A"), te.placeholder((4, 6), name="B")
    k = te.reduce_axis((0, 4), name="k")
    c = te.compute((8, 6), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k), name="C")
    return schedule_to_module(te.create_schedule(c.op), [a, b, c])["main"]


def test_undefined_vars():
    buf = tir.decl_buffer((8,), name="a")
    loop = tir.For(X, 0, 8, ForKind.SERIAL, tir.BufferStore(buf, tir.cast(X + Y, "float32"), [X]))
    assert {v.name for v in undefined_vars(loop)} == {"a", "y"} and undefined_vars(loop, [Y, buf.data]) == []
    assert undefined_vars(matmul()) == []


def test_counts_and_access():
    func = matmul()
    assert estimate_tir_flops(func) == 2 * 8 * 4 * 6 == estimate_tir_flops(T.vectorize_loop(T.flatten(func)))
    reads, writes = buffer_access(func)
    assert {b.name for b in reads} == {"A", "B", "C"} and [b.name for b in writes] == ["C"]
    ptr = tir.Var("w", "handle")
    assert calculate_allocated_bytes(PrimFunc([], tir.Allocate(ptr, "float16", [3, 5], tir.const(True), tir.Evaluate(0)))) == {"global": 30}


def test_deep_equality():
    a = tir.decl_buffer((8,), name="a")
    assert expr_deep_equal(tir.BufferLoad(a, [X + 1]), tir.BufferLoad(a, [X + 1])) and not expr_deep_equal(X + 1, Y + 1)
    assert not expr_deep_equal(tir.const(0.0), tir.const(-0.0)) and expr_deep_equal(tir.const(np.nan), tir.const(np.nan))
    e = f = X
    for _ in range(20000):
        e, f = e * 3 + 1, f * 3 + 1
    assert expr_deep_equal(e, f)


def test_well_formed_programs():
    func = matmul()
    assert verify(func) == []
    for p in (T.flatten, T.loop_partition, T.vectorize_loop, T.simplify, T.lower_intrin):
        func = p(func)
        assert verify(func, flat=True) == []


def bad_programs():
    a = tir.decl_buffer((8,), name="a")
    store = lambda value, *at: tir.BufferStore(a, value, at)  # noqa: E731
    one = tir.const(1.0)
    yield store(one, X), "'x' is used but not defined"
    yield store(one, 8), "certainly outside"
    yield tir.For(X, 0, 4, ForKind.SERIAL, store(one, X - 4)), "certainly outside"
    yield store(one, 0, 0), "2 indices"
    yield store(tir.const(1), 0), "stored a int32"
    yield tir.BufferStore(tir.decl_buffer((2,), name="b"), one, [0]), "memory is not defined"
    yield tir.For(X, 0, 4, ForKind.SERIAL, tir.For(X, 0, 4, ForKind.SERIAL, store(one, X))), "defined again"
    yield tir.LetStmt(X, tir.const(1), store(one, X)), "bound to a value"
    yield tir.Evaluate(tir.Add(tir.const(1), tir.const(1, "int64"))), "operands of dtypes"


@pytest.mark.parametrize("index", range(9))
def test_the_verifier_says_no(index):
    body, text = list(bad_programs())[index]
    a = next((n.buffer for n in tir.functor.post_order(body) if isinstance(n, tir.BufferStore) and n.buffer.name == "a"), None)
    func = PrimFunc([a] if a is not None else [], body)
    problems = verify(func)
    assert any(text in p for p in problems), problems
    with pytest.raises(InternalError):
        verify_well_formed(func)
    assert verify_well_formed(func, assert_mode=False) is False


def test_realize_is_not_flat():
    buf = tir.decl_buffer((4,), name="t")
    s = tir.BufferRealize(buf, [Range(0, 4)], tir.const(True), tir.BufferStore(buf, tir.const(1.0), [0]))
    assert verify(PrimFunc([], s)) == [] and verify(PrimFunc([], s), flat=True)
