"""Element-wise arithmetic, activations and concatenation of quantised tensors."""
from __future__ import annotations

import math
from typing import Any, Callable, Sequence

import numpy as np

from ....ir.attrs import INT, Attrs, Field
from ....ir.expr import RelayExpr
from ....ir.op import Op, OpPattern
from ....ir.type import TensorType, TupleType, Type
from ....support.errors import ArgumentError, TypeMismatchError
from ...expr import Call, Tuple, TupleWrapper
from ..nn.activation import LeakyReluAttrs
from ..nn.common import check_axis, tensor
from ..nn.softmax import SoftmaxAttrs
from ..registry import declare
from ..transform.join import ConcatenateAttrs
from ..type_relations import broadcast_rel
from .common import axis_extent, check_dtype, check_parameter, is_known, quantised, real, round_up, saturate
from .quantize import requantise


class BroadcastAttrs(Attrs, name="relay.attrs.BroadcastAttrs"):
    """Attributes of qnn.add, qnn.subtract and qnn.mul."""

    lhs_axis = Field(INT, -1, "The axis of the left operand's vectors of parameters.")
    rhs_axis = Field(INT, -1, "The axis of the right operand's vectors of parameters.")


_BINARY = ("lhs", "rhs", "lhs_scale", "lhs_zero_point", "rhs_scale", "rhs_zero_point", "output_scale", "output_zero_point")
_UNARY = ("data", "scale", "zero_point", "output_scale", "output_zero_point")
_NARROW = ("int8", "uint8", "int16", "int32")


def _binary_relation(op: str) -> Any:
    def relation(args: tuple[Type, ...], attrs: Any, ctx: Any) -> Type | None:
        if not is_known(args):
            return None
        for i, (side, axis) in enumerate((("lhs", attrs.lhs_axis), ("rhs", attrs.rhs_axis))):
            t = tensor(args[i], f"{op}, {side}")
            check_dtype(op, side, t.dtype, _NARROW)
            scale, zero = args[2 + 2 * i], args[3 + 2 * i]
            size = axis_extent(op, t, axis if len(t.dims) > 1 else 0, (scale, zero))
            check_parameter(op, f"{side}_scale", scale, "float32", size)
            check_parameter(op, f"{side}_zero_point", zero, "int32", size)
        check_parameter(op, "output_scale", args[6], "float32")
        check_parameter(op, "output_zero_point", args[7], "int32")
        return broadcast_rel(args[:2], None, ctx)

    return relation


def _sum_numpy(sign: int) -> Any:
    """Both operands carried over to the output's scale, then added as integers."""
    def rule(attrs: Any, args: list[np.ndarray], out_type: TensorType) -> np.ndarray:
        a, b, a_scale, a_zero, b_scale, b_zero, scale, zero = args
        left = requantise(a, a_scale, a_zero, scale, zero, "int32", attrs.lhs_axis).astype(np.int64)
        right = requantise(b, b_scale, b_zero, scale, zero, "int32", attrs.rhs_axis).astype(np.int64)
        total = left + right - int(zero.reshape(-1)[0]) if sign > 0 else left - right + int(zero.reshape(-1)[0])
        info = np.iinfo(out_type.dtype)
        return np.clip(total, info.min, info.max).astype(out_type.dtype)

    return rule


def _mul_numpy(attrs: Any, args: list[np.ndarray], out_type: TensorType) -> np.ndarray:
    a, b, a_scale, a_zero, b_scale, b_zero, scale, zero = args
    left, right = real(a, a_scale, a_zero, attrs.lhs_axis), real(b, b_scale, b_zero, attrs.rhs_axis)
    return saturate(round_up(left * right / float(scale.reshape(-1)[0])) + int(zero.reshape(-1)[0]), out_type.dtype)


def _unary_relation(op: str) -> Any:
    def relation(args: tuple[Type, ...], attrs: Any, ctx: Any) -> Type | None:
        if not is_known(args):
            return None
        data = tensor(args[0], f"{op}, data")
        check_dtype(op, "data", data.dtype, ("int8", "uint8"))
        for name, arg, dtype in zip(_UNARY[1:], args[1:], ("float32", "int32", "float32", "int32")):
            check_parameter(op, name, arg, dtype)
        if attrs is not None and "axis" in attrs:
            check_axis(op, attrs.axis, len(data.dims))
        return data

    return relation


def _through_real(fn: Callable[..., np.ndarray]) -> Any:
    """Dequantises, applies ``fn(attrs, x)``, quantises."""
    def rule(attrs: Any, args: list[np.ndarray], out_type: TensorType) -> np.ndarray:
        data, scale, zero, out_scale, out_zero = args
        return quantised(fn(attrs, real(data, scale, zero)), out_scale, out_zero, out_type.dtype)

    return rule


def _softmax(attrs: Any, x: np.ndarray) -> np.ndarray:
    e = np.exp(x - x.max(axis=attrs.axis, keepdims=True))
    return e / e.sum(axis=attrs.axis, keepdims=True)


_FUNCTIONS: dict[str, Callable[..., np.ndarray]] = {
    "tanh": lambda a, x: np.tanh(x), "exp": lambda a, x: np.exp(x), "sqrt": lambda a, x: np.sqrt(x), "rsqrt": lambda a, x: 1 / np.sqrt(x),
    "erf": lambda a, x: np.vectorize(math.erf, otypes=[np.float64])(x), "abs": lambda a, x: np.abs(x), "log": lambda a, x: np.log(x),
    "sigmoid": lambda a, x: 1 / (1 + np.exp(-x)), "hardswish": lambda a, x: x * np.clip(x + 3, 0, 6) / 6,
}


def _concatenate_relation(args: tuple[Type, ...], attrs: Any, ctx: Any) -> Type | None:
    op = "qnn.concatenate"
    if not is_known(args):
        return None
    data, scales, zeros = args[:3]
    if not all(isinstance(t, TupleType) for t in (data, scales, zeros)):
        raise TypeMismatchError(f"{op}: data, input_scales and input_zero_points must be tuples")
    if not len(data.fields) == len(scales.fields) == len(zeros.fields):
        raise TypeMismatchError(f"{op}: expected one scale and zero point per tensor, got {len(scales.fields)} and {len(zeros.fields)} for {len(data.fields)}")
    for scale, zero in zip(scales.fields, zeros.fields):
        check_parameter(op, "input_scales", scale, "float32")
        check_parameter(op, "input_zero_points", zero, "int32")
    check_parameter(op, "output_scale", args[3], "float32")
    check_parameter(op, "output_zero_point", args[4], "int32")
    return Op.get("concatenate").relation((data,), attrs, ctx)


def _concatenate_numpy(attrs: Any, args: list[Any], out_type: TensorType) -> np.ndarray:
    data, scales, zeros, scale, zero = _regroup(args)
    parts = [requantise(x, s, z, scale, zero, out_type.dtype) for x, s, z in zip(data, scales, zeros)]
    return np.concatenate(parts, axis=attrs.axis)


def _regroup(args: list[Any]) -> tuple[Any, ...]:
    """The five arguments, whether tuples came as tuples or as their fields in a row."""
    if any(isinstance(a, (tuple, list)) for a in args):
        return tuple(args)
    n = (len(args) - 2) // 3
    return args[:n], args[n:2 * n], args[2 * n:3 * n], args[-2], args[-1]


def _declare_all() -> None:
    for name, rule in (("add", _sum_numpy(1)), ("subtract", _sum_numpy(-1)), ("mul", _mul_numpy)):
        declare(f"qnn.{name}", inputs=_BINARY, attrs=BroadcastAttrs, relation=_binary_relation(f"qnn.{name}"), pattern=OpPattern.BROADCAST,
                numpy=rule, level=11, TNonComputational=True, doc=f"{name} of quantised tensors, the result quantised anew.")
    for name, fn in _FUNCTIONS.items():
        declare(f"qnn.{name}", inputs=_UNARY, relation=_unary_relation(f"qnn.{name}"), pattern=OpPattern.ELEMWISE, numpy=_through_real(fn),
                level=11, TNonComputational=True, doc=f"{name} of a quantised tensor, the result quantised anew.")
    declare("qnn.leaky_relu", inputs=("data", "input_scale", "input_zero_point", "output_scale", "output_zero_point"), attrs=LeakyReluAttrs,
            relation=_unary_relation("qnn.leaky_relu"), pattern=OpPattern.ELEMWISE, level=11, TNonComputational=True,
            numpy=_through_real(lambda a, x: np.where(x < 0, x * a.alpha, x)), doc="leaky_relu of a quantised tensor.")
    declare("qnn.softmax", inputs=_UNARY, attrs=SoftmaxAttrs, relation=_unary_relation("qnn.softmax"), pattern=OpPattern.OPAQUE, level=11,
            numpy=_through_real(_softmax), TNonComputational=True, doc="softmax of a quantised tensor.")
    declare("qnn.concatenate", inputs=("data", "input_scales", "input_zero_points", "output_scale", "output_zero_point"),
            attrs=ConcatenateAttrs, relation=_concatenate_relation, pattern=OpPattern.INJECTIVE,
            numpy=_concatenate_numpy, level=11, TNonComputational=True, doc="Quantised tensors of several scales, joined in one scale.")


_declare_all()


def _binary_call(op: str, args: Sequence[RelayExpr], lhs_axis: int, rhs_axis: int) -> Call:
    return Call(Op.get(op), args, BroadcastAttrs(lhs_axis=lhs_axis, rhs_axis=rhs_axis))


def add(lhs: RelayExpr, rhs: RelayExpr, lhs_scale: RelayExpr, lhs_zero_point: RelayExpr, rhs_scale: RelayExpr, rhs_zero_point: RelayExpr,
        output_scale: RelayExpr, output_zero_point: RelayExpr, lhs_axis: int = -1, rhs_axis: int = -1) -> Call:
    """The sum, in the output's scale."""
    return _binary_call("qnn.add", [lhs, rhs, lhs_scale, lhs_zero_point, rhs_scale, rhs_zero_point, output_scale, output_zero_point], lhs_axis, rhs_axis)


def subtract(lhs: RelayExpr, rhs: RelayExpr, lhs_scale: RelayExpr, lhs_zero_point: RelayExpr, rhs_scale: RelayExpr,
             rhs_zero_point: RelayExpr, output_scale: RelayExpr, output_zero_point: RelayExpr, lhs_axis: int = -1, rhs_axis: int = -1) -> Call:
    """The difference, in the output's scale."""
    return _binary_call("qnn.subtract", [lhs, rhs, lhs_scale, lhs_zero_point, rhs_scale, rhs_zero_point, output_scale, output_zero_point], lhs_axis, rhs_axis)


def mul(lhs: RelayExpr, rhs: RelayExpr, lhs_scale: RelayExpr, lhs_zero_point: RelayExpr, rhs_scale: RelayExpr, rhs_zero_point: RelayExpr,
        output_scale: RelayExpr, output_zero_point: RelayExpr, lhs_axis: int = -1, rhs_axis: int = -1) -> Call:
    """The product, in the output's scale."""
    return _binary_call("qnn.mul", [lhs, rhs, lhs_scale, lhs_zero_point, rhs_scale, rhs_zero_point, output_scale, output_zero_point], lhs_axis, rhs_axis)


def _unary(name: str) -> Any:
    def fn(x: RelayExpr, scale: RelayExpr, zero_point: RelayExpr, output_scale: RelayExpr, output_zero_point: RelayExpr) -> Call:
        return Call(Op.get(f"qnn.{name}"), [x, scale, zero_point, output_scale, output_zero_point])

    fn.__name__ = fn.__qualname__ = name
    fn.__doc__ = f"{name} of a quantised tensor, the result quantised anew."
    return fn


tanh, exp, sqrt, rsqrt, erf, abs, sigmoid, hardswish, log = map(
    _unary, ("tanh", "exp", "sqrt", "rsqrt", "erf", "abs", "sigmoid", "hardswish", "log"))


def leaky_relu(x: RelayExpr, alpha: float, input_scale: RelayExpr, input_zero_point: RelayExpr, output_scale: RelayExpr,
               output_zero_point: RelayExpr) -> Call:
    """leaky_relu of a quantised tensor."""
    return Call(Op.get("qnn.leaky_relu"), [x, input_scale, input_zero_point, output_scale, output_zero_point], LeakyReluAttrs(alpha=alpha))


def softmax(x: RelayExpr, scale: RelayExpr, zero_point: RelayExpr, output_scale: RelayExpr, output_zero_point: RelayExpr, axis: int = -1) -> Call:
    """softmax of a quantised tensor along ``axis``."""
    return Call(Op.get("qnn.softmax"), [x, scale, zero_point, output_scale, output_zero_point], SoftmaxAttrs(axis=axis))


def concatenate(data: Any, input_scales: Sequence[RelayExpr], input_zero_points: Sequence[RelayExpr], output_scale: RelayExpr,
                output_zero_point: RelayExpr, axis: int) -> Call:
    """Quantised tensors, each of its own scale and zero point, joined along ``axis`` in the output's."""
    if isinstance(data, TupleWrapper):
        data = data.tuple_value
    elif isinstance(data, (list, tuple)):
        data = Tuple(data)
    if not isinstance(axis, int):
        raise ArgumentError(f"qnn.concatenate: axis must be an int, got {axis!r}")
    args = [data, Tuple(list(input_scales)), Tuple(list(input_zero_points)), output_scale, output_zero_point]
    return Call(Op.get("qnn.concatenate"), args, ConcatenateAttrs(axis=axis))
