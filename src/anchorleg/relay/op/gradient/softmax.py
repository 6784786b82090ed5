"""Gradients of softmax and log_softmax."""
from __future__ import annotations

from ....ir.expr import RelayExpr
from ...expr import Call
from ..reduce import sum as total
from ..tensor import exp
from .common import Gradients, register_table


def _softmax(call: Call, grad: RelayExpr) -> Gradients:
    return [(grad - total(grad * call, call.attrs.axis, True)) * call]


def _log_softmax(call: Call, grad: RelayExpr) -> Gradients:
    return [grad - total(grad, call.attrs.axis, True) * exp(call)]


register_table({"nn.softmax": _softmax, "nn.log_softmax": _log_softmax})
