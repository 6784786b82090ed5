"""Resampling images: resize1d, resize2d, resize3d, crop_and_resize.

Source positions that are rational numbers (all modes but tf_crop_and_resize) are computed in integers, so that which pixel
is nearest never depends on rounding.
"""
from __future__ import annotations

from fractions import Fraction
from typing import Any, Sequence

import numpy as np

from ....ir.attrs import FLOAT, INT, OPT_INTS, STR, Attrs, Field
from ....ir.expr import RelayExpr
from ....ir.op import Op, OpPattern
from ....ir.type import TensorType, Type
from ....support.errors import ArgumentError, TypeMismatchError, UnsupportedOpError
from ....tir.data_layout import Layout
from ...expr import Call, const
from ..attrs_common import OPT_DTYPE
from ..registry import NumpyRule, declare
from ..transform.common import FLOATS, choice, constant_ints, is_dynamic, known, require_integer, same_dim, show
from ..type_relations import tensor, tensors

METHODS = ("nearest_neighbor", "linear", "cubic")
MODES = ("half_pixel", "align_corners", "asymmetric", "pytorch_half_pixel", "tf_half_pixel_for_nn", "tf_crop_and_resize")
ROUNDINGS = ("", "round", "floor", "ceil", "round_prefer_floor", "round_prefer_ceil")
_SPATIAL = {1: "W", 2: "HW", 3: "DHW"}


class Resize1DAttrs(Attrs, name="relay.attrs.Resize1DAttrs"):
    """Attributes of image.resize1d (and, with other layouts, of resize2d and resize3d)."""

    size = Field(OPT_INTS, None, "The new sizes of the spatial axes.")
    roi = Field(FLOATS, (), "For tf_crop_and_resize: begin of every axis, then end of every axis, as fractions of the image.")
    layout = Field(STR, "NCW", "The layout of the data.")
    method = Field(choice(*METHODS), "linear", "The interpolation.")
    coordinate_transformation_mode = Field(choice(*MODES), "half_pixel", "How a position in the result maps to one in the input.")
    rounding_method = Field(choice(*ROUNDINGS), "round", "Which pixel is the nearest one; empty: round for align_corners, else floor.")
    cubic_alpha = Field(FLOAT, -0.5, "The spline coefficient of cubic interpolation.")
    cubic_exclude = Field(INT, 0, "Whether pixels outside of the image are left out of cubic interpolation.")
    extrapolation_value = Field(FLOAT, 0.0, "For tf_crop_and_resize: the value outside of the image.")
    out_dtype = Field(OPT_DTYPE, "", "The result's data type; empty: the input's.")


class Resize2DAttrs(Resize1DAttrs, name="relay.attrs.Resize2DAttrs"):
    """Attributes of image.resize2d."""

    layout = Field(STR, "NCHW", "The layout of the data.")


class Resize3DAttrs(Resize1DAttrs, name="relay.attrs.Resize3DAttrs"):
    """Attributes of image.resize3d."""

    layout = Field(STR, "NCDHW", "The layout of the data.")


class CropAndResizeAttrs(Attrs, name="relay.attrs.CropAndResizeAttrs"):
    """Attributes of image.crop_and_resize."""

    crop_size = Field(OPT_INTS, None, "Height and width of the crops.")
    layout = Field(STR, "NCHW", "The layout of the data: NCHW or NHWC.")
    method = Field(choice("bilinear", "nearest_neighbor"), "bilinear", "The interpolation.")
    extrapolation_value = Field(FLOAT, 0.0, "The value outside of the image.")
    out_dtype = Field(OPT_DTYPE, "", "The result's data type; empty: the input's.")


def spatial_axes(layout: str, letters: str, ndim: int) -> list[int]:
    """Where the axes ``letters`` lie in a tensor of that layout; TypeMismatchError when they do not, or the rank differs."""
    parsed = Layout(layout)
    if len(parsed) != ndim or any(a not in parsed or parsed.factor_of(a) != -1 for a in letters):
        raise TypeMismatchError(f"layout {layout!r} does not fit: expected unsplit axes {', '.join(letters)} and rank {ndim}")
    return [parsed.index_of(a) for a in letters]


def _resize_rel(n: int) -> Any:
    def relation(args: tuple[Type, ...], attrs: Resize1DAttrs, ctx: Any) -> Type | None:
        data = tensor(args[0], "data")
        if data is None:
            return None
        axes = spatial_axes(attrs.layout, _SPATIAL[n], len(data.dims))
        if len(attrs.size or ()) != n or any(s < 0 for s in attrs.size):
            raise TypeMismatchError(f"size must be {n} numbers of at least 0, got {attrs.size}")
        if attrs.coordinate_transformation_mode == "tf_crop_and_resize" and len(attrs.roi) != 2 * n:
            raise TypeMismatchError(f"roi must be {2 * n} numbers, got {attrs.roi}")
        dims = list(data.dims)
        for axis, size in zip(axes, attrs.size):
            if known(dims[axis]) and dims[axis] == 0 and size:
                raise TypeMismatchError("an image without pixels cannot be enlarged")
            dims[axis] = int(size)
        return TensorType(dims, attrs.out_dtype or data.dtype)

    return relation


# ---- numpy: an axis is resampled by a table of source indices and weights --------------------------------------------

def source_position(n: int, size: int, mode: str, scale: Fraction | None = None) -> tuple[np.ndarray, int]:
    """Numerators and the denominator of the source positions of an axis of ``n`` pixels resized to ``size``.

    ``scale`` is the magnification, where it is not ``size / n``.
    """
    if scale is not None and mode != "align_corners":
        return _scaled_position(np.arange(size, dtype=np.int64), size, mode, scale)
    x = np.arange(size, dtype=np.int64)
    if mode == "align_corners":
        return (x * (n - 1), size - 1) if size > 1 else (0 * x, 1)
    if mode == "asymmetric":
        return x * n, size
    if mode == "tf_half_pixel_for_nn":
        return (2 * x + 1) * n, 2 * size
    if mode == "pytorch_half_pixel" and size <= 1:
        return 0 * x, 1
    return (2 * x + 1) * n - size, 2 * size


def _scaled_position(x: np.ndarray, size: int, mode: str, scale: Fraction) -> tuple[np.ndarray, int]:
    p, q = scale.numerator, scale.denominator
    if mode == "asymmetric":
        return x * q, p
    if mode == "tf_half_pixel_for_nn":
        return (2 * x + 1) * q, 2 * p
    return (0 * x, 1) if mode == "pytorch_half_pixel" and size <= 1 else ((2 * x + 1) * q - p, 2 * p)


def nearest(num: np.ndarray, den: int, rounding: str) -> np.ndarray:
    """The whole number nearest to ``num / den``."""
    if rounding == "floor":
        return num // den
    if rounding == "ceil":
        return -(-num // den)
    if rounding == "round_prefer_floor":
        return -((den - 2 * num) // (2 * den))
    return (2 * num + den) // (2 * den)


def cubic_weights(t: np.ndarray, alpha: float) -> np.ndarray:
    """The weights of the four pixels around a position ``t`` past the second of them."""
    t2, t3 = t * t, t * t * t
    return np.stack([alpha * (t3 - 2 * t2 + t), (alpha + 2) * t3 - (3 + alpha) * t2 + 1,
                     -(alpha + 2) * t3 + (3 + 2 * alpha) * t2 - alpha * t, -alpha * t3 + alpha * t2])


def axis_table(n: int, size: int, attrs: Resize1DAttrs, roi: tuple[float, float],
               scale: Fraction | None = None) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(source indices, weights, inside): taps × ``size`` each; ``inside`` says whether a position lies in the image."""
    if attrs.coordinate_transformation_mode == "tf_crop_and_resize":
        return _crop_table(n, size, attrs, roi)
    num, den = source_position(n, size, attrs.coordinate_transformation_mode, scale)
    every = np.ones(size, bool)
    if attrs.method == "nearest_neighbor":
        rounding = attrs.rounding_method or ("round" if attrs.coordinate_transformation_mode == "align_corners" else "floor")
        return _clamped(nearest(num, den, rounding)[None], n), np.ones((1, size)), every
    return (*_interpolation(num // den, (num % den) / den, n, attrs), every)


def _crop_table(n: int, size: int, attrs: Resize1DAttrs, roi: tuple[float, float]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    begin, end = roi
    x = np.arange(size, dtype=np.float64)
    at = begin * (n - 1) + x * ((end - begin) * (n - 1) / (size - 1)) if size > 1 else 0 * x + 0.5 * (begin + end) * (n - 1)
    inside = (at >= 0) & (at <= n - 1)
    if attrs.method == "nearest_neighbor":
        how = {"ceil": np.ceil, "floor": np.floor, "": np.floor, "round_prefer_floor": lambda v: np.ceil(v - 0.5)}
        index = how.get(attrs.rounding_method, lambda v: np.floor(v + 0.5))(at).astype(np.int64)
        return _clamped(index[None], n), np.ones((1, size)), inside
    low = np.floor(at).astype(np.int64)
    return (*_interpolation(low, at - low, n, attrs), inside)


def _interpolation(low: np.ndarray, t: np.ndarray, n: int, attrs: Resize1DAttrs) -> tuple[np.ndarray, np.ndarray]:
    if attrs.method == "linear":
        return _clamped(np.stack([low, low + 1]), n), np.stack([1 - t, t])
    taps = np.stack([low - 1, low, low + 1, low + 2])
    weights = cubic_weights(t, attrs.cubic_alpha)
    if attrs.cubic_exclude:
        weights = np.where((taps < 0) | (taps >= n), 0, weights)
        weights = weights / weights.sum(axis=0)
    return _clamped(taps, n), weights


def _clamped(index: np.ndarray, n: int) -> np.ndarray:
    return np.clip(index, 0, max(n - 1, 0))


def _resize_numpy(n: int) -> NumpyRule:
    def rule(attrs: Resize1DAttrs, args: list[np.ndarray], out_type: Type) -> np.ndarray:
        data = args[0]
        axes = spatial_axes(attrs.layout, _SPATIAL[n], data.ndim)
        exact = attrs.method == "nearest_neighbor"
        out = data if exact or data.dtype == np.float64 else data.astype(np.float32)
        outside = np.zeros((1,) * data.ndim, bool)
        for i, (axis, size) in enumerate(zip(axes, attrs.size)):
            roi = (attrs.roi[i], attrs.roi[n + i]) if len(attrs.roi) == 2 * n else (0.0, 1.0)
            index, weights, inside = axis_table(data.shape[axis], int(size), attrs, roi)
            shape = [-1 if d == axis else 1 for d in range(data.ndim)]
            picked = [np.take(out, ix, axis=axis) for ix in index]
            out = picked[0] if exact else sum(p * w.astype(p.dtype).reshape(shape) for p, w in zip(picked, weights))
            outside = outside | ~inside.reshape(shape)
        return np.where(outside, np.asarray(attrs.extrapolation_value, out.dtype), out) if outside.any() else out

    return rule


# ---- crop_and_resize -------------------------------------------------------------------------------------------------

def _crop_rel(args: tuple[Type, ...], attrs: CropAndResizeAttrs, ctx: Any) -> Type | None:
    types = tensors(args, ("data", "boxes", "box_indices"))
    if types is None:
        return None
    data, boxes, which = types
    h, w = spatial_axes(attrs.layout, "HW", len(data.dims))
    require_integer("box_indices", which)
    if len(boxes.dims) != 2 or len(which.dims) != 1 or len(attrs.crop_size or ()) != 2:
        raise TypeMismatchError(f"expects boxes of shape (n, 4), n box_indices and two crop sizes, got {show(boxes.dims)}, "
                                f"{show(which.dims)} and {attrs.crop_size}")
    same_dim("the second dimension of boxes", 4, boxes.dims[1])
    dims = list(data.dims)
    dims[Layout(attrs.layout).index_of("N")] = same_dim("the number of box_indices", boxes.dims[0], which.dims[0])
    dims[h], dims[w] = (int(s) for s in attrs.crop_size)
    return TensorType(dims, attrs.out_dtype or data.dtype)


def _crop_positions(begin: np.ndarray, end: np.ndarray, n: int, size: int) -> np.ndarray:
    """The source positions of each box along one axis, box × ``size``."""
    x, last = np.arange(size, dtype=np.float32), np.float32(n - 1)
    if size <= 1:
        return np.broadcast_to((np.float32(0.5) * (begin + end) * last)[:, None], (len(begin), size))
    return begin[:, None] * last + x[None, :] * ((end - begin) * last / np.float32(size - 1))[:, None]


def _crop_numpy(attrs: CropAndResizeAttrs, args: list[np.ndarray], out_type: Type) -> np.ndarray:
    data, boxes, which = args[0], args[1].astype(np.float32), args[2]
    channels_last = attrs.layout == "NHWC"
    image = data if channels_last else data.transpose(0, 2, 3, 1)
    (rows, columns), (height, width) = image.shape[1:3], (int(s) for s in attrs.crop_size)
    y = _crop_positions(boxes[:, 0], boxes[:, 2], rows, height)[:, :, None]
    x = _crop_positions(boxes[:, 1], boxes[:, 3], columns, width)[:, None, :]
    value = _sample_crop(image, which[:, None, None], y, x, attrs.method)
    inside = (y >= 0) & (y <= rows - 1) & (x >= 0) & (x <= columns - 1)
    value = np.where(inside[..., None], value, np.float32(attrs.extrapolation_value))
    return value if channels_last else value.transpose(0, 3, 1, 2)


def _sample_crop(image: np.ndarray, n: np.ndarray, y: np.ndarray, x: np.ndarray, method: str) -> np.ndarray:
    rows, columns = image.shape[1:3]

    def at(i: np.ndarray, j: np.ndarray) -> np.ndarray:
        return image[n, np.clip(i, 0, rows - 1).astype(np.int64), np.clip(j, 0, columns - 1).astype(np.int64)].astype(np.float32)

    if method == "nearest_neighbor":
        return at(np.floor(y + np.float32(0.5)), np.floor(x + np.float32(0.5)))
    top, left = np.floor(y), np.floor(x)
    ty, tx = (y - top)[..., None], (x - left)[..., None]
    upper = at(top, left) * (1 - tx) + at(top, left + 1) * tx
    lower = at(top + 1, left) * (1 - tx) + at(top + 1, left + 1) * tx
    return upper * (1 - ty) + lower * ty


for _n, _attrs in ((1, Resize1DAttrs), (2, Resize2DAttrs), (3, Resize3DAttrs)):
    declare(f"image.resize{_n}d", attrs=_attrs, relation=_resize_rel(_n), pattern=OpPattern.INJECTIVE, numpy=_resize_numpy(_n),
            level=5, doc="Resamples the spatial axes of an image to new sizes.")
declare("image.crop_and_resize", inputs=("data", "boxes", "box_indices"), attrs=CropAndResizeAttrs, relation=_crop_rel,
        pattern=OpPattern.INJECTIVE, numpy=_crop_numpy, level=5, doc="Crops of images, resampled to one size.")


def _resize(n: int, data: RelayExpr, size: Any, roi: Any, values: dict[str, Any]) -> Call:
    cls = {1: Resize1DAttrs, 2: Resize2DAttrs, 3: Resize3DAttrs}[n]
    size = constant_ints(size)
    if not is_dynamic(roi) and isinstance(roi, RelayExpr):
        roi = roi.data.numpy().reshape(-1).tolist()  # type: ignore[attr-defined]
    roi = [0.0] * (2 * n) if roi is None else roi
    if is_dynamic(size) or is_dynamic(roi):
        if n != 2:
            raise UnsupportedOpError(f"resize{n}d: size and roi must be known when the graph is built")
        return _dynamic(data, size, roi, values)
    size = [size] * n if isinstance(size, (int, np.integer)) else [int(s) for s in size]
    if len(size) != n:
        raise ArgumentError(f"resize{n}d: size must be {n} numbers, got {size}")
    return Call(Op.get(f"image.resize{n}d"), [data], cls(size=size, roi=roi, **values))


def _dynamic(data: RelayExpr, size: Any, roi: Any, values: dict[str, Any]) -> Call:
    from ..dyn.image import resize2d as dyn_resize2d

    size = size if isinstance(size, RelayExpr) else const(np.array(size, np.int64))
    roi = roi if isinstance(roi, RelayExpr) else const(np.array(roi, np.float32))
    return dyn_resize2d(data, size, roi, **values)


def _values(layout: str, method: str, mode: str, rounding: str, alpha: float, exclude: int, extrapolation: float,
            out_dtype: str | None) -> dict[str, Any]:
    return dict(layout=layout, method=method, coordinate_transformation_mode=mode, rounding_method=rounding, cubic_alpha=alpha,
                cubic_exclude=exclude, extrapolation_value=extrapolation, out_dtype=out_dtype)


def resize1d(data: RelayExpr, size: Any, roi: Any = None, layout: str = "NCW", method: str = "linear",
             coordinate_transformation_mode: str = "half_pixel", rounding_method: str = "", cubic_alpha: float = -0.5,
             cubic_exclude: int = 0, extrapolation_value: float = 0.0, out_dtype: str | None = None) -> Call:
    """A signal with its axis W resampled to ``size``.

    ``method``: nearest_neighbor, linear, cubic.  ``coordinate_transformation_mode``: half_pixel, align_corners, asymmetric,
    pytorch_half_pixel, tf_half_pixel_for_nn, tf_crop_and_resize (which samples ``roi``), as in the ONNX operator Resize.
    ``rounding_method`` (of nearest_neighbor): round, floor, ceil, round_prefer_floor, round_prefer_ceil.
    """
    return _resize(1, data, size, roi, _values(layout, method, coordinate_transformation_mode, rounding_method, cubic_alpha,
                                               cubic_exclude, extrapolation_value, out_dtype))


def resize2d(data: RelayExpr, size: Any, roi: Any = None, layout: str = "NCHW", method: str = "linear",
             coordinate_transformation_mode: str = "half_pixel", rounding_method: str = "", cubic_alpha: float = -0.5,
             cubic_exclude: int = 0, extrapolation_value: float = 0.0, out_dtype: str | None = None) -> Call:
    """An image with its axes H and W resampled to ``size``; see :func:`resize1d`.  ``size`` and ``roi`` may be expressions."""
    return _resize(2, data, size, roi, _values(layout, method, coordinate_transformation_mode, rounding_method, cubic_alpha,
                                               cubic_exclude, extrapolation_value, out_dtype))


def resize3d(data: RelayExpr, size: Any, roi: Any = None, layout: str = "NCDHW", method: str = "linear",
             coordinate_transformation_mode: str = "half_pixel", rounding_method: str = "", cubic_alpha: float = -0.5,
             cubic_exclude: int = 0, extrapolation_value: float = 0.0, out_dtype: str | None = None) -> Call:
    """A volume with its axes D, H and W resampled to ``size``; see :func:`resize1d`."""
    return _resize(3, data, size, roi, _values(layout, method, coordinate_transformation_mode, rounding_method, cubic_alpha,
                                               cubic_exclude, extrapolation_value, out_dtype))


def crop_and_resize(data: RelayExpr, boxes: RelayExpr, box_indices: RelayExpr, crop_size: Sequence[int], layout: str,
                    method: str = "bilinear", extrapolation_value: float = 0.0, out_dtype: str | None = None) -> Call:
    """Boxes (n, 4), as fractions (y1, x1, y2, x2), cut out of the images ``box_indices`` and resampled to ``crop_size``."""
    attrs = CropAndResizeAttrs(crop_size=crop_size, layout=layout, method=method, extrapolation_value=extrapolation_value, out_dtype=out_dtype)
    return Call(Op.get("image.crop_and_resize"), [data, boxes, box_indices], attrs)


__all__ = ["Resize1DAttrs", "Resize2DAttrs", "Resize3DAttrs", "CropAndResizeAttrs", "resize1d", "resize2d", "resize3d", "crop_and_resize"]
