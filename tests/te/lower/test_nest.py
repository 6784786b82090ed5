"""The shape of the loops that schedules give."""
from __future__ import annotations

import pytest

from anchorleg import te, tir
from anchorleg.support.errors import ArgumentError
from anchorleg.te.lower.prim_func import create_prim_func, schedule_to_prim_func

from .loops import f32, lines


def lowered(s: te.Schedule, args: list) -> list[str]:
    return lines(schedule_to_prim_func(s, args).body)


def test_register_tile_has_constant_extents_and_indices_counted_from_its_start() -> None:
    a, b, k = te.placeholder((12, 8), name="A"), te.placeholder((8, 32), name="B"), te.reduce_axis((0, 8), name="k")
    c = te.compute((12, 32), lambda y, x: te.sum(a[y, k] * b[k, x], axis=k), name="C")
    s = te.create_schedule(c.op)
    acc = s.cache_write(c, "local")
    yo, xo, yi, xi = s[c].tile(*c.op.axis, 6, 16)
    s[c].vectorize(xi)
    s[acc].compute_at(s[c], xo)
    y, x = s[acc].op.axis
    s[acc].reorder(s[acc].op.reduce_axis[0], y, x)
    s[acc].unroll(y)
    s[acc].vectorize(x)
    assert lowered(s, [a, b, c]) == [
        "for y.outer in 2",
        "  for x.outer in 2",
        "    local C.local[6, 16]",
        "    for y.c.init in 6 unrolled",
        "      for x.c.init in 16 vectorized",
        "        C.local[y.c.init, x.c.init] = 0",
        "    for k in 8",
        "      for y.c in 6 unrolled",
        "        for x.c in 16 vectorized",
        "          C.local[y.c, x.c] = (C.local[y.c, x.c] + (A[((y.outer * 6) + y.c), k] * B[k, ((x.outer * 16) + x.c)]))",
        "    for y.inner in 6",
        "      for x.inner in 16 vectorized",
        "        C[((y.outer * 6) + y.inner), ((x.outer * 16) + x.inner)] = C.local[y.inner, x.inner]",
    ]


def test_condition_of_an_inexact_split_stands_in_the_outermost_loop_that_knows_it() -> None:
    a = te.placeholder((10, 4), name="A")
    b = te.compute((10, 4), lambda i, j: a[i, j] + f32(1), name="B")
    s = te.create_schedule(b.op)
    s[b].split(b.op.axis[0], factor=4)
    assert lowered(s, [a, b]) == [
        "for i.outer in 3",
        "  for i.inner in 4",
        "    if likely((((i.outer * 4) + i.inner) < 10))",
        "      for j in 4",
        "        B[((i.outer * 4) + i.inner), j] = (A[((i.outer * 4) + i.inner), j] + 1)",
    ]


def test_exact_split_has_no_condition_and_unit_loops_vanish() -> None:
    a = te.placeholder((8, 1), name="A")
    b = te.compute((8, 1), lambda i, j: a[i, j] + f32(1), name="B")
    s = te.create_schedule(b.op)
    s[b].split(b.op.axis[0], factor=8)
    assert lowered(s, [a, b]) == ["for i.inner in 8", "  B[i.inner, 0] = (A[i.inner, 0] + 1)"]


def test_halo_of_a_window_is_computed_at_the_loop() -> None:
    a, r = te.placeholder((18, 18), name="A"), te.reduce_axis((0, 3), name="r")
    p = te.compute((18, 18), lambda i, j: a[i, j] * f32(2), name="P")
    c = te.compute((16, 16), lambda i, j: te.sum(p[i + r, j], axis=r), name="C")
    s = te.create_schedule(c.op)
    outer, _ = s[c].split(c.op.axis[0], factor=4)
    s[p].compute_at(s[c], outer)
    got = lowered(s, [a, c])
    assert got[1] == "  global P[6, 16]"
    assert got[4] == "      P[i, j] = (A[((i.outer * 4) + i), j] * 2)"


def test_fused_and_split_axis_keeps_single_rows() -> None:
    a = te.placeholder((4, 8), name="A")
    p = te.compute((4, 8), lambda i, j: a[i, j] * f32(2), name="P")
    c = te.compute((4, 8), lambda i, j: p[i, j] + f32(1), name="C")
    s = te.create_schedule(c.op)
    outer, _ = s[c].split(s[c].fuse(*c.op.axis), factor=4)
    s[p].compute_at(s[c], outer)
    got = lowered(s, [a, c])
    assert got[1] == "  global P[1, 4]"
    assert got[3] == "    P[0, j] = (A[(i.j.fused.outer // 2), (((i.j.fused.outer % 2) * 4) + j)] * 2)"


def test_padding_conditions_vanish_where_bounds_decide_them() -> None:
    a = te.placeholder((8,), name="A")
    p = te.compute((8,), lambda i: te.if_then_else(te.all(i >= 0, i < 8), a[i], f32(0)), name="P")
    assert lowered(te.create_schedule(p.op), [a, p]) == ["for i in 8", "  P[i] = A[i]"]


def test_inlined_transposes_and_reshapes_leave_one_index_expression() -> None:
    a = te.placeholder((4, 6), name="A")
    flat = te.compute((24,), lambda x: a[x // 6, x % 6], name="flat")
    back = te.compute((4, 6), lambda i, j: flat[i * 6 + j], name="back")
    s = te.create_schedule(back.op)
    s[flat].compute_inline()
    assert lowered(s, [a, back])[-1].strip() == "back[i, j] = A[i, j]"


def test_values_of_a_reduction_of_several_are_stored_together() -> None:
    a, k = te.placeholder((4, 5), name="A"), te.reduce_axis((0, 5), name="k")
    argmax = te.comm_reducer(lambda x, y: (tir.Select(x[1] >= y[1], x[0], y[0]), tir.Select(x[1] >= y[1], x[1], y[1])),
                             lambda t0, t1: (tir.const(-1, t0), te.min_value(t1)), name="argmax")
    index, best = te.compute((4,), lambda i: argmax((k.var, a[i, k]), axis=k), name="am")
    got = lowered(te.create_schedule(index.op), [a, index, best])
    assert [line.split("=")[0].strip() for line in got[-3:]] == ["let new0", "am.v1[i]", "am.v0[i]"]


def test_symbolic_extents_need_no_condition_when_the_axis_is_whole() -> None:
    n = te.size_var("n")
    a = te.placeholder((n,), name="A")
    b = te.compute((n,), lambda i: a[i] + f32(1), name="B")
    assert lowered(te.create_schedule(b.op), [a, b]) == ["for i in n", "  B[i] = (A[i] + 1)"]


def test_threads_are_opened_once_and_guarded_where_there_are_too_many() -> None:
    a = te.placeholder((100,), name="A")
    p = te.compute((100,), lambda i: a[i] * f32(2), name="P")
    b = te.compute((100,), lambda i: p[i] + f32(1), name="B")
    s = te.create_schedule(b.op)
    outer, inner = s[b].split(b.op.axis[0], 32)
    s[b].bind(outer, te.thread_axis("blockIdx.x"))
    s[b].bind(inner, te.thread_axis("threadIdx.x"))
    s[p].set_scope("shared")
    s[p].compute_at(s[b], outer)
    s[p].bind(p.op.axis[0], te.thread_axis("threadIdx.x"))
    got = lowered(s, [a, b])
    assert got[0] == "thread_extent 4" and got[1] == "shared P[32]"
    assert sum("thread_extent 32" in line for line in got) == 2
    assert sum("likely" in line for line in got) == 2


def test_stage_out_of_reach_of_its_reader_is_refused() -> None:
    a = te.placeholder((8,), name="A")
    b = te.compute((8,), lambda i: a[i] + f32(1), name="B")
    c = te.compute((8,), lambda i: b[i] + f32(1), name="C")
    d = te.compute((8,), lambda i: b[i] + c[i], name="D")
    s = te.create_schedule(d.op)
    s[b].compute_at(s[d], d.op.axis[0])
    with pytest.raises(ArgumentError, match="B is computed inside loop i of D, but C"):
        lowered(s, [a, d])


def test_tensor_that_is_neither_computed_nor_an_argument_is_named() -> None:
    a = te.placeholder((8,), name="weights")
    b = te.compute((8,), lambda i: a[i] + f32(1), name="B")
    with pytest.raises(ArgumentError, match="weights is read"):
        lowered(te.create_schedule(b.op), [b])


def test_storage_align_pads_the_stride() -> None:
    a = te.placeholder((8, 16), name="A")
    p = te.compute((8, 16), lambda i, j: a[i, j] + f32(1), name="P")
    b = te.compute((8, 16), lambda i, j: p[i, j] + f32(1), name="B")
    s = te.create_schedule(b.op)
    s[p].storage_align(p.op.axis[0], 16, 1)
    func = schedule_to_prim_func(s, [a, b])
    assert [int(d) for d in func.body.buffer.strides] == [17, 1]


def test_lowering_twice_gives_functions_of_their_own() -> None:
    a = te.placeholder((8,), name="A")
    b = te.compute((8,), lambda i: a[i] + f32(1), name="B")
    s = te.create_schedule(b.op)
    one, two = (schedule_to_prim_func(s, [a, b]) for _ in range(2))
    assert lines(one.body) == lines(two.body) and one.body.loop_var is not two.body.loop_var


def test_create_prim_func_takes_inputs_and_outputs() -> None:
    a = te.placeholder((8,), name="A")
    b = te.compute((8,), lambda i: a[i] + f32(1), name="B")
    func = create_prim_func([a, b])
    assert [p.name for p in func.params] == ["A", "B"]
