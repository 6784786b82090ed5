"""Scans that gather what they find: argwhere and unique."""
from __future__ import annotations

from typing import Any

from .. import tir
from ..te.tensor import Tensor
from .kernel import View, cell, extern, let, loop, scratch, seq, when
from .sort import key_dtype, sort_pairs, sort_key
from .utils import prod, unravel_index


def argwhere(output_shape: Any, condition: Tensor) -> Tensor:
    """The index tuples, one a row, of the elements that are not 0; as many as ``output_shape`` (rows, rank) has room for."""
    rank = condition.ndim

    def body(ins: list[View], outs: list[View]) -> Any:
        data, out = ins[0], outs[0]

        def run(count: Any) -> Any:
            def visit(i: Any) -> Any:
                hit = tir.all(tir.op.not_equal(data[i], tir.const(0, data.dtype)), tir.op.less(count.get(), output_shape[0]))
                where = unravel_index(i, condition.shape) if rank else []
                put = [out.store(count.get() * rank + d, w) for d, w in enumerate(where)]
                return when(hit, seq(*put, count.set(count.get() + 1)))

            return loop(prod(condition.shape), visit)

        return cell(tir.const(0, "int64"), run, "count")

    return extern([output_shape], [condition], body, ["int32"], "argwhere", "argwhere_cpu")[0]


def count_nonzero(condition: Tensor) -> Tensor:
    """How many elements are not 0, as a vector of one int64 (what the shape of ``argwhere`` depends on)."""
    def body(ins: list[View], outs: list[View]) -> Any:
        def visit(i: Any) -> Any:
            return when(tir.op.not_equal(ins[0][i], tir.const(0, condition.dtype)), outs[0].store(0, outs[0][0] + 1))

        return seq(outs[0].store(0, 0), loop(prod(condition.shape), visit))

    return extern([(1,)], [condition], body, ["int64"], "count_nonzero")[0]


def unique(data: Tensor, is_sorted: bool = True, return_counts: bool = False) -> list[Tensor]:
    """(values, first positions, index of each element's value, number of values[, counts]) of a vector; all padded with zeros."""
    n = data.shape[0]

    def body(ins: list[View], outs: list[View]) -> Any:
        source = ins[0]
        values, first, inverse, number, *counts = outs
        clear = loop(n, lambda i: seq(values.store(i, tir.const(0, data.dtype)), first.store(i, 0), inverse.store(i, 0), *[c.store(i, 0) for c in counts]), "clear")

        def emit(slot: Any, position: Any, index: Any, fresh: Any) -> Any:
            """Element ``index`` has value number ``slot``; when ``fresh`` it is the first of its kind."""
            start = when(fresh, seq(values.store(slot, source[index]), first.store(slot, index)))
            return seq(start, inverse.store(index, slot), *[c.store(slot, c[slot] + 1) for c in counts])

        def groups(keys: View, order: View, offset: Any) -> Any:
            def run(found: Any) -> Any:
                def visit(k: Any) -> Any:
                    fresh = tir.any(tir.op.equal(k, 0), tir.op.not_equal(keys[offset + k], keys[offset + tir.op.maximum(k - 1, 0)]))

                    def place(is_new: Any) -> Any:
                        grow = found.set(found.get() + tir.op.cast(is_new, "int64"))
                        return seq(grow, let(order[offset + k], lambda i: let(found.get() - 1, lambda s: emit(s, k, i, is_new), "slot"), "index"))

                    return let(fresh, place, "fresh")

                return seq(loop(n, visit, "k"), number.store(0, found.get()))

            return cell(tir.const(0, "int64"), run, "found")

        def unordered(keys: View, order: View, offset: Any) -> Any:
            return scratch(n, "int64", lambda leader: seq(_leaders(n, keys, order, offset, leader), _by_first_use(n, leader, inverse, number, emit)), "leader")

        sort = sort_pairs(n, lambda i: sort_key(source[i]), key_dtype(data.dtype), True, groups if is_sorted else unordered)
        return seq(clear, number.store(0, 0), sort)

    shapes = [data.shape, data.shape, data.shape, (1,)] + ([data.shape] if return_counts else [])
    return extern(shapes, [data], body, [data.dtype] + ["int32"] * (len(shapes) - 1), "unique", "unique_cpu")


def _leaders(n: Any, keys: View, order: View, offset: Any, leader: View) -> Any:
    """For each element, the position of the first element of equal value (the sort is stable, so it leads its group)."""
    def run(current: Any) -> Any:
        def visit(k: Any) -> Any:
            fresh = tir.any(tir.op.equal(k, 0), tir.op.not_equal(keys[offset + k], keys[offset + tir.op.maximum(k - 1, 0)]))
            return seq(when(fresh, current.set(order[offset + k])), leader.store(order[offset + k], current.get()))

        return loop(n, visit, "k")

    return cell(tir.const(0, "int64"), run, "current")


def _by_first_use(n: Any, leader: View, inverse: View, number: View, emit: Any) -> Any:
    """Numbers the values in the order of their first elements."""
    def visit(i: Any) -> Any:
        def place(lead: Any) -> Any:
            def new_value(_: Any) -> Any:
                return seq(let(tir.op.cast(number[0], "int64"), lambda s: emit(s, i, i, tir.const(True, "bool")), "slot"), number.store(0, number[0] + 1))

            known = let(tir.op.cast(inverse[lead], "int64"), lambda s: emit(s, i, i, tir.const(False, "bool")), "slot")
            return when(tir.op.equal(lead, i), new_value(0), known)

        return let(leader[i], place, "lead")

    return loop(n, visit, "i")


__all__ = ["argwhere", "count_nonzero", "unique"]
