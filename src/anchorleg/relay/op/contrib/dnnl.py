"""What the compiler ``dnnl`` takes: operators, and convolutions and products with what follows them.

The compiler itself is not part of this package: register it as ``relay.ext.dnnl``.
"""
from __future__ import annotations

from typing import Any

import numpy as np

from ....ir.op import Op, register_op_attr
from ....ir.type import TensorType
from ...dataflow_pattern import DFPattern, is_op, wildcard
from ...expr import Call
from .register import register_pattern_table

COMPILER = "dnnl"
OPERATORS = (
    "nn.batch_norm", "nn.conv1d", "nn.conv2d", "nn.conv3d", "nn.conv2d_transpose", "nn.conv3d_transpose", "nn.dense", "nn.max_pool2d",
    "nn.avg_pool2d", "nn.global_avg_pool2d", "nn.max_pool3d", "nn.avg_pool3d", "abs", "clip", "exp", "log", "sqrt", "round", "nn.relu",
    "nn.leaky_relu", "tanh", "sigmoid", "nn.softmax", "add", "multiply", "nn.layer_norm", "nn.batch_matmul")
_CONVOLUTIONS = {"nn.conv1d": "conv1d", "nn.conv2d": "conv2d", "nn.conv3d": "conv3d", "nn.conv2d_transpose": "deconv2d", "nn.conv3d_transpose": "deconv3d"}


def takes(call: Call) -> bool:
    """Whether the compiler takes a call of one of its operators: no 64-bit integers, no pooling whose windows pass the border."""
    dtypes = [getattr(a.checked_type, "dtype", None) for a in call.args]
    return "int64" not in dtypes and not getattr(call.attrs, "ceil_mode", False)


for _name in OPERATORS:
    register_op_attr(_name, f"target.{COMPILER}", takes)


# -- patterns


def _gelu(x: DFPattern) -> DFPattern:
    erf = is_op("add")(is_op("erf")(is_op("divide")(x, wildcard())), wildcard())
    return is_op("multiply")(is_op("multiply")(x, erf), wildcard())


def _swish(x: DFPattern) -> DFPattern:
    return is_op("multiply")(x, is_op("sigmoid")(x))


def _mish(x: DFPattern) -> DFPattern:
    return is_op("multiply")(x, is_op("tanh")(is_op("log")(is_op("add")(is_op("exp")(x), wildcard()))))


# what may follow, the more telling first: name, pattern of the value before
_AFTER: dict[str, Any] = {
    "gelu": _gelu, "swish": _swish, "mish": _mish, "relu": lambda x: is_op("nn.relu")(x), "tanh": lambda x: is_op("tanh")(x),
    "sigmoid": lambda x: is_op("sigmoid")(x), "clip": lambda x: is_op("clip")(x), "": lambda x: x,
}


def _product(name: str, bias: bool) -> DFPattern:
    product = is_op(name)(wildcard(), wildcard())
    return is_op("add")(product, wildcard()) if bias else product


def _sum(name: str, relu: bool) -> DFPattern:
    total = is_op("add")(_product(name, True), wildcard())
    return is_op("nn.relu")(total) if relu else total


def _shape(expr: Any) -> Any:
    ty = expr.checked_type
    return ty.concrete_shape if isinstance(ty, TensorType) and ty.is_static else None


def _with_reader(expr: Any, name: str) -> tuple[Any, Any]:
    """The call of an operator that a match is built on, and the call that reads it; None when the way there is none."""
    reader = None
    while isinstance(expr, Call) and not _is(expr, name):
        reader = expr
        expr = next((a for a in expr.args if isinstance(a, Call)), None)
    return (expr, reader) if isinstance(expr, Call) else (None, None)


def _is(expr: Any, name: str) -> bool:
    return isinstance(expr, Call) and isinstance(expr.op, Op) and expr.op.name == name


def _bias_of(name: str) -> Any:
    """A check that what is added to the convolution is one number for each of its channels."""
    def check(expr: Call) -> bool:
        conv, add = _with_reader(expr, name)
        if conv is None or not _is(add, "add"):
            return False
        bias, result = _shape(add.args[1] if add.args[0] is conv else add.args[0]), _shape(conv)
        return bias is not None and result is not None and int(np.prod(bias, dtype=np.int64)) == int(conv.attrs.channels or result[1])

    return check


def _sum_of(name: str) -> Any:
    """A check that the second sum is of tensors of one shape, and the first of a convolution and its bias."""
    biased = _bias_of(name)

    def check(expr: Call) -> bool:
        total = expr.args[0] if _is(expr, "nn.relu") else expr
        first, second = total.args  # type: ignore[attr-defined]
        same = _shape(first) is not None and _shape(first) == _shape(second)
        return same and any(_is(part, "add") and biased(part) for part in (first, second))

    return check


@register_pattern_table(COMPILER)
def pattern_table() -> list[tuple[Any, ...]]:
    """The patterns, in the order in which they are tried."""
    table: list[tuple[Any, ...]] = []
    for name in ("nn.conv1d", "nn.conv2d", "nn.conv3d"):
        table += [(f"{COMPILER}.{_CONVOLUTIONS[name]}_bias_sum_relu", _sum(name, True), _sum_of(name)),
                  (f"{COMPILER}.{_CONVOLUTIONS[name]}_bias_sum", _sum(name, False), _sum_of(name))]
    table.append((f"{COMPILER}.dense_bias_sum", _sum("nn.dense", False)))
    for after, pattern in _AFTER.items():
        for bias in (True, False):
            ending = "_bias" * bias + (f"_{after}" if after else "")
            if ending:
                table += [(f"{COMPILER}.{short}{ending}", pattern(_product(name, bias)), *([_bias_of(name)] if bias else []))
                          for name, short in _CONVOLUTIONS.items()]
                table.append((f"{COMPILER}.dense{ending}", pattern(_product("nn.dense", bias))))
    return table


__all__ = ["COMPILER", "OPERATORS", "pattern_table", "takes"]
