"""Gradients of functions of one tensor, element by element: x is the input, y the output, g the output's gradient."""
from __future__ import annotations

import math
from typing import Any, Callable

from ....ir.expr import RelayExpr
from ...expr import Call
from ..tensor import cast_like, cos, cosh, exp, less, less_equal, logical_and, sin, sinh, sqrt, zeros_like
from ..transform import where
from .common import Gradients, no_flow, number, register_table

_Slope = Callable[[RelayExpr, Any, RelayExpr], RelayExpr]


def _one(x: RelayExpr) -> RelayExpr:
    return number(1.0, x)


SLOPES: dict[str, _Slope] = {
    "negative": lambda x, y, g: -g,
    "copy": lambda x, y, g: g,
    "exp": lambda x, y, g: g * y,
    "log": lambda x, y, g: g / x,
    "log2": lambda x, y, g: g / (x * number(math.log(2), x)),
    "log10": lambda x, y, g: g / (x * number(math.log(10), x)),
    "sqrt": lambda x, y, g: g / (number(2, x) * y),
    "rsqrt": lambda x, y, g: g * number(-0.5, x) * y * y * y,
    "sin": lambda x, y, g: g * cos(x),
    "cos": lambda x, y, g: -(g * sin(x)),
    "tan": lambda x, y, g: g * (_one(x) + y * y),
    "sinh": lambda x, y, g: g * cosh(x),
    "cosh": lambda x, y, g: g * sinh(x),
    "tanh": lambda x, y, g: g * (_one(x) - y * y),
    "asin": lambda x, y, g: g / sqrt(_one(x) - x * x),
    "acos": lambda x, y, g: -(g / sqrt(_one(x) - x * x)),
    "atan": lambda x, y, g: g / (_one(x) + x * x),
    "asinh": lambda x, y, g: g / sqrt(x * x + _one(x)),
    "acosh": lambda x, y, g: g / sqrt(x * x - _one(x)),
    "atanh": lambda x, y, g: g / (_one(x) - x * x),
    "sigmoid": lambda x, y, g: g * y * (_one(x) - y),
    "erf": lambda x, y, g: g * number(2 / math.sqrt(math.pi), x) * exp(-(x * x)),
    "abs": lambda x, y, g: where(less(x, zeros_like(x)), -g, g),
    "nn.relu": lambda x, y, g: where(less(x, zeros_like(x)), zeros_like(x), g),
    "cast": lambda x, y, g: cast_like(g, x),
}
"""Slopes at a kink are those of its right side, as upstream has them."""

FLAT = ("floor", "ceil", "round", "rint", "trunc", "sign", "logical_not", "isnan", "isfinite", "isinf")


def _from_slope(slope: _Slope) -> Any:
    def rule(call: Call, grad: RelayExpr) -> Gradients:
        return [slope(call.args[0], call, grad)]

    return rule


def _clip(call: Call, grad: RelayExpr) -> Gradients:
    x = call.args[0]
    inside = logical_and(less_equal(number(call.attrs.a_min, x), x), less_equal(x, number(call.attrs.a_max, x)))
    return [where(inside, grad, zeros_like(grad))]


def _cast_like(call: Call, grad: RelayExpr) -> Gradients:
    x, like = call.args
    return [cast_like(grad, x), zeros_like(like)]


register_table({**{name: _from_slope(slope) for name, slope in SLOPES.items()}, **dict.fromkeys(FLAT, no_flow), "clip": _clip, "cast_like": _cast_like})
