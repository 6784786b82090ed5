"""Gradients of two-dimensional convolutions: by the transposed convolution, and by convolving data with gradients."""
from __future__ import annotations

from ....ir.expr import RelayExpr
from ...expr import Call
from ..nn import conv2d, conv2d_transpose
from ..nn.utils import get_pad_tuple2d
from ..transform import reshape, strided_slice, transpose
from .common import Gradients, register_table, require_layout, static_shape


def _conv2d(call: Call, grad: RelayExpr) -> Gradients:
    require_layout(call, "data_layout", "NCHW")
    require_layout(call, "kernel_layout", "OIHW")
    require_layout(call, "out_layout", "", "NCHW")
    return [_data_gradient(call, grad), _weight_gradient(call, grad)]


def _pads(call: Call) -> tuple[int, int, int, int]:
    return tuple(map(int, get_pad_tuple2d(call.attrs.padding)))  # type: ignore[return-value]


def _data_gradient(call: Call, grad: RelayExpr) -> RelayExpr:
    """The transposed convolution, with rows and columns that no window reached added at the end."""
    attrs, (data, weight) = call.attrs, call.args
    top, left, bottom, right = _pads(call)
    missing = [_unreached(*sizes) for sizes in zip(static_shape(call, data)[2:], static_shape(call, call)[2:], static_shape(call, weight)[2:],
                                                   map(int, attrs.strides), map(int, attrs.dilation), (top + bottom, left + right))]
    return conv2d_transpose(grad, weight, strides=attrs.strides, padding=attrs.padding, dilation=attrs.dilation, groups=attrs.groups,
                            output_padding=tuple(missing), out_dtype=data.checked_type.dtype)


def _unreached(size: int, windows: int, taps: int, stride: int, dilation: int, pad: int) -> int:
    """How many of the last of ``size`` entries lie beyond the last window."""
    return size + pad - ((windows - 1) * stride + (taps - 1) * dilation + 1)


def _weight_gradient(call: Call, grad: RelayExpr) -> RelayExpr:
    """The convolution of the data by the gradient, over the batch: strides and dilation change places."""
    attrs, (data, weight) = call.attrs, call.args
    batch, channels, height, width = static_shape(call, data)
    outputs, inputs, rows, columns = static_shape(call, weight)
    groups = int(attrs.groups)
    planes = transpose(reshape(data, (batch, groups, channels // groups, height, width)), [2, 1, 0, 3, 4])
    planes = reshape(planes, (channels // groups, groups * batch, height, width))
    taps = conv2d(planes, transpose(grad, [1, 0, 2, 3]), strides=attrs.dilation, padding=attrs.padding, dilation=attrs.strides, groups=groups,
                  channels=outputs, kernel_size=static_shape(call, call)[2:], out_dtype=weight.checked_type.dtype)
    inner = strided_slice(taps, [0, 0, 0, 0], [inputs, outputs, rows, columns])
    return transpose(inner, [1, 0, 2, 3])


register_table({"nn.conv2d": _conv2d})
