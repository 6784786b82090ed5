"""Visitors, mutators, substitution."""
from __future__ import annotations

import sys

from anchorleg import tir
from anchorleg.tir.functor import ExprMutator, StmtMutator, contains, ir_transform, post_order, post_order_visit, substitute, uses_var

X, Y, Z = tir.Var("x"), tir.Var("y"), tir.Var("z")


def chain(n):
    e = X
    for i in range(n):
        e = e * Y + i
    return e


def nest(n):
    buf = tir.decl_buffer((8,), name="a")
    s = tir.BufferStore(buf, tir.const(1.0), [X])
    for i in range(n):
        s = tir.LetStmt(tir.Var(f"v{i}"), X + i, s)
    return s


def test_post_order_visits_shared_nodes_once_children_first():
    shared = X + 1
    seen = []
    post_order_visit(shared * shared, seen.append)
    assert [type(n).__name__ for n in seen] == ["Var", "IntImm", "Add", "Mul"]


def test_substitute_expression_folds_and_keeps_identity():
    e = X * 4 + Y
    assert substitute(e, {Z: 1}) is e and substitute(e, {}) is e
    assert substitute(e, {X: 2, Y: 3}).value == 11
    assert substitute(e, lambda v: Z if v is X else None).a.a is Z
    moved = substitute(tir.BufferLoad(tir.decl_buffer((8,)), [X + 1]), {X: Y})
    assert moved.indices[0].a is Y


def test_substitute_swaps_simultaneously():
    e = substitute(X - Y, {X: Y, Y: X})
    assert e.a is Y and e.b is X


def test_substitute_buffers_consistently():
    n = tir.Var("n")
    buf = tir.decl_buffer((n, 4), name="a")
    s = tir.BufferStore(buf, tir.BufferLoad(buf, [X, 0]) + 1.0, [X, 1])
    new = substitute(s, {n: 16})
    assert new.buffer.shape[0].value == 16 and new.value.a.buffer is new.buffer and buf.shape[0] is n


def test_deep_expressions_and_statements():
    depth = 20000
    assert sys.getrecursionlimit() <= 3000
    e = chain(depth)
    assert sum(1 for _ in post_order(e)) == 3 * depth  # 20,000 each of Add, Mul and IntImm, x and y, less the first + 0
    new = substitute(e, {X: Z})
    assert uses_var(new, Z) and not uses_var(new, X) and not contains(new, lambda n: n is X)
    assert substitute(nest(depth), {X: Z}).value.a is Z


def test_expr_mutator_hooks():
    class Swap(ExprMutator):
        def mutate_Add(self, e):
            return tir.Sub(e.a, e.b)

        def enter_Mul(self, e):
            return e  # left alone, with all below it

    out = Swap().expr((X + Y) - (X + Y) * 2)
    assert type(out.a) is tir.Sub and type(out.b) is tir.Mul and type(out.b.a) is tir.Add


def test_stmt_mutator_scopes_and_purity():
    buf = tir.decl_buffer((8,), name="a")
    store = tir.BufferStore(buf, tir.const(1.0), [X])
    loop = tir.For(X, 0, 8, tir.ForKind.SERIAL, tir.SeqStmt([store, tir.Evaluate(0), store]))

    class Unroll(StmtMutator):
        def visit_For(self, s):
            body = yield s.body
            return tir.seq(*(substitute(body, {s.loop_var: i}) for i in range(s.extent.value)))

    out = Unroll().stmt(loop)
    assert len(out.seq) == 16 and out.seq[2].indices[0].value == 1
    assert StmtMutator().stmt(loop) is loop


def test_ir_transform():
    s = tir.Evaluate(tir.exp(tir.Var("f", "float32")))
    out = ir_transform(s, None, lambda n: tir.call_intrin(n.dtype, "tir.log", n.args[0]), ["tir.Call"])
    assert out.value.op.name == "tir.log"
