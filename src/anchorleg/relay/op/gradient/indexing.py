"""Gradients of operators that pick elements by index: what was picked several times gets the sum."""
from __future__ import annotations

import math

from ....ir.expr import RelayExpr
from ....support.errors import UnsupportedOpError
from ...expr import Call, const
from ..reduce import sum as total
from ..tensor import cast_like, clip, equal, floor_mod, zeros_like
from ..transform import expand_dims, gather_nd, reshape, reshape_like, scatter_elements, scatter_nd, transpose, where
from .common import Gradients, register_table, static_shape


def _take(call: Call, grad: RelayExpr) -> Gradients:
    """Slices of the gradient, added to a tensor of zeros at the places that the indices name."""
    data, indices = call.args
    if int(call.attrs.batch_dims or 0):
        raise UnsupportedOpError(f"the gradient of take expects batch_dims 0, got {call.attrs.batch_dims}")
    shape, flat = static_shape(call, data), call.attrs.axis is None
    axis = 0 if flat else int(call.attrs.axis) % len(shape)
    order = [axis, *(i for i in range(len(shape)) if i != axis)]
    zeros = reshape(zeros_like(data), (-1,)) if flat else transpose(zeros_like(data), order)
    places = _read_places(call, indices, math.prod(shape) if flat else shape[axis])
    summed = scatter_nd(zeros, expand_dims(places, 0), _indices_first(call, grad, axis), "add")
    back = reshape_like(summed, data) if flat else transpose(summed, [order.index(i) for i in range(len(shape))])
    return [back, zeros_like(indices)]


def _indices_first(call: Call, grad: RelayExpr, axis: int) -> RelayExpr:
    """The gradient with the axes of the indices in front."""
    rank = len(call.args[1].checked_type.shape)
    taken = range(axis, axis + rank)
    others = [i for i in range(len(call.checked_type.shape)) if i not in taken]
    return transpose(grad, [*taken, *others]) if others else grad


def _read_places(call: Call, indices: RelayExpr, size: int) -> RelayExpr:
    """The positions that ``take`` read, by its mode."""
    if call.attrs.mode == "wrap":
        return floor_mod(indices, const(size, indices.checked_type.dtype))
    return clip(indices, 0, size - 1) if call.attrs.mode == "clip" else indices


def _gather(call: Call, grad: RelayExpr) -> Gradients:
    data, indices = call.args
    return [scatter_elements(zeros_like(data), indices, grad, int(call.attrs.axis), "add"), zeros_like(indices)]


def _gather_nd(call: Call, grad: RelayExpr) -> Gradients:
    data, indices = call.args
    if int(call.attrs.batch_dims or 0):
        raise UnsupportedOpError(f"the gradient of gather_nd expects batch_dims 0, got {call.attrs.batch_dims}")
    return [scatter_nd(zeros_like(data), indices, grad, "add"), zeros_like(indices)]


def _scatter_nd(call: Call, grad: RelayExpr) -> Gradients:
    """For mode add: all of it to the data, what was gathered to the updates."""
    data, indices, updates = call.args
    if call.attrs.mode != "add":
        raise UnsupportedOpError(f"the gradient of scatter_nd expects mode 'add', got {call.attrs.mode!r}")
    return [grad, zeros_like(indices), gather_nd(grad, indices)]


def _one_hot(call: Call, grad: RelayExpr) -> Gradients:
    indices, on_value, off_value = call.args
    on, zero = equal(call, on_value), zeros_like(grad)
    return [zeros_like(indices), cast_like(total(where(on, grad, zero)), on_value), cast_like(total(where(on, zero, grad)), off_value)]


register_table({"take": _take, "gather": _gather, "gather_nd": _gather_nd, "scatter_nd": _scatter_nd, "one_hot": _one_hot})
