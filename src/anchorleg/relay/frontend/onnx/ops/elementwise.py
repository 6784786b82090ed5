"""Arithmetic, comparison, logic, bits, rounding, casts."""
from __future__ import annotations

from functools import reduce as _fold
from typing import Any, Sequence

import numpy as np

from .....ir.expr import RelayExpr
from .....support.errors import ArgumentError
from ..context import NodeContext
from ..make import call, cast, const, expand_dims, where
from ..registry import op
from ..tensors import relay_dtype

_UNARY = {"Abs": "abs", "Acos": "acos", "Acosh": "acosh", "Asin": "asin", "Asinh": "asinh", "Atan": "atan", "Atanh": "atanh",
          "BitwiseNot": "bitwise_not", "Ceil": "ceil", "Cos": "cos", "Cosh": "cosh", "Erf": "erf", "Exp": "exp", "Floor": "floor",
          "IsNaN": "isnan", "Log": "log", "Neg": "negative", "Not": "logical_not", "Sigmoid": "sigmoid", "Sign": "sign", "Sin": "sin",
          "Sinh": "sinh", "Sqrt": "sqrt", "Tan": "tan", "Tanh": "tanh"}
_BINARY = {"Add": "add", "And": "logical_and", "BitwiseAnd": "bitwise_and", "BitwiseOr": "bitwise_or", "BitwiseXor": "bitwise_xor",
           "Div": "divide", "Equal": "equal", "Greater": "greater", "GreaterOrEqual": "greater_equal", "Less": "less",
           "LessOrEqual": "less_equal", "Mul": "multiply", "Or": "logical_or", "Sub": "subtract", "Xor": "logical_xor"}
_VARIADIC = {"Max": "maximum", "Min": "minimum", "Sum": "add"}


def _register_tables() -> None:
    for name, relay_name in _UNARY.items():
        op(name)(lambda n, r=relay_name: call(r, n.need(0)))
    for name, relay_name in _BINARY.items():
        op(name)(lambda n, r=relay_name: call(r, *aligned(n)))
    for name, relay_name in _VARIADIC.items():
        op(name)(lambda n, r=relay_name: _fold(lambda a, b: call(r, a, b), n.present()))


def aligned(n: NodeContext) -> tuple[RelayExpr, RelayExpr]:
    """Both operands; below version 7, with ``broadcast``, the second is placed at ``axis`` of the first."""
    a, b = n.needs(2)
    if n.version < 7 and n.attr("broadcast", 0) and "axis" in n.attributes:
        after = n.rank(a) - n.axis(n.attr("axis"), n.rank(a)) - n.rank(b)
        b = expand_dims(b, n.rank(b), after) if after > 0 else b
    return a, b


_register_tables()


@op("Identity")
def identity(n: NodeContext) -> RelayExpr:
    """The input."""
    return n.need(0)


@op("Mean")
def mean(n: NodeContext) -> RelayExpr:
    """The mean of all inputs."""
    total = _fold(lambda a, b: call("add", a, b), n.present())
    return call("divide", total, n.like(len(n.inputs), total)) if len(n.inputs) > 1 else total


@op("Reciprocal")
def reciprocal(n: NodeContext) -> RelayExpr:
    """1 / x."""
    return call("divide", n.like(1, n.need(0)), n.need(0))


def is_float(dtype: str) -> bool:
    """Whether a dtype is of floating point."""
    return "float" in dtype


@op("Pow")
def power(n: NodeContext) -> RelayExpr:
    """x ** y, in the type of x."""
    x, y = aligned(n)
    base, exponent = n.dtype(x), n.dtype(y)
    value = n.value(y)
    if value is not None and value.size == 1 and float(value.reshape(-1)[0]) == 2 and value.ndim <= n.rank(x):
        return call("multiply", x, x)
    if is_float(base) or not is_float(exponent):
        return call("power", x, n.to(y, base))
    return cast(call("power", n.to(x, exponent), y), base)


@op("Mod")
def mod(n: NodeContext) -> RelayExpr:
    """The remainder: with the divisor's sign, or (``fmod``) the dividend's."""
    x, y = n.needs(2)
    return call("mod" if n.attr("fmod", 0) else "floor_mod", x, y)


@op("BitShift")
def bit_shift(n: NodeContext) -> RelayExpr:
    """A shift of unsigned integers."""
    direction = n.attr("direction")
    if direction not in ("LEFT", "RIGHT"):
        raise ArgumentError(f"direction must be LEFT or RIGHT, got {direction!r}")
    return call("left_shift" if direction == "LEFT" else "right_shift", *n.needs(2))


@op("IsInf")
def is_inf(n: NodeContext) -> RelayExpr:
    """Whether an element is infinite, of either sign or one."""
    x = n.need(0)
    positive, negative = n.attr("detect_positive", 1), n.attr("detect_negative", 1)
    if positive and negative:
        return call("isinf", x)
    zero = n.like(0, x)
    sign = call("greater" if positive else "less", x, zero) if positive or negative else call("not_equal", zero, zero)
    return call("logical_and", call("isinf", x), sign)


def round_half_even(n: NodeContext, x: RelayExpr) -> RelayExpr:
    """The nearest integer, halves to the even one."""
    return call("rint", x)


@op("Round")
def round_(n: NodeContext) -> RelayExpr:
    """The nearest integer, halves to the even one."""
    return round_half_even(n, n.need(0))


@op("Cast")
def cast_(n: NodeContext) -> RelayExpr:
    """Another element type."""
    to = n.attr("to")
    dtype = {"FLOAT": "float32", "DOUBLE": "float64"}.get(to, str(to).lower()) if isinstance(to, str) else relay_dtype(to, "the result")
    return converted(n, n.need(0), dtype)


_LARGEST = {"e4m3_float8": 448.0, "e5m2_float8": 57344.0}  # what larger numbers become, unless ``saturate`` is 0


def converted(n: NodeContext, x: RelayExpr, dtype: str) -> RelayExpr:
    """``x`` as ``dtype``."""
    if dtype in _LARGEST and n.attr("saturate", 1) and is_float(n.dtype(x)) and n.dtype(x) != dtype:
        x = call("clip", x, a_min=-_LARGEST[dtype], a_max=_LARGEST[dtype])
    return n.to(x, dtype)


@op("CastLike")
def cast_like(n: NodeContext) -> RelayExpr:
    """The element type of another tensor."""
    return converted(n, n.need(0), n.dtype(n.need(1)))


@op("Where")
def where_(n: NodeContext) -> RelayExpr:
    """Elements of one of two tensors, by a third."""
    return where(*n.needs(3))


def clip_between(n: NodeContext, x: RelayExpr, low: Any, high: Any) -> RelayExpr:
    """``x`` between two numbers, either of which may be None."""
    if low is not None and high is not None and is_float(n.dtype(x)):
        return call("clip", x, a_min=float(low), a_max=float(high))
    if low is not None:
        x = call("maximum", x, n.like(low, x))
    return x if high is None else call("minimum", x, n.like(high, x))


@op("Clip")
def clip_v1(n: NodeContext) -> RelayExpr:
    """Bounds given as attributes."""
    return clip_between(n, n.need(0), n.attr("min", None), n.attr("max", None))


@op("Clip", since=11)
def clip_v11(n: NodeContext) -> RelayExpr:
    """Bounds given as inputs, both optional."""
    x, low, high = n.need(0), n.input(1), n.input(2)
    values = [n.value(b) for b in (low, high)]
    if all(b is None or v is not None for b, v in zip((low, high), values)):
        return clip_between(n, x, *(None if v is None else v.reshape(-1)[0].item() for v in values))
    if low is not None:
        x = call("maximum", x, low)
    return x if high is None else call("minimum", x, high)


def dtype_limits(dtype: str) -> tuple[int, int]:
    """The smallest and largest value of an integer type."""
    if dtype in ("int4", "uint4"):
        return (-8, 7) if dtype == "int4" else (0, 15)
    info = np.iinfo(dtype)
    return int(info.min), int(info.max)




def add_all(terms: Sequence[RelayExpr]) -> RelayExpr:
    """The sum of the terms."""
    return _fold(lambda a, b: call("add", a, b), terms)


@op("BitCast")
def bit_cast(n: NodeContext) -> RelayExpr:
    """The same bits under another type of the same width."""
    if n.dtype(n.need(0)) == "bool":
        return cast(cast(n.need(0), "uint8"), relay_dtype(n.attr("to"), "the result"))
    return call("reinterpret", n.need(0), dtype=relay_dtype(n.attr("to"), "the result"))


__all__ = ["aligned", "add_all", "clip_between", "const", "dtype_limits", "is_float", "round_half_even"]
