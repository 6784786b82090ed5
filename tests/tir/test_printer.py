"""The text of loop programs."""
from __future__ import annotations

from anchorleg import te, tir
from anchorleg.driver.build_module import schedule_to_module
from anchorleg.tir import transform as T
from anchorleg.tir.printer import expr_text, func_text

X, Y, F = tir.Var("x"), tir.Var("y"), tir.Var("f", "float32")


def program():
    a, b = te.placeholder((6, 10), name="A"), te.placeholder((10,), name="B")
    c = te.compute((6, 10), lambda i, j: tir.max(a[i, j] + b[j], 0.0), name="C")
    s = te.create_schedule(c.op)
    o, i = s[c].split(c.op.axis[1], 4)
    s[c].vectorize(i)
    s[c].parallel(c.op.axis[0])
    return schedule_to_module(s, [a, b, c])["main"]


def test_function():
    func = T.remove_no_op(T.simplify(T.vectorize_loop(T.loop_partition(T.flatten(program())))))
    assert func_text(func) == '''\
@T.prim_func
def main(A: T.Buffer((6, 10), "float32"), B: T.Buffer((10,), "float32"), C: T.Buffer((6, 10), "float32")):
    T.func_attr({"from_legacy_te_schedule": True, "global_symbol": "main", "tir.noalias": True})
    for i in T.parallel(6):
        for j_outer in range(2):
            C[i * 10 + j_outer * 4:i * 10 + j_outer * 4 + 4] = T.max(A[i * 10 + j_outer * 4:i * 10 + j_outer * 4 + 4] + B[j_outer * 4:j_outer * 4 + 4], T.Broadcast(T.float32(0.0), 4))
        C[i * 10 + 8:i * 10 + 8 + 2] = T.max(A[i * 10 + 8:i * 10 + 8 + 2] + B[8:10], T.Broadcast(T.float32(0.0), 2))'''


def test_the_text_is_deterministic_and_shown_by_repr():
    assert func_text(program()) == func_text(program()) == repr(program())
    assert repr(X + 1) == "x + 1" and str(tir.For(X, 0, 3, tir.ForKind.SERIAL, tir.Evaluate(0))) == "for x in range(3):\n    T.evaluate(0)"


def test_modules_of_loop_programs():
    from anchorleg.ir import IRModule

    text = IRModule({"b": program(), "a": program()}).astext()
    assert text.index("def a(") < text.index("def b(")


def test_precedence():
    for e, want in [((X + Y) * 2, "(x + y) * 2"), (X - (Y - 1), "x - (y - 1)"), (X - Y - 1, "x - y - 1"), (X // 2 % 3, "x // 2 % 3"),
                    ((X < 3) & ((Y < 4) | (X == Y)), "x < 3 and (y < 4 or x == y)"), (tir.Not(F < 1), "not f < T.float32(1.0)"),
                    (X * -2, "x * (-2)"), (tir.cast(X, "int8") + tir.const(3, "int8"), 'T.Cast("int8", x) + T.int8(3)'),
                    (tir.truncdiv(X, 3), "T.truncdiv(x, 3)"), (tir.exp(F), "T.exp(f)"), (tir.call_extern("int32", "go", X), 'T.call_extern("int32", "go", x)'),
                    (tir.Let(Y, X, Y + 1), "T.Let(y + 1, where={y: x})")]:
        assert expr_text(e) == want


def test_deep_expression():
    e = X
    for i in range(20000):
        e = e * Y + i
    assert len(expr_text(e)) > 100000
