"""Sorting, the largest elements, distinct values, running sums, reversal."""
from __future__ import annotations

import numpy as np

from .....ir.expr import RelayExpr
from .....support.errors import ArgumentError, UnsupportedOpError
from ....op.dyn import algorithm as dyn_algorithm
from ....op.dyn import transform as dyn
from ..context import NodeContext
from ..make import call, concat, const, items, reshape
from ..registry import op


def _first(x: RelayExpr, axis: int, count: RelayExpr) -> RelayExpr:
    """As many elements along an axis (Relay's operator takes all where none are asked for)."""
    before = [const([np.iinfo(np.int64).max] * axis, "int64")] if axis else []
    return dyn.strided_slice(x, const([0] * (axis + 1), "int64"), concat([*before, count], 0), const([1] * (axis + 1), "int64"))


@op("TopK")
def top_k(n: NodeContext) -> list[RelayExpr]:
    """The k largest (or smallest) elements along an axis, in order, and where they are."""
    x = n.need(0)
    axis = n.axis(n.attr("axis", -1), n.rank(x))
    smallest = n.version >= 11 and not n.attr("largest", 1)
    k = n.attr("k", None) if n.version < 10 else n.value(n.need(1))
    if k is None:
        found = dyn_algorithm.topk(x, reshape(n.need(1), []), axis, "both", smallest, "int64")
        return [_first(each, axis, n.to(reshape(n.need(1), [1]), "int64")) for each in (found[0], found[1])]
    count = int(k if isinstance(k, int) else k.reshape(-1)[0])
    if count == 0:
        empty = call("strided_slice", x, begin=(0,), end=(0,), strides=(1,), axes=(axis,), slice_mode="end")
        return [empty, call("cast", empty, dtype="int64")]
    return items(call("topk", x, k=count, axis=axis, ret_type="both", is_ascend=smallest, dtype="int64"), 2)


@op("Unique")
def unique(n: NodeContext) -> list[RelayExpr]:
    """Distinct values of a flattened tensor, where each was first, which one each element is, how often each occurs."""
    x = n.need(0)
    if "axis" in n.attributes and n.rank(x) != 1:
        raise UnsupportedOpError("distinct slices along an axis are not supported; distinct elements are")
    whole = items(call("unique", reshape(x, [-1]), sorted=bool(n.attr("sorted", 1)), return_counts=True), 5)
    values, first, inverse, count, counts = whole
    count = call("cast", count, dtype="int64")

    def used(part: RelayExpr) -> RelayExpr:
        return dyn.strided_slice(part, const([0], "int64"), count, const([1], "int64"))

    parts = [used(values), used(first), inverse, used(counts)]
    return [parts[0], *(call("cast", p, dtype="int64") for p in parts[1:])]


def _running(name: str):  # noqa: ANN202
    def convert(n: NodeContext) -> RelayExpr:
        """A running sum (or product) along an axis."""
        x, rank = n.need(0), n.rank(n.need(0))
        axis = n.axis(int(n.scalar(1, 0, "axis")), rank)
        if n.attr("reverse", 0):
            x = call("reverse", x, axis=axis)
        y = call(name, x, axis=axis, dtype=n.dtype(x), exclusive=bool(n.attr("exclusive", 0)))
        return call("reverse", y, axis=axis) if n.attr("reverse", 0) else y

    return convert


op("CumSum")(_running("cumsum"))
op("CumProd")(_running("cumprod"))


@op("ReverseSequence")
def reverse_sequence(n: NodeContext) -> RelayExpr:
    """The first elements along the time axis reversed, as many as each batch's length."""
    time, batch = n.attr("time_axis", 0), n.attr("batch_axis", 1)
    if {time, batch} != {0, 1}:
        raise ArgumentError(f"time_axis and batch_axis must be 0 and 1, got {time} and {batch}")
    x, lengths = n.needs(2)
    return call("reverse_sequence", x, n.to(lengths, "int64"), seq_axis=time, batch_axis=batch)
