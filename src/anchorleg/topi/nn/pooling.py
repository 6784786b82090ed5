"""Pooling: windows, global, adaptive, in any layout."""
from __future__ import annotations

from typing import Any, Sequence

from ... import te
from ...ir.expr import PrimExpr
from ...support.errors import ArgumentError
from ...te import tag
from ...te.tensor import Tensor
from ...tir import op as tir_op
from ...tir.data_layout import Layout
from .common import dims, ints
from .pad import pad_axes

_AXES = {1: "W", 2: "HW", 3: "DHW"}


def _spatial(layout: str, rank: int) -> list[int]:
    lay = Layout(layout)
    found = [lay.index_of(a) for a in _AXES[rank]]
    if -1 in found or any(a.lower() in lay for a in _AXES[rank]):
        raise ArgumentError(f"pooling: layout {layout!r} must have {', '.join(_AXES[rank])}, unsplit")
    return found


def _accumulator(dtype: str) -> str:
    if dtype in ("float16", "bfloat16"):
        return "float32"
    return "int32" if dtype in ("int8", "uint8", "int16", "uint16", "bool") else dtype


def _quotient(total: PrimExpr, count: Any, dtype: str) -> PrimExpr:
    """total / count; for integers cut towards zero."""
    if total.dtype.startswith("float"):
        if isinstance(count, int):
            return (total * tir_op.const(1.0 / count, total.dtype)).astype(dtype)
        return (total / tir_op.cast(count, total.dtype)).astype(dtype)
    return tir_op.truncdiv(total, tir_op.cast(tir_op.convert(count), total.dtype)).astype(dtype)


def _lowest(dtype: str) -> Any:
    return float("-inf") if dtype.startswith(("float", "bfloat")) else tir_op.min_value(dtype)


def pool_nd(data: Tensor, kernel: Any, stride: Any, dilation: Any, padding_before: Any, padding_after: Any, pool_type: str,
            ceil_mode: bool, layout: str, count_include_pad: bool = True, out_extent: Sequence[Any] | None = None) -> Tensor:
    """Windows over the spatial axes of ``layout``; ``pool_type`` is max or avg."""
    rank = sum(c in "DHW" for c in layout)
    axes, shape = _spatial(layout, rank), dims(data)
    size, steps, dil = ints(kernel, rank), ints(stride, rank), ints(dilation, rank)
    pads = list(zip(ints(padding_before, rank), ints(padding_after, rank)))
    outs = list(out_extent) if out_extent is not None else [
        _windows(shape[a], p, k, d, s, ceil_mode) for a, p, k, d, s in zip(axes, pads, size, dil, steps)]
    out = list(shape)
    reach = []
    for a, o, (before, after), k, d, s in zip(axes, outs, pads, size, dil, steps):
        out[a] = o
        need = (o - 1) * s + (k - 1) * d + 1 - before - shape[a]
        reach.append((before, max(after, need) if isinstance(need, int) else after + (s - 1 if ceil_mode else 0)))
    taps = [te.reduce_axis((0, k), name=f"r{n.lower()}") for k, n in zip(size, _AXES[rank])]

    def at(index: Sequence[Any]) -> list[Any]:
        where = list(index)
        for a, t, d, s in zip(axes, taps, dil, steps):
            where[a] = index[a] * s + t * d
        return where

    if pool_type == "max":
        padded = pad_axes(data, axes, reach, _lowest(data.dtype), "pad_temp")
        return te.compute(out, lambda *i: te.max(padded(*at(i)), axis=taps), name="pool_max", tag="pool_max")
    acc = _accumulator(data.dtype)
    padded = pad_axes(data, axes, reach, 0, "pad_temp")
    total = te.compute(out, lambda *i: te.sum(padded(*at(i)).astype(acc), axis=taps), name="pool_sum", tag="pool_sum")
    counts = [_count(shape[a], o, p, k, d, s, count_include_pad) for a, o, p, k, d, s in zip(axes, outs, pads, size, dil, steps)]
    return te.compute(out, lambda *i: _quotient(total(*i), _product([c(i[a]) for c, a in zip(counts, axes)]), data.dtype), name="pool_avg",
                      tag=tag.ELEMWISE)


def _windows(extent: Any, pads: tuple[int, int], k: int, d: int, s: int, ceil_mode: bool) -> Any:
    room = extent + sum(pads) - (k - 1) * d - 1
    if not ceil_mode:
        return room // s + 1
    if isinstance(extent, int):
        count = -(-room // s) + 1
        return count - 1 if count > 0 and (count - 1) * s >= extent + pads[0] else count
    return (room + s - 1) // s + 1


def _count(extent: Any, out: Any, pads: tuple[int, int], k: int, d: int, s: int, include_pad: bool) -> Any:
    """How many entries of a window at output position ``i`` count, as a function of ``i``: an int when it is always ``k``."""
    low, high = (-pads[0], extent + pads[1]) if include_pad else (0, extent)
    if isinstance(extent, int) and isinstance(out, int) and -pads[0] >= low and (out - 1) * s - pads[0] + (k - 1) * d < high:
        return lambda i: k

    def count(i: Any) -> Any:
        start = i * s - pads[0]
        first = tir_op.maximum((low - start + d - 1) // d, 0)
        last = tir_op.minimum((high - start + d - 1) // d, k)
        return last - first

    return count


def _product(counts: Sequence[Any]) -> Any:
    total: Any = 1
    for c in counts:
        total = c if isinstance(total, int) and total == 1 else total * c
    return total if isinstance(total, int) else tir_op.maximum(total, 1)


def pool1d(data: Tensor, kernel: Any, stride: Any, dilation: Any, padding: Any, pool_type: str, ceil_mode: bool = False,
           layout: str = "NCW", count_include_pad: bool = True) -> Tensor:
    """Pooling over W; ``padding`` is (left, right)."""
    return pool_nd(data, kernel, stride, dilation, padding[:1], padding[1:], pool_type, ceil_mode, layout, count_include_pad)


def pool2d(data: Tensor, kernel: Any, stride: Any, dilation: Any, padding: Any, pool_type: str, ceil_mode: bool = False,
           layout: str = "NCHW", count_include_pad: bool = True) -> Tensor:
    """Pooling over H and W; ``padding`` is (top, left, bottom, right)."""
    return pool_nd(data, kernel, stride, dilation, padding[:2], padding[2:], pool_type, ceil_mode, layout, count_include_pad)


def pool3d(data: Tensor, kernel: Any, stride: Any, dilation: Any, padding: Any, pool_type: str, ceil_mode: bool = False,
           layout: str = "NCDHW", count_include_pad: bool = True) -> Tensor:
    """Pooling over D, H and W; ``padding`` is (front, top, left, back, bottom, right)."""
    return pool_nd(data, kernel, stride, dilation, padding[:3], padding[3:], pool_type, ceil_mode, layout, count_include_pad)


def global_pool(data: Tensor, pool_type: str, layout: str = "NCHW") -> Tensor:
    """Each channel's maximum or mean; spatial extents become 1."""
    return adaptive_pool(data, (1, 1), pool_type, layout)


def adaptive_pool(data: Tensor, output_size: Sequence[Any], pool_type: str, layout: str = "NCHW") -> Tensor:
    """Pooling to ``output_size`` windows that cover the spatial axes evenly."""
    rank = sum(c in "DHW" for c in layout)
    axes, shape = _spatial(layout, rank), dims(data)
    outs = ints(output_size, rank) if all(isinstance(o, int) for o in output_size) else tuple(output_size)
    if all(isinstance(shape[a], int) and shape[a] % o == 0 for a, o in zip(axes, outs)):
        size = [shape[a] // o for a, o in zip(axes, outs)]
        return pool_nd(data, size, size, 1, 0, 0, pool_type, False, layout)
    return _uneven(data, axes, outs, pool_type)


def _uneven(data: Tensor, axes: Sequence[int], outs: Sequence[Any], pool_type: str) -> Tensor:
    shape, out = dims(data), list(dims(data))
    taps = []
    for a, o in zip(axes, outs):
        out[a] = o
        taps.append(te.reduce_axis((0, _longest(shape[a], o)), name=f"r{a}"))

    def start(i: Any, a: int, o: Any) -> Any:
        return i * shape[a] // o

    def length(i: Any, a: int, o: Any) -> Any:
        return ((i + 1) * shape[a] + o - 1) // o - start(i, a, o)

    def load(index: Sequence[Any], outside: Any, dtype: str) -> PrimExpr:
        where, inside = list(index), []
        for a, o, t in zip(axes, outs, taps):
            where[a] = start(index[a], a, o) + t
            inside.append(t < length(index[a], a, o))
        return tir_op.if_then_else(tir_op.all(*inside), data(*where).astype(dtype), tir_op.const(outside, dtype)
                                   if not isinstance(outside, PrimExpr) else outside)

    if pool_type == "max":
        return te.compute(out, lambda *i: te.max(load(i, _lowest(data.dtype), data.dtype), axis=taps), name="adaptive_pool_max",
                          tag="adaptive_pool_max")
    acc = _accumulator(data.dtype)
    total = te.compute(out, lambda *i: te.sum(load(i, 0, acc), axis=taps), name="adaptive_pool_sum", tag="adaptive_pool_sum")
    return te.compute(out, lambda *i: _quotient(total(*i), _product([length(i[a], a, o) for a, o in zip(axes, outs)]), data.dtype),
                      name="adaptive_pool_avg", tag=tag.ELEMWISE)


def _longest(extent: Any, out: Any) -> Any:
    """The longest of the windows, over all output positions."""
    if isinstance(extent, int) and isinstance(out, int):
        return max((-(-(i + 1) * extent // out) - i * extent // out for i in range(out)), default=0)
    return (extent + out - 1) // out + 1


def adaptive_pool1d(data: Tensor, output_size: Any, pool_type: str, layout: str = "NCW") -> Tensor:
    """Adaptive pooling over W."""
    return adaptive_pool(data, output_size, pool_type, layout)


def adaptive_pool3d(data: Tensor, output_size: Any, pool_type: str, layout: str = "NCDHW") -> Tensor:
    """Adaptive pooling over D, H and W."""
    return adaptive_pool(data, output_size, pool_type, layout)
