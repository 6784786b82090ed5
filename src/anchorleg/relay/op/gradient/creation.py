"""Gradients of operators that make tensors: nothing flows to shapes, something may to a fill value."""
from __future__ import annotations

from ....ir.expr import RelayExpr
from ...expr import Call, const
from ..reduce import sum as total
from ..tensor import cast_like, zeros_like
from ..transform import arange, shape_of, take
from .common import Gradients, no_flow, register_table


def _full(call: Call, grad: RelayExpr) -> Gradients:
    return [total(grad), *map(zeros_like, call.args[1:])]


def _full_like(call: Call, grad: RelayExpr) -> Gradients:
    data, _ = call.args
    return [zeros_like(data), total(grad)]


def _arange(call: Call, grad: RelayExpr) -> Gradients:
    """Element i is start + i * step."""
    start, stop, step = call.args
    count = take(shape_of(call), const(0, "int32"), axis=0)
    places = cast_like(arange(count, dtype="int32"), grad)
    return [cast_like(total(grad), start), zeros_like(stop), cast_like(total(places * grad), step)]


register_table({
    **dict.fromkeys(("zeros", "ones", "dyn.zeros", "dyn.ones", "zeros_like", "ones_like", "shape_of", "ndarray_size"), no_flow),
    "full": _full, "dyn.full": _full, "full_like": _full_like, "arange": _arange,
})
