"""Resizing by scales that do not give whole sizes, as the ONNX operator Resize allows.

``image.resize2d`` and its kin place pixels by the ratio of the sizes.  Where a model gives a scale of which the size is only
the rounded result, positions go by the scale; such a resize is written as ``take``s with constant indices, one for each tap.
"""
from __future__ import annotations

from fractions import Fraction
from typing import Any, Sequence

import numpy as np

from ....ir.expr import RelayExpr
from ....ir.op import Op
from ....support.errors import ArgumentError
from ....tir.data_layout import Layout
from ...expr import Call, const
from ..attrs_common import CastAttrs
from ..transform.index import take
from .resize import _SPATIAL, Resize1DAttrs, axis_table, resize1d, resize2d, resize3d

_CONSTRUCTORS = {1: resize1d, 2: resize2d, 3: resize3d}


def resize_scaled(data: RelayExpr, scales: Sequence[float], size: Sequence[int], in_size: Sequence[int] | None = None, layout: str | None = None,
                  method: str = "linear", coordinate_transformation_mode: str = "half_pixel", rounding_method: str = "",
                  cubic_alpha: float = -0.5, cubic_exclude: int = 0, dtype: str | None = None) -> RelayExpr:
    """``data`` with its spatial axes magnified by ``scales`` to ``size``; positions go by the scales.

    ``in_size`` are the sizes before, and ``dtype`` the data type: taken from a typed or annotated ``data`` when not given.
    Where ``size`` is exactly scale times the size before, this is ``image.resize1d``, ``resize2d`` or ``resize3d``.
    """
    n = len(scales)
    layout = layout or {1: "NCW", 2: "NCHW", 3: "NCDHW"}[n]
    axes = [Layout(layout).index_of(a) for a in _SPATIAL[n]]
    known = _type_of(data)
    if known is None and (in_size is None or dtype is None):
        raise ArgumentError("resize_scaled: the type of data is not known; give in_size and dtype")
    before = [int(known.dims[a]) for a in axes] if in_size is None else [int(s) for s in in_size]
    if len(size) != n or len(before) != n:
        raise ArgumentError(f"resize_scaled: scales, size and in_size must have one length, got {n}, {len(size)} and {len(before)}")
    options = dict(method=method, coordinate_transformation_mode=coordinate_transformation_mode, rounding_method=rounding_method,
                   cubic_alpha=cubic_alpha, cubic_exclude=cubic_exclude)
    ratios = [_exact(s, a, b) for s, a, b in zip(scales, before, size)]
    if all(r * a == b for r, a, b in zip(ratios, before, size)) or coordinate_transformation_mode in ("align_corners", "tf_crop_and_resize"):
        return _CONSTRUCTORS[n](data, list(size), None, layout, **options)
    attrs = Resize1DAttrs(**options)
    for axis, ratio, old, new in zip(axes, ratios, before, size):
        data = _resample(data, axis, old, int(new), ratio, attrs, dtype or known.dtype, Layout(layout).ndim)
    return data


def _type_of(data: RelayExpr) -> Any:
    return data.checked_type_ or getattr(data, "type_annotation", None)


def _exact(scale: float, before: int, after: int) -> Fraction:
    """The scale as a fraction: that of the sizes where they explain it, else the simplest one that reads the same in float32."""
    if before and np.float32(after / before) == np.float32(scale):
        return Fraction(int(after), before)
    simple = Fraction(float(scale)).limit_denominator(4096)
    return simple if np.float32(float(simple)) == np.float32(scale) else Fraction(float(np.float32(scale)))


def _resample(data: RelayExpr, axis: int, old: int, new: int, ratio: Fraction, attrs: Resize1DAttrs, dtype: str, ndim: int) -> RelayExpr:
    """One axis: the sum over taps of weight × the elements the tap reads."""
    if old == new and ratio == 1:
        return data
    index, weights, _ = axis_table(old, new, attrs, (0.0, 1.0), ratio)
    if attrs.method == "nearest_neighbor":
        return take(data, const(index[0].astype(np.int64)), axis=axis)
    compute = "float64" if dtype == "float64" else "float32"
    source = _cast(data, dtype, compute)
    total: Any = None
    for ix, w in zip(index, weights):
        shaped = w.astype(compute).reshape([-1 if d == axis else 1 for d in range(ndim)])
        term = take(source, const(ix.astype(np.int64)), axis=axis) * const(shaped)
        total = term if total is None else total + term
    return _cast(total, compute, dtype)


def _cast(data: RelayExpr, have: str, want: str) -> RelayExpr:
    return data if have == want else Call(Op.get("cast"), [data], CastAttrs(dtype=want))


__all__ = ["resize_scaled"]
