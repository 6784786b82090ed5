"""Convolutions and their transposes."""
from __future__ import annotations

from typing import Any, Sequence

import numpy as np

from .....ir.expr import RelayExpr
from .....support.errors import ArgumentError, UnsupportedOpError
from ....op.dyn import transform as dyn
from ..context import NodeContext
from ..make import call, concat, const, slice_axis
from ..registry import op

_DATA = {1: "NCW", 2: "NCHW", 3: "NCDHW"}
_SPACE = {1: "W", 2: "HW", 3: "DHW"}


def spatial_rank(n: NodeContext, x: RelayExpr) -> int:
    """The number of spatial axes: 1, 2 or 3."""
    rank = n.rank(x) - 2
    if rank not in _DATA:
        raise UnsupportedOpError(f"{rank} spatial dimensions are not supported; 1, 2 or 3 are")
    return rank


def per_axis(n: NodeContext, name: str, rank: int, default: int = 1) -> list[int]:
    """An attribute with one entry per spatial axis."""
    value = list(n.attr(name, None) or [default] * rank)
    if len(value) != rank:
        raise ArgumentError(f"{name} needs {rank} entries, got {value}")
    return value


def padding(n: NodeContext, dims: Sequence[Any], kernel: Sequence[int], strides: Sequence[int], dilation: Sequence[int]) -> list[int]:
    """Befores, then afters: given, or worked out for ``auto_pad``."""
    auto, rank = n.attr("auto_pad", "NOTSET"), len(kernel)
    if auto in ("NOTSET", ""):
        pads = list(n.attr("pads", None) or [0] * 2 * rank)
        if len(pads) != 2 * rank:
            raise ArgumentError(f"pads needs {2 * rank} entries, got {pads}")
        return pads
    if auto == "VALID":
        return [0] * 2 * rank
    if auto not in ("SAME_UPPER", "SAME_LOWER"):
        raise ArgumentError(f"auto_pad must be NOTSET, VALID, SAME_UPPER or SAME_LOWER, got {auto!r}")
    totals = [_same_total(d, k, s, e) for d, k, s, e in zip(dims, kernel, strides, dilation)]
    before = [t // 2 if auto == "SAME_UPPER" else t - t // 2 for t in totals]
    return before + [t - b for t, b in zip(totals, before)]


def _same_total(dim: Any, kernel: int, stride: int, dilation: int) -> int:
    extent = (kernel - 1) * dilation + 1
    if stride == 1:
        return extent - 1
    if not isinstance(dim, int):
        raise UnsupportedOpError("auto_pad SAME with a stride needs to know the size of the data: give the sizes of the model's inputs")
    return max((-(-dim // stride) - 1) * stride + extent - dim, 0)


def padded(n: NodeContext, x: RelayExpr, kernel: Sequence[int], strides: Sequence[int], dilation: Sequence[int],
           value: RelayExpr | None = None) -> tuple[RelayExpr, list[int]]:
    """(data, padding) of windows: where SAME with a stride meets unknown sizes, the data come padded (with ``value``, or zeros)."""
    dims, auto = n.dims(x)[2:], n.attr("auto_pad", "NOTSET")
    if auto not in ("SAME_UPPER", "SAME_LOWER") or all(isinstance(d, int) or s == 1 for d, s in zip(dims, strides)):
        return x, padding(n, dims, kernel, strides, dilation)
    extents = [(k - 1) * d + 1 for k, d in zip(kernel, dilation)]
    return _padded_to_fit(n, x, extents, strides, auto == "SAME_UPPER", n.like(0, x) if value is None else value), [0] * 2 * len(kernel)


def _padded_to_fit(n: NodeContext, x: RelayExpr, extents: Sequence[int], strides: Sequence[int], upper: bool, value: RelayExpr) -> RelayExpr:
    """``x`` padded as much as any size may ask for, and cut to what its sizes ask for."""
    most = [_halves(e - 1, upper) for e in extents]
    wide = call("nn.pad", x, value, pad_width=((0, 0), (0, 0), *most), pad_mode="constant")
    rank, far = len(extents), np.iinfo(np.int64).max
    size = slice_axis(call("shape_of", x, dtype="int64"), 0, 2, far)
    step, extent = const(list(strides), "int64"), const(list(extents), "int64")
    reach = call("multiply", call("floor_divide", call("subtract", size, const(1, "int64")), step), step)
    total = call("maximum", call("subtract", call("add", reach, extent), size), const(0, "int64"))
    less, before = call("floor_divide", total, const(2, "int64")), const([b for b, _ in most], "int64")
    first = call("subtract", before, less if upper else call("subtract", total, less))
    begin = concat([const([0, 0], "int64"), first], 0)
    end = concat([const([far, far], "int64"), call("add", first, call("add", size, total))], 0)
    (begin, end) = n.settled(begin, end)
    return dyn.strided_slice(wide, begin, end, const([1] * (rank + 2), "int64"))


def _halves(total: int, upper: bool) -> tuple[int, int]:
    """A padding on two sides, the larger part behind (``upper``) or before."""
    return (total // 2, total - total // 2) if upper else (total - total // 2, total // 2)


def conv_of(n: NodeContext, x: RelayExpr, w: RelayExpr, out_dtype: str = "") -> RelayExpr:
    """The convolution that the node's attributes describe, without bias."""
    rank = spatial_rank(n, x)
    dims = n.static_dims(w, "the weight")
    kernel = list(n.attr("kernel_shape", None) or dims[2:])
    if kernel != list(dims[2:]):
        raise ArgumentError(f"kernel_shape {kernel} does not fit the weight of shape {dims}")
    strides, dilation = per_axis(n, "strides", rank), per_axis(n, "dilations", rank)
    x, pads = padded(n, x, kernel, strides, dilation)
    return call(f"nn.conv{rank}d", x, w, strides=strides, padding=pads, dilation=dilation, groups=n.attr("group", 1), channels=dims[0],
                kernel_size=kernel, data_layout=_DATA[rank], kernel_layout="OI" + _SPACE[rank], out_dtype=out_dtype)


def with_bias(y: RelayExpr, bias: RelayExpr | None) -> RelayExpr:
    """``y`` with a bias per channel."""
    return y if bias is None else call("nn.bias_add", y, bias, axis=1)


@op("Conv")
def conv(n: NodeContext) -> RelayExpr:
    """A convolution, with an optional bias."""
    return with_bias(conv_of(n, *n.needs(2)), n.input(2))


@op("ConvTranspose")
def conv_transpose(n: NodeContext) -> RelayExpr:
    """A transposed convolution, with an optional bias."""
    x, w = n.needs(2)
    rank = spatial_rank(n, x)
    dims = n.static_dims(w, "the weight")
    groups, kernel = n.attr("group", 1), list(dims[2:])
    strides, dilation = per_axis(n, "strides", rank), per_axis(n, "dilations", rank)
    more = per_axis(n, "output_padding", rank, 0)
    extents = [(k - 1) * d + 1 for k, d in zip(kernel, dilation)]
    pads, more = _transposed_padding(n, n.dims(x)[2:], extents, strides, more)
    y = call(f"nn.conv{rank}d_transpose", x, w, channels=dims[1] * groups, kernel_size=kernel, strides=strides, padding=pads,
             output_padding=more, dilation=dilation, groups=groups, data_layout=_DATA[rank], kernel_layout="IO" + _SPACE[rank])
    return with_bias(y, n.input(2))


def _transposed_padding(n: NodeContext, dims: Sequence[Any], extents: Sequence[int], strides: Sequence[int],
                        more: list[int]) -> tuple[list[int], list[int]]:
    """(padding, output padding): given, or such that the result has a given size."""
    auto, wanted, rank = n.attr("auto_pad", "NOTSET"), n.attr("output_shape", None), len(extents)
    if wanted is None and auto in ("NOTSET", "", "VALID"):
        return (padding(n, dims, extents, strides, [1] * rank) if auto != "VALID" else [0] * 2 * rank), more
    if wanted is None and auto not in ("SAME_UPPER", "SAME_LOWER"):
        raise ArgumentError(f"auto_pad must be NOTSET, VALID, SAME_UPPER or SAME_LOWER, got {auto!r}")
    if wanted is None:
        totals = [m + e - s for m, e, s in zip(more, extents, strides)]
    else:
        if not all(isinstance(d, int) for d in dims):
            raise UnsupportedOpError("output_shape needs to know the size of the data: give the sizes of the model's inputs")
        totals = [s * (d - 1) + m + e - w for s, d, m, e, w in zip(strides, dims, more, extents, wanted[-rank:])]
    more = [m - min(t, 0) for m, t in zip(more, totals)]
    totals = [max(t, 0) for t in totals]
    before = [t // 2 if auto == "SAME_UPPER" else t - t // 2 for t in totals]
    return before + [t - b for t, b in zip(totals, before)], more


@op("DeformConv")
def deform_conv(n: NodeContext) -> RelayExpr:
    """A convolution whose taps are moved by offsets; a mask is not supported."""
    if n.input(4) is not None:
        raise UnsupportedOpError("the mask of DeformConv is not supported")
    x, w, offset = n.needs(3)
    if spatial_rank(n, x) != 2:
        raise UnsupportedOpError("DeformConv is supported over two spatial dimensions")
    dims = n.static_dims(w, "the weight")
    strides, dilation = per_axis(n, "strides", 2), per_axis(n, "dilations", 2)
    pads = padding(n, n.dims(x)[2:], dims[2:], strides, dilation)
    y = call("nn.deformable_conv2d", x, offset, w, strides=strides, padding=pads, dilation=dilation, groups=n.attr("group", 1),
             deformable_groups=n.attr("offset_group", 1), channels=dims[0], kernel_size=dims[2:])
    return with_bias(y, n.input(3))
