"""Resize and Upsample, exactly as the specification says.

Each axis is resampled on its own: every element of the result is a weighted sum of a few elements of the data, and the
places and weights are constants.  Where Relay's own resize operator means the same, that is used instead, because layout
changes know it.
"""
from __future__ import annotations

import math
from typing import Any, NamedTuple, Sequence

import numpy as np

from .....ir.expr import RelayExpr
from .....support.errors import ArgumentError
from ....op.image.resize import Resize2DAttrs, axis_table
from ..context import NodeContext
from ..make import call, const, stack, transpose, where
from ..registry import op
from ..resampling import SIMPLE, TIE, Stretch, by_scale, by_size, check, extrapolate, in_proportion
from ..resampling import resample as resample_unknown
from .index import size_of
from .linear import matmul

_F = np.float32
_POLICIES = ("stretch", "not_larger", "not_smaller")
_FEW = 4  # taps: more are a matrix product
_LAYOUT = {1: "NCW", 2: "NCHW", 3: "NCDHW"}


class Spec(NamedTuple):
    """How a node resamples."""

    mode: str = "nearest"
    coordinates: str = "half_pixel"
    nearest: str = "round_prefer_floor"
    cubic_a: float = -0.75
    exclude_outside: bool = False
    antialias: bool = False
    extrapolation: float = 0.0


class Axis(NamedTuple):
    """One axis: its sizes, its scale as given, and the region of interest."""

    size: int
    out: int
    scale: float
    roi: tuple[float, float]


def coordinates(spec: Spec, axis: Axis) -> np.ndarray:
    """For each place of the result, the place in the data that it shows: in float32, as other runtimes do it."""
    x, size, out, scale, half = np.arange(axis.out).astype(_F), _F(axis.size), _F(axis.out), _F(axis.scale), _F(0.5)
    name = spec.coordinates
    if name == "half_pixel" or name == "pytorch_half_pixel" and axis.out > 1:
        return (x + half) / scale - half
    if name == "half_pixel_symmetric":
        offset = size / _F(2) * (_F(1) - out / (scale * size))
        return (offset + (x + 0.5) / np.float64(scale) - 0.5).astype(_F)
    if name == "asymmetric":
        return x / scale
    if name == "tf_half_pixel_for_nn":
        return (x + half) / scale
    if name == "tf_crop_and_resize":
        first, last, end = _F(axis.roi[0]), _F(axis.roi[1]), size - _F(1)
        return first * end + x * (last - first) * end / (out - _F(1)) if axis.out > 1 else np.full(axis.out, half * (first + last) * end)
    if name == "align_corners" and axis.out > 1:
        return x * (size - _F(1)) / (out - _F(1))
    if name in ("align_corners", "pytorch_half_pixel"):
        return np.zeros(axis.out, _F)
    raise ArgumentError(f"coordinate_transformation_mode {name!r} is not known")


_ROUND = {"round_prefer_floor": lambda x: np.floor(x) + (x - np.floor(x) > _F(0.5 + TIE)),
          "round_prefer_ceil": lambda x: np.floor(x) + (x - np.floor(x) >= _F(0.5 - TIE)), "floor": np.floor, "ceil": np.ceil}


def _linear(t: np.ndarray) -> np.ndarray:
    return np.maximum(0, 1 - np.abs(t))


def _cubic(t: np.ndarray, a: float) -> np.ndarray:
    t = np.abs(t)
    near, far = ((a + 2) * t - (a + 3)) * t * t + 1, ((a * t - 5 * a) * t + 8 * a) * t - 4 * a
    return np.where(t <= 1, near, np.where(t < 2, far, 0))


def taps(spec: Spec, axis: Axis) -> tuple[np.ndarray, np.ndarray]:
    """(places, weights), each of shape (taps, size of the result)."""
    x = coordinates(spec, axis).astype(np.float64 if spec.mode != "nearest" else _F)
    if spec.mode == "nearest":
        rounding = spec.nearest if spec.nearest != SIMPLE else "ceil" if axis.scale < 1 else "floor"
        if rounding not in _ROUND:
            raise ArgumentError(f"nearest_mode {spec.nearest!r} is not known")
        return np.clip(_ROUND[rounding](x), 0, axis.size - 1)[None].astype(np.int64), np.ones((1, axis.out))
    radius, stretch = (1 if spec.mode == "linear" else 2), min(axis.scale, 1.0) if spec.antialias else 1.0
    first = math.floor(-radius / stretch) + 1
    steps = np.arange(first, 2 - first if radius == 2 or first != 0 else 2)[:, None]
    base = np.floor(x)
    distance = (steps - (x - base)) * stretch
    weights = _linear(distance) if spec.mode == "linear" else _cubic(distance, spec.cubic_a)
    places = (base + steps).astype(np.int64)
    if spec.exclude_outside:
        weights = np.where((places >= 0) & (places < axis.size), weights, 0)
    if spec.exclude_outside or spec.antialias:
        weights = weights / weights.sum(0)
    return np.clip(places, 0, axis.size - 1), weights


def resample(n: NodeContext, x: RelayExpr, at: int, spec: Spec, axis: Axis) -> RelayExpr:
    """``x`` resampled along axis ``at``."""
    places, weights = taps(spec, axis)
    rank = n.rank(x)
    if len(places) == 1:
        return call("take", x, const(places[0], "int64"), axis=at, batch_dims=0, mode="fast")
    if len(places) > _FEW:
        return _by_matrix(n, x, at, places, weights, axis)
    total = None
    for place, weight in zip(places, weights):
        part = call("take", x, const(place, "int64"), axis=at, batch_dims=0, mode="fast")
        part = call("multiply", part, n.like(weight.reshape([-1 if i == at else 1 for i in range(rank)]), x))
        total = part if total is None else call("add", total, part)
    return total  # type: ignore[return-value]


def _by_matrix(n: NodeContext, x: RelayExpr, at: int, places: np.ndarray, weights: np.ndarray, axis: Axis) -> RelayExpr:
    matrix = np.zeros((axis.size, axis.out))
    for place, weight in zip(places, weights):
        np.add.at(matrix, (place, np.arange(axis.out)), weight)
    last = n.rank(x) - 1
    order = [i for i in range(last + 1) if i != at] + [at]
    moved = matmul(n, transpose(x, order), n.like(matrix, x))
    return transpose(moved, list(np.argsort(order)))


# ---- the operator ------------------------------------------------------------------------------------------------------

def resize(n: NodeContext, x: RelayExpr, spec: Spec, axes: dict[int, Axis]) -> RelayExpr:
    """``x`` resized along some axes."""
    if spec.mode not in ("nearest", "linear", "cubic"):
        raise ArgumentError(f"mode must be nearest, linear or cubic, got {spec.mode!r}")
    crop = spec.coordinates == "tf_crop_and_resize"
    axes = {at: a for at, a in axes.items() if crop or a.size != a.out or a.scale != 1}
    dtype = n.dtype(x)
    direct = None if spec.nearest == SIMPLE and any(a.scale < 1 for a in axes.values()) else _as_relay(n, x, spec, axes)
    if direct is not None:
        return direct
    y = _in_floats(x, spec, dtype)
    for at, axis in axes.items():
        y = resample(n, y, at, spec, axis)
    y = n.to(y, dtype) if y is not x else y
    return _outside(n, y, spec, axes) if crop else y


def _in_floats(x: RelayExpr, spec: Spec, dtype: str) -> RelayExpr:
    """``x`` in the type that it is averaged in."""
    return x if spec.mode == "nearest" or dtype in ("float32", "float64") else call("cast", x, dtype="float32")


def _outside(n: NodeContext, y: RelayExpr, spec: Spec, axes: dict[int, Axis]) -> RelayExpr:
    """The extrapolation value where the region of interest leaves the data."""
    rank = n.rank(y)
    for at, axis in axes.items():
        x = coordinates(spec, axis)
        inside = ((x >= 0) & (x <= axis.size - 1)).reshape([-1 if i == at else 1 for i in range(rank)])
        if not inside.all():
            y = where(const(inside, "bool"), y, n.like(spec.extrapolation, y))
    return y


_RELAY_COORDINATES = frozenset({"half_pixel", "align_corners", "asymmetric"})
_RELAY_ROUNDING = {SIMPLE: "floor", "round_prefer_ceil": "round_prefer_ceil", "floor": "floor", "ceil": "ceil", "round_prefer_floor": "round_prefer_floor"}


def _as_relay(n: NodeContext, x: RelayExpr, spec: Spec, axes: dict[int, Axis]) -> RelayExpr | None:
    """Relay's resize2d when it means exactly the same."""
    rank = n.rank(x)
    plain = not (spec.antialias or spec.exclude_outside) and spec.coordinates in _RELAY_COORDINATES and "float" in n.dtype(x)
    exact = all(abs(a.scale * a.size - a.out) < 1e-6 * a.out for a in axes.values())
    if rank != 4 or not plain or not exact or not axes or min(axes) < 2 or spec.mode == "cubic":
        return None
    size = [axes[at].out if at in axes else n.dims(x)[at] for at in (2, 3)]
    if not all(isinstance(s, int) for s in size):
        return None
    method = {"nearest": "nearest_neighbor", "linear": "linear"}[spec.mode]
    options = dict(method=method, coordinate_transformation_mode=spec.coordinates, cubic_alpha=spec.cubic_a,
                   rounding_method=_RELAY_ROUNDING[spec.nearest] if spec.mode == "nearest" else "")
    if spec.mode == "nearest" and not all(_same_pixels(spec, a, Resize2DAttrs(**options)) for a in axes.values()):
        return None
    return call("image.resize2d", x, size=size, layout="NCHW", **options)


def _same_pixels(spec: Spec, axis: Axis, attrs: Resize2DAttrs) -> bool:
    """Whether the operator, which places pixels by exact fractions, takes those that float32 finds."""
    return bool(np.array_equal(axis_table(axis.size, axis.out, attrs, (0.0, 1.0))[0], taps(spec, axis)[0]))


def _axes_by_scales(dims: Sequence[Any], axes: Sequence[int], scales: Sequence[float], roi: Sequence[float]) -> dict[int, Axis]:
    if len(scales) != len(axes):
        raise ArgumentError(f"{len(axes)} scales are expected, got {list(scales)}")
    return {at: Axis(dims[at], int(_F(dims[at]) * _F(s)), float(s), _roi(roi, i, len(axes)))
            for i, (at, s) in enumerate(zip(axes, scales)) if s != 1 or roi}


def _roi(roi: Sequence[float], i: int, count: int) -> tuple[float, float]:
    return (float(roi[i]), float(roi[i + count])) if len(roi) == 2 * count else (0.0, 1.0)


def _axes_by_sizes(dims: Sequence[Any], axes: Sequence[int], sizes: Sequence[int], roi: Sequence[float], policy: str) -> dict[int, Axis]:
    if len(sizes) != len(axes):
        raise ArgumentError(f"{len(axes)} sizes are expected, got {list(sizes)}")
    scales = [_F(s) / _F(dims[at]) for s, at in zip(sizes, axes)]
    if policy != "stretch":
        one = min(scales) if policy == "not_larger" else max(scales)
        scales, sizes = [one] * len(axes), [int(np.floor(one * _F(dims[at]) + _F(0.5))) for at in axes]
    return {at: Axis(dims[at], int(s), float(c), _roi(roi, i, len(axes))) for i, (at, s, c) in enumerate(zip(axes, sizes, scales))}


def _enlarged(n: NodeContext, x: RelayExpr, spec: Spec, scales: Sequence[float]) -> RelayExpr | None:
    """Pixels repeated a whole number of times, which needs no sizes."""
    repeats = spec.coordinates == "asymmetric" and spec.nearest in ("floor", SIMPLE) or (
        spec.coordinates in ("half_pixel", "pytorch_half_pixel") and spec.nearest.startswith("round"))
    if spec.mode != "nearest" or not repeats or n.rank(x) != 4 or list(scales[:2]) != [1, 1] or any(s != int(s) or s < 1 for s in scales):
        return None
    return call("nn.upsampling", x, scale_h=float(scales[2]), scale_w=float(scales[3]), layout="NCHW", method="nearest_neighbor")


def _by_scales(n: NodeContext, x: RelayExpr, spec: Spec, axes: Sequence[int], scales: Sequence[float], roi: Sequence[float]) -> RelayExpr:
    """``x`` resized by scales."""
    if not all(isinstance(d, int) for d in n.dims(x)) and list(axes) == list(range(n.rank(x))):
        larger = _enlarged(n, x, spec, scales)
        if larger is not None:
            return larger
    if not _is_known(n.dims(x), axes, scales):
        return _of_unknown_sizes(n, x, spec, axes, const(list(scales), "float32"), False)
    return resize(n, x, spec, _axes_by_scales(n.dims(x), axes, scales, roi))


def _is_known(dims: Sequence[Any], axes: Sequence[int], factors: Sequence[float]) -> bool:
    """Whether the sizes of the axes that are really resized are known."""
    return all(isinstance(dims[at], int) or i < len(factors) and factors[i] == 1 for i, at in enumerate(axes))


def _of_unknown_sizes(n: NodeContext, x: RelayExpr, spec: Spec, axes: Sequence[int], wanted: RelayExpr, sized: bool,
                      policy: str = "stretch") -> RelayExpr:
    """``x`` resized by scales or to sizes (a vector) where these, or the sizes of ``x``, are known to a running model only."""
    check(spec)
    known, all_axes = n.builder.partial.get(wanted) if sized else n.value(wanted), policy != "stretch" or spec.coordinates == "tf_crop_and_resize"
    (wanted,) = n.settled(wanted)
    factors = [None] * len(axes) if known is None else list(known)
    stretched = {at: _stretch(n, x, at, wanted, i, sized, factors[i]) for i, at in enumerate(axes)
                 if all_axes or not _is_kept(n.dims(x)[at], factors[i], sized)}
    if policy != "stretch":
        stretched = dict(zip(stretched, in_proportion(list(stretched.values()), policy)))
    if spec.coordinates == "tf_crop_and_resize":
        stretched = {at: s._replace(roi=_region(n, i, len(axes))) for i, (at, s) in enumerate(stretched.items())}
    return _resampled(n, x, spec, stretched, not all_axes and _goes_by_sizes(spec, sized, factors))


def _resampled(n: NodeContext, x: RelayExpr, spec: Spec, stretched: dict[int, Stretch], by_sizes: bool) -> RelayExpr:
    """``x`` resampled along some axes, a plane at once where sizes alone say how."""
    y = _in_floats(x, spec, n.dtype(x))
    plane = [at for at in (2, 3) if at in stretched and n.rank(x) == 4 and by_sizes]
    for at in stretched:
        if at not in plane:
            (y,) = n.settled(resample_unknown(n, y, at, spec, stretched[at]))
    if plane:
        y = _plane(n, y, spec, {at: stretched[at].out for at in plane})
    (y,) = n.settled(n.to(y, n.dtype(x)))
    for at in stretched if spec.coordinates == "tf_crop_and_resize" else ():
        (y,) = n.settled(extrapolate(n, y, at, spec, stretched[at]))
    return y


def _region(n: NodeContext, i: int, count: int) -> tuple[RelayExpr, RelayExpr]:
    """Begin and end of the region of interest along the axis at place ``i`` of ``count``."""
    roi = n.need(1)
    first, last = (n.to(call("take", roi, const(k, "int64"), axis=0, batch_dims=0, mode="clip"), "float32") for k in (i, i + count))
    return first, last


def _is_kept(dim: Any, wanted: Any, sized: bool) -> bool:
    """Whether an axis of that size keeps it: ``wanted`` is its new size or its scale, or None where it is not known."""
    return wanted is not None and (wanted is dim or (isinstance(wanted, int) and wanted == dim if sized else wanted == 1))


def _stretch(n: NodeContext, x: RelayExpr, at: int, wanted: RelayExpr, i: int, sized: bool, factor: Any) -> Stretch:
    """Axis ``at`` of ``x``, stretched as entry ``i`` of the vector of sizes or scales says; ``factor`` is its value where that is known."""
    size: Any = size_of(n, x, at, "int64")
    size = const(size, "int64") if isinstance(size, int) else size
    entry = n.to(call("take", wanted, const(i, "int64"), axis=0, batch_dims=0, mode="clip"), "int64" if sized else "float32")
    if sized:
        return by_size(size, entry)
    found = by_scale(size, entry)
    return found._replace(out=call("multiply", size, const(int(factor), "int64"))) if _is_whole(factor) else found


def _is_whole(scale: Any) -> bool:
    return scale is not None and float(scale).is_integer()


def _goes_by_sizes(spec: Spec, sized: bool, scales: Sequence[Any]) -> bool:
    """Whether the operator that resizes planes, which goes by the sizes before and after and rounds exactly, means the same.

    Positions are exact in float32 where scales are whole or corners are aligned; elsewhere the nearest pixel may be another one.
    """
    exact = spec.coordinates == "align_corners" or not sized and all(map(_is_whole, scales))
    same = spec.mode == "linear" and sized or spec.mode in ("linear", "nearest") and exact
    return same and spec.coordinates in _RELAY_COORDINATES | {"pytorch_half_pixel"}


def _plane(n: NodeContext, x: RelayExpr, spec: Spec, sizes: dict[int, RelayExpr]) -> RelayExpr:
    """``x`` with its axes 2 and 3 resized by the operator, to the sizes (int64 scalars) of those that change."""
    both: list[Any] = [sizes[at] if at in sizes else size_of(n, x, at, "int64") for at in (2, 3)]
    (size,) = n.settled(stack([const(s, "int64") if isinstance(s, int) else s for s in both], 0))
    options = dict(layout="NCHW", method="linear" if spec.mode == "linear" else "nearest_neighbor", coordinate_transformation_mode=spec.coordinates,
                   rounding_method=_RELAY_ROUNDING[spec.nearest] if spec.mode == "nearest" else "")
    value = n.value(size)
    if value is not None:
        return call("image.resize2d", x, size=[int(v) for v in value], **options)
    return call("dyn.image.resize2d", x, size, const([0.0] * 4, "float32"), **options)


@op("Upsample")
@op("Resize", since=10)
def by_scales(n: NodeContext) -> RelayExpr:
    """Scales only; places are divided by the scale and rounded down."""
    x = n.need(0)
    axes = list(range(n.rank(x)))
    if n.op_type == "Upsample" and n.version < 7:
        scales: Any = [1.0, 1.0, n.attr("height_scale"), n.attr("width_scale")]
    elif n.op_type == "Upsample" and n.version < 9:
        scales = n.attr("scales")
    else:
        scales = n.value(n.need(1))
    mode = {"bilinear": "linear"}.get(n.attr("mode", "nearest"), n.attr("mode", "nearest"))
    spec = Spec(mode, "asymmetric", SIMPLE)
    return _of_unknown_sizes(n, x, spec, axes, n.need(1), False) if scales is None else _by_scales(n, x, spec, axes, np.ravel(scales), ())


@op("Resize", since=11)
def resize_v11(n: NodeContext) -> RelayExpr:
    """Scales or sizes, in one of many ways."""
    x = n.need(0)
    axes = n.axes(n.attr("axes", range(n.rank(x))), n.rank(x))
    spec = Spec(n.attr("mode", "nearest"), n.attr("coordinate_transformation_mode", "half_pixel"),
                n.attr("nearest_mode", "round_prefer_floor"), n.attr("cubic_coeff_a", -0.75), bool(n.attr("exclude_outside", 0)),
                bool(n.attr("antialias", 0)), n.attr("extrapolation_value", 0.0))
    crop = spec.coordinates == "tf_crop_and_resize"
    region = n.value(n.need(1)) if crop else np.zeros(0)
    roi = None if region is None else tuple(region.reshape(-1).tolist())
    scales = n.input(2)
    if scales is not None and n.dims(scales) != (0,):
        value = n.value(scales)
        if value is None or roi is None:
            return _of_unknown_sizes(n, x, spec, axes, scales, False)
        return _by_scales(n, x, spec, axes, value.reshape(-1), roi)
    if n.input(3) is None:
        raise ArgumentError("neither scales nor sizes are given")
    return _to_sizes(n, x, spec, axes, roi)


def _to_sizes(n: NodeContext, x: RelayExpr, spec: Spec, axes: Sequence[int], roi: tuple[float, ...] | None) -> RelayExpr:
    """``x`` resized to the sizes of input 3."""
    sizes, dims, policy = n.value(n.need(3)), n.dims(x), n.attr("keep_aspect_ratio_policy", "stretch")
    if policy not in _POLICIES:
        raise ArgumentError(f"keep_aspect_ratio_policy must be one of {', '.join(_POLICIES)}, got {policy!r}")
    if sizes is not None and roi is not None and _is_known(dims, axes, ()):
        return resize(n, x, spec, _axes_by_sizes(dims, axes, [int(s) for s in sizes.reshape(-1)], roi, policy))
    return _of_unknown_sizes(n, x, spec, axes, n.need(3), True, policy)


__all__ = ["Axis", "Spec", "resize", "taps"]
