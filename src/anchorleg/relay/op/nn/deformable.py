"""Deformable convolution: each tap of the kernel reads at an offset given by a second input."""
from __future__ import annotations

from typing import Any

import numpy as np

from ....ir.attrs import INT, INTS, OPT_INT, OPT_INTS, STR, Field
from ....ir.expr import RelayExpr
from ....ir.op import OpPattern
from ....ir.type import TensorType, Type
from ....support.errors import TypeMismatchError
from ...expr import Call
from ..attrs_common import OPT_DTYPE
from ..registry import declare
from ..transform.transpose import convert_layout
from .common import expect, known, mul, tensor, wide
from .conv import ConvSpec, attrs_class, check_sizes, conv_call, conv_extent, kernel_map, layout_map, out_map, plain_weight, weight_shape
from .numeric import product
from .utils import pad_pairs

DeformableConv2DAttrs = attrs_class("DeformableConv2DAttrs", {
    "strides": Field(INTS, (1, 1), "Step of the kernel."),
    "padding": Field(INTS, (0, 0), "Zeros put around the data: befores, then afters."),
    "dilation": Field(INTS, (1, 1), "Distance between the kernel's taps."),
    "deformable_groups": Field(INT, 1, "Into how many groups the channels fall for their offsets."),
    "groups": Field(INT, 1, "Into how many groups the channels fall."),
    "channels": Field(OPT_INT, None, "Number of output channels; None: from the weight."),
    "kernel_size": Field(OPT_INTS, None, "Extent of the kernel; None: from the weight."),
    "data_layout": Field(STR, "NCHW", "Layout of the data and the offsets."),
    "kernel_layout": Field(STR, "OIHW", "Layout of the weight."),
    "out_layout": Field(STR, "", "Layout of the result; empty: that of the data."),
    "out_dtype": Field(OPT_DTYPE, "", "Element type of the result; empty: that of the data."),
})
SPEC = ConvSpec("nn.deformable_conv2d", "NCHW", "OIHW")


def _relation(args: tuple[Type, ...], attrs: Any, ctx: Any) -> Type | None:
    data, weight = tensor(args[0], f"{SPEC.op}, data"), tensor(args[2], f"{SPEC.op}, weight")
    if data is None or (weight is None and (attrs.channels is None or attrs.kernel_size is None)):
        return None
    check_sizes(SPEC.op, 2, attrs)
    dmap, kmap = layout_map(SPEC.op, "data_layout", attrs.data_layout, "NCHW"), kernel_map(SPEC, attrs)
    n, c, *space = dmap.forward_shape(data.dims)
    if known(c) and c % attrs.deformable_groups:
        raise TypeMismatchError(f"{SPEC.op}: {c} channels do not fall into {attrs.deformable_groups} deformable groups")
    need = weight_shape(SPEC, attrs, c, kmap.forward_shape(weight.dims) if weight is not None else None)
    expect(ctx, SPEC.op, "weight", args[2], kmap.backward_shape(need), weight.dtype if weight is not None else data.dtype)
    out = [conv_extent(SPEC.op, d, p, k, dil, s) for d, p, k, dil, s in
           zip(space, pad_pairs(attrs.padding, 2), need[2:], attrs.dilation, attrs.strides)]
    offsets = mul(2 * attrs.deformable_groups, mul(need[2], need[3]))
    expect(ctx, SPEC.op, "offset", args[1], dmap.backward_shape((n, offsets, *out)), data.dtype)
    return TensorType(out_map(SPEC, attrs).backward_shape((n, need[0], *out)), attrs.out_dtype or data.dtype)


def _sample(x: np.ndarray, y: np.ndarray, z: np.ndarray) -> np.ndarray:
    """Bilinear samples of ``x`` (C, H, W) at rows ``y`` and columns ``z``; 0 outside."""
    h, w = x.shape[1:]
    y0, z0 = np.floor(y), np.floor(z)
    total = np.zeros((x.shape[0], *y.shape), x.dtype)
    for yy, wy in ((y0, 1 - (y - y0)), (y0 + 1, y - y0)):
        for zz, wz in ((z0, 1 - (z - z0)), (z0 + 1, z - z0)):
            inside = (yy >= 0) & (yy < h) & (zz >= 0) & (zz < w)
            at = x[:, np.clip(yy, 0, h - 1).astype(np.int64), np.clip(zz, 0, w - 1).astype(np.int64)]
            total += np.where(inside, at * (wy * wz).astype(x.dtype), 0)
    return total


def _columns(x: np.ndarray, offset: np.ndarray, attrs: Any, kernel: tuple[int, int], out: tuple[int, int]) -> np.ndarray:
    """The samples under each tap for one batch entry: (C, kh, kw, oh, ow)."""
    (kh, kw), (oh, ow) = kernel, out
    pads = pad_pairs(attrs.padding, 2)
    rows = (np.arange(oh) * attrs.strides[0] - pads[0][0])[:, None] + np.arange(kh)[:, None, None, None] * attrs.dilation[0]
    cols = (np.arange(ow) * attrs.strides[1] - pads[1][0]) + np.arange(kw)[:, None, None] * attrs.dilation[1]
    groups = attrs.deformable_groups
    shift = offset.reshape(groups, kh, kw, 2, oh, ow)
    parts = [_sample(part, rows + shift[g, :, :, 0], cols + shift[g, :, :, 1]) for g, part in enumerate(np.split(x, groups))]
    return np.concatenate(parts)


def _numpy(attrs: Any, args: list[np.ndarray], out_type: TensorType) -> np.ndarray:
    x, offset = (convert_layout(a, attrs.data_layout, "NCHW").astype(wide(str(a.dtype)), copy=False) for a in args[:2])
    w = plain_weight(SPEC, attrs, args[2])
    n, o, oh, ow = out_map(SPEC, attrs).forward_shape(out_type.concrete_shape)
    out = np.empty((n, o, oh, ow), x.dtype)
    for i in range(n):
        cols = _columns(x[i], offset[i], attrs, w.shape[2:], (oh, ow)).reshape(attrs.groups, -1, oh * ow)
        out[i] = product(w.reshape(attrs.groups, o // attrs.groups, -1), cols, str(x.dtype)).reshape(o, oh, ow)
    return convert_layout(out, "NCHW", attrs.out_layout or attrs.data_layout)


declare(SPEC.op, inputs=("data", "offset", "weight"), attrs=DeformableConv2DAttrs, relation=_relation,
        pattern=OpPattern.OUT_ELEMWISE_FUSABLE, numpy=_numpy, level=5,
        doc="A convolution whose taps read, bilinearly, at positions moved by offset.")


def deformable_conv2d(data: RelayExpr, offset: RelayExpr, weight: RelayExpr, strides: Any = (1, 1), padding: Any = (0, 0),
                      dilation: Any = (1, 1), deformable_groups: int = 1, groups: int = 1, channels: int | None = None,
                      kernel_size: Any = None, data_layout: str = "NCHW", kernel_layout: str = "OIHW", out_layout: str = "",
                      out_dtype: str = "") -> Call:
    """2-D deformable convolution.

    ``offset`` is (batch, 2 * deformable_groups * kernel height * kernel width, out height, out width): for each tap, how far down and
    to the right it reads.
    """
    return conv_call(SPEC.op, DeformableConv2DAttrs, 2, [data, offset, weight], strides=strides, padding=padding, dilation=dilation,
                     deformable_groups=deformable_groups, groups=groups, channels=channels, kernel_size=kernel_size,
                     data_layout=data_layout, kernel_layout=kernel_layout, out_layout=out_layout, out_dtype=out_dtype)
