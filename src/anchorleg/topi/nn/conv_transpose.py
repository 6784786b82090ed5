"""Transposed convolutions of any rank, layout and grouping."""
from __future__ import annotations

from typing import Any

from ... import te
from ...ir.expr import PrimExpr
from ...te.tensor import Tensor
from ...tir import op as tir_op
from ...tir.data_layout import BijectiveLayout
from .common import dims, ints, pads_of

_DATA = {1: "NCW", 2: "NCHW", 3: "NCDHW"}
_KERNEL = {1: "IOW", 2: "IOHW", 3: "IODHW"}


def conv_transpose(data: Tensor, kernel: Tensor, strides: Any, padding: Any, dilation: Any = 1, output_padding: Any = 0, groups: int = 1,
                   data_layout: str = "NCHW", kernel_layout: str = "IOHW", out_layout: str = "", out_dtype: str = "",
                   name: str = "conv_transpose", tag: str = "") -> Tensor:
    """A transposed convolution; ``kernel`` is (in, channels / groups, …) in canonical order.

    Each output point gathers the taps that reach it: those for which (point + padding - tap * dilation) is a multiple of the
    stride within the data.
    """
    rank = sum(c.isupper() for c in data_layout) - 2
    to_data, to_out = BijectiveLayout(data_layout, _DATA[rank]), BijectiveLayout(out_layout or data_layout, _DATA[rank])
    grouped_axis = "G" in kernel_layout
    to_kernel = BijectiveLayout(kernel_layout, ("G" if grouped_axis else "") + _KERNEL[rank])
    stride, dil, pads, more = ints(strides, rank), ints(dilation, rank), pads_of(padding, rank), ints(output_padding, rank)
    shape, wshape = to_data.forward_shape(dims(data)), to_kernel.forward_shape(dims(kernel))
    per_out, size = wshape[-rank - 1], wshape[-rank:]
    per_in = shape[1] // groups
    space = [(e - 1) * s + (k - 1) * d + 1 - sum(p) + m for e, s, k, d, p, m in zip(shape[2:], stride, size, dil, pads, more)]
    rc = te.reduce_axis((0, per_in), name="rc")
    taps = [te.reduce_axis((0, k), name=f"r{a.lower()}") for a, k in zip(_DATA[rank][2:], size)]
    acc = out_dtype or data.dtype

    def element(*index: Any) -> PrimExpr:
        n, oc, *at = to_out.forward_index(index)
        group = oc // per_out if groups > 1 else 0
        inside, where = [], []
        for p, (before, _), t, d, s, e in zip(at, pads, taps, dil, stride, shape[2:]):
            reach = p + before - t * d
            where.append(reach // s if s != 1 else reach)
            inside += [reach >= 0, reach < (e - 1) * s + 1] + ([tir_op.equal(reach % s, 0)] if s != 1 else [])
        c = group * per_in + rc if groups > 1 else rc
        lane = oc % per_out if groups > 1 else oc
        w = kernel(*to_kernel.backward_index([*([group, rc, lane] if grouped_axis else [c, lane]), *taps]))
        x = data(*to_data.backward_index([n, c, *where]))
        value = tir_op.if_then_else(tir_op.all(*inside), x.astype(acc) * w.astype(acc), tir_op.const(0, acc))
        return te.sum(value, axis=[rc, *taps])

    return te.compute(to_out.backward_shape([shape[0], per_out * groups, *space]), element, name=name, tag=tag)


def conv1d_transpose_ncw(data: Tensor, kernel: Tensor, stride: Any, padding: Any, out_dtype: str, output_padding: Any) -> Tensor:
    """1-D transposed convolution of NCW data with a weight (in, out, w)."""
    return conv_transpose(data, kernel, stride, padding, 1, output_padding, 1, "NCW", "IOW", "", out_dtype, "conv1d_transpose_ncw",
                          "conv1d_transpose_ncw")


def conv2d_transpose_nchw(Input: Tensor, Filter: Tensor, strides: Any, padding: Any, out_dtype: str, output_padding: Any) -> Tensor:
    """2-D transposed convolution of NCHW data with a weight (in, out, h, w)."""
    return conv_transpose(Input, Filter, strides, padding, 1, output_padding, 1, "NCHW", "IOHW", "", out_dtype, "conv2d_transpose_nchw",
                          "conv2d_transpose_nchw")


def group_conv2d_transpose_nchw(data: Tensor, kernel: Tensor, stride: Any, padding: Any, out_dtype: str, output_padding: Any,
                                groups: int) -> Tensor:
    """Grouped 2-D transposed convolution of NCHW data with a weight (in, out / groups, h, w)."""
    return conv_transpose(data, kernel, stride, padding, 1, output_padding, groups, "NCHW", "IOHW", "", out_dtype,
                          "group_conv2d_transpose_nchw", "group_conv2d_transpose_nchw")


def conv3d_transpose_ncdhw(Input: Tensor, Filter: Tensor, strides: Any, padding: Any, out_dtype: str, output_padding: Any) -> Tensor:
    """3-D transposed convolution of NCDHW data with a weight (in, out, d, h, w)."""
    return conv_transpose(Input, Filter, strides, padding, 1, output_padding, 1, "NCDHW", "IODHW", "", out_dtype,
                          "conv3d_transpose_ncdhw", "conv3d_transpose_ncdhw")
