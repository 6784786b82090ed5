"""Convolutions that are written as others: transposed ones as plain ones over phases, one-dimensional ones as flat planes.

A transposed convolution of stride s computes, for each of the s phases of the result, a plain convolution with every s-th tap.
All phases together are one convolution with s times the channels (per axis), whose result is then interleaved.
"""
from __future__ import annotations

from typing import Any, Callable, NamedTuple, Sequence

from ....ir.expr import RelayExpr
from ....ir.op import Op
from ....ir.type import TensorType
from ...expr import Call
from ..op import register_legalize
from ..transform.flip import reverse
from ..transform.reshape import expand_dims, reshape, squeeze
from ..transform.slice import strided_slice
from ..transform.transpose import layout_transform, transpose
from .conv import conv2d
from .pad import pad
from .rearrange import depth_to_space
from .utils import pad_pairs, repeat


USUAL = 64  # what an extent that is not known is taken for: where phases begin, and what is left over behind them, does not depend on it


class Phases(NamedTuple):
    """How one axis of a transposed convolution becomes a plain one."""

    stride: int
    taps: int  # of the plain convolution
    pads: tuple[int, int]  # of the plain convolution
    begin: int  # where the result lies in the interleaved phases
    extent: int


def phases_of(extent: int, kernel: int, stride: int, pads: tuple[int, int], output_padding: int) -> Phases:
    """The plan for one axis of ``extent`` entries."""
    out = stride * (extent - 1) + kernel - sum(pads) + output_padding
    taps = -(-(kernel + max(0, output_padding - pads[1])) // stride)
    first, last = pads[0] // stride, (pads[0] + out - 1) // stride
    before, after = max(0, taps - 1 - first), max(0, last - (extent - 1))
    return Phases(stride, taps, (before, after), pads[0] - (taps - 1 - before) * stride, out)


def phase_weight(weight: RelayExpr, groups: int, shape: Sequence[int], plan: Sequence[Phases]) -> RelayExpr:
    """(in, out / groups, kh, kw) → (phases * out, in / groups, taps, taps), the phases outermost unless there are groups."""
    i, o, kh, kw = shape
    y, x = plan
    grown = pad(weight, ((0, 0), (0, 0), (0, y.taps * y.stride - kh), (0, x.taps * x.stride - kw)))
    split = reshape(grown, (groups, i // groups, o, y.taps, y.stride, x.taps, x.stride))
    mirrored = reverse(reverse(split, 3), 5)
    order = (4, 6, 0, 2, 1, 3, 5) if groups == 1 else (0, 2, 4, 6, 1, 3, 5)
    return reshape(transpose(mirrored, order), (groups * o * y.stride * x.stride, i // groups, y.taps, x.taps))


def interleave(data: RelayExpr, groups: int, batch: int, channels: int, plan: Sequence[Phases], space: Sequence[int]) -> RelayExpr:
    """The phases, which are channels, put next to one another in the plane."""
    y, x = plan
    if y.stride == x.stride == 1:
        return data
    if y.stride == x.stride:
        return depth_to_space(data, y.stride, mode="DCR" if groups == 1 else "CRD")
    if groups == 1:
        split, order = (batch, y.stride, x.stride, channels, *space), (0, 3, 4, 1, 5, 2)
    else:
        split, order = (batch, channels, y.stride, x.stride, *space), (0, 1, 4, 2, 5, 3)
    return reshape(transpose(reshape(data, split), order), (batch, channels, space[0] * y.stride, space[1] * x.stride))


def _static(types: Sequence[Any]) -> bool:
    return all(isinstance(t, TensorType) and t.is_static and all(d > 0 for d in t.dims) for t in types)


def legalize_conv2d_transpose(attrs: Any, inputs: Sequence[RelayExpr], types: Sequence[Any]) -> RelayExpr | None:
    """A transposed convolution as a plain one over phases; None where taps are dilated or the layouts are packed."""
    if _is_spread(attrs, types):
        return _spread(attrs, inputs, types[1].dims)
    if not (_static(types[:2]) or _of_unknown_planes(attrs, types)) or tuple(attrs.dilation) != (1, 1) or attrs.data_layout not in ("NCHW", "NHWC"):
        return None
    if attrs.out_layout not in ("", attrs.data_layout) or sorted(attrs.kernel_layout) != sorted("IOHW"):
        return None
    sizes = dict(zip(attrs.data_layout, types[0].dims))
    rows = dict(zip(attrs.kernel_layout, types[1].dims))
    data = inputs[0] if attrs.data_layout == "NCHW" else layout_transform(inputs[0], attrs.data_layout, "NCHW")
    weight = inputs[1] if attrs.kernel_layout == "IOHW" else layout_transform(inputs[1], attrs.kernel_layout, "IOHW")
    out = _by_phases(attrs, data, weight, [sizes[a] for a in "NCHW"], [rows[a] for a in "IOHW"])
    return out if attrs.data_layout == "NCHW" else layout_transform(out, "NCHW", attrs.data_layout)


def _of_unknown_planes(attrs: Any, types: Sequence[Any]) -> bool:
    """Whether all but the batch and the plane is known, and the phases can be put together without the plane's sizes."""
    data = types[0]
    return (isinstance(data, TensorType) and attrs.data_layout == "NCHW" and isinstance(data.dims[1], int) and data.dims[1] > 0 and _static(types[1:2])
            and all(d > 0 for d in data.dims if isinstance(d, int)) and len(set(map(int, attrs.strides))) == 1)


def _is_spread(attrs: Any, types: Sequence[Any]) -> bool:
    """Whether every pixel of data of unknown size becomes a square of pixels that no other touches."""
    if _static(types[:1]) or not _static(types[1:2]) or attrs.data_layout != "NCHW" or attrs.kernel_layout != "IOHW" or attrs.groups != 1:
        return False
    height, width = types[1].dims[2:]
    return (height == width and tuple(map(int, attrs.strides)) == (height, width) and tuple(attrs.dilation) == (1, 1)
            and not any(map(int, (*attrs.padding, *attrs.output_padding))) and attrs.out_layout in ("", "NCHW"))


def _spread(attrs: Any, inputs: Sequence[RelayExpr], rows: Sequence[int]) -> RelayExpr:
    """Such a convolution as a product over channels, whose results are laid out in squares."""
    ins, outs, side, _ = rows
    weight = reshape(transpose(inputs[1], (1, 2, 3, 0)), (outs * side * side, ins, 1, 1))
    made = conv2d(inputs[0], weight, channels=outs * side * side, kernel_size=(1, 1), out_dtype=attrs.out_dtype)
    return depth_to_space(made, side, mode="CRD")


def _by_phases(attrs: Any, data: RelayExpr, weight: RelayExpr, sizes: Sequence[int], rows: Sequence[int]) -> RelayExpr:
    n, _, *space = sizes
    space = [e if isinstance(e, int) else USUAL for e in space]
    plan = [phases_of(e, k, s, p, o) for e, k, s, p, o in
            zip(space, rows[2:], attrs.strides, pad_pairs(attrs.padding, 2), repeat(attrs.output_padding, 2))]
    channels, count = rows[1] * attrs.groups, plan[0].stride * plan[1].stride
    convolved = conv2d(data, phase_weight(weight, attrs.groups, rows, plan), padding=[p.pads[0] for p in plan] + [p.pads[1] for p in plan],
                       groups=attrs.groups, channels=channels * count, kernel_size=[p.taps for p in plan], out_dtype=attrs.out_dtype)
    wide = [e + sum(p.pads) - p.taps + 1 for e, p in zip(space, plan)]
    whole = interleave(convolved, attrs.groups, n, channels, plan, wide)
    if all(p.begin == 0 and p.extent == w * p.stride for p, w in zip(plan, wide)):
        return whole
    ends = [p.begin + p.extent if isinstance(e, int) else _from_the_end(w * p.stride - p.begin - p.extent) for p, w, e in zip(plan, wide, sizes[2:])]
    return strided_slice(whole, [p.begin for p in plan], ends, axes=[2, 3])


def _from_the_end(left: int) -> int:
    """The end of a slice that leaves out so many entries."""
    return -left if left else 2**31 - 1


def legalize_conv1d_transpose(attrs: Any, inputs: Sequence[RelayExpr], types: Sequence[Any]) -> RelayExpr | None:
    """The one-dimensional case, over planes of height 1."""
    from .conv_transpose import Conv2DTransposeAttrs

    if not _static(types[:2]) or tuple(attrs.dilation) != (1,) or attrs.data_layout != "NCW" or attrs.kernel_layout != "IOW":
        return None
    if attrs.out_layout not in ("", "NCW"):
        return None
    ((before, after),) = pad_pairs(attrs.padding, 1)
    plane = Conv2DTransposeAttrs(strides=(1, *attrs.strides), padding=(0, before, 0, after), groups=attrs.groups,
                                 output_padding=(0, *attrs.output_padding), out_dtype=attrs.out_dtype)
    sizes, rows = types[0].dims, types[1].dims
    out = _by_phases(plane, expand_dims(inputs[0], 2), expand_dims(inputs[1], 2), (*sizes[:2], 1, sizes[2]), (*rows[:2], 1, rows[2]))
    return squeeze(out, [2])


def legalize_conv1d(attrs: Any, inputs: Sequence[RelayExpr], types: Sequence[Any]) -> RelayExpr | None:
    """A one-dimensional convolution as one over planes of height 1, which have faster kernels."""
    if not _static(types[1:2]) or attrs.data_layout != "NCW" or attrs.kernel_layout != "OIW" or attrs.out_layout not in ("", "NCW"):
        return None
    if not isinstance(types[0], TensorType) or not isinstance(types[0].dims[1], int) or 0 in types[0].dims:
        return None
    if types[0].dtype != "float32" or types[1].dtype != "float32":
        return None
    ((before, after),) = pad_pairs(attrs.padding, 1)
    rows = types[1].dims
    channels = attrs.channels if attrs.channels is not None else rows[0]

    def convolve(weight: RelayExpr, outputs: int) -> RelayExpr:
        return conv2d(expand_dims(inputs[0], 2), weight, strides=(1, *attrs.strides), padding=(0, before, 0, after), dilation=(1, *attrs.dilation),
                      groups=attrs.groups, channels=outputs, kernel_size=(1, rows[2]), out_dtype=attrs.out_dtype)

    weight = expand_dims(inputs[1], 2)
    out = _in_vectors(weight, channels, convolve) if attrs.groups == 1 and _is_odd(channels) else convolve(weight, channels)
    return squeeze(out, [2])


_LANES = 16  # output channels are made a multiple of this, where they do not even fill a vector of four


def _is_odd(outputs: int) -> bool:
    """Whether that many output channels fill no vectors, and are so many that some more cost little."""
    return outputs % 4 != 0 and outputs > 4 * _LANES


def _in_vectors(weight: RelayExpr, outputs: int, convolve: Callable[[RelayExpr, int], RelayExpr]) -> RelayExpr:
    """A convolution over planes with more output channels, which are cut off again: its kernel then works in whole vectors."""
    more = -outputs % _LANES
    wide = convolve(pad(weight, [(0, more), (0, 0), (0, 0), (0, 0)]), outputs + more)
    return strided_slice(wide, [0], [outputs], axes=[1])


def legalize_conv2d(attrs: Any, inputs: Sequence[RelayExpr], types: Sequence[Any]) -> RelayExpr | None:
    """A convolution whose output channels fill no vectors as one with more of them; None where they do."""
    if not _static(types[1:2]) or (attrs.data_layout, attrs.kernel_layout, attrs.groups) != ("NCHW", "OIHW", 1):
        return None
    outputs = types[1].dims[0]
    if attrs.out_layout not in ("", "NCHW") or types[1].dtype != "float32" or not _is_odd(outputs):
        return None
    kernel = tuple(types[1].dims[2:])
    return _in_vectors(inputs[1], outputs, lambda w, n: Call(Op.get("nn.conv2d"), [inputs[0], w], attrs.replace(channels=n, kernel_size=kernel)))


register_legalize("nn.conv2d", legalize_conv2d)
register_legalize("nn.conv2d_transpose", legalize_conv2d_transpose)
register_legalize("nn.conv1d_transpose", legalize_conv1d_transpose)
register_legalize("nn.conv1d", legalize_conv1d)
