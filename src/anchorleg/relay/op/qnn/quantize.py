"""quantize, dequantize, requantize and their simulated forms."""
from __future__ import annotations

import threading
from typing import Any

import numpy as np

from ....ir.attrs import INT, STR, Attrs, Field
from ....ir.expr import RelayExpr
from ....ir.op import Op, OpPattern
from ....ir.type import TensorType, Type
from ....support.errors import ArgumentError, TypeMismatchError
from ...expr import Call, const
from ..attrs_common import DTYPE, OPT_DTYPE
from ..nn.common import tensor
from ..registry import declare
from .common import (along, axis_extent, check_dtype, check_parameter, quantised, round_away, round_up, saturate)

_AXIS = Field(INT, -1, "The axis along which vectors of scales and zero points run.")


class RequantizeAttrs(Attrs, name="relay.attrs.RequantizeAttrs"):
    """Attributes of qnn.requantize."""

    axis = _AXIS
    rounding = Field(STR, "None", "UPWARD (halves up), TONEAREST (halves away from zero) or TFLITE (as TensorFlow Lite: the product's high half, then a shift); None: from the configuration.")
    compute_dtype = Field(STR, "None", "int64, float32 or float64; None: from the configuration.")
    out_dtype = Field(OPT_DTYPE, "", "Element type of the result.")


class QuantizeAttrs(Attrs, name="relay.attrs.QuantizeAttrs"):
    """Attributes of qnn.quantize."""

    out_dtype = Field(DTYPE, doc="Element type of the result.")
    axis = _AXIS


class DequantizeAttrs(Attrs, name="relay.attrs.DequantizeAttrs"):
    """Attributes of qnn.dequantize."""

    out_dtype = Field(OPT_DTYPE, "float32", "Element type of the result: float16 or float32.")
    axis = _AXIS


class SimulatedQuantizeAttrs(Attrs, name="relay.attrs.SimulatedQuantizeAttrs"):
    """Attributes of qnn.simulated_quantize and qnn.simulated_dequantize."""

    axis = _AXIS


class requantize_config:
    """Defaults of requantize inside a ``with`` block: ``rounding`` ("UPWARD" or "TONEAREST") and ``compute_dtype``."""

    _local = threading.local()

    def __init__(self, rounding: str = "None", compute_dtype: str = "None") -> None:
        if rounding not in ("None", "UPWARD", "TONEAREST", "TFLITE"):
            raise ArgumentError(f"requantize_config: rounding must be UPWARD, TONEAREST or TFLITE, got {rounding!r}")
        if compute_dtype not in ("None", "int64", "float32", "float64"):
            raise ArgumentError(f"requantize_config: compute_dtype must be int64, float32 or float64, got {compute_dtype!r}")
        self.rounding, self.compute_dtype = rounding, compute_dtype

    def get_rounding(self) -> str:
        """The rounding in force."""
        return "UPWARD" if self.rounding == "None" else self.rounding

    def get_compute_dtype(self) -> str:
        """The type in which values are rescaled; when nothing else is said: float32 for x86 processors with SSE4.1, else int64."""
        return _compute_dtype_of_target() if self.compute_dtype == "None" else self.compute_dtype

    def __enter__(self) -> requantize_config:
        self._stack().append(self)
        return self

    def __exit__(self, *exc: Any) -> None:
        self._stack().pop()

    @classmethod
    def _stack(cls) -> list[requantize_config]:
        if not hasattr(cls._local, "stack"):
            cls._local.stack = []
        return cls._local.stack


def _compute_dtype_of_target() -> str:
    from ....target.cpu import resolve_cpu
    from ....target.features import code_features
    from ....target.target import Target

    target = Target.current(allow_none=True)
    if target is None or target.kind.name != "llvm":
        return "int64"
    return "float32" if "sse4.1" in code_features(resolve_cpu(target)) else "int64"


def current_requantize_config() -> requantize_config:
    """The configuration in force in this thread."""
    stack = requantize_config._stack()
    return stack[-1] if stack else requantize_config()


def _quantize_relation(args: tuple[Type, ...], attrs: Any, ctx: Any) -> Type | None:
    op, data = "qnn.quantize", tensor(args[0], "qnn.quantize, data")
    if data is None:
        return None
    check_dtype(op, "data", data.dtype, ("float32", "float16"))
    check_dtype(op, "the result", attrs.out_dtype, ("int8", "uint8", "int16", "uint16", "int32"))
    size = axis_extent(op, data, attrs.axis, args[1:])
    check_parameter(op, "output_scale", args[1], "float32", size)
    check_parameter(op, "output_zero_point", args[2], "int32", size)
    return TensorType(data.dims, attrs.out_dtype)


def _quantize_numpy(attrs: Any, args: list[np.ndarray], out_type: Any) -> np.ndarray:
    x, scale, zero_point = args
    scaled = round_away((x / along(scale, x.ndim, attrs.axis)).astype(np.float64))
    return saturate(scaled + along(zero_point, x.ndim, attrs.axis), out_type.dtype)


def _dequantize_relation(args: tuple[Type, ...], attrs: Any, ctx: Any) -> Type | None:
    op, data = "qnn.dequantize", tensor(args[0], "qnn.dequantize, data")
    if data is None:
        return None
    check_dtype(op, "data", data.dtype, ("int8", "uint8", "int16", "uint16", "int32"))
    check_dtype(op, "the result", attrs.out_dtype or "float32", ("float16", "float32"))
    size = axis_extent(op, data, attrs.axis, args[1:])
    check_parameter(op, "input_scale", args[1], "float32", size)
    check_parameter(op, "input_zero_point", args[2], "int32", size)
    return TensorType(data.dims, attrs.out_dtype or "float32")


def _dequantize_numpy(attrs: Any, args: list[np.ndarray], out_type: Any) -> np.ndarray:
    q, scale, zero_point = args
    shifted = (q.astype(np.int64) - along(zero_point, q.ndim, attrs.axis)).astype(np.float32)
    return shifted * along(scale, q.ndim, attrs.axis)


def _requantize_relation(args: tuple[Type, ...], attrs: Any, ctx: Any) -> Type | None:
    op, data = "qnn.requantize", tensor(args[0], "qnn.requantize, data")
    if data is None:
        return None
    check_dtype(op, "data", data.dtype, ("int8", "uint8", "int16", "int32", "int64"))
    check_dtype(op, "the result", attrs.out_dtype, ("int8", "uint8", "int16", "int32"))
    size = axis_extent(op, data, attrs.axis, args[1:3])
    check_parameter(op, "input_scale", args[1], "float32", size)
    check_parameter(op, "input_zero_point", args[2], "int32", size)
    check_parameter(op, "output_scale", args[3], "float32")
    check_parameter(op, "output_zero_point", args[4], "int32")
    for name, value, valid in (("rounding", attrs.rounding, ("None", "UPWARD", "TONEAREST", "TFLITE")),
                               ("compute_dtype", attrs.compute_dtype, ("None", "int64", "float32", "float64"))):
        if value not in valid:
            raise TypeMismatchError(f"{op}: {name} must be one of {', '.join(valid)}, got {value!r}")
    return TensorType(data.dims, attrs.out_dtype)


def _fixed_point(factor: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Multipliers with 31 fraction bits, shifts to the left before and to the right after the product."""
    significand, exponent = np.frexp(factor)
    multiplier = np.floor(significand * (1 << 31) + 0.5).astype(np.int64)
    exponent = exponent + (multiplier == 1 << 31)
    multiplier = np.where(multiplier == 1 << 31, 1 << 30, np.where(exponent < -31, 0, multiplier))
    return multiplier, np.clip(exponent, 0, 31), np.clip(-exponent, 0, 31)


def _rescale_fixed(x: np.ndarray, factor: np.ndarray, mode: str) -> np.ndarray:
    """x × factor in fixed point, rounded once: halves up, or away from zero."""
    multiplier, left, right = _fixed_point(factor)
    product = (x << left) * multiplier
    half = np.left_shift(np.int64(1), 30 + right)
    return (product + half + (product >> 63 if mode == "TONEAREST" else 0)) >> (31 + right)


def _rescale_float(q: np.ndarray, zero: np.ndarray, factor: np.ndarray, out_zero: Any, mode: str, dtype: str) -> np.ndarray:
    """(q - zero) × factor + out_zero in floats, then rounded."""
    kind = np.dtype(dtype).type
    total = (q.astype(kind) - np.asarray(zero).astype(kind)) * factor.astype(kind) + kind(out_zero)
    return round_away(total) if mode == "TONEAREST" else np.floor(total + kind(0.5))


def _rescale_tflite(x: np.ndarray, factor: np.ndarray) -> np.ndarray:
    """x × factor in fixed point: multiplier of 31 bits, high half of the product (halves up), shift (halves away from zero)."""
    multiplier, left, right = _fixed_point(factor)
    high = ((x << left) * multiplier + (1 << 30)) >> 31
    half = np.where(right > 0, np.left_shift(np.int64(1), np.maximum(right - 1, 0)), 0)
    return (high + np.where(right > 0, high >> 63, 0) + half) >> right


def requantise(q: np.ndarray, input_scale: np.ndarray, input_zero: np.ndarray, output_scale: np.ndarray, output_zero: np.ndarray,
               dtype: str, axis: int = -1, rounding: str = "None", compute: str = "None") -> np.ndarray:
    """Values of one scale and zero point in another; in real numbers (float64), unless ``compute`` says how."""
    mode = current_requantize_config().get_rounding() if rounding == "None" else rounding
    factor = np.asarray(input_scale, np.float64) / np.float64(np.asarray(output_scale).reshape(-1)[0])
    if mode == "TFLITE":
        rounded = _rescale_tflite(q.astype(np.int64) - along(input_zero, q.ndim, axis), along(factor, q.ndim, axis))
        return saturate(rounded + np.int64(np.asarray(output_zero).reshape(-1)[0]), dtype)
    out_zero = np.int64(np.asarray(output_zero).reshape(-1)[0])
    if compute.startswith("float"):
        return saturate(_rescale_float(q, along(input_zero, q.ndim, axis), along(factor, q.ndim, axis), out_zero, mode, compute), dtype)
    if compute == "int64":
        fixed = _rescale_fixed(q.astype(np.int64) - along(input_zero, q.ndim, axis), along(factor, q.ndim, axis), mode)
        return saturate(fixed + out_zero, dtype)
    shifted = (q.astype(np.int64) - along(input_zero, q.ndim, axis)) * along(factor, q.ndim, axis)
    rounded = round_up(shifted) if mode == "UPWARD" else round_away(shifted)
    return saturate(rounded + np.int64(np.asarray(output_zero).reshape(-1)[0]), dtype)


def _requantize_numpy(attrs: Any, args: list[np.ndarray], out_type: Any) -> np.ndarray:
    return requantise(*args, out_type.dtype, attrs.axis, attrs.rounding, attrs.compute_dtype)


SQNN_DTYPE_TO_CODE = {"disable": 0, "int8": 1, "uint8": 2, "int32": 3}
_CODE_TO_DTYPE = {code: name for name, code in SQNN_DTYPE_TO_CODE.items()}


def _simulated_relation(op: str) -> Any:
    def relation(args: tuple[Type, ...], attrs: Any, ctx: Any) -> Type | None:
        data, code = tensor(args[0], f"{op}, data"), tensor(args[1], f"{op}, dtype")
        return None if data is None or code is None else data

    return relation


def _simulated_quantize_numpy(attrs: Any, args: list[np.ndarray], out_type: Any) -> np.ndarray:
    x, code, scale, zero_point = args
    dtype = _CODE_TO_DTYPE.get(int(code.reshape(-1)[0]), "disable")
    return x if dtype == "disable" else quantised(x.astype(np.float64), scale, zero_point, dtype, attrs.axis).astype(x.dtype)


def _simulated_dequantize_numpy(attrs: Any, args: list[np.ndarray], out_type: Any) -> np.ndarray:
    q, code, scale, zero_point = args
    if _CODE_TO_DTYPE.get(int(code.reshape(-1)[0]), "disable") == "disable":
        return q
    return (q - along(zero_point, q.ndim, attrs.axis)) * along(scale, q.ndim, attrs.axis)


declare("qnn.quantize", inputs=("data", "output_scale", "output_zero_point"), attrs=QuantizeAttrs, relation=_quantize_relation,
        pattern=OpPattern.ELEMWISE, numpy=_quantize_numpy, level=11, TNonComputational=True,
        doc="clip(round(data / scale) + zero_point), rounding halves away from zero.")
declare("qnn.dequantize", inputs=("data", "input_scale", "input_zero_point"), attrs=DequantizeAttrs, relation=_dequantize_relation,
        pattern=OpPattern.ELEMWISE, numpy=_dequantize_numpy, level=11, TNonComputational=True, doc="(data - zero_point) * scale.")
declare("qnn.requantize", inputs=("data", "input_scale", "input_zero_point", "output_scale", "output_zero_point"), attrs=RequantizeAttrs,
        relation=_requantize_relation, pattern=OpPattern.ELEMWISE, numpy=_requantize_numpy, level=11, TNonComputational=True,
        doc="Quantised values carried over to another scale and zero point.")
declare("qnn.simulated_quantize", inputs=("data", "out_dtype", "output_scale", "output_zero_point"), attrs=SimulatedQuantizeAttrs,
        relation=_simulated_relation("qnn.simulated_quantize"), pattern=OpPattern.ELEMWISE, numpy=_simulated_quantize_numpy, level=11,
        doc="What quantize would give, kept as floats; the type is an input.")
declare("qnn.simulated_dequantize", inputs=("data", "in_dtype", "input_scale", "input_zero_point"), attrs=SimulatedQuantizeAttrs,
        relation=_simulated_relation("qnn.simulated_dequantize"), pattern=OpPattern.ELEMWISE, numpy=_simulated_dequantize_numpy, level=11,
        doc="The inverse of simulated_quantize.")


def quantize(data: RelayExpr, output_scale: RelayExpr, output_zero_point: RelayExpr, axis: int = -1, out_dtype: str = "int8") -> Call:
    """clip(round(data / scale) + zero_point); scale and zero point are scalars or vectors along ``axis``."""
    return Call(Op.get("qnn.quantize"), [data, output_scale, output_zero_point], QuantizeAttrs(out_dtype=out_dtype, axis=axis))


def dequantize(data: RelayExpr, input_scale: RelayExpr, input_zero_point: RelayExpr, axis: int = -1, out_dtype: str = "float32") -> Call:
    """(data - zero_point) * scale."""
    return Call(Op.get("qnn.dequantize"), [data, input_scale, input_zero_point], DequantizeAttrs(out_dtype=out_dtype, axis=axis))


def requantize(data: RelayExpr, input_scale: RelayExpr, input_zero_point: RelayExpr, output_scale: RelayExpr, output_zero_point: RelayExpr,
               axis: int = -1, rounding: str = "None", compute_dtype: str = "None", out_dtype: str = "int8") -> Call:
    """Quantised values carried over to another scale and zero point (which are single values)."""
    attrs = RequantizeAttrs(axis=axis, rounding=rounding, compute_dtype=compute_dtype, out_dtype=out_dtype)
    return Call(Op.get("qnn.requantize"), [data, input_scale, input_zero_point, output_scale, output_zero_point], attrs)


def _code(dtype: Any) -> RelayExpr:
    return const(SQNN_DTYPE_TO_CODE[dtype], "int32") if isinstance(dtype, str) else dtype


def _flat(value: RelayExpr) -> RelayExpr:
    from ..transform.reshape import reshape

    return reshape(value, [-1])


def simulated_quantize(data: RelayExpr, output_scale: RelayExpr, output_zero_point: RelayExpr, axis: int = -1,
                       out_dtype: Any = "int8") -> Call:
    """What :func:`quantize` gives, as floats; ``out_dtype`` may be an expression holding a type's code."""
    return Call(Op.get("qnn.simulated_quantize"), [data, _code(out_dtype), _flat(output_scale), _flat(output_zero_point)],
                SimulatedQuantizeAttrs(axis=axis))


def simulated_dequantize(data: RelayExpr, input_scale: RelayExpr, input_zero_point: RelayExpr, axis: int = -1,
                         in_dtype: Any = "int8") -> Call:
    """The inverse of :func:`simulated_quantize`."""
    return Call(Op.get("qnn.simulated_dequantize"), [data, _code(in_dtype), _flat(input_scale), _flat(input_zero_point)],
                SimulatedQuantizeAttrs(axis=axis))
