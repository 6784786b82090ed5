"""Upsampling and the resampling of one axis at a time that it is made of."""
from __future__ import annotations

from typing import Any, Sequence

from ... import te
from ...te import tag
from ...te.tensor import Tensor
from ...tir import op as tir_op
from ...tir.data_layout import Layout
from .common import dims

_KIND = {"nearest_neighbor": "nearest", "nearest": "nearest", "bilinear": "linear", "trilinear": "linear", "linear": "linear",
         "bicubic": "cubic", "cubic": "cubic"}


def _position(i: Any, extent: Any, out: Any, mode: str) -> Any:
    at = tir_op.cast(i, "float32")
    if mode == "align_corners":
        step = (extent - 1) / (out - 1) if out > 1 else 0.0
        return at * tir_op.const(step, "float32")
    ratio = tir_op.const(extent / out, "float32")
    if mode == "half_pixel":
        return (at + tir_op.const(0.5, "float32")) * ratio - tir_op.const(0.5, "float32")
    return at * ratio


def _nearest(i: Any, extent: Any, out: Any, mode: str) -> Any:
    if mode == "asymmetric" and isinstance(out, int) and isinstance(extent, int):
        return i * extent // out if out % extent else i // (out // extent)
    at = _position(i, extent, out, mode)
    rounded = tir_op.floor(at + tir_op.const(0.5, "float32")) if mode == "align_corners" else tir_op.floor(at)
    return _clamped(tir_op.cast(rounded, "int64"), extent)


def _clamped(i: Any, extent: Any) -> Any:
    return tir_op.maximum(tir_op.minimum(i, extent - 1), 0)


def _cubic(t: Any, alpha: float) -> list[Any]:
    one, two = tir_op.const(1.0, "float32"), tir_op.const(2.0, "float32")

    def near(d: Any) -> Any:
        return ((alpha + 2) * d - (alpha + 3)) * d * d + one

    def far(d: Any) -> Any:
        return ((alpha * d - 5 * alpha) * d + 8 * alpha) * d - 4 * alpha

    return [far(t + one), near(t), near(one - t), far(two - t)]


def resample_axis(data: Tensor, axis: int, out: int, kind: str, mode: str, alpha: float = -0.5) -> Tensor:
    """``data`` resampled to ``out`` entries along one axis (nearest, linear or cubic; results of the latter are float32)."""
    shape = list(dims(data))
    extent, shape[axis] = shape[axis], out

    def element(*i: Any) -> Any:
        def load(at: Any) -> Any:
            return data(*i[:axis], at, *i[axis + 1:])

        if kind == "nearest":
            return load(_nearest(i[axis], extent, out, mode))
        at = _position(i[axis], extent, out, mode)
        base = tir_op.floor(at)
        t, first = at - base, tir_op.cast(base, "int64")
        weights, start = ([tir_op.const(1.0, "float32") - t, t], 0) if kind == "linear" else (_cubic(t, alpha), -1)
        terms = [load(_clamped(first + start + n, extent)).astype("float32") * w for n, w in enumerate(weights)]
        total = terms[0]
        for term in terms[1:]:
            total = total + term
        return total

    return te.compute(shape, element, name="resample", tag=tag.INJECTIVE)


def _upsample(data: Tensor, axes: Sequence[int], outs: Sequence[int], method: str, mode: str) -> Tensor:
    kind, x = _KIND[method], data
    for axis, out in zip(axes, outs):
        x = resample_axis(x, axis, out, kind, mode)
    if x.dtype == data.dtype:
        return x
    return te.compute(x.shape, lambda *i: _back(x(*i), data.dtype), name="resized", tag=tag.ELEMWISE)


def _back(value: Any, dtype: str) -> Any:
    return value.astype(dtype)


def upsampling(data: Tensor, scale_h: float, scale_w: float, layout: str = "NCHW", method: str = "nearest_neighbor",
               align_corners: bool = False, output_shape: Sequence[int] | None = None) -> Tensor:
    """Planes made larger by a factor per axis."""
    axes = [Layout(layout).index_of(a) for a in "HW"]
    outs = output_shape or [int(dims(data)[a] * s + 0.5) for a, s in zip(axes, (scale_h, scale_w))]
    return _upsample(data, axes, [int(o) for o in outs], method, "align_corners" if align_corners else "asymmetric")


def upsampling3d(data: Tensor, scale_d: float, scale_h: float, scale_w: float, layout: str = "NCDHW", method: str = "nearest_neighbor",
                 coordinate_transformation_mode: str = "half_pixel", output_shape: Sequence[int] | None = None) -> Tensor:
    """Volumes made larger by a factor per axis."""
    axes = [Layout(layout).index_of(a) for a in "DHW"]
    outs = output_shape or [int(dims(data)[a] * s + 0.5) for a, s in zip(axes, (scale_d, scale_h, scale_w))]
    return _upsample(data, axes, [int(o) for o in outs], method, coordinate_transformation_mode)
