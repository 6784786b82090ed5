"""Gradients of loss functions, which average over the batch."""
from __future__ import annotations

from ....ir.expr import RelayExpr
from ...expr import Call, const
from ..tensor import cast, log
from ..transform import shape_of, take
from .common import Gradients, register_table


def _per_row(call: Call, grad: RelayExpr) -> RelayExpr:
    predictions = call.args[0]
    return grad / cast(take(shape_of(predictions), const(0, "int32"), axis=0), predictions.checked_type.dtype)


def _cross_entropy(call: Call, grad: RelayExpr) -> Gradients:
    x, y = call.args
    g = _per_row(call, grad)
    return [-(g * y / x), -(g * log(x))]


def _cross_entropy_with_logits(call: Call, grad: RelayExpr) -> Gradients:
    x, y = call.args
    g = _per_row(call, grad)
    return [-(g * y), -(g * x)]


register_table({"nn.cross_entropy": _cross_entropy, "nn.cross_entropy_with_logits": _cross_entropy_with_logits})
