"""Convolutions: one compute for every layout, grouping and dilation, and one for channel-packed data.

The general compute walks the output in its own layout and reads data and weight through their layouts' index maps, so it is right
for all of them.  ``conv2d_NCHWc`` and ``depthwise_conv2d_NCHWc`` speak of packed channels in their axes, which is what fast
schedules work with.
"""
from __future__ import annotations

from typing import Any, Sequence

from ... import te
from ...ir.expr import PrimExpr
from ...support.errors import ArgumentError
from ...te.tensor import Tensor
from ...tir import op as tir_op
from ...tir.data_layout import BijectiveLayout, Layout
from .common import dims, ints, pads_of, windows
from .pad import pad_axes

_DATA = {1: "NCW", 2: "NCHW", 3: "NCDHW"}
_KERNEL = {1: "OIW", 2: "OIHW", 3: "OIDHW"}


def conv(data: Tensor, kernel: Tensor, strides: Any, padding: Any, dilation: Any, groups: int = 1, data_layout: str = "NCHW",
         kernel_layout: str = "OIHW", out_layout: str = "", out_dtype: str = "", name: str = "conv", tag: str = "") -> Tensor:
    """A convolution of any rank, layout and grouping.

    ``kernel`` is (channels, in / groups, …) in canonical order, or (in, multiplier, …) when every input channel is a group.
    """
    rank = sum(c.isupper() for c in data_layout) - 2
    to_data = BijectiveLayout(data_layout, _DATA[rank])
    grouped_axis = "G" in kernel_layout
    to_kernel = BijectiveLayout(kernel_layout, ("G" if grouped_axis else "") + _KERNEL[rank])
    to_out = BijectiveLayout(out_layout or data_layout, _DATA[rank])
    stride, dil, pads = ints(strides, rank), ints(dilation, rank), pads_of(padding, rank)
    shape, wshape = to_data.forward_shape(dims(data)), to_kernel.forward_shape(dims(kernel))
    if grouped_axis:
        wshape = [wshape[0] * wshape[1], *wshape[2:]]
    per_group = shape[1] // groups
    channels = wshape[0] * wshape[1] // _divisor(per_group) if groups > 1 else wshape[0]
    size = wshape[2:]
    space = [windows(e, p, k, d, s) for e, p, k, d, s in zip(shape[2:], pads, size, dil, stride)]
    padded = pad_axes(data, [Layout(data_layout).index_of(a) for a in _DATA[rank][2:]], pads)
    rc = te.reduce_axis((0, per_group), name="rc")
    taps = [te.reduce_axis((0, k), name=f"r{a.lower()}") for a, k in zip(_DATA[rank][2:], size)]
    acc = out_dtype or data.dtype

    def element(*index: Any) -> PrimExpr:
        n, oc, *at = to_out.forward_index(index)
        c = rc if groups == 1 else oc // _divisor(channels // groups) * per_group + rc
        x = padded(*to_data.backward_index([n, c, *[p * s + t * d for p, s, t, d in zip(at, stride, taps, dil)]]))
        w = kernel(*to_kernel.backward_index([*_weight_index(oc, rc, channels, groups, wshape, grouped_axis, per_group), *taps]))
        return te.sum(x.astype(acc) * w.astype(acc), axis=[rc, *taps])

    return te.compute(to_out.backward_shape([shape[0], channels, *space]), element, name=name, tag=tag)


def _divisor(extent: Any) -> Any:
    """An extent to divide by, which at run time may be none."""
    return extent if isinstance(extent, int) else tir_op.maximum(extent, 1)


def _weight_index(oc: Any, rc: Any, channels: Any, groups: int, wshape: Sequence[Any], grouped_axis: bool, per_group: Any) -> list[Any]:
    """Where the weight of output channel ``oc`` and input channel ``rc`` of its group lies."""
    if grouped_axis:
        inner = _divisor(channels // groups)
        return [oc // inner, oc % inner, rc]
    if groups == 1 or wshape[0] is channels:
        return [oc, rc]
    if not isinstance(wshape[0], int) or not isinstance(channels, int):  # either form of weight: its two axes in one
        at = oc * per_group + rc
        return [at // _divisor(wshape[1]), at % _divisor(wshape[1])]
    if wshape[0] == channels:
        return [oc, rc]
    multiplier = wshape[1]  # (in, multiplier, …): one input channel per group
    return [oc // multiplier, oc % multiplier]


def conv2d(data: Tensor, kernel: Tensor, strides: Any, padding: Any, dilation: Any, data_layout: str = "NCHW", kernel_layout: str = "",
           out_dtype: str | None = None) -> Tensor:
    """2-D convolution in NCHW, NHWC or HWCN with the weight in OIHW, HWIO or HWIO unless ``kernel_layout`` says otherwise."""
    kernel_layout = kernel_layout or ("OIHW" if data_layout == "NCHW" else "HWIO")
    return conv(data, kernel, strides, padding, dilation, 1, data_layout, kernel_layout, "", out_dtype or "", "conv2d",
                f"conv2d_{data_layout.lower()}")


def _named(name: str, rank: int, data_layout: str, kernel_layout: str) -> Any:
    tag = name

    def fn(Input: Tensor, Filter: Tensor, stride: Any, padding: Any, dilation: Any = 1, out_dtype: str | None = None) -> Tensor:
        return conv(Input, Filter, stride, padding, dilation, 1, data_layout, kernel_layout, "", out_dtype or "", name, tag)

    fn.__name__ = fn.__qualname__ = name
    fn.__doc__ = f"{rank}-D convolution of {data_layout} data with a weight in {kernel_layout}."
    return fn


conv1d_ncw = _named("conv1d_ncw", 1, "NCW", "OIW")
conv1d_nwc = _named("conv1d_nwc", 1, "NWC", "WIO")
conv2d_nchw = _named("conv2d_nchw", 2, "NCHW", "OIHW")
conv2d_nhwc = _named("conv2d_nhwc", 2, "NHWC", "HWIO")
conv2d_hwcn = _named("conv2d_hwcn", 2, "HWCN", "HWIO")
conv3d_ncdhw = _named("conv3d_ncdhw", 3, "NCDHW", "OIDHW")
conv3d_ndhwc = _named("conv3d_ndhwc", 3, "NDHWC", "DHWIO")


def conv1d(data: Tensor, kernel: Tensor, strides: Any = 1, padding: Any = "VALID", dilation: Any = 1, groups: int = 1,
           data_layout: str = "NCW", kernel_layout: str = "", out_dtype: str | None = None) -> Tensor:
    """1-D convolution in NCW or NWC."""
    padding = 0 if padding == "VALID" else padding
    kernel_layout = kernel_layout or ("OIW" if data_layout == "NCW" else "WIO")
    return conv(data, kernel, strides, padding, dilation, groups, data_layout, kernel_layout, "", out_dtype or "", "conv1d")


def group_conv2d_nchw(Input: Tensor, Filter: Tensor, stride: Any, padding: Any, dilation: Any, groups: int,
                      out_dtype: str | None = None) -> Tensor:
    """Grouped convolution of NCHW data with a weight (channels, in / groups, kh, kw)."""
    return conv(Input, Filter, stride, padding, dilation, groups, "NCHW", "OIHW", "", out_dtype or "", "group_conv2d_nchw", "group_conv2d_nchw")


def group_conv2d_nhwc(Input: Tensor, Filter: Tensor, stride: Any, padding: Any, dilation: Any, groups: int,
                      out_dtype: str | None = None) -> Tensor:
    """Grouped convolution of NHWC data with a weight (kh, kw, in / groups, channels)."""
    return conv(Input, Filter, stride, padding, dilation, groups, "NHWC", "HWIO", "", out_dtype or "", "group_conv2d_nhwc", "group_conv2d_nhwc")


def depthwise_conv2d_nchw(Input: Tensor, Filter: Tensor, stride: Any, padding: Any, dilation: Any, out_dtype: str | None = None) -> Tensor:
    """Depthwise convolution of NCHW data with a weight (in, multiplier, kh, kw)."""
    return conv(Input, Filter, stride, padding, dilation, dims(Input)[1], "NCHW", "OIHW", "", out_dtype or "", "DepthwiseConv2d",
                "depthwise_conv2d_nchw")


def depthwise_conv2d_nhwc(Input: Tensor, Filter: Tensor, stride: Any, padding: Any, dilation: Any, kernel_layout: str = "HWOI",
                          out_dtype: str | None = None) -> Tensor:
    """Depthwise convolution of NHWC data with a weight (kh, kw, in, multiplier)."""
    return conv(Input, Filter, stride, padding, dilation, dims(Input)[3], "NHWC", kernel_layout, "", out_dtype or "", "DepthwiseConv2d",
                "depthwise_conv2d_nhwc")


def conv2d_NCHWc(data: Tensor, kernel: Tensor, stride: Any, padding: Any, dilation: Any, layout: str, out_layout: str,
                 out_dtype: str = "float32", groups: int = 1) -> Tensor:
    """Convolution of packed data (n, ic / icb, h, w, icb) with weights (oc / ocb, ic / groups / icb, kh, kw, icb, ocb).

    The result is (n, oc / ocb, oh, ow, ocb).  The reduction runs over (channel block, kh, kw, channel within the block).
    """
    n, chunks, h, w, icb = dims(data)
    oc_chunks, per_group, kh, kw, kernel_icb, ocb = dims(kernel)
    if kernel_icb != icb:
        raise ArgumentError(f"conv2d_NCHWc: data is packed by {icb} channels, the weight by {kernel_icb}")
    (sh, sw), (dh, dw), pads = ints(stride, 2), ints(dilation, 2), pads_of(padding, 2)
    space = [windows(h, pads[0], kh, dh, sh), windows(w, pads[1], kw, dw, sw)]
    padded = pad_axes(data, (2, 3), pads)
    ko, ry, rx, ki = (te.reduce_axis((0, e), name=a) for e, a in ((per_group, "ic_outer"), (kh, "kh"), (kw, "kw"), (icb, "ic_inner")))
    chunks_per_group = oc_chunks // groups if groups > 1 else oc_chunks

    def element(b: Any, oc: Any, y: Any, x: Any, lane: Any) -> PrimExpr:
        block = ko if groups == 1 else oc // chunks_per_group * per_group + ko
        value = padded(b, block, y * sh + ry * dh, x * sw + rx * dw, ki).astype(out_dtype)
        return te.sum(value * kernel(oc, ko, ry, rx, ki, lane).astype(out_dtype), axis=[ko, ry, rx, ki])

    return te.compute((n, oc_chunks, *space, ocb), element, name="conv2d_NCHWc", tag="conv2d_NCHWc")


def depthwise_conv2d_NCHWc(Input: Tensor, Filter: Tensor, stride: Any, padding: Any, dilation: Any, layout: str, out_layout: str,
                           out_dtype: str | None = None) -> Tensor:
    """Depthwise convolution of packed data (n, c / cb, h, w, cb) with weights (c / cb, 1, kh, kw, 1, cb)."""
    n, chunks, h, w, cb = dims(Input)
    kernel_chunks, one, kh, kw, _, kernel_cb = dims(Filter)
    if (kernel_chunks, kernel_cb, one) != (chunks, cb, 1):
        raise ArgumentError(f"depthwise_conv2d_NCHWc: weights {dims(Filter)} do not fit data {dims(Input)}")
    (sh, sw), (dh, dw), pads = ints(stride, 2), ints(dilation, 2), pads_of(padding, 2)
    space = [windows(h, pads[0], kh, dh, sh), windows(w, pads[1], kw, dw, sw)]
    padded = pad_axes(Input, (2, 3), pads)
    ry, rx = te.reduce_axis((0, kh), name="kh"), te.reduce_axis((0, kw), name="kw")
    acc = out_dtype or Input.dtype

    def element(b: Any, c: Any, y: Any, x: Any, lane: Any) -> PrimExpr:
        value = padded(b, c, y * sh + ry * dh, x * sw + rx * dw, lane).astype(acc)
        return te.sum(value * Filter(c, 0, ry, rx, 0, lane).astype(acc), axis=[ry, rx])

    return te.compute((n, chunks, *space, cb), element, name="depthwise_conv2d_NCHWc", tag="depthwise_conv2d_NCHWc")
