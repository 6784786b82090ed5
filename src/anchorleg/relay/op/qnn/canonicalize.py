"""What quantised operators become for targets that know integers only: plain operators with the same results.

Scales and zero points that are constants turn into fixed-point multipliers, tables and constant corrections; others are computed.

==================  =================================================================================================
qnn.quantize        divide, round, add, clip, cast
qnn.dequantize      cast, subtract, multiply
qnn.requantize      ``fixed_point_multiply`` (per axis too), then clip; rounding as its attribute says
qnn.conv2d, dense   the plain product of the raw integers, less zero point × sum of the weights, which is constant
qnn.add, subtract   both sides carried over to the result's scale
qnn.mul             the integer product, carried over
qnn.tanh …          a table of all 256 values
==================  =================================================================================================
"""
from __future__ import annotations

import math
from typing import Any, Sequence

import numpy as np

from ....ir.expr import RelayExpr
from ....ir.op import Op
from ....ir.type import TensorType
from ....runtime.dtype import numpy_dtype
from ....tir.data_layout import Layout
from ...expr import Call, Constant, Tuple, TupleGetItem, const
from .arithmetic import _FUNCTIONS
from .quantize import RequantizeAttrs, current_requantize_config

ATTRIBUTE = "FTVMQnnCanonicalize"


def _op(name: str, *args: RelayExpr, **attrs: Any) -> Call:
    """A call of a plain operator by name."""
    op = Op.get(name)
    made = op.attrs_type(**attrs) if attrs else (op.attrs_type() if op.attrs_type is not None else None)
    return Call(op, list(args), made)


def _number(value: Any, dtype: str) -> Constant:
    return const(np.asarray(value, numpy_dtype(dtype)))


def _values(expr: RelayExpr) -> np.ndarray | None:
    """A constant's values; None when they are not known."""
    return np.asarray(expr.data.numpy()) if isinstance(expr, Constant) else None


def _cast(x: RelayExpr, dtype: str) -> RelayExpr:
    return _op("cast", x, dtype=dtype)


def _clipped(x: RelayExpr, dtype: str, integer: bool = True) -> RelayExpr:
    """Cut to the range of ``dtype``, as that type."""
    info = np.iinfo(dtype)
    if dtype != "int32" or not integer:
        x = _op("clip", x, a_min=float(info.min), a_max=float(info.max))
    return _cast(x, dtype)


def _along(expr: RelayExpr, rank: int, axis: int, vector: bool) -> RelayExpr:
    """A parameter shaped to broadcast along ``axis``."""
    shape = [-1 if i == axis % rank else 1 for i in range(rank)] if vector and rank > 1 else ([-1] if vector else [])
    values = _values(expr)
    if values is not None:
        return const(values.reshape(shape if vector else ()))
    return _op("reshape", expr, newshape=shape) if vector or _rank(expr) else expr


def _rank(expr: RelayExpr) -> int:
    ty = expr._checked_type
    return len(ty.dims) if isinstance(ty, TensorType) else 0


def _is_vector(ty: Any) -> bool:
    return isinstance(ty, TensorType) and any(d != 1 for d in ty.dims)


def _is_zero(expr: RelayExpr) -> bool:
    values = _values(expr)
    return values is not None and not values.any()


def _shifted(x: RelayExpr, zero_point: RelayExpr) -> RelayExpr:
    return x if _is_zero(zero_point) else _op("subtract", x, zero_point)


# -- quantize, dequantize


def _quantize(attrs: Any, args: Sequence[RelayExpr], types: Sequence[Any]) -> RelayExpr:
    rank = len(types[0].dims)
    scale = _along(args[1], rank, attrs.axis, _is_vector(types[1]))
    zero = _along(args[2], rank, attrs.axis, _is_vector(types[2]))
    x = args[0] if types[0].dtype == "float32" else _cast(args[0], "float32")
    rounded = _op("round", _op("divide", x, scale))
    return _clipped(rounded if _is_zero(zero) else _op("add", rounded, _cast(zero, "float32")), attrs.out_dtype, integer=False)


def _dequantize(attrs: Any, args: Sequence[RelayExpr], types: Sequence[Any]) -> RelayExpr:
    rank = len(types[0].dims)
    scale = _along(args[1], rank, attrs.axis, _is_vector(types[1]))
    zero = _along(args[2], rank, attrs.axis, _is_vector(types[2]))
    real = _op("multiply", _cast(_shifted(_cast(args[0], "int32"), zero), "float32"), scale)
    return real if types[-1].dtype == "float32" else _cast(real, types[-1].dtype)


# -- requantize


def fixed_point(factor: float) -> tuple[int, int]:
    """(multiplier with 31 fraction bits, shift to the left) of a factor; (0, 0) of one too small to matter."""
    if factor == 0:
        return 0, 0
    significand, exponent = math.frexp(factor)
    multiplier = int(math.floor(significand * (1 << 31) + 0.5))
    if multiplier == 1 << 31:
        multiplier, exponent = multiplier >> 1, exponent + 1
    return (0, 0) if exponent < -31 else (multiplier, exponent)


def _requantize(attrs: Any, args: Sequence[RelayExpr], types: Sequence[Any]) -> RelayExpr:
    data, rank = args[0], len(types[0].dims)
    zero = _along(args[2], rank, attrs.axis, _is_vector(types[2]))
    mode, compute = _way(attrs)
    if compute != "int64" and mode != "TFLITE":
        return _in_floats(data, zero, args, rank, attrs, mode, compute)
    wide = "int64" if types[0].dtype == "int64" else "int32"
    shifted = _shifted(_cast(data, wide) if types[0].dtype != wide else data, zero)
    carried = _carried(shifted, wide, args[1], args[3], rank, attrs)
    out_zero = _along(args[4], 0, 0, False)
    total = carried if _is_zero(args[4]) else _op("add", carried, out_zero if wide == "int32" else _cast(out_zero, wide))
    return _clipped(total, attrs.out_dtype)


def _way(attrs: RequantizeAttrs) -> tuple[str, str]:
    """(rounding, type of the arithmetic)"""
    config = current_requantize_config()
    return (config.get_rounding() if attrs.rounding == "None" else attrs.rounding,
            config.get_compute_dtype() if attrs.compute_dtype == "None" else attrs.compute_dtype)


def _in_floats(data: RelayExpr, zero: RelayExpr, args: Sequence[RelayExpr], rank: int, attrs: RequantizeAttrs, mode: str, kind: str) -> RelayExpr:
    """Rescaled, shifted and then rounded, all in floats of ``kind``."""
    x = _cast(data, kind)
    x = x if _is_zero(zero) else _op("subtract", x, _cast(zero, kind))
    factor = _ratio(args[1], args[3], rank, attrs.axis, kind)
    x = x if factor is None else _op("multiply", x, factor)
    x = x if _is_zero(args[4]) else _op("add", x, _cast(_along(args[4], 0, 0, False), kind))
    rounded = _op("round", x) if mode == "TONEAREST" else _op("floor", _op("add", x, _number(0.5, kind)))
    info = np.iinfo(attrs.out_dtype)
    return _cast(_op("clip", rounded, a_min=float(info.min), a_max=float(info.max)), attrs.out_dtype)


def _ratio(input_scale: RelayExpr, output_scale: RelayExpr, rank: int, axis: int, kind: str) -> RelayExpr | None:
    """Input scale / output scale, shaped to broadcast along ``axis``; None for 1."""
    a, b = _values(input_scale), _values(output_scale)
    vector = _is_vector(input_scale._checked_type) if a is None else a.size > 1
    if a is None or b is None:
        return _op("divide", _cast(_along(input_scale, rank, axis, vector), kind), _cast(_along(output_scale, 0, 0, False), kind))
    factors = a.astype(np.float64) / np.float64(b.reshape(-1)[0])
    return None if (factors == 1).all() else _along(_number(factors, kind), rank, axis, vector)


def _carried(x: RelayExpr, dtype: str, input_scale: RelayExpr, output_scale: RelayExpr, rank: int, attrs: RequantizeAttrs) -> RelayExpr:
    """``x`` × input scale / output scale, rounded; in fixed point where both are known and ``x`` is int32, else in float64."""
    a, b = _values(input_scale), _values(output_scale)
    mode, _ = _way(attrs)
    if a is None or b is None or dtype != "int32":
        return _by_floats(x, dtype, input_scale, output_scale, rank, attrs.axis, mode)
    factors = a.astype(np.float64).reshape(-1) / np.float64(b.reshape(-1)[0])
    if len(set(factors.tolist())) == 1 and factors[0] == 1.0:
        return x
    pairs = [fixed_point(f) for f in factors]
    shape = tuple(-1 if i == attrs.axis % max(rank, 1) else 1 for i in range(rank))
    return _ROUNDINGS[mode](x, pairs, attrs.axis % max(rank, 1), shape)


def _by_floats(x: RelayExpr, dtype: str, input_scale: RelayExpr, output_scale: RelayExpr, rank: int, axis: int, mode: str) -> RelayExpr:
    factor = _ratio(input_scale, output_scale, rank, axis, "float64")
    product = _cast(x, "float64") if factor is None else _op("multiply", _cast(x, "float64"), factor)
    rounded = _op("round", product) if mode == "TONEAREST" else _op("floor", _op("add", product, _number(0.5, "float64")))
    info = np.iinfo("int32")
    return _cast(_op("clip", rounded, a_min=float(info.min), a_max=float(info.max)), dtype)


Pairs = "Sequence[tuple[int, int]]"


def _multiplied(x: RelayExpr, pairs: Sequence[tuple[int, int]], axis: int, right: bool) -> RelayExpr:
    """x × multipliers × 2**shifts, halves up; ``right`` false leaves right shifts to the caller."""
    if len(set(pairs)) == 1:
        multiplier, shift = pairs[0]
        return _op("fixed_point_multiply", x, multiplier=multiplier, shift=shift if right or shift > 0 else 0)
    multipliers = _number([m for m, _ in pairs], "int32")
    left, back = [max(s, 0) for _, s in pairs], [max(-s, 0) if right else 0 for _, s in pairs]
    shifts = (_number(s, "int32") if any(s) else multipliers for s in (left, back))  # shifts that nobody reads take no memory
    return _op("fixed_point_multiply_per_axis", x, multipliers, *shifts, is_lshift_required=any(left), is_rshift_required=any(back), axes=[axis])


def _upward(x: RelayExpr, pairs: Sequence[tuple[int, int]], axis: int, shape: Sequence[int]) -> RelayExpr:
    return _multiplied(x, pairs, axis, True)


def _tflite(x: RelayExpr, pairs: Sequence[tuple[int, int]], axis: int, shape: Sequence[int]) -> RelayExpr:
    """Rounded twice, as TensorFlow Lite does: the high half of the product, halves up; then the right shift, halves away from zero."""
    high = _multiplied(x, pairs, axis, False)
    if all(s >= 0 for _, s in pairs):
        return high
    back = np.asarray([max(-s, 0) for _, s in pairs], np.int32)
    half = np.where(back > 0, 1 << np.maximum(back - 1, 0), 0).astype(np.int32)
    same = len(set(pairs)) == 1
    amount, nudge = (const(v[0].reshape(())) if same else const(v.reshape(shape)) for v in (back, half))
    sign = _op("right_shift", high, _number(31, "int32"))
    if not same and (back == 0).any():  # nothing to round where nothing is shifted
        sign = _op("multiply", sign, const((back > 0).astype(np.int32).reshape(shape)))
    return _op("right_shift", _op("add", _op("add", high, sign), nudge), amount)


def _to_nearest(x: RelayExpr, pairs: Sequence[tuple[int, int]], axis: int, shape: Sequence[int]) -> RelayExpr:
    """One rounding in 64 bits, halves away from zero."""
    same = len(set(pairs)) == 1
    arrays = [np.asarray(v, np.int64) for v in ([m for m, _ in pairs], [max(s, 0) for _, s in pairs], [31 + max(-s, 0) for _, s in pairs])]
    multiplier, left, right, half = (const(v[0].reshape(())) if same else const(v.reshape(shape))
                                     for v in (*arrays, np.left_shift(np.int64(1), arrays[2] - 1)))
    product = _op("multiply", _op("left_shift", _cast(x, "int64"), left), multiplier)
    sign = _op("right_shift", product, _number(63, "int64"))
    return _cast(_op("right_shift", _op("add", _op("add", product, sign), half), right), "int32")


_ROUNDINGS = {"UPWARD": _upward, "TONEAREST": _to_nearest, "TFLITE": _tflite}


# -- products


def _centred(x: RelayExpr, zero_point: RelayExpr) -> RelayExpr:
    return _shifted(_cast(x, "int32"), zero_point)


def _conv2d(attrs: Any, args: Sequence[RelayExpr], types: Sequence[Any]) -> RelayExpr:
    data, weight, input_zero, weight_zero = args[:4]
    zero = _values(input_zero)
    if not _is_zero(weight_zero) or zero is None or attrs.out_dtype != "int32":
        axis = Layout(attrs.kernel_layout).index_of("O")
        weight_part = _along(weight_zero, len(types[1].dims), axis, _is_vector(types[3]))
        return Call(Op.get("nn.conv2d"), [_centred(data, _along(input_zero, 0, 0, False)), _centred(weight, weight_part)], attrs)
    value = int(zero.reshape(-1)[0])
    plain = attrs
    if value and any(int(p) for p in attrs.padding):
        data, plain = _padded(data, value, attrs, len(types[0].dims)), attrs.replace(padding=(0, 0, 0, 0))
    raw = Call(Op.get("nn.conv2d"), [data, weight], plain)
    if not value:
        return raw
    letter = (attrs.out_layout or attrs.data_layout)
    shape = [-1 if c == "C" else 1 for c in letter]
    return _op("subtract", raw, _op("reshape", _weight_sums(weight, attrs, value), newshape=shape))


def _padded(data: RelayExpr, value: int, attrs: Any, rank: int) -> RelayExpr:
    """Padding is with the zero point, which stands for zero."""
    from ..nn.utils import pad_tuple

    top, left, bottom, right = pad_tuple(attrs.padding) if len(attrs.padding) != 4 else attrs.padding
    around = {"H": (int(top), int(bottom)), "W": (int(left), int(right))}
    widths = [around.get(c, (0, 0)) for c in attrs.data_layout]
    dtype = data._checked_type.dtype if isinstance(data._checked_type, TensorType) else "int8"
    return _op("nn.pad", data, _number(value, dtype), pad_width=widths, pad_mode="constant")


def _weight_sums(weight: RelayExpr, attrs: Any, value: int) -> RelayExpr:
    """zero point × the sum of each output channel's weights."""
    layout = attrs.kernel_layout
    depthwise = attrs.groups > 1 and layout in ("HWOI", "HWIO") and layout.index("O") < layout.index("I")
    axes = [i for i, c in enumerate(layout) if c not in ("OI" if depthwise else "O")]
    summed = _op("sum", _cast(weight, "int32"), axis=axes, keepdims=False)
    return _op("multiply", summed, _number(value, "int32"))


def _dense(attrs: Any, args: Sequence[RelayExpr], types: Sequence[Any]) -> RelayExpr:
    data, weight, input_zero, weight_zero = args[:4]
    zero = _values(input_zero)
    if not _is_zero(weight_zero) or zero is None or attrs.out_dtype != "int32":
        weight_part = _along(weight_zero, 2, 0, _is_vector(types[3]))
        return Call(Op.get("nn.dense"), [_centred(data, _along(input_zero, 0, 0, False)), _centred(weight, weight_part)], attrs)
    raw, value = Call(Op.get("nn.dense"), [data, weight], attrs), int(zero.reshape(-1)[0])
    if not value:
        return raw
    return _op("subtract", raw, _op("multiply", _op("sum", _cast(weight, "int32"), axis=[1], keepdims=False), _number(value, "int32")))


def _batch_matmul(attrs: Any, args: Sequence[RelayExpr], types: Sequence[Any]) -> RelayExpr:
    scalar = [_along(a, 0, 0, False) for a in args[2:4]]
    return Call(Op.get("nn.batch_matmul"), [_centred(args[0], scalar[0]), _centred(args[1], scalar[1])], attrs)


def _conv2d_transpose(attrs: Any, args: Sequence[RelayExpr], types: Sequence[Any]) -> RelayExpr:
    axis = Layout(attrs.kernel_layout).index_of("O")
    weight_part = _along(args[3], len(types[1].dims), axis, _is_vector(types[3]))
    return Call(Op.get("nn.conv2d_transpose"), [_centred(args[0], _along(args[2], 0, 0, False)), _centred(args[1], weight_part)], attrs)


# -- element-wise


def _in_scale(x: RelayExpr, ty: TensorType, scale: RelayExpr, zero: RelayExpr, out_scale: RelayExpr, out_zero: RelayExpr, axis: int, dtype: str,
              parameter_types: Sequence[Any]) -> RelayExpr:
    """``x`` in another scale and zero point."""
    attrs = RequantizeAttrs(axis=axis if len(ty.dims) > 1 else 0, out_dtype=dtype)
    return _requantize(attrs, [x, scale, zero, out_scale, out_zero], [ty, *parameter_types, ty])


def _sum(operator: str) -> Any:
    def rule(attrs: Any, args: Sequence[RelayExpr], types: Sequence[Any]) -> RelayExpr:
        a, b, a_scale, a_zero, b_scale, b_zero, scale, zero = args
        left = _in_scale(a, types[0], a_scale, a_zero, scale, zero, attrs.lhs_axis, "int32", [types[2], types[3], types[6], types[7]])
        right = _in_scale(b, types[1], b_scale, b_zero, scale, zero, attrs.rhs_axis, "int32", [types[4], types[5], types[6], types[7]])
        total = _op(operator, left, right)
        undo = "subtract" if operator == "add" else "add"
        return _clipped(total if _is_zero(zero) else _op(undo, total, _along(zero, 0, 0, False)), types[-1].dtype)

    return rule


def _mul(attrs: Any, args: Sequence[RelayExpr], types: Sequence[Any]) -> RelayExpr | None:
    a, b, a_scale, a_zero, b_scale, b_zero, scale, zero = args
    left, right = _values(a_scale), _values(b_scale)
    if left is None or right is None or left.size > 1 or right.size > 1:
        return None
    product = _op("multiply", _centred(a, _along(a_zero, 0, 0, False)), _centred(b, _along(b_zero, 0, 0, False)))
    wide = TensorType(types[-1].dims, "int32")
    factor = const(np.float32(left.reshape(-1)[0]) * np.float32(right.reshape(-1)[0]))
    parameters = [TensorType((), "float32"), TensorType((), "int32"), types[6], types[7]]
    return _in_scale(product, wide, factor, _number(0, "int32"), scale, zero, -1, types[-1].dtype, parameters)


def _table(name: str) -> Any:
    """An element-wise function of 8-bit values as a table, which the operator's numpy rule fills."""
    def rule(attrs: Any, args: Sequence[RelayExpr], types: Sequence[Any]) -> RelayExpr | None:
        parameters = [_values(a) for a in args[1:]]
        if any(p is None for p in parameters) or types[0].dtype not in ("int8", "uint8"):
            return None
        low = np.iinfo(types[0].dtype).min
        every = np.arange(low, low + 256).astype(types[0].dtype)
        values = Op.get(name).get_attr("FNumpy")(attrs, [every, *parameters], TensorType((256,), types[0].dtype))
        index = _cast(args[0], "int32")
        return _op("take", const(np.asarray(values)), index if not low else _op("subtract", index, _number(low, "int32")), axis=0, mode="fast")

    return rule


def _softmax(attrs: Any, args: Sequence[RelayExpr], types: Sequence[Any]) -> RelayExpr:
    data, scale, zero, out_scale, out_zero = args
    real = _op("multiply", _cast(_shifted(_cast(data, "int32"), _along(zero, 0, 0, False)), "float32"), _along(scale, 0, 0, False))
    share = _op("divide", _op("nn.softmax", real, axis=attrs.axis), _along(out_scale, 0, 0, False))
    rounded = _op("round", share)
    return _clipped(_op("add", rounded, _cast(_along(out_zero, 0, 0, False), "float32")), types[-1].dtype, integer=False)


def _concatenate(attrs: Any, args: Sequence[RelayExpr], types: Sequence[Any]) -> RelayExpr:
    data, scales, zeros, scale, zero = args

    def fields(e: RelayExpr, ty: Any) -> list[RelayExpr]:
        return list(e.fields) if isinstance(e, Tuple) else [TupleGetItem(e, i) for i in range(len(ty.fields))]

    parts = [_in_scale(x, t, s, z, scale, zero, -1, types[-1].dtype, [st, zt, types[3], types[4]])
             for x, t, s, z, st, zt in zip(fields(data, types[0]), types[0].fields, fields(scales, types[1]), fields(zeros, types[2]),
                                           types[1].fields, types[2].fields)]
    return _op("concatenate", Tuple(parts), axis=attrs.axis)


def _avg_pool2d(attrs: Any, args: Sequence[RelayExpr], types: Sequence[Any]) -> RelayExpr:
    data, scale, zero, out_scale, out_zero = args
    wide = _in_scale(data, types[0], scale, zero, out_scale, out_zero, -1, "int32", types[1:5])
    mean = Call(Op.get("nn.avg_pool2d"), [_shifted(wide, _along(out_zero, 0, 0, False))], attrs)
    return _clipped(mean if _is_zero(out_zero) else _op("add", mean, _along(out_zero, 0, 0, False)), types[-1].dtype)


RULES: dict[str, Any] = {
    "qnn.quantize": _quantize, "qnn.dequantize": _dequantize, "qnn.requantize": _requantize, "qnn.conv2d": _conv2d, "qnn.dense": _dense,
    "qnn.batch_matmul": _batch_matmul, "qnn.conv2d_transpose": _conv2d_transpose, "qnn.add": _sum("add"), "qnn.subtract": _sum("subtract"),
    "qnn.mul": _mul, "qnn.softmax": _softmax, "qnn.concatenate": _concatenate, "qnn.avg_pool2d": _avg_pool2d, "qnn.leaky_relu": _table("qnn.leaky_relu"),
    **{f"qnn.{name}": _table(f"qnn.{name}") for name in _FUNCTIONS},
}


def attach_rules() -> None:
    """Attaches the rules to their operators, where no other is attached."""
    for name, rule in RULES.items():
        op = Op.get(name)
        if not op.has_attr(ATTRIBUTE):
            op.set_attr(ATTRIBUTE, rule)
