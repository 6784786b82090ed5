"""Gradients of reductions."""
from __future__ import annotations

import math

from ....ir.expr import RelayExpr
from ...expr import Call
from ..reduce import reduced_axes
from ..reduce import sum as total
from ..tensor import cast_like, equal, exp
from ..transform import broadcast_to_like, expand_dims
from .common import Gradients, number, register_table, static_shape


def _axes(call: Call) -> tuple[int, ...]:
    return reduced_axes(len(call.args[0].checked_type.shape), call.attrs)


def _kept(call: Call, value: RelayExpr) -> RelayExpr:
    """``value``, of the result's shape, with the reduced axes as ones."""
    if call.attrs.keepdims:
        return value
    for axis in sorted(_axes(call)):
        value = expand_dims(value, axis)
    return value


def _count(call: Call) -> int:
    shape = static_shape(call, call.args[0])
    return math.prod(shape[a] for a in _axes(call))


def _sum(call: Call, grad: RelayExpr) -> Gradients:
    return [broadcast_to_like(_kept(call, grad), call.args[0])]


def _mean(call: Call, grad: RelayExpr) -> Gradients:
    data = call.args[0]
    return [broadcast_to_like(_kept(call, grad) * number(1 / _count(call), data), data)]


def _extremum(call: Call, grad: RelayExpr) -> Gradients:
    """Shared evenly among the elements that are the extremum."""
    data = call.args[0]
    chosen = cast_like(equal(_kept(call, call), data), data)
    return [chosen * _kept(call, grad) / total(chosen, list(_axes(call)), keepdims=True)]


def _variance(call: Call, grad: RelayExpr) -> Gradients:
    """The sum of (x - mean)² over n, or n - 1 where unbiased; the mean is an input of its own."""
    data, mean = call.args
    slope = (data - mean) * _kept(call, grad) * number(2 / (_count(call) - bool(call.attrs.unbiased)), data)
    return [slope, -total(slope, list(_axes(call)), keepdims=True)]


def _logsumexp(call: Call, grad: RelayExpr) -> Gradients:
    data = call.args[0]
    return [_kept(call, grad) * exp(data - _kept(call, call))]


def _prod(call: Call, grad: RelayExpr) -> Gradients:
    """The product of the others, as the whole over each: for inputs without zeros."""
    return [_kept(call, grad * call) / call.args[0]]


register_table({"sum": _sum, "mean": _mean, "max": _extremum, "min": _extremum, "variance": _variance, "logsumexp": _logsumexp, "prod": _prod})
