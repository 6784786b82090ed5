"""roi_align and roi_pool, as loop nests over regions, bins and samples."""
from __future__ import annotations

from typing import Any, Callable, Sequence

from ... import tir
from ...te.tensor import Tensor
from ..elemwise import scalar_cast
from ..kernel import View, cell, extern, let, loop, rows, seq
from ..utils import get_const_int

T = tir.op


def _f(v: float) -> Any:
    return tir.const(v, "float32")


def _sizes(data: Tensor, layout: str, pooled: Sequence[int]) -> tuple[Any, int, int, int, int]:
    """(channels, rows, columns, bins down, bins across)."""
    channels, h, w = (data.shape[layout.index(a)] for a in "CHW")
    return channels, get_const_int(h), get_const_int(w), int(pooled[0]), int(pooled[-1])


def _pool(data: Tensor, rois: Tensor, pooled: Sequence[int], layout: str, name: str, bin_value: Callable[..., Any]) -> Tensor:
    """Runs ``bin_value(pixel, corner, i, j, store)`` for every region, channel and bin.

    ``pixel(y, x)`` reads the region's image, ``corner(k)`` a number of the region, ``store(value)`` sets the result.
    """
    channels, height, width, down, across = _sizes(data, layout, pooled)
    shape = (rois.shape[0], channels, down, across) if layout == "NCHW" else (rois.shape[0], down, across, channels)

    def body(ins: list[View], outs: list[View]) -> Any:
        source, regions = ins

        def region(r: Any) -> Any:
            def corner(k: int) -> Any:
                return T.cast(regions[r * 5 + k], "float32")

            def image(n: Any) -> Any:
                def one(c: Any, i: Any, j: Any) -> Any:
                    def pixel(y: Any, x: Any) -> Any:
                        at = ((n * channels + c) * height + y) * width + x if layout == "NCHW" else ((n * height + y) * width + x) * channels + c
                        return scalar_cast(source[at], "float32")

                    to = ((r * channels + c) * down + i) * across + j if layout == "NCHW" else ((r * down + i) * across + j) * channels + c
                    return bin_value(pixel, corner, i, j, lambda v: outs[0].store(to, scalar_cast(v, data.dtype)))

                return loop(channels, lambda c: loop(down, lambda i: loop(across, lambda j: one(c, i, j), "j"), "i"), "c")

            batch = T.maximum(T.minimum(T.cast(corner(0), "int64"), data.shape[0] - 1), 0)
            return let(batch, image, "image")

        return rows(rois.shape[0], region, "region")

    return extern([shape], [data, rois], body, [data.dtype], name)[0]


def roi_align(data: Tensor, rois: Tensor, pooled_size: Sequence[int], spatial_scale: float, sample_ratio: int = -1, layout: str = "NCHW",
              mode: str = "avg") -> Tensor:
    """Regions (batch index, x1, y1, x2, y2) in bins of bilinear samples, averaged or the largest of them."""
    _, height, width, down, across = _sizes(data, layout, pooled_size)
    scale = _f(spatial_scale)

    def bin_value(pixel: Any, corner: Any, i: Any, j: Any, store: Any) -> Any:
        left, top = corner(1) * scale, corner(2) * scale
        bin_h = T.maximum(corner(4) * scale - top, _f(1)) / _f(down)
        bin_w = T.maximum(corner(3) * scale - left, _f(1)) / _f(across)
        n_h, n_w = (tir.const(sample_ratio, "int64"),) * 2 if sample_ratio > 0 else (T.cast(tir.ceil(bin_h), "int64"), T.cast(tir.ceil(bin_w), "int64"))

        def gather(total: Any) -> Any:
            def sample(p: Any, q: Any) -> Any:
                y = top + T.cast(i, "float32") * bin_h + (T.cast(p, "float32") + _f(0.5)) * bin_h / T.cast(n_h, "float32")
                x = left + T.cast(j, "float32") * bin_w + (T.cast(q, "float32") + _f(0.5)) * bin_w / T.cast(n_w, "float32")

                def combine(v: Any) -> Any:
                    return total.set(total.get() + v if mode == "avg" else T.maximum(total.get(), v))

                return let(y, lambda a: let(x, lambda b: let(_bilinear(pixel, a, b, height, width), combine, "v"), "x"), "y")

            walk = loop(n_h, lambda p: loop(n_w, lambda q: sample(p, q), "q"), "p")
            value = total.get() / T.cast(n_h * n_w, "float32") if mode == "avg" else total.get()
            return seq(walk, store(value))

        return cell(_f(0) if mode == "avg" else tir.min_value("float32"), gather, "total", "float32")

    return _pool(data, rois, pooled_size, layout, "roi_align", bin_value)


def _bilinear(pixel: Any, y: Any, x: Any, height: int, width: int) -> Any:
    """A bilinear sample; 0 more than a pixel outside of the image."""
    outside = tir.any(T.less(y, _f(-1)), T.less(x, _f(-1)), T.greater(y, _f(height)), T.greater(x, _f(width)), tir.isnan(y), tir.isnan(x))
    y, x = (T.maximum(T.minimum(v, _f(n - 1)), _f(0)) for v, n in ((y, height), (x, width)))
    y, x = (T.select(outside, _f(0), v) for v in (y, x))
    i, j = T.cast(tir.floor(y), "int64"), T.cast(tir.floor(x), "int64")
    a, b = T.minimum(i + 1, height - 1), T.minimum(j + 1, width - 1)
    t, u = y - tir.floor(y), x - tir.floor(x)
    one = _f(1)
    upper = pixel(i, j) * (one - u) + pixel(i, b) * u
    value = upper * (one - t) + (pixel(a, j) * (one - u) + pixel(a, b) * u) * t
    return T.select(outside, _f(0), value)


def roi_pool(data: Tensor, rois: Tensor, pooled_size: Sequence[int], spatial_scale: float, layout: str = "NCHW") -> Tensor:
    """Regions, rounded to pixels, in bins; each its maximum, 0 for an empty one."""
    _, height, width, down, across = _sizes(data, layout, pooled_size)
    scale, tiny = _f(spatial_scale), _f(1e-5)

    def edge(k: int, corner: Any) -> Any:
        return T.cast(tir.round(corner(k) * scale), "int64")

    def bounds(k: Any, start: Any, end: Any, bins: int, limit: int) -> tuple[Any, Any]:
        size = T.cast(T.maximum(end - start + 1, 1), "float32") / _f(bins)
        first = T.cast(tir.floor(T.cast(k, "float32") * size + tiny), "int64") + start
        last = T.cast(tir.ceil(T.cast(k + 1, "float32") * size - tiny), "int64") + start
        return T.minimum(T.maximum(first, 0), limit), T.minimum(T.maximum(last, 0), limit)

    def bin_value(pixel: Any, corner: Any, i: Any, j: Any, store: Any) -> Any:
        top, bottom = bounds(i, edge(2, corner), edge(4, corner), down, height)
        left, right = bounds(j, edge(1, corner), edge(3, corner), across, width)

        def inner(y0: Any, x0: Any, ny: Any, nx: Any) -> Any:
            def gather(best: Any) -> Any:
                walk = loop(ny, lambda p: loop(nx, lambda q: best.set(T.maximum(best.get(), pixel(y0 + p, x0 + q))), "q"), "p")
                some = tir.all(T.greater(ny, 0), T.greater(nx, 0))
                return seq(walk, store(T.select(some, best.get(), _f(0))))

            return cell(tir.const(float("-inf"), "float32"), gather, "best", "float32")

        ny, nx = T.maximum(bottom - top, 0), T.maximum(right - left, 0)
        return let(top, lambda y0: let(left, lambda x0: let(ny, lambda a: let(nx, lambda b: inner(y0, x0, a, b), "nx"), "ny"), "x0"), "y0")

    return _pool(data, rois, pooled_size, layout, "roi_pool", bin_value)


__all__ = ["roi_align", "roi_pool"]
