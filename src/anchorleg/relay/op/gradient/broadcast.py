"""Gradients of functions of two tensors that broadcast, and of broadcasting itself."""
from __future__ import annotations

from typing import Any, Callable

from ....ir.expr import RelayExpr
from ...expr import Call
from ..tensor import greater_equal, less_equal, log, power, zeros_like
from ..transform import broadcast_to_like, collapse_sum_like, where
from .common import Gradients, no_flow, number, register_table, summed_like

_Pair = Callable[[RelayExpr, RelayExpr, Any, RelayExpr], tuple[RelayExpr, RelayExpr]]


def _power(a: RelayExpr, b: RelayExpr, y: Any, g: RelayExpr) -> tuple[RelayExpr, RelayExpr]:
    return g * b * power(a, b - number(1, b)), g * y * log(a)


def _choice(takes_first: Callable[..., Any]) -> _Pair:
    def pair(a: RelayExpr, b: RelayExpr, y: Any, g: RelayExpr) -> tuple[RelayExpr, RelayExpr]:
        first, zero = takes_first(a, b), zeros_like(g)
        return where(first, g, zero), where(first, zero, g)

    return pair


PAIRS: dict[str, _Pair] = {
    "add": lambda a, b, y, g: (g, g),
    "subtract": lambda a, b, y, g: (g, -g),
    "multiply": lambda a, b, y, g: (g * b, g * a),
    "divide": lambda a, b, y, g: (g / b, -(g * y / b)),
    "power": _power,
    "maximum": _choice(greater_equal),
    "minimum": _choice(less_equal),
}
"""(a, b, output, gradient) to the gradients of a and b before broadcasting is undone."""

FLAT = ("equal", "not_equal", "less", "less_equal", "greater", "greater_equal", "logical_and", "logical_or", "logical_xor")


def _from_pair(pair: _Pair) -> Any:
    def rule(call: Call, grad: RelayExpr) -> Gradients:
        a, b = call.args
        return [summed_like(call, g, x) for g, x in zip(pair(a, b, call, grad), (a, b))]

    return rule


def _where(call: Call, grad: RelayExpr) -> Gradients:
    cond, x, y = call.args
    zero = zeros_like(grad)
    return [zeros_like(cond), summed_like(call, where(cond, grad, zero), x), summed_like(call, where(cond, zero, grad), y)]


def _broadcast_to(call: Call, grad: RelayExpr) -> Gradients:
    return [collapse_sum_like(grad, call.args[0]), *map(zeros_like, call.args[1:])]


def _collapse(call: Call, grad: RelayExpr) -> Gradients:
    return [broadcast_to_like(grad, call.args[0]), *map(zeros_like, call.args[1:])]


register_table({
    **{name: _from_pair(pair) for name, pair in PAIRS.items()}, **dict.fromkeys(FLAT, no_flow), "where": _where,
    "broadcast_to": _broadcast_to, "dyn.broadcast_to": _broadcast_to, "broadcast_to_like": _broadcast_to,
    "collapse_sum_like": _collapse, "collapse_sum_to": _collapse,
})
