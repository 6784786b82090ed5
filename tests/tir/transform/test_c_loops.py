"""The passes over loops that only C source gets: UnfuseLoops, HintMoves and HoistMoves, MergeLoops."""
from __future__ import annotations

import numpy as np

from anchorleg import te, tir
from anchorleg.driver.build_module import schedule_to_module
from anchorleg.tir import ForKind, PrimFunc, run_primfunc
from anchorleg.tir import transform as T
from anchorleg.tir.printer import stmt_text
from anchorleg.topi.nn import pad
from anchorleg.topi.transform import concatenate

I, J = tir.Var("i"), tir.Var("j")


def loop(var, extent, body, kind=ForKind.SERIAL):
    return tir.For(var, 0, extent, kind, body)


def buffers(*sizes):
    return [tir.decl_buffer((n,), name="abc"[k]) for k, n in enumerate(sizes)]


def load(buffer, index):
    return tir.BufferLoad(buffer, [index])


def text(func):
    return stmt_text(func.body)


def moves(func):
    return T.simplify(T.hoist_moves(T.simplify(T.loop_partition(T.hint_moves(func), True))))


def flat(sch, args):
    return T.simplify(T.flatten(schedule_to_module(sch, args)["main"]))


def test_divisions_become_loops():
    a, b = buffers(15, 15)
    func = PrimFunc([a, b], loop(I, 15, tir.BufferStore(b, load(a, I % 3 * 5 + I // 3), [I])))
    assert text(T.unfuse_loops(func)) == "for i_o in range(5):\n    for i_i in range(3):\n        b[i_o * 3 + i_i] = a[i_o + i_i * 5]"


def test_divisions_become_several_loops():
    a, b = buffers(60, 60)
    func = PrimFunc([a, b], loop(I, 60, tir.BufferStore(b, load(a, I % 3 * 20 + I // 3 % 4 * 5 + I // 12), [I])))
    new = T.unfuse_loops(func)
    assert text(new).count("for ") == 3 and "//" not in text(new) and "%" not in text(new)


def test_divisions_that_no_loop_saves_stay():
    a, b = buffers(15, 15)
    for index in (I // 4, I * 7 % 15, load(a, I).astype("int64") // 3):
        func = PrimFunc([a, b], loop(I, 15, tir.BufferStore(b, load(a, index), [I])))
        assert T.unfuse_loops(func) is func
    vectors = PrimFunc([a, b], loop(I, 15, tir.BufferStore(b, load(a, I // 3), [I]), ForKind.VECTORIZED))
    assert T.unfuse_loops(vectors) is vectors


def test_padding_asks_once_for_a_row():
    a = te.placeholder((4, 5), name="a")
    p = pad(a, (1, 2), (1, 2), 0.5)
    func = flat(te.create_schedule(p.op), [a, p])
    new = moves(func)
    assert "T.if_then_else" not in text(new) and text(new).count("if ") == 1
    x, y, z = np.random.rand(4, 5).astype("float32"), np.zeros((6, 9), "float32"), np.zeros((6, 9), "float32")
    run_primfunc(func, x, y)
    run_primfunc(new, x, z)
    np.testing.assert_array_equal(y, z)


def test_joining_has_a_loop_for_each_part():
    parts = [te.placeholder((n, 4), name=f"p{n}") for n in (1, 2, 3)]
    c = concatenate(parts, 0)
    func = T.merge_loops(moves(flat(te.create_schedule(c.op), [*parts, c])))
    heads = [line for line in text(func).splitlines() if line.startswith("for")]
    assert [head.split("range")[1] for head in heads] == ["(4):", "(8):", "(12):"] and "if" not in text(func)
    out = np.zeros((6, 4), "float32")
    values = [np.random.rand(n, 4).astype("float32") for n in (1, 2, 3)]
    run_primfunc(func, *values, out)
    np.testing.assert_array_equal(out, np.concatenate(values))


def test_conditions_on_data_stay():
    a, b = buffers(8, 8)
    func = PrimFunc([a, b], loop(I, 8, tir.BufferStore(b, tir.if_then_else(load(a, I) > 0.0, load(a, I), 1.0), [I])))
    assert T.hint_moves(func) is func and T.hoist_moves(func) is func


def test_loops_that_count_one_number_are_merged():
    a, b = buffers(99, 99)
    store = tir.BufferStore(b, load(a, I * 8 + J + 7) + load(a, I * 16 + J * 2), [I * 8 + J])
    assert text(T.merge_loops(PrimFunc([a, b], loop(I, 4, loop(J, 8, store))))) == "for j in range(32):\n    b[j] = a[j + 7] + a[j * 2]"


def test_loops_that_count_more_are_not():
    a, b = buffers(99, 99)
    for value in (load(a, I * 9 + J), load(a, I * 8 + J) + J.astype("float32"), load(a, tir.max(I * 8 + J, 3)), load(a, I)):
        func = PrimFunc([a, b], loop(I, 4, loop(J, 8, tir.BufferStore(b, value, [I * 8 + J]))))
        assert T.merge_loops(func) is func
