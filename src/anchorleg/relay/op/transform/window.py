"""Overlapping windows of a tensor: sliding_window."""
from __future__ import annotations

from typing import Any

import numpy as np

from ....ir.attrs import INT, INTS, Attrs, Field
from ....ir.expr import Any as AnyDim, RelayExpr
from ....ir.op import Op, OpPattern
from ....ir.type import TensorType, Type
from ....support.errors import TypeMismatchError
from ...expr import Call
from ..registry import declare
from .common import Dim, Dims, known, normalize_axis, show, tensor


class SlidingWindowAttrs(Attrs, name="relay.attrs.SlidingWindowAttrs"):
    """Attributes of sliding_window."""

    axis = Field(INT, doc="The first axis along which windows slide; those after it do too.")
    window_shape = Field(INTS, doc="The size of a window along each of those axes.")
    strides = Field(INTS, doc="The distance between windows along each of those axes.")


def _count(dim: Dim, window: int, stride: int) -> Dim:
    return max(0, -(-(dim - window + 1) // stride)) if known(dim) else AnyDim()


def sliding_window_dims(dims: Dims, attrs: SlidingWindowAttrs) -> list[Dim]:
    """The shape of ``sliding_window``: leading axes, numbers of windows, window."""
    axis = normalize_axis(attrs.axis, len(dims))
    window, strides = attrs.get_int_tuple("window_shape"), attrs.get_int_tuple("strides")
    if not len(window) == len(strides) == len(dims) - axis:
        raise TypeMismatchError(f"window_shape {window} and strides {strides} must have one number for each axis "
                                f"of {show(dims)} from {axis} on")
    if any(w < 1 for w in window) or any(s < 1 for s in strides):
        raise TypeMismatchError(f"sizes and strides must be at least 1, got {window} and {strides}")
    return [*dims[:axis], *(_count(d, w, s) for d, w, s in zip(dims[axis:], window, strides)), *window]


def _sliding_window_rel(args: tuple[Type, ...], attrs: SlidingWindowAttrs, ctx: Any) -> Type | None:
    data = tensor(args[0], "data")
    return data and TensorType(sliding_window_dims(data.dims, attrs), data.dtype)


def _sliding_window_numpy(attrs: SlidingWindowAttrs, args: list[np.ndarray], out_type: Type) -> np.ndarray:
    data, axis = args[0], attrs.axis % args[0].ndim
    window, strides = attrs.get_int_tuple("window_shape"), attrs.get_int_tuple("strides")
    shape = sliding_window_dims(data.shape, attrs)
    if 0 in shape:
        return np.zeros(shape, data.dtype)
    views = np.lib.stride_tricks.sliding_window_view(data, window, axis=tuple(range(axis, data.ndim)))
    return views[(slice(None),) * axis + tuple(slice(None, None, s) for s in strides)].copy()


declare("sliding_window", attrs=SlidingWindowAttrs, relation=_sliding_window_rel, pattern=OpPattern.OPAQUE,
        numpy=_sliding_window_numpy, level=10, doc="All windows of a given shape, at given distances.")


def sliding_window(data: RelayExpr, axis: int, window_shape: Any, strides: Any) -> Call:
    """The windows of ``window_shape`` that slide by ``strides`` over the axes of ``data`` from ``axis`` on.

    (3, 10, 8) with axis 1, windows (4, 4) and strides (2, 2) gives (3, 4, 3, 4, 4).
    """
    return Call(Op.get("sliding_window"), [data], SlidingWindowAttrs(axis=int(axis), window_shape=window_shape, strides=strides))


__all__ = ["SlidingWindowAttrs", "sliding_window"]
