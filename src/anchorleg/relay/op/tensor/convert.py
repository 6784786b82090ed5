"""Operators that change a tensor's element type or bound its values: cast, cast_like, reinterpret, clip, fixed-point."""
from __future__ import annotations

from typing import Any, Sequence

import numpy as np

from ....ir.attrs import BOOL, FLOAT, INT, INTS, Attrs, Field
from ....ir.expr import RelayExpr
from ....ir.op import Op, OpPattern
from ....ir.type import TensorType, Type
from ....runtime.dtype import DataType, numpy_dtype
from ....support.errors import TypeMismatchError
from ...expr import Call
from ..attrs_common import CastAttrs
from ..registry import declare
from ..type_relations import identity_rel, is_float, tensor, tensors
from .common import INTEGERS, accepting, is_integer, wide


class ClipAttrs(Attrs, name="relay.attrs.ClipAttrs"):
    """Attributes of ``clip``."""

    a_min = Field(FLOAT, doc="The minimum clip value.")
    a_max = Field(FLOAT, doc="The maximum clip value.")


class FixedPointMultiplyAttrs(Attrs, name="relay.attrs.FixedPointMultiplyAttrs"):
    """Attributes of ``fixed_point_multiply``."""

    multiplier = Field(INT, doc="Multiplier of a fixed-point multiplication, with 31 fraction bits.")
    shift = Field(INT, doc="Shift of a fixed-point multiplication: positive to the left.")


class FixedPointMultiplyPerAxisAttrs(Attrs, name="relay.attrs.FixedPointMultiplyPerAxisAttrs"):
    """Attributes of ``fixed_point_multiply_per_axis``."""

    is_lshift_required = Field(BOOL, False, "Whether a left shift is needed.")
    is_rshift_required = Field(BOOL, False, "Whether a right shift is needed.")
    axes = Field(INTS, doc="The axes along which the input was quantized.")


# -- cast -----------------------------------------------------------------------------------------

def cast_numpy(array: np.ndarray, dtype: str) -> np.ndarray:
    """``array`` as ``dtype``: to bool, whether it is non-zero; from float to integer, cut towards zero and wrapped.

    A float outside of int64's range (or NaN) gives the least int64 before wrapping.
    """
    want = numpy_dtype(dtype)
    if array.dtype == want:
        return array
    if dtype == "bool":
        return wide(array) != 0
    if is_integer(dtype) and array.dtype.kind not in "biu":
        return _float_to_integer(wide(array), want)
    return array.astype(want)


def _float_to_integer(array: np.ndarray, want: np.dtype) -> np.ndarray:
    if want == np.uint64:
        return np.where(array >= 2.0**63, (array - 2.0**63).astype(np.int64) ^ np.int64(-(2**63)), array.astype(np.int64)).astype(want)
    via = np.int32 if want.itemsize < 4 or want == np.int32 else np.int64
    return array.astype(via).astype(want)


def _cast_rel(args: tuple[Type, ...], attrs: CastAttrs, ctx: Any) -> Type | None:
    data = tensor(args[0])
    return data if data is None or data.dtype == attrs.dtype else TensorType(data.dims, attrs.dtype)


def _cast_like_rel(args: tuple[Type, ...], attrs: Any, ctx: Any) -> Type | None:
    both = tensors(args, ("the input", "dtype_like"))
    return None if both is None else TensorType(both[0].dims, both[1].dtype)


def _reinterpret_rel(args: tuple[Type, ...], attrs: CastAttrs, ctx: Any) -> Type | None:
    data = tensor(args[0])
    if data is None:
        return None
    if DataType(data.dtype).bits != DataType(attrs.dtype).bits:
        raise TypeMismatchError(f"a data type as wide as {data.dtype} is expected, got {attrs.dtype}")
    return TensorType(data.dims, attrs.dtype)


def _cast_rule(attrs: Any, args: list[np.ndarray], out_type: Any) -> np.ndarray:
    return cast_numpy(args[0], out_type.dtype)


def _reinterpret_rule(attrs: CastAttrs, args: list[np.ndarray], out_type: Any) -> np.ndarray:
    return np.ascontiguousarray(args[0]).view(numpy_dtype(attrs.dtype)).reshape(args[0].shape)


declare("cast", attrs=CastAttrs, relation=_cast_rel, pattern=OpPattern.ELEMWISE, numpy=_cast_rule, level=3,
        doc="The input in another data type.")
declare("cast_like", inputs=("data", "dtype_like"), relation=_cast_like_rel, pattern=OpPattern.ELEMWISE, numpy=_cast_rule, level=3,
        doc="The first input in the data type of the second.")
declare("reinterpret", attrs=CastAttrs, relation=_reinterpret_rel, pattern=OpPattern.ELEMWISE, numpy=_reinterpret_rule, level=3,
        doc="The input's bits read as another data type of the same width.")


def cast(data: RelayExpr, dtype: Any) -> Call:
    """``data`` in another data type; to bool, whether it is non-zero; from float to integer, cut towards zero."""
    return Call(Op.get("cast"), [data], CastAttrs(dtype=dtype))


def cast_like(data: RelayExpr, dtype_like: RelayExpr) -> Call:
    """``data`` in the data type of ``dtype_like``."""
    return Call(Op.get("cast_like"), [data, dtype_like])


def reinterpret(data: RelayExpr, dtype: Any) -> Call:
    """The bits of ``data`` read as another data type of the same width."""
    return Call(Op.get("reinterpret"), [data], CastAttrs(dtype=dtype))


# -- clip -----------------------------------------------------------------------------------------

def clip_bounds(a_min: float, a_max: float, dtype: str) -> tuple[Any, Any]:
    """The bounds as values of ``dtype``: cut towards zero and kept within the type's range, for integers."""
    if is_float(dtype):
        return a_min, a_max
    bits = DataType(dtype).bits
    signed = DataType(dtype).type_code == 0
    least, most = (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) if signed else (0, (1 << bits) - 1)
    return tuple(least if v <= least else most if v >= most else int(v) for v in (a_min, a_max))  # type: ignore[return-value]


def _clip_rule(attrs: ClipAttrs, args: list[np.ndarray], out_type: Any) -> np.ndarray:
    low, high = clip_bounds(attrs.a_min, attrs.a_max, out_type.dtype)
    x = wide(args[0])
    bounds = [np.asarray(v).astype(numpy_dtype(out_type.dtype)).astype(x.dtype) for v in (low, high)]
    return np.minimum(np.maximum(x, bounds[0]), bounds[1])


declare("clip", attrs=ClipAttrs, relation=identity_rel, pattern=OpPattern.ELEMWISE, numpy=_clip_rule, level=3,
        doc="The input, kept within [a_min, a_max]; NaN stays NaN.")


def clip(a: RelayExpr, a_min: float, a_max: float) -> Call:
    """``a`` kept within ``[a_min, a_max]``; NaN stays NaN; bounds of integers are cut towards zero."""
    return Call(Op.get("clip"), [a], ClipAttrs(a_min=a_min, a_max=a_max))


# -- fixed point ----------------------------------------------------------------------------------

def fixed_point_numpy(x: np.ndarray, multiplier: Any, left: Any, right: Any) -> np.ndarray:
    """round(x * 2**left * multiplier * 2**-31 * 2**-right) in 64 bits, halves rounded up, as int32."""
    product = np.left_shift(x.astype(np.int64), np.asarray(left, np.int64)) * np.asarray(multiplier, np.int64)
    shift = np.asarray(right, np.int64) + 31
    return np.right_shift(product + np.left_shift(np.int64(1), shift - 1), shift).astype(np.int32)


def _fixed_rule(attrs: FixedPointMultiplyAttrs, args: list[np.ndarray], out_type: Any) -> np.ndarray:
    return fixed_point_numpy(args[0], attrs.multiplier, max(attrs.shift, 0), max(-attrs.shift, 0))


def _per_axis_rule(attrs: FixedPointMultiplyPerAxisAttrs, args: list[np.ndarray], out_type: Any) -> np.ndarray:
    x = args[0]
    shape = [x.shape[i] if i in {a % x.ndim for a in attrs.axes} else 1 for i in range(x.ndim)]
    multiplier, left, right = (a.reshape(shape) for a in args[1:])
    return fixed_point_numpy(x, multiplier, left if attrs.is_lshift_required else 0, right if attrs.is_rshift_required else 0)


declare("fixed_point_multiply", attrs=FixedPointMultiplyAttrs, relation=accepting(identity_rel, INTEGERS), pattern=OpPattern.ELEMWISE,
        numpy=_fixed_rule, level=10, doc="round(input * multiplier * 2**-31 * 2**shift), halves rounded up.")
declare("fixed_point_multiply_per_axis", inputs=("data", "multiplier", "lshift", "rshift"), attrs=FixedPointMultiplyPerAxisAttrs,
        relation=accepting(identity_rel, INTEGERS), pattern=OpPattern.BROADCAST, numpy=_per_axis_rule, level=10,
        doc="fixed_point_multiply with a multiplier and shifts for each entry of some axes.")


def fixed_point_multiply(data: RelayExpr, multiplier: int, shift: int) -> Call:
    """round(data * multiplier * 2**-31 * 2**shift) of int32, halves rounded up."""
    return Call(Op.get("fixed_point_multiply"), [data], FixedPointMultiplyAttrs(multiplier=multiplier, shift=shift))


def fixed_point_multiply_per_axis(data: RelayExpr, multiplier: RelayExpr, lshift: RelayExpr, rshift: RelayExpr,
                                  is_lshift_required: bool, is_rshift_required: bool, axes: Sequence[int]) -> Call:
    """:func:`fixed_point_multiply` with a multiplier and shifts for each entry of ``axes``."""
    attrs = FixedPointMultiplyPerAxisAttrs(is_lshift_required=is_lshift_required, is_rshift_required=is_rshift_required, axes=axes)
    return Call(Op.get("fixed_point_multiply_per_axis"), [data, multiplier, lshift, rshift], attrs)


__all__ = ["cast", "cast_like", "reinterpret", "clip", "fixed_point_multiply", "fixed_point_multiply_per_axis"]
