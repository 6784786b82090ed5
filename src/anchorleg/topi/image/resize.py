"""resize1d, resize2d, resize3d and crop_and_resize.

Each axis is resampled by tables, computed once for each position of the result: the source indices and their weights.
Positions that are rational numbers are computed in integers.  The sizes of an axis, before and after, are numbers or expressions.
"""
from __future__ import annotations

from itertools import product
from typing import Any, Callable, Sequence

from ... import te
from ... import tir
from ...support.errors import ArgumentError, UnsupportedOpError
from ...te.tensor import Tensor
from ...tir.data_layout import Layout
from ...tir.dtypes import is_float
from ..elemwise import scalar_cast
from ..tag import INJECTIVE
from ..utils import get_const_int

TABLE = "resize_table"  # tag of the tables: kept apart from the loops that read them
_SPATIAL = {1: "W", 2: "HW", 3: "DHW"}


class AxisMap:
    """How one axis is resampled: ``taps`` source indices and weights for each position, and where the image ends."""

    def __init__(self, indices: Sequence[Callable[[Any], Any]], weights: Sequence[Tensor] | None, inside: Tensor | None) -> None:
        self.indices, self.weights, self.inside = list(indices), weights, inside

    @property
    def taps(self) -> int:
        """How many source elements each position reads."""
        return len(self.indices)


def _table(size: Any, fn: Any, name: str) -> Tensor:
    return te.compute((size,), fn, name=name, tag=TABLE)


def rational_position(x: Any, n: Any, size: Any, mode: str) -> tuple[Any, Any]:
    """Numerator and denominator of the source position of ``x``, for an axis of ``n`` elements resized to ``size``."""
    if mode == "align_corners":
        return x * (n - 1) * _at_most(size - 1, 1), _at_least(size - 1, 1)
    if mode == "asymmetric":
        return x * n, size
    if mode == "tf_half_pixel_for_nn":
        return (x * 2 + 1) * n, size * 2
    if mode == "half_pixel":
        return (x * 2 + 1) * n - size, size * 2
    if mode == "pytorch_half_pixel":
        return ((x * 2 + 1) * n - size) * _at_most(size - 1, 1), size * 2
    raise ArgumentError(f"resize: unknown coordinate_transformation_mode {mode!r}")


def _at_least(value: Any, low: int) -> Any:
    return max(value, low) if isinstance(value, int) else tir.op.maximum(value, low)


def _at_most(value: Any, high: int) -> Any:
    return min(value, high) if isinstance(value, int) else tir.op.minimum(value, high)


def whole_factor(n: Any, size: Any, mode: str, rounding: str) -> int | None:
    """The ``k`` for which position ``x`` reads element ``x // k``, throughout; None when there is none, or a size is not known."""
    if not isinstance(n, int) or not isinstance(size, int) or not n or size % n:
        return None
    k = size // n
    return k if all(max(0, min(n - 1, _nearest(*rational_position(x, n, size, mode), rounding))) == x // k for x in range(size)) else None


def _nearest(num: Any, den: Any, rounding: str) -> Any:
    if rounding == "floor":
        return num // den
    if rounding == "ceil":
        return -(-num // den)
    if rounding == "round_prefer_floor":
        return -((den - num * 2) // (den * 2))
    if rounding in ("round", "round_prefer_ceil"):
        return (num * 2 + den) // (den * 2)
    raise ArgumentError(f"resize: unknown rounding_method {rounding!r}")


def _nearest_of_float(at: Any, rounding: str) -> Any:
    half = tir.const(0.5, at.dtype)
    rounded = {"ceil": lambda: tir.ceil(at), "floor": lambda: tir.floor(at), "round_prefer_floor": lambda: tir.ceil(at - half)}
    return tir.op.cast(rounded.get(rounding, lambda: tir.floor(at + half))(), "int64")


def _clamp(index: Any, n: Any) -> Any:
    return tir.op.maximum(tir.op.minimum(index, _at_least(n - 1, 0)), 0)


def _narrow(index: Any) -> Any:
    """An index in half the width, so that tables of indices do not halve the vectors of the loops that read them."""
    return tir.op.cast(index, "int32")


def cubic_weights(t: Any, alpha: float) -> list[Any]:
    """The weights of the four elements around a position ``t`` past the second of them."""
    def c(v: float) -> Any:
        return tir.const(v, t.dtype)

    t2 = t * t
    t3 = t2 * t
    return [c(alpha) * (t3 - c(2) * t2 + t), c(alpha + 2) * t3 - c(3 + alpha) * t2 + c(1),
            c(-(alpha + 2)) * t3 + c(3 + 2 * alpha) * t2 - c(alpha) * t, c(-alpha) * t3 + c(alpha) * t2]


def axis_map(n: Any, size: Any, roi: tuple[float, float], options: dict[str, Any], compute: str, name: str) -> AxisMap:
    """The tables of one axis; weights in the type ``compute``."""
    mode = options["coordinate_transformation_mode"]
    crop = mode == "tf_crop_and_resize"
    inside = _table(size, lambda x: _inside(_crop_position(x, n, size, roi), n), f"{name}_inside") if crop else None
    if options["method"] == "nearest_neighbor":
        rounding = options["rounding_method"] or ("round" if mode == "align_corners" else "floor")

        def nearest(x: Any) -> Any:
            found = _nearest_of_float(_crop_position(x, n, size, roi), rounding) if crop else _nearest(*rational_position(x, n, size, mode), rounding)
            return _narrow(_clamp(found, n))

        factor = None if crop else whole_factor(n, size, mode, rounding)
        index = _table(size, nearest, f"{name}_index") if factor is None else lambda x: x if factor == 1 else tir.floordiv(x, factor)
        return AxisMap([index], None, inside)
    taps, first = (2, 0) if options["method"] == "linear" else (4, -1)

    def split(x: Any) -> tuple[Any, Any]:
        """The element at or before the position, and how far past it the position lies."""
        if crop:
            at = _crop_position(x, n, size, roi)
            return tir.op.cast(tir.floor(at), "int64"), tir.op.cast(at - tir.floor(at), compute)
        num, den = rational_position(x, n, size, mode)
        return tir.floordiv(num, den), tir.op.cast(tir.op.cast(tir.floormod(num, den), "float64") / _as_float(den), compute)

    indices = [_table(size, lambda x, k=k: _narrow(_clamp(split(x)[0] + (k + first), n)), f"{name}_index{k}") for k in range(taps)]
    weights = [_table(size, lambda x, k=k: _weight(k, *split(x), n, options), f"{name}_weight{k}") for k in range(taps)]
    return AxisMap(indices, weights, inside)


def _as_float(value: Any) -> Any:
    return tir.const(float(value), "float64") if isinstance(value, int) else tir.op.cast(value, "float64")


def _weight(k: int, low: Any, t: Any, n: Any, options: dict[str, Any]) -> Any:
    if options["method"] == "linear":
        return t if k else tir.const(1, t.dtype) - t
    weights = cubic_weights(t, options["cubic_alpha"])
    if not options["cubic_exclude"]:
        return weights[k]
    kept = [tir.op.select(tir.all(tir.op.greater_equal(low + (i - 1), 0), tir.op.less(low + (i - 1), n)), w, tir.const(0, t.dtype))
            for i, w in enumerate(weights)]
    return kept[k] / (kept[0] + kept[1] + kept[2] + kept[3])


def _crop_position(x: Any, n: int, size: int, roi: tuple[float, float]) -> Any:
    begin, end = roi
    if size <= 1:
        return tir.const(0.5 * (begin + end) * (n - 1), "float64")
    return tir.const(begin * (n - 1), "float64") + tir.op.cast(x, "float64") * tir.const((end - begin) * (n - 1) / (size - 1), "float64")


def _inside(at: Any, n: int) -> Any:
    return tir.all(tir.op.greater_equal(at, tir.const(0, "float64")), tir.op.less_equal(at, tir.const(float(n - 1), "float64")))


def resize(n_spatial: int, data: Tensor, size: Sequence[Any], roi: Sequence[float], layout: str, method: str = "linear",
           coordinate_transformation_mode: str = "half_pixel", rounding_method: str = "", cubic_alpha: float = -0.5,
           cubic_exclude: int = 0, extrapolation_value: float = 0.0, out_dtype: str | None = None) -> Tensor:
    """``data`` with its spatial axes (W, H W or D H W of ``layout``) resampled to ``size``.

    Sizes that are expressions are for all modes but tf_crop_and_resize, which raises UnsupportedOpError.
    """
    options = dict(method=method, coordinate_transformation_mode=coordinate_transformation_mode, rounding_method=rounding_method,
                   cubic_alpha=cubic_alpha, cubic_exclude=cubic_exclude)
    axes = [Layout(layout).index_of(a) for a in _SPATIAL[n_spatial]]
    compute = "float64" if data.dtype == "float64" else "float32"
    rois = [(float(roi[i]), float(roi[n_spatial + i])) if len(roi) == 2 * n_spatial else (0.0, 1.0) for i in range(n_spatial)]
    before, sizes = {a: _size(data.shape[a]) for a in axes}, {a: _size(s) for a, s in zip(axes, size)}
    if coordinate_transformation_mode == "tf_crop_and_resize" and not all(isinstance(s, int) for s in (*before.values(), *sizes.values())):
        raise UnsupportedOpError("resize: tf_crop_and_resize needs known sizes")
    maps = {a: axis_map(before[a], sizes[a], r, options, compute, f"resize_{letter}") for a, r, letter in zip(axes, rois, _SPATIAL[n_spatial])}
    groups = [axes] if method == "nearest_neighbor" else [[a] for a in _order(before, sizes)]
    value = data
    for group in groups[:-1]:
        value = _pass(value, {a: maps[a] for a in group}, sizes, compute)
    return _last_pass(value, {a: maps[a] for a in groups[-1]}, sizes, compute, [(a, m.inside) for a, m in maps.items() if m.inside is not None],
                      extrapolation_value, out_dtype or data.dtype)


def _size(dim: Any) -> Any:
    """A size as a number where it is one."""
    try:
        return get_const_int(dim)
    except ArgumentError:
        return dim


def _order(before: dict[int, Any], sizes: dict[int, Any]) -> list[int]:
    """The axes one after the other: those that shrink first, then the innermost, along which reading is dearest."""
    grows = {a: not (isinstance(before[a], int) and isinstance(sizes[a], int) and sizes[a] < before[a]) for a in sizes}
    return sorted(sizes, key=lambda a: (grows[a], -a if grows[a] else a))


def _shape(data: Tensor, maps: dict[int, AxisMap], sizes: dict[int, Any]) -> list[Any]:
    return [sizes[k] if k in maps else d for k, d in enumerate(data.shape)]


def _pass(data: Tensor, maps: dict[int, AxisMap], sizes: dict[int, Any], compute: str) -> Tensor:
    """Some axes resampled, kept in the type ``compute``."""
    return te.compute(_shape(data, maps, sizes), lambda *i: _sample(data, i, maps, compute), name="resize_axis", tag="resize_axis")


def _last_pass(data: Tensor, maps: dict[int, AxisMap], sizes: dict[int, Any], compute: str, edges: Sequence[tuple[int, Tensor]],
               outside: float, dtype: str) -> Tensor:
    def element(*i: Any) -> Any:
        value = _sample(data, i, maps, compute)
        if edges:
            value = tir.op.select(tir.all(*[inside(i[a]) for a, inside in edges]), value, tir.op.const(outside, value.dtype))
        return scalar_cast(value, dtype)

    return te.compute(_shape(data, maps, sizes), element, name="resize", tag=INJECTIVE)


def _sample(data: Tensor, i: Sequence[Any], maps: dict[int, AxisMap], compute: str) -> Any:
    total: Any = None
    for taps in product(*[range(m.taps) for m in maps.values()]):
        where = list(i)
        weight: Any = None
        for (a, m), t in zip(maps.items(), taps):
            where[a] = m.indices[t](i[a])
            if m.weights is not None:
                w = m.weights[t](i[a])
                weight = w if weight is None else weight * w
        pixel = data(*where)
        if weight is None:
            return pixel
        term = _widened(pixel, compute) * weight
        total = term if total is None else total + term
    return total


def _widened(pixel: Any, compute: str) -> Any:
    return tir.op.cast(pixel, compute) if is_float(pixel.dtype) else scalar_cast(pixel, compute)


def resize1d(data: Tensor, roi: Sequence[float], size: Sequence[int], layout: str = "NCW", method: str = "linear",
             coordinate_transformation_mode: str = "half_pixel", rounding_method: str = "", bicubic_alpha: float = -0.5,
             bicubic_exclude: int = 0, extrapolation_value: float = 0.0, out_dtype: str | None = None) -> Tensor:
    """A signal with its axis W resampled."""
    return resize(1, data, size, roi, layout, method, coordinate_transformation_mode, rounding_method, bicubic_alpha, bicubic_exclude,
                  extrapolation_value, out_dtype)


def resize2d(data: Tensor, roi: Sequence[float], size: Sequence[int], layout: str = "NCHW", method: str = "linear",
             coordinate_transformation_mode: str = "half_pixel", rounding_method: str = "", bicubic_alpha: float = -0.5,
             bicubic_exclude: int = 0, extrapolation_value: float = 0.0, out_dtype: str | None = None) -> Tensor:
    """An image with its axes H and W resampled."""
    return resize(2, data, size, roi, layout, method, coordinate_transformation_mode, rounding_method, bicubic_alpha, bicubic_exclude,
                  extrapolation_value, out_dtype)


def resize3d(data: Tensor, roi: Sequence[float], size: Sequence[int], layout: str = "NCDHW", method: str = "linear",
             coordinate_transformation_mode: str = "half_pixel", rounding_method: str = "", bicubic_alpha: float = -0.5,
             bicubic_exclude: int = 0, extrapolation_value: float = 0.0, out_dtype: str | None = None) -> Tensor:
    """A volume with its axes D, H and W resampled."""
    return resize(3, data, size, roi, layout, method, coordinate_transformation_mode, rounding_method, bicubic_alpha, bicubic_exclude,
                  extrapolation_value, out_dtype)


# ---- crop_and_resize -------------------------------------------------------------------------------------------------

def crop_and_resize(data: Tensor, boxes: Tensor, box_indices: Tensor, crop_size: Sequence[int], layout: str = "NCHW",
                    method: str = "bilinear", extrapolation_value: float = 0.0, out_dtype: str | None = None) -> Tensor:
    """Boxes (y1, x1, y2, x2), as fractions, cut out of the images ``box_indices`` and resampled to ``crop_size``."""
    parsed = Layout(layout)
    n, h, w = (parsed.index_of(a) for a in "NHW")
    rows, columns = get_const_int(data.shape[h]), get_const_int(data.shape[w])
    height, width = (int(s) for s in crop_size)
    ys = te.compute((boxes.shape[0], height), lambda b, y: _box_position(boxes, b, 0, y, rows, height), name="crop_y", tag=TABLE)
    xs = te.compute((boxes.shape[0], width), lambda b, x: _box_position(boxes, b, 1, x, columns, width), name="crop_x", tag=TABLE)
    shape = list(data.shape)
    shape[n], shape[h], shape[w] = boxes.shape[0], height, width
    dtype = out_dtype or data.dtype

    def element(*i: Any) -> Any:
        y, x = ys(i[n], i[h]), xs(i[n], i[w])

        def at(row: Any, column: Any) -> Any:
            where = list(i)
            where[n] = tir.op.cast(box_indices(i[n]), "int64")
            where[h], where[w] = _clamp(_whole(row), rows), _clamp(_whole(column), columns)
            return tir.op.cast(data(*where), "float32")

        inside = tir.all(*_between(y, rows), *_between(x, columns))
        value = _bilinear(at, y, x) if method == "bilinear" else at(tir.floor(y + _f(0.5)), tir.floor(x + _f(0.5)))
        return scalar_cast(tir.op.select(inside, value, _f(extrapolation_value)), dtype)

    return te.compute(shape, element, name="crop_and_resize", tag=INJECTIVE)


def _f(v: float) -> Any:
    return tir.const(v, "float32")


def _whole(position: Any) -> Any:
    """A position as an index; far or undefined positions stay within what an int32 holds."""
    bounded = tir.op.maximum(tir.op.minimum(position, _f(2.0**30)), _f(-2.0**30))
    return tir.op.cast(tir.op.select(tir.isnan(position), _f(0), bounded), "int64")


def _between(position: Any, n: int) -> list[Any]:
    return [tir.op.greater_equal(position, _f(0)), tir.op.less_equal(position, _f(n - 1))]


def _box_position(boxes: Tensor, b: Any, side: int, k: Any, n: int, size: int) -> Any:
    begin, end = (tir.op.cast(boxes(b, c), "float32") for c in (side, side + 2))
    if size <= 1:
        return _f(0.5) * (begin + end) * _f(n - 1)
    return begin * _f(n - 1) + tir.op.cast(k, "float32") * ((end - begin) * _f(n - 1) / _f(size - 1))


def _bilinear(at: Any, y: Any, x: Any) -> Any:
    top, left = tir.floor(y), tir.floor(x)
    ty, tx = y - top, x - left
    one = _f(1)
    upper = at(top, left) * (one - tx) + at(top, left + one) * tx
    lower = at(top + one, left) * (one - tx) + at(top + one, left + one) * tx
    return upper * (one - ty) + lower * ty


__all__ = ["resize", "resize1d", "resize2d", "resize3d", "crop_and_resize", "cubic_weights", "axis_map"]
