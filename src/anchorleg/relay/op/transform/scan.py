"""Running sums and products: cumsum, cumprod."""
from __future__ import annotations

from typing import Any, Callable

import numpy as np

from ....ir.attrs import BOOL, OPT_INT, Attrs, Field
from ....ir.expr import RelayExpr
from ....ir.op import Op, OpPattern
from ....ir.type import TensorType, Type
from ....runtime.dtype import numpy_dtype
from ...expr import Call
from ..registry import NumpyRule, declare
from .common import dtype_field, normalize_axis, product, tensor


class ScanopAttrs(Attrs, name="relay.attrs.ScanopAttrs"):
    """Attributes of cumsum and cumprod."""

    axis = Field(OPT_INT, None, "The axis along which values accumulate; None: the flattened data.")
    dtype = dtype_field()
    exclusive = Field(BOOL, False, "Whether an element itself is left out of its sum.")


def _scan_rel(args: tuple[Type, ...], attrs: ScanopAttrs, ctx: Any) -> Type | None:
    data = tensor(args[0], "data")
    if data is None:
        return None
    dtype = attrs.dtype or data.dtype
    if attrs.axis is None:
        return TensorType((product(data.dims),), dtype)
    normalize_axis(attrs.axis, len(data.dims))
    return TensorType(data.dims, dtype)


def _scan_numpy(accumulate: Callable[..., np.ndarray], start: int) -> NumpyRule:
    def rule(attrs: ScanopAttrs, args: list[np.ndarray], out_type: Type) -> np.ndarray:
        data = args[0].reshape(-1) if attrs.axis is None else args[0]
        axis = 0 if attrs.axis is None else attrs.axis
        dtype = numpy_dtype(out_type.dtype)  # type: ignore[attr-defined]
        data = data.astype(dtype)
        if attrs.exclusive:
            data = _shifted(data, axis, start)
        return accumulate(data, axis=axis, dtype=dtype)

    return rule


def _shifted(data: np.ndarray, axis: int, start: int) -> np.ndarray:
    """``data`` moved one step along the axis, with ``start`` in front."""
    moved = np.moveaxis(data, axis, 0)
    out = np.full_like(moved, start)
    out[1:] = moved[:-1]
    return np.moveaxis(out, 0, axis)


declare("cumsum", attrs=ScanopAttrs, relation=_scan_rel, pattern=OpPattern.OPAQUE, numpy=_scan_numpy(np.cumsum, 0), level=3,
        doc="Sums of all elements up to each one along an axis.")
declare("cumprod", attrs=ScanopAttrs, relation=_scan_rel, pattern=OpPattern.OPAQUE, numpy=_scan_numpy(np.cumprod, 1), level=3,
        doc="Products of all elements up to each one along an axis.")


def _scan(name: str, data: RelayExpr, axis: int | None, dtype: str | None, exclusive: bool | None) -> Call:
    return Call(Op.get(name), [data], ScanopAttrs(axis=axis, dtype=dtype, exclusive=bool(exclusive)))


def cumsum(data: RelayExpr, axis: int | None = None, dtype: str | None = None, exclusive: bool | None = None) -> Call:
    """Running sums along ``axis`` (None: of the flattened data), in ``dtype`` (None: that of ``data``).

    With ``exclusive`` each sum leaves out its own element, so that the first is 0.
    """
    return _scan("cumsum", data, axis, dtype, exclusive)


def cumprod(data: RelayExpr, axis: int | None = None, dtype: str | None = None, exclusive: bool | None = None) -> Call:
    """Running products along ``axis``; with ``exclusive`` the first is 1.  See :func:`cumsum`."""
    return _scan("cumprod", data, axis, dtype, exclusive)


__all__ = ["ScanopAttrs", "cumsum", "cumprod"]
