"""Inlining keeps long and shared chains small."""
from __future__ import annotations

import pytest

from anchorleg import te, tir
from anchorleg.ir.visit import post_order
from anchorleg.support.errors import ArgumentError
from anchorleg.te.lower.prim_func import schedule_to_prim_func

from .loops import f32


def inlined_chain(step: object, length: int) -> tuple[te.Schedule, list]:
    a = last = te.placeholder((8, 8), name="A")
    tensors = []
    for n in range(length):
        last = te.compute((8, 8), lambda i, j, p=last: step(p, i, j), name=f"t{n}")  # type: ignore[operator]
        tensors.append(last)
    s = te.create_schedule(last.op)
    for t in tensors[:-1]:
        s[t].compute_inline()
    return s, [a, last]


@pytest.mark.parametrize("length", [1, 300, 3000])
def test_chain_is_linear_and_needs_no_stack(length: int) -> None:
    s, args = inlined_chain(lambda p, i, j: tir.exp(p[i, j]), length)
    body = schedule_to_prim_func(s, args).body
    assert sum(isinstance(n, tir.Call) for n in post_order(body)) == length


def test_doubly_read_producers_stay_shared() -> None:
    s, args = inlined_chain(lambda p, i, j: p[i, j] * tir.sigmoid(p[i, j]), 200)
    body = schedule_to_prim_func(s, args).body
    assert sum(isinstance(n, tir.Mul) for n in post_order(body)) == 200


def test_reduction_cannot_be_inlined() -> None:
    a, k = te.placeholder((8, 8), name="A"), te.reduce_axis((0, 8), name="k")
    b = te.compute((8,), lambda i: te.sum(a[i, k], axis=k), name="B")
    with pytest.raises(ArgumentError, match="B is a reduction"):
        te.create_schedule(b.op)[b].compute_inline()


def test_argument_cannot_be_inlined() -> None:
    a = te.placeholder((8,), name="A")
    b = te.compute((8,), lambda i: a[i] + f32(1), name="B")
    c = te.compute((8,), lambda i: b[i] + f32(1), name="C")
    s = te.create_schedule(c.op)
    s[b].compute_inline()
    with pytest.raises(ArgumentError, match="B is an argument"):
        schedule_to_prim_func(s, [a, b, c])
