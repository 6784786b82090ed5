"""Transposed convolutions (also called deconvolutions) over one, two and three spatial axes."""
from __future__ import annotations

from typing import Any, Sequence

import numpy as np

from ....ir.attrs import INT, INTS, OPT_INT, OPT_INTS, STR, Field
from ....ir.expr import Any as AnyDim, RelayExpr
from ....ir.op import OpPattern
from ....ir.type import TensorType, Type
from ....support.errors import ArgumentError, TypeMismatchError
from ...expr import Call
from ..attrs_common import OPT_DTYPE
from ..registry import declare
from ..transform.transpose import convert_layout
from .common import div, expect, known, mul, tensor
from .conv import ConvSpec, attrs_class, check_sizes, conv_call, kernel_map, layout_map, out_map, plain_weight
from .numeric import convolve_transposed
from .utils import pad_pairs, repeat


def _attrs(rank: int, data: str, kernel: str) -> dict[str, Field]:
    return {
        "channels": Field(OPT_INT, None, "Number of output channels; None: from the weight."),
        "kernel_size": Field(OPT_INTS, None, "Extent of the kernel; None: from the weight."),
        "strides": Field(INTS, (1,) * rank, "Distance of the kernel's copies in the result."),
        "output_padding": Field(INTS, (0,) * rank, "Entries added at the end of each axis of the result."),
        "padding": Field(INTS, (0,) * rank, "Entries cut from the result: befores, then afters."),
        "dilation": Field(INTS, (1,) * rank, "Distance between the kernel's taps."),
        "groups": Field(INT, 1, "Into how many groups the channels fall."),
        "data_layout": Field(STR, data, "Layout of the data."),
        "kernel_layout": Field(STR, kernel, "Layout of the weight."),
        "out_layout": Field(STR, "", "Layout of the result; empty: that of the data."),
        "out_dtype": Field(OPT_DTYPE, "", "Element type of the result; empty: that of the data."),
    }


Conv1DTransposeAttrs = attrs_class("Conv1DTransposeAttrs", _attrs(1, "NCW", "IOW"))
Conv2DTransposeAttrs = attrs_class("Conv2DTransposeAttrs", _attrs(2, "NCHW", "IOHW"))
Conv3DTransposeAttrs = attrs_class("Conv3DTransposeAttrs", _attrs(3, "NCDHW", "IODHW"))

CONV1D = ConvSpec("nn.conv1d_transpose", "NCW", "IOW")
CONV2D = ConvSpec("nn.conv2d_transpose", "NCHW", "IOHW")
CONV3D = ConvSpec("nn.conv3d_transpose", "NCDHW", "IODHW")


def transposed_weight_shape(spec: ConvSpec, attrs: Any, channels: Any, weight: Sequence[Any] | None) -> tuple[Any, ...]:
    """The canonical weight shape (in, out / groups, kernel…) that data of ``channels`` channels needs."""
    if known(channels) and channels % attrs.groups:
        raise TypeMismatchError(f"{spec.op}: {channels} input channels do not fall into {attrs.groups} groups")
    grouped = weight is not None and len(weight) == spec.rank + 3
    size = attrs.kernel_size or weight[-spec.rank:]
    out = div(attrs.channels, attrs.groups) if attrs.channels is not None else weight[2 if grouped else 1]
    return (attrs.groups, div(channels, attrs.groups), out, *size) if grouped else (channels, out, *size)


def transposed_extent(op: str, dim: Any, pads: tuple[int, int], kernel: Any, dilation: int, stride: int, more: int) -> Any:
    """The extent of the result along an axis; unknown when that of the data or the kernel is."""
    if isinstance(dim, AnyDim) or isinstance(kernel, AnyDim):
        return AnyDim()
    extent = stride * (dim - 1) + (kernel - 1) * dilation + 1 - sum(pads) + more
    if isinstance(extent, int) and extent < 0:
        raise TypeMismatchError(f"{op}: padding {pads[0]} + {pads[1]} cuts more than the {extent + sum(pads)} entries of the result")
    return extent


def _relation(spec: ConvSpec) -> Any:
    def relation(args: tuple[Type, ...], attrs: Any, ctx: Any) -> Type | None:
        data, weight = tensor(args[0], f"{spec.op}, data"), tensor(args[1], f"{spec.op}, weight")
        if data is None or (weight is None and (attrs.channels is None or attrs.kernel_size is None)):
            return None
        check_sizes(spec.op, spec.rank, attrs)
        shape = layout_map(spec.op, "data_layout", attrs.data_layout, spec.data).forward_shape(data.dims)
        kmap = kernel_map(spec, attrs)
        have = kmap.forward_shape(weight.dims) if weight is not None else None
        need = transposed_weight_shape(spec, attrs, shape[1], have)
        if have is None and "G" in kmap.src_layout.name:
            need = (attrs.groups, div(need[0], attrs.groups), *need[1:])
        expect(ctx, spec.op, "weight", args[1], kmap.backward_shape(need), weight.dtype if weight is not None else data.dtype)
        return _result(spec, attrs, data, shape, need)

    return relation


def _result(spec: ConvSpec, attrs: Any, data: TensorType, shape: Sequence[Any], need: Sequence[Any]) -> TensorType:
    channels = attrs.channels if attrs.channels is not None else mul(need[-spec.rank - 1], attrs.groups)
    space = [transposed_extent(spec.op, d, p, k, dil, s, more) for d, p, k, dil, s, more in
             zip(shape[2:], pad_pairs(attrs.padding, spec.rank), need[-spec.rank:], attrs.dilation, attrs.strides,
                 repeat(attrs.output_padding, spec.rank))]
    return TensorType(out_map(spec, attrs).backward_shape((shape[0], channels, *space)), attrs.out_dtype or data.dtype)


def _numpy(spec: ConvSpec) -> Any:
    def rule(attrs: Any, args: list[np.ndarray], out_type: TensorType) -> np.ndarray:
        x = convert_layout(args[0], attrs.data_layout, spec.data)
        w = plain_weight(spec, attrs, args[1])
        out = convolve_transposed(x, w, attrs.strides, pad_pairs(attrs.padding, spec.rank), attrs.dilation, attrs.output_padding,
                                  attrs.groups, out_type.dtype)
        return convert_layout(out, spec.data, attrs.out_layout or attrs.data_layout)

    return rule


_DOC = """Adds a scaled copy of the kernel to the result for every entry of the data: the gradient of a convolution.

weight: (in_channels, channels / groups, kernel…) in canonical order; result extent along an axis:
stride * (extent - 1) + dilation * (kernel - 1) + 1 - padding + output_padding."""

for _spec, _cls in ((CONV1D, Conv1DTransposeAttrs), (CONV2D, Conv2DTransposeAttrs), (CONV3D, Conv3DTransposeAttrs)):
    declare(_spec.op, inputs=("data", "weight"), attrs=_cls, relation=_relation(_spec), pattern=OpPattern.OUT_ELEMWISE_FUSABLE,
            numpy=_numpy(_spec), doc=_DOC, level=2)


def conv1d_transpose(data: RelayExpr, weight: RelayExpr, strides: Any = (1,), padding: Any = (0,), dilation: Any = (1,),
                     groups: int = 1, channels: int | None = None, kernel_size: Any = None, data_layout: str = "NCW",
                     kernel_layout: str = "IOW", out_layout: str = "", output_padding: Any = (0,), out_dtype: str = "") -> Call:
    """1-D transposed convolution; see :func:`conv2d_transpose`. ``output_padding`` may be given twice over, as (n, n)."""
    more = repeat(output_padding, 1) or (0,)
    if len(more) > 2 or len(set(more)) != 1:
        raise ArgumentError(f"nn.conv1d_transpose: expected output_padding of 1 value, or the same one twice, got {list(more)}")
    return conv_call("nn.conv1d_transpose", Conv1DTransposeAttrs, 1, [data, weight], strides=strides, padding=padding,
                     dilation=dilation, groups=groups, channels=channels, kernel_size=kernel_size, data_layout=data_layout,
                     kernel_layout=kernel_layout, out_layout=out_layout, output_padding=more[:1], out_dtype=out_dtype)


def conv2d_transpose(data: RelayExpr, weight: RelayExpr, strides: Any = (1, 1), padding: Any = (0, 0), dilation: Any = (1, 1),
                     groups: int = 1, channels: int | None = None, kernel_size: Any = None, data_layout: str = "NCHW",
                     kernel_layout: str = "IOHW", out_layout: str = "", output_padding: Any = (0, 0), out_dtype: str = "") -> Call:
    """2-D transposed convolution.

    ``weight`` is (in_channels, channels / groups, kernel height, kernel width) in canonical order; ``padding`` (1, 2 or 4 ints) is
    cut from the result, ``output_padding`` added at its ends.
    """
    return conv_call("nn.conv2d_transpose", Conv2DTransposeAttrs, 2, [data, weight], strides=strides, padding=padding,
                     dilation=dilation, groups=groups, channels=channels, kernel_size=kernel_size, data_layout=data_layout,
                     kernel_layout=kernel_layout, out_layout=out_layout, output_padding=repeat(output_padding, 2), out_dtype=out_dtype)


def conv3d_transpose(data: RelayExpr, weight: RelayExpr, strides: Any = (1, 1, 1), padding: Any = (0, 0, 0), dilation: Any = (1, 1, 1),
                     groups: int = 1, channels: int | None = None, kernel_size: Any = None, data_layout: str = "NCDHW",
                     kernel_layout: str = "IODHW", out_layout: str = "", output_padding: Any = (0, 0, 0), out_dtype: str = "") -> Call:
    """3-D transposed convolution; see :func:`conv2d_transpose`."""
    return conv_call("nn.conv3d_transpose", Conv3DTransposeAttrs, 3, [data, weight], strides=strides, padding=padding,
                     dilation=dilation, groups=groups, channels=channels, kernel_size=kernel_size, data_layout=data_layout,
                     kernel_layout=kernel_layout, out_layout=out_layout, output_padding=repeat(output_padding, 3), out_dtype=out_dtype)
