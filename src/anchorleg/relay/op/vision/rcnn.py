"""Pooling of regions of interest: roi_align, roi_pool."""
from __future__ import annotations

import math
from typing import Any

import numpy as np

from ....ir.attrs import FLOAT, INT, INTS, Attrs, Field
from ....ir.expr import RelayExpr
from ....ir.op import Op, OpPattern
from ....ir.type import TensorType, Type
from ....support.errors import TypeMismatchError
from ...expr import Call
from ..registry import declare
from ..transform.common import choice, same_dim, show
from ..type_relations import tensors


class ROIAlignAttrs(Attrs, name="relay.attrs.ROIAlignAttrs"):
    """Attributes of vision.roi_align."""

    pooled_size = Field(INTS, doc="Height and width of the result.")
    spatial_scale = Field(FLOAT, doc="The size of the feature map over that of the image, in whose pixels regions are given.")
    sample_ratio = Field(INT, -1, "Samples along each side of a bin; below 1: as many as pixels.")
    layout = Field(choice("NCHW", "NHWC"), "NCHW", "The layout of the data.")
    mode = Field(choice("avg", "max"), "avg", "How the samples of a bin are combined.")


class ROIPoolAttrs(Attrs, name="relay.attrs.ROIPoolAttrs"):
    """Attributes of vision.roi_pool."""

    pooled_size = Field(INTS, doc="Height and width of the result.")
    spatial_scale = Field(FLOAT, doc="The size of the feature map over that of the image, in whose pixels regions are given.")
    layout = Field(choice("NCHW", "NHWC"), "NCHW", "The layout of the data.")


def _roi_rel(args: tuple[Type, ...], attrs: Any, ctx: Any) -> Type | None:
    types = tensors(args, ("data", "rois"))
    if types is None:
        return None
    data, rois = types
    if len(data.dims) != 4 or len(rois.dims) != 2:
        raise TypeMismatchError(f"expects data of rank 4 and rois (n, 5), got shapes {show(data.dims)} and {show(rois.dims)}")
    same_dim("the second dimension of rois", 5, rois.dims[1])
    size = list(attrs.get_int_tuple("pooled_size")) * (2 if len(attrs.pooled_size) == 1 else 1)
    if len(size) != 2:
        raise TypeMismatchError(f"pooled_size must be two numbers, got {attrs.pooled_size}")
    channels = data.dims[1] if attrs.layout == "NCHW" else data.dims[3]
    dims = [rois.dims[0], channels, *size] if attrs.layout == "NCHW" else [rois.dims[0], *size, channels]
    return TensorType(dims, data.dtype)


def _sample(image: np.ndarray, y: float, x: float) -> np.ndarray:
    """Bilinear sample of an image (channel, row, column); 0 more than a pixel outside of it."""
    rows, columns = image.shape[1:]
    if y < -1 or x < -1 or y > rows or x > columns:
        return np.zeros(image.shape[0], np.float32)
    y, x = min(max(y, 0), rows - 1), min(max(x, 0), columns - 1)
    i, j = math.floor(y), math.floor(x)
    a, b, t, u = min(i + 1, rows - 1), min(j + 1, columns - 1), y - i, x - j
    upper = image[:, i, j] * (1 - u) + image[:, i, b] * u
    return upper * (1 - t) + (image[:, a, j] * (1 - u) + image[:, a, b] * u) * t


def _as_nchw(data: np.ndarray, layout: str) -> np.ndarray:
    return data if layout == "NCHW" else data.transpose(0, 3, 1, 2)


def _pooled(attrs: Any, channels: int, n: int) -> np.ndarray:
    height, width = attrs.pooled_size[0], attrs.pooled_size[-1]
    return np.zeros((n, channels, int(height), int(width)), np.float32)


def _roi_align_numpy(attrs: ROIAlignAttrs, args: list[np.ndarray], out_type: Type) -> np.ndarray:
    data, rois = _as_nchw(args[0], attrs.layout), args[1].astype(np.float32)
    out = _pooled(attrs, data.shape[1], len(rois))
    for n, roi in enumerate(rois):
        x1, y1, x2, y2 = roi[1:] * np.float32(attrs.spatial_scale)
        bin_h, bin_w = max(y2 - y1, np.float32(1)) / out.shape[2], max(x2 - x1, np.float32(1)) / out.shape[3]
        down, across = (attrs.sample_ratio,) * 2 if attrs.sample_ratio > 0 else (math.ceil(bin_h), math.ceil(bin_w))
        for i, j in np.ndindex(*out.shape[2:]):
            samples = [_sample(data[int(roi[0])], y1 + i * bin_h + (p + 0.5) * bin_h / down, x1 + j * bin_w + (q + 0.5) * bin_w / across)
                       for p in range(down) for q in range(across)]
            out[n, :, i, j] = np.mean(samples, axis=0) if attrs.mode == "avg" else np.max(samples, axis=0)
    return out if attrs.layout == "NCHW" else out.transpose(0, 2, 3, 1)


def _bin(k: int, size: float, start: int, limit: int) -> slice:
    """The elements of bin ``k`` along one axis."""
    first = math.floor(k * size + 1e-5) + start
    last = math.ceil((k + 1) * size - 1e-5) + start
    return slice(min(max(first, 0), limit), min(max(last, 0), limit))


def _roi_pool_numpy(attrs: ROIPoolAttrs, args: list[np.ndarray], out_type: Type) -> np.ndarray:
    data, rois = _as_nchw(args[0], attrs.layout), args[1].astype(np.float32)
    out = _pooled(attrs, data.shape[1], len(rois))
    for n, roi in enumerate(rois):
        x1, y1, x2, y2 = (math.floor(v + 0.5) if v >= 0 else math.ceil(v - 0.5) for v in roi[1:] * np.float32(attrs.spatial_scale))
        bin_h, bin_w = np.float32(max(y2 - y1 + 1, 1)) / out.shape[2], np.float32(max(x2 - x1 + 1, 1)) / out.shape[3]
        for i, j in np.ndindex(*out.shape[2:]):
            window = data[int(roi[0])][:, _bin(i, float(bin_h), y1, data.shape[2]), _bin(j, float(bin_w), x1, data.shape[3])]
            out[n, :, i, j] = window.max(axis=(1, 2)) if window.size else 0
    return out if attrs.layout == "NCHW" else out.transpose(0, 2, 3, 1)


declare("vision.roi_align", inputs=("data", "rois"), attrs=ROIAlignAttrs, relation=_roi_rel, pattern=OpPattern.OPAQUE,
        numpy=_roi_align_numpy, level=5, doc="Regions of a feature map, sampled in bins.")
declare("vision.roi_pool", inputs=("data", "rois"), attrs=ROIPoolAttrs, relation=_roi_rel, pattern=OpPattern.OPAQUE,
        numpy=_roi_pool_numpy, level=5, doc="The maximum of each bin of regions of a feature map.")


def roi_align(data: RelayExpr, rois: RelayExpr, pooled_size: Any, spatial_scale: float, sample_ratio: int = -1, layout: str = "NCHW",
              mode: str = "avg") -> Call:
    """Regions ``rois`` (batch index, x1, y1, x2, y2) of ``data``, in ``pooled_size`` bins of bilinear samples each."""
    attrs = ROIAlignAttrs(pooled_size=pooled_size, spatial_scale=spatial_scale, sample_ratio=sample_ratio, layout=layout, mode=mode)
    return Call(Op.get("vision.roi_align"), [data, rois], attrs)


def roi_pool(data: RelayExpr, rois: RelayExpr, pooled_size: Any, spatial_scale: float, layout: str = "NCHW") -> Call:
    """Regions ``rois`` (batch index, x1, y1, x2, y2), rounded to pixels, of ``data``, in ``pooled_size`` bins; each its maximum."""
    return Call(Op.get("vision.roi_pool"), [data, rois], ROIPoolAttrs(pooled_size=pooled_size, spatial_scale=spatial_scale, layout=layout))


__all__ = ["ROIAlignAttrs", "ROIPoolAttrs", "roi_align", "roi_pool"]
