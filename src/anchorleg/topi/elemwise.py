"""Element-wise conversion and bounds, and tensors of one value."""
from __future__ import annotations

from typing import Any, Sequence

from .. import te
from ..te.tensor import Tensor
from ..tir import op as T
from ..tir.dtypes import info, int_range, is_bool, is_float
from .dtypes import in_compute_dtype
from .math import elementwise
from .tag import ELEMWISE


def scalar_cast(x: Any, dtype: str) -> Any:
    """x as ``dtype``: to bool, whether it is non-zero; from float to integer, cut towards zero and wrapped."""
    if x.dtype == dtype:
        return x
    if is_bool(dtype):
        return T.not_equal(x, T.const(0, x.dtype))
    if is_float(x.dtype) and info(dtype).kind in ("int", "uint"):
        return _float_to_integer(x if x.dtype == "float64" else T.cast(x, "float32"), dtype)
    return T.cast(x, dtype)


def _float_to_integer(x: Any, dtype: str) -> Any:
    if dtype == "uint64":
        half = T.const(2.0**63, x.dtype)
        above = T.bitwise_xor(T.cast(T.cast(x - half, "int64"), "uint64"), T.const(1 << 63, "uint64"))
        return T.select(x >= half, above, T.cast(T.cast(x, "int64"), "uint64"))
    via = "int32" if info(dtype).bits < 32 or dtype == "int32" else "int64"
    return T.cast(T.cast(x, via), dtype)


def cast(x: Tensor, dtype: str) -> Tensor:
    """``x`` in another dtype (see :func:`scalar_cast`)."""
    return te.compute(x.shape, lambda *i: scalar_cast(x(*i), str(dtype)), name="T_cast", tag=ELEMWISE)


def reinterpret(x: Tensor, dtype: str) -> Tensor:
    """The bits of ``x`` read as another dtype of the same width."""
    return te.compute(x.shape, lambda *i: T.reinterpret(dtype, x(*i)), name="T_reinterpret", tag=ELEMWISE)


def clip_bounds(a_min: float, a_max: float, dtype: str) -> tuple[Any, Any]:
    """The bounds as values of ``dtype``: cut towards zero and kept within the type's range, for integers."""
    if is_float(dtype):
        return a_min, a_max
    least, most = (0, 1) if is_bool(dtype) else int_range(dtype)
    return tuple(least if v <= least else most if v >= most else int(v) for v in (a_min, a_max))  # type: ignore[return-value]


def clip(x: Tensor, a_min: float, a_max: float) -> Tensor:
    """``x`` kept within ``[a_min, a_max]``; NaN stays NaN."""
    low, high = clip_bounds(float(a_min), float(a_max), x.dtype)

    def bounded(v: Any) -> Any:
        below, above = (T.cast(T.const(b, x.dtype), v.dtype) for b in (low, high))
        v = T.select(v < below, below, v)  # in this order NaN falls through, and it is one machine instruction
        return T.select(v > above, above, v)

    return elementwise(x, bounded, "clip")


def fixed_point_multiply(x: Tensor, multiplier: int, shift: int) -> Tensor:
    """round(x * multiplier * 2**-31 * 2**shift) of int32, halves rounded up."""
    return elementwise(x, lambda v: T.q_multiply_shift(v, T.const(multiplier, "int32"), T.const(31, "int32"), T.const(shift, "int32")),
                       "fixed_point_multiply")


def fixed_point_multiply_per_axis(x: Tensor, y: Tensor, lshift: Tensor, rshift: Tensor, is_lshift_required: bool,
                                  is_rshift_required: bool, axis: Sequence[int]) -> Tensor:
    """:func:`fixed_point_multiply` with a multiplier and shifts for each entry of ``axis``."""
    axes = sorted(a % len(x.shape) for a in axis)

    def element(*i: Any) -> Any:
        at = [i[a] for a in axes][-len(y.shape):]
        return T.q_multiply_shift_per_axis(x(*i), y(*at), lshift(*at), rshift(*at), T.const(31, "int32"),
                                           T.const(bool(is_lshift_required), "bool"), T.const(bool(is_rshift_required), "bool"))

    return te.compute(x.shape, element, name="T_fixed_point_multiply_per_axis", tag="broadcast")


def full(shape: Sequence[Any], dtype: str, fill_value: Any) -> Tensor:
    """A tensor of one value: a number, an expression or a tensor without dimensions."""
    value = fill_value() if isinstance(fill_value, Tensor) else fill_value
    filler = scalar_cast(value, dtype) if hasattr(value, "dtype") else T.const(value, dtype)
    return te.compute(tuple(shape), lambda *i: filler, name="T_full", tag=ELEMWISE)


def full_like(x: Tensor, fill_value: Any) -> Tensor:
    """A tensor of one value, shaped and typed as ``x``."""
    return full(x.shape, x.dtype, fill_value)


def zeros_like(x: Tensor) -> Tensor:
    """Zeros, shaped and typed as ``x``."""
    return full(x.shape, x.dtype, 0)


def ones_like(x: Tensor) -> Tensor:
    """Ones, shaped and typed as ``x``."""
    return full(x.shape, x.dtype, 1)


__all__ = ["cast", "reinterpret", "clip", "fixed_point_multiply", "fixed_point_multiply_per_axis", "full", "full_like", "zeros_like",
           "ones_like", "scalar_cast", "in_compute_dtype"]
