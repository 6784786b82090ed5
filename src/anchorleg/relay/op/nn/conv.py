"""Convolutions over one, two and three spatial axes, in any layout, grouped, depthwise and dilated."""
from __future__ import annotations

from types import new_class
from typing import Any, NamedTuple, Sequence

import numpy as np

from ....ir.attrs import INT, INTS, OPT_INT, OPT_INTS, STR, Attrs, Field
from ....ir.expr import Any as AnyDim, RelayExpr
from ....ir.op import Op, OpPattern
from ....ir.type import TensorType, Type
from ....support.errors import TypeMismatchError
from ....tir.data_layout import BijectiveLayout, layout
from ...expr import Call
from ..attrs_common import OPT_DTYPE
from ..registry import declare
from ..transform.transpose import convert_layout
from .common import div, expect, known, mul, tensor
from .numeric import convolve
from .utils import pad_pairs, pad_tuple, repeat


def _conv_attrs(rank: int, data: str, kernel: str, padding: Sequence[int]) -> dict[str, Field]:
    return {
        "strides": Field(INTS, (1,) * rank, "Step of the kernel along each spatial axis."),
        "padding": Field(INTS, tuple(padding), "Zeros put around the data: befores, then afters."),
        "dilation": Field(INTS, (1,) * rank, "Distance between the kernel's taps."),
        "groups": Field(INT, 1, "Into how many groups the channels fall."),
        "channels": Field(OPT_INT, None, "Number of output channels; None: from the weight."),
        "kernel_size": Field(OPT_INTS, None, "Extent of the kernel; None: from the weight."),
        "data_layout": Field(STR, data, "Layout of the data."),
        "kernel_layout": Field(STR, kernel, "Layout of the weight."),
        "out_layout": Field(STR, "", "Layout of the result; empty: that of the data."),
        "out_dtype": Field(OPT_DTYPE, "", "Element type of the result; empty: that of the data."),
    }


def attrs_class(name: str, fields: dict[str, Field]) -> type[Attrs]:
    """An attribute class from a table of fields."""
    body = {"__slots__": (), "__module__": __name__, **fields}
    return new_class(name, (Attrs,), {"name": f"relay.attrs.{name}"}, lambda space: space.update(body))


Conv1DAttrs = attrs_class("Conv1DAttrs", _conv_attrs(1, "NCW", "OIW", (0, 0)))
Conv2DAttrs = attrs_class("Conv2DAttrs", _conv_attrs(2, "NCHW", "OIHW", (0, 0)))
Conv3DAttrs = attrs_class("Conv3DAttrs", _conv_attrs(3, "NCDHW", "OIDHW", (0, 0, 0)))
Conv2DWinogradAttrs = attrs_class("Conv2DWinogradAttrs", {
    "tile_size": Field(INT, doc="Output points per tile and axis."), **_conv_attrs(2, "NCHW", "OIHW", (0, 0))})
Conv3DWinogradAttrs = attrs_class("Conv3DWinogradAttrs", {
    "tile_size": Field(INT, doc="Output points per tile and axis."), **_conv_attrs(3, "NCDHW", "OIDHW", (0, 0, 0))})


class ConvSpec(NamedTuple):
    """One convolution operator: its name and the canonical layouts of its data and weight."""

    op: str
    data: str
    kernel: str

    @property
    def rank(self) -> int:
        """Number of spatial axes."""
        return len(self.data) - 2


def layout_map(op: str, what: str, name: str, canonical: str) -> BijectiveLayout:
    """The mapping from layout ``name`` to the canonical one; TypeMismatchError when the axes differ."""
    if not layout(name).convertible(layout(canonical)):
        raise TypeMismatchError(f"{op}: {what} {name!r} has other axes than {canonical}")
    return BijectiveLayout(name, canonical)


def kernel_map(spec: ConvSpec, attrs: Any) -> BijectiveLayout:
    """The mapping of the weight's layout to the canonical one, which has a G in front when the layout has."""
    canonical = "G" + spec.kernel if "G" in attrs.kernel_layout else spec.kernel
    return layout_map(spec.op, "kernel_layout", attrs.kernel_layout, canonical)


def out_map(spec: ConvSpec, attrs: Any) -> BijectiveLayout:
    """The mapping of the result's layout to the canonical one."""
    return layout_map(spec.op, "out_layout", attrs.out_layout or attrs.data_layout, spec.data)


def conv_extent(op: str, dim: Any, pads: tuple[int, int], kernel: Any, dilation: int, stride: int) -> Any:
    """How many windows fit along an axis; unknown when the extent or the kernel is."""
    if isinstance(dim, AnyDim) or isinstance(kernel, AnyDim):
        return AnyDim()
    room = dim + sum(pads) - ((kernel - 1) * dilation + 1)
    if isinstance(room, int) and room < 0:
        raise TypeMismatchError(f"{op}: a kernel of extent {kernel} (dilation {dilation}) does not fit into "
                                f"{dim} entries with padding {pads[0]} + {pads[1]}")
    return room // stride + 1


def check_sizes(op: str, rank: int, attrs: Any) -> None:
    """TypeMismatchError when a spatial attribute has not one entry per axis."""
    for name in ("strides", "dilation", "kernel_size"):
        value = attrs.get(name)
        if value is not None and len(value) != rank:
            raise TypeMismatchError(f"{op}: {name} needs {rank} values, got {list(value)}")
        if value is not None and any(isinstance(v, int) and v < 1 for v in value):
            raise TypeMismatchError(f"{op}: {name} must be positive, got {list(value)}")


def is_depthwise(groups: int, channels: Any, weight: Sequence[Any] | None) -> bool:
    """Whether the weight is (channels, multiplier, …): one group per input channel and the weight says so."""
    return weight is not None and groups > 1 and known(channels, weight[0]) and groups == channels == weight[0]


def weight_shape(spec: ConvSpec, attrs: Any, channels: Any, weight: Sequence[Any] | None) -> tuple[Any, ...]:
    """The canonical weight shape that data of ``channels`` channels needs; what the attributes leave open comes from ``weight``."""
    groups, size = attrs.groups, attrs.kernel_size
    if known(channels) and channels % groups:
        raise TypeMismatchError(f"{spec.op}: {channels} input channels do not fall into {groups} groups")
    if weight is not None and len(weight) == spec.rank + 3:  # an axis G in front
        outer = (groups, div(attrs.channels, groups) if attrs.channels is not None else weight[1])
        return (*outer, div(channels, groups), *(size or weight[3:]))
    size = size or weight[2:]
    if is_depthwise(groups, channels, weight):
        return (channels, div(attrs.channels, channels) if attrs.channels is not None else weight[1], *size)
    return (attrs.channels if attrs.channels is not None else weight[0], div(channels, groups), *size)


def out_channels(shape: Sequence[Any], rank: int, depthwise: bool) -> Any:
    """The number of output channels of a canonical weight shape."""
    return mul(shape[0], shape[1]) if len(shape) == rank + 3 or depthwise else shape[0]


def conv_relation(spec: ConvSpec, strict: bool = True) -> Any:
    """The type relation of a convolution; not ``strict``: a weight that has been packed in some other way is accepted."""
    def relation(args: tuple[Type, ...], attrs: Any, ctx: Any) -> Type | None:
        data, weight = tensor(args[0], f"{spec.op}, data"), tensor(args[1], f"{spec.op}, weight")
        open_ends = attrs.channels is None or attrs.kernel_size is None
        if data is None or (weight is None and open_ends):
            return None
        check_sizes(spec.op, spec.rank, attrs)
        shape = layout_map(spec.op, "data_layout", attrs.data_layout, spec.data).forward_shape(data.dims)
        kmap = kernel_map(spec, attrs)
        check = strict or weight is None or len(weight.dims) == len(kmap.src_layout)
        have = kmap.forward_shape(weight.dims) if weight is not None and check else None
        need = weight_shape(spec, attrs, shape[1], have)
        if check:
            dims = need if have is not None or "G" not in kmap.src_layout.name else (attrs.groups, div(need[0], attrs.groups), *need[1:])
            expect(ctx, spec.op, "weight", args[1], kmap.backward_shape(dims), weight.dtype if weight is not None else data.dtype)
        return _result(spec, attrs, data, shape, need, is_depthwise(attrs.groups, shape[1], have))

    return relation


def _result(spec: ConvSpec, attrs: Any, data: TensorType, shape: Sequence[Any], need: Sequence[Any], depthwise: bool) -> TensorType:
    channels = out_channels(need, spec.rank, depthwise)
    if known(channels) and channels % attrs.groups:
        raise TypeMismatchError(f"{spec.op}: {channels} output channels do not fall into {attrs.groups} groups")
    space = [conv_extent(spec.op, d, p, k, dil, s) for d, p, k, dil, s in
             zip(shape[2:], pad_pairs(attrs.padding, spec.rank), need[-spec.rank:], attrs.dilation, attrs.strides)]
    return TensorType(out_map(spec, attrs).backward_shape((shape[0], channels, *space)), attrs.out_dtype or data.dtype)


def plain_weight(spec: ConvSpec, attrs: Any, w: np.ndarray) -> np.ndarray:
    """The weight in canonical layout, an axis G merged into the first."""
    kmap = kernel_map(spec, attrs)
    w = convert_layout(w, kmap.src_layout.name, kmap.dst_layout.name)
    return w.reshape(w.shape[0] * w.shape[1], *w.shape[2:]) if "G" in kmap.src_layout.name else w


def conv_numpy(spec: ConvSpec) -> Any:
    """The numpy rule of a convolution."""
    def rule(attrs: Any, args: list[np.ndarray], out_type: TensorType) -> np.ndarray:
        x = convert_layout(args[0], attrs.data_layout, spec.data)
        w = plain_weight(spec, attrs, args[1])
        per_group = x.shape[1] // attrs.groups
        w = w.reshape(w.shape[0] * w.shape[1] // per_group, per_group, *w.shape[2:]) if per_group else w
        out = convolve(x, w, attrs.strides, pad_pairs(attrs.padding, spec.rank), attrs.dilation, attrs.groups, out_type.dtype)
        return convert_layout(out, spec.data, attrs.out_layout or attrs.data_layout)

    return rule


CONV1D = ConvSpec("nn.conv1d", "NCW", "OIW")
CONV2D = ConvSpec("nn.conv2d", "NCHW", "OIHW")
CONV3D = ConvSpec("nn.conv3d", "NCDHW", "OIDHW")
CONV2D_NCHWC = ConvSpec("nn.contrib_conv2d_NCHWc", "NCHW", "OIHW")
DEPTHWISE_NCHWC = ConvSpec("nn.contrib_depthwise_conv2d_NCHWc", "NCHW", "OIHW")
CONV2D_GEMM = ConvSpec("nn.contrib_conv2d_gemm_without_weight_transform", "NCHW", "OIHW")

_DOC = """Slides a kernel over the spatial axes of the data and sums the products over the input channels of a group.

data: data_layout; weight: kernel_layout, (channels, in_channels / groups, kernel…) in canonical order;
result: (batch, channels, (extent + padding - dilation * (kernel - 1) - 1) // stride + 1, …)."""

for _spec, _attrs, _level, _strict in ((CONV1D, Conv1DAttrs, 2, True), (CONV2D, Conv2DAttrs, 2, True), (CONV3D, Conv3DAttrs, 2, True),
                                       (CONV2D_NCHWC, Conv2DAttrs, 10, False), (DEPTHWISE_NCHWC, Conv2DAttrs, 10, False)):
    declare(_spec.op, inputs=("data", "weight"), attrs=_attrs, relation=conv_relation(_spec, _strict),
            pattern=OpPattern.OUT_ELEMWISE_FUSABLE, numpy=conv_numpy(_spec), doc=_DOC, level=_level)


def conv_call(op: str, attrs: type[Attrs], rank: int, args: Sequence[RelayExpr], **values: Any) -> Call:
    """A call of a convolution, with the short forms of its spatial attributes spelled out."""
    for name in ("strides", "dilation", "kernel_size"):
        values[name] = repeat(values[name], rank)
    values["padding"] = pad_tuple(values["padding"], rank)
    return Call(Op.get(op), args, attrs(**values))


def conv1d(data: RelayExpr, weight: RelayExpr, strides: Any = 1, padding: Any = 0, dilation: Any = 1, groups: int = 1,
           channels: int | None = None, kernel_size: Any = None, data_layout: str = "NCW", kernel_layout: str = "OIW",
           out_layout: str = "", out_dtype: str = "") -> Call:
    """1-D convolution; see :func:`conv2d`."""
    return conv_call("nn.conv1d", Conv1DAttrs, 1, [data, weight], strides=strides, padding=padding, dilation=dilation, groups=groups,
                     channels=channels, kernel_size=kernel_size, data_layout=data_layout, kernel_layout=kernel_layout,
                     out_layout=out_layout, out_dtype=out_dtype)


def conv2d(data: RelayExpr, weight: RelayExpr, strides: Any = (1, 1), padding: Any = (0, 0), dilation: Any = (1, 1), groups: int = 1,
           channels: int | None = None, kernel_size: Any = None, data_layout: str = "NCHW", kernel_layout: str = "OIHW",
           out_layout: str = "", out_dtype: str = "") -> Call:
    """2-D convolution.

    ``data`` is laid out as ``data_layout`` (batch, channels, height, width in some order, possibly split), ``weight`` as
    ``kernel_layout``: (channels, in_channels / groups, kernel height, kernel width) in canonical order, or, when each input
    channel is a group, (in_channels, multiplier, …).  ``padding`` is 1, 2 or 4 ints.  The result has dtype ``out_dtype`` (that of
    the data when empty), in which the sums are formed.
    """
    return conv_call("nn.conv2d", Conv2DAttrs, 2, [data, weight], strides=strides, padding=padding, dilation=dilation, groups=groups,
                     channels=channels, kernel_size=kernel_size, data_layout=data_layout, kernel_layout=kernel_layout,
                     out_layout=out_layout, out_dtype=out_dtype)


def conv3d(data: RelayExpr, weight: RelayExpr, strides: Any = (1, 1, 1), padding: Any = (0, 0, 0), dilation: Any = (1, 1, 1),
           groups: int = 1, channels: int | None = None, kernel_size: Any = None, data_layout: str = "NCDHW",
           kernel_layout: str = "OIDHW", out_layout: str = "", out_dtype: str = "") -> Call:
    """3-D convolution; see :func:`conv2d`.  ``padding`` is 1, 3 or 6 ints."""
    return conv_call("nn.conv3d", Conv3DAttrs, 3, [data, weight], strides=strides, padding=padding, dilation=dilation, groups=groups,
                     channels=channels, kernel_size=kernel_size, data_layout=data_layout, kernel_layout=kernel_layout,
                     out_layout=out_layout, out_dtype=out_dtype)


def contrib_conv2d_nchwc(data: RelayExpr, kernel: RelayExpr, strides: Any = (1, 1), padding: Any = (0, 0), dilation: Any = (1, 1),
                         groups: int = 1, channels: int | None = None, kernel_size: Any = None, data_layout: str = "NCHW8c",
                         kernel_layout: str = "OIHW", out_layout: str = "", out_dtype: str = "") -> Call:
    """2-D convolution over channel-packed data (``NCHW8c``) and packed weights (``OIHW8i8o``)."""
    return conv_call("nn.contrib_conv2d_NCHWc", Conv2DAttrs, 2, [data, kernel], strides=strides, padding=padding, dilation=dilation,
                     groups=groups, channels=channels, kernel_size=kernel_size, data_layout=data_layout, kernel_layout=kernel_layout,
                     out_layout=out_layout, out_dtype=out_dtype)


def contrib_depthwise_conv2d_nchwc(data: RelayExpr, kernel: RelayExpr, strides: Any = (1, 1), padding: Any = (0, 0),
                                   dilation: Any = (1, 1), groups: int = 1, channels: int | None = None, kernel_size: Any = None,
                                   data_layout: str = "NCHW8c", kernel_layout: str = "OIHW", out_layout: str = "",
                                   out_dtype: str = "") -> Call:
    """Depthwise 2-D convolution over channel-packed data (``NCHW8c``) and packed weights (``OIHW1i8o``)."""
    return conv_call("nn.contrib_depthwise_conv2d_NCHWc", Conv2DAttrs, 2, [data, kernel], strides=strides, padding=padding,
                     dilation=dilation, groups=groups, channels=channels, kernel_size=kernel_size, data_layout=data_layout,
                     kernel_layout=kernel_layout, out_layout=out_layout, out_dtype=out_dtype)
