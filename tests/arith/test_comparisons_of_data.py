"""Comparisons of what is read from memory: no arithmetic is added that could overflow."""
from __future__ import annotations

from anchorleg import arith
from anchorleg.ir.visit import post_order
from anchorleg.tir import Add, Sub, decl_buffer, op
from anchorleg.tir.buffer import BufferLoad


def test_at_most_is_not_turned_into_below_plus_one() -> None:
    data = decl_buffer((2,), "int64", "data")
    a, b = BufferLoad(data, [0]), BufferLoad(data, [1])
    for condition in (op.less_equal(a, b), op.greater_equal(a, b), op.less(a, b), op.greater(a, b), op.logical_not(op.less(a, b))):
        assert not any(isinstance(n, (Add, Sub)) for n in post_order(arith.Analyzer().simplify(condition)))
