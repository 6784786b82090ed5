"""Tensorize: the intrinsic replaces loops that compute the same, and only those."""
from __future__ import annotations

import pytest

from anchorleg import te, tir
from anchorleg.support.errors import ArgumentError
from anchorleg.te.lower.prim_func import schedule_to_prim_func
from anchorleg.tir import BufferLoad, BufferStore, For, ForKind, Var
from anchorleg.tir.stmt import seq

from .loops import f32, lines


def row_kernel(width: int, depth: int) -> te.TensorIntrin:
    """c[i] = sum over k of a[k] * b[k, i]."""
    a, b, k = te.placeholder((depth,), name="a"), te.placeholder((depth, width), name="b"), te.reduce_axis((0, depth), name="k")
    c = te.compute((width,), lambda i: te.sum(a[k] * b[k, i], axis=k), name="c")

    def body(ins: list, outs: list) -> tuple:
        i, r, z = Var("i"), Var("r"), Var("z")
        reset = For(z, 0, width, ForKind.SERIAL, BufferStore(outs[0], f32(0), [z]))
        add = BufferLoad(outs[0], [i]) + BufferLoad(ins[0], [r]) * BufferLoad(ins[1], [r, i])
        update = For(r, 0, depth, ForKind.SERIAL, For(i, 0, width, ForKind.SERIAL, BufferStore(outs[0], add, [i])))
        return seq(reset, update), reset, update

    return te.decl_tensor_intrin(c.op, body, name="row_kernel")


def matmul(scale: bool = False) -> tuple:
    a, b, k = te.placeholder((6, 16), name="A"), te.placeholder((16, 24), name="B"), te.reduce_axis((0, 16), name="k")
    c = te.compute((6, 24), lambda y, x: te.sum(a[y, k] * b[k, x] * f32(2) if scale else a[y, k] * b[k, x], axis=k), name="C")
    return a, b, c, k


def tiled(width: int, depth: int, intrin: te.TensorIntrin, scale: bool = False) -> list[str]:
    a, b, c, k = matmul(scale)
    s = te.create_schedule(c.op)
    y, x = c.op.axis
    xo, xi = s[c].split(x, width)
    ko, ki = s[c].split(k, depth)
    s[c].reorder(y, xo, ko, xi, ki)
    s[c].tensorize(xi, intrin)
    return lines(schedule_to_prim_func(s, [a, b, c]).body)


def test_intrinsic_is_placed_with_start_and_update() -> None:
    assert tiled(8, 4, row_kernel(8, 4)) == [
        "for y in 6",
        "  for x.outer in 3",
        "    for z in 8",
        "      C[y, (z + (x.outer * 8))] = 0",
        "    for k.outer in 4",
        "      for r in 4",
        "        for i in 8",
        "          C[y, (i + (x.outer * 8))] = (C[y, (i + (x.outer * 8))] + (A[y, (r + (k.outer * 4))] * B[(r + (k.outer * 4)), (i + (x.outer * 8))]))",
    ]


def test_other_extents_are_refused() -> None:
    with pytest.raises(ArgumentError, match=r"expected to have the extents \[8\] inside the tensorized loops, got \[1, 6\]"):
        tiled(6, 4, row_kernel(8, 4))


def test_another_computation_is_refused() -> None:
    with pytest.raises(ArgumentError, match="does not compute what the intrinsic does"):
        tiled(8, 4, row_kernel(8, 4), scale=True)


def test_tiles_that_do_not_divide_are_refused() -> None:
    with pytest.raises(ArgumentError, match="do not divide its axes"):
        tiled(7, 4, row_kernel(7, 4))


def test_intrinsic_without_update_is_refused_inside_reduction_loops() -> None:
    whole = row_kernel(8, 4)
    only_body = te.TensorIntrin(whole.name, whole.op, whole.inputs, whole.buffers, (), whole.body, None, None)
    with pytest.raises(ArgumentError, match="no update statement|no reset statement"):
        tiled(8, 4, only_body)


def test_symbolic_offset_and_strides_are_bound() -> None:
    a = te.placeholder((4,), name="a")
    c = te.compute((4,), lambda i: a[i] + f32(1), name="c")
    offset, stride = Var("offset"), Var("stride")
    buf = tir.decl_buffer((4,), "float32", "a", elem_offset=offset, strides=[stride])
    intrin = te.decl_tensor_intrin(c.op, lambda ins, outs: tir.call_extern("int32", "work", ins[0].data, offset, stride), binds={a: buf})
    x = te.placeholder((3, 8), name="X")
    y = te.compute((3, 8), lambda i, j: x[i, j] + f32(1), name="Y")
    s = te.create_schedule(y.op)
    _, inner = s[y].split(y.op.axis[1], 4)
    s[y].tensorize(inner, intrin)
    call = schedule_to_prim_func(s, [x, y]).body.body.body.value
    from .loops import text

    assert [text(e) for e in call.args[2:]] == ["((i * 8) + (j.outer * 4))", "1"]
