"""Convolutions, products and pooling of quantised tensors."""
from __future__ import annotations

from typing import Any

import numpy as np

from ....ir.expr import RelayExpr
from ....ir.op import Op, OpPattern
from ....ir.type import TensorType, Type
from ....support.errors import TypeMismatchError
from ....tir.data_layout import Layout
from ...expr import Call
from ..nn import conv as nn_conv
from ..nn import conv_transpose as nn_conv_transpose
from ..nn.conv import Conv2DAttrs, ConvSpec, conv_call
from ..nn.conv_transpose import Conv2DTransposeAttrs
from ..nn.dense import BatchMatmulAttrs, DenseAttrs, DensePackAttrs
from ..nn.numeric import product
from ..nn.pooling import AvgPool2DAttrs
from ..nn.utils import pad_tuple, repeat
from ..registry import declare
from ..transform.transpose import convert_layout
from .common import check_dtype, check_parameter, is_known, saturate
from .quantize import requantise

_INPUTS = ("data", "weight", "input_zero_point", "weight_zero_point", "input_scale", "weight_scale")
_DATA, _OUT = ("int8", "uint8", "int16"), ("int16", "int32", "int64")


def _quantised_relation(op: str, plain: str, channels: Any) -> Any:
    """The plain operator's relation, after checking dtypes, scales and zero points; ``channels(out_type, attrs)`` counts weight scales."""
    def relation(args: tuple[Type, ...], attrs: Any, ctx: Any) -> Type | None:
        if not is_known(args[:2]) or not is_known(args[2:5]):
            return None
        data, weight = args[:2]
        check_dtype(op, "data", data.dtype, (*_DATA, "uint16"))
        check_dtype(op, "weight", weight.dtype, _DATA)
        check_dtype(op, "the result", attrs.out_dtype or "int32", _OUT)
        if not attrs.out_dtype:
            raise TypeMismatchError(f"{op}: out_dtype must be given, one of {', '.join(_OUT)}")
        check_parameter(op, "input_zero_point", args[2], "int32")
        check_parameter(op, "input_scale", args[4], "float32")
        out = Op.get(plain).relation(args[:2], attrs, ctx)
        if out is not None:
            size = channels(out, attrs)
            check_parameter(op, "weight_zero_point", args[3], "int32", size)
            check_parameter(op, "weight_scale", args[5], "float32", size)
        return out

    return relation


def _image_channels(out: TensorType, attrs: Any) -> Any:
    name = attrs.out_layout or attrs.data_layout
    return out.dims[Layout(name).index_of("C")]


def _centred(q: np.ndarray, zero_point: np.ndarray, axis: int = 0) -> np.ndarray:
    """q - zero_point as int32, zero points along ``axis``."""
    zero = zero_point.reshape(()) if zero_point.size == 1 else zero_point.reshape([-1 if i == axis % q.ndim else 1 for i in range(q.ndim)])
    return q.astype(np.int32) - zero.astype(np.int32)


def _conv_numpy(spec: ConvSpec, transposed: bool) -> Any:
    plain = (nn_conv_transpose._numpy if transposed else nn_conv.conv_numpy)(spec)

    def rule(attrs: Any, args: list[np.ndarray], out_type: TensorType) -> np.ndarray:
        data, weight, input_zero, weight_zero = args[:4]
        axis = Layout(attrs.kernel_layout).index_of("O")
        return plain(attrs, [_centred(data, input_zero), _centred(weight, weight_zero, axis)], out_type)

    return rule


def _dense_numpy(attrs: Any, args: list[np.ndarray], out_type: TensorType) -> np.ndarray:
    return product(_centred(args[0], args[2]), _centred(args[1], args[3]).T, out_type.dtype)


def _pack_numpy(attrs: Any, args: list[np.ndarray], out_type: TensorType) -> np.ndarray:
    weight = convert_layout(args[1], attrs.weight_layout, "NC")[:out_type.concrete_shape[-1]]
    return product(_centred(args[0], args[2]), _centred(weight, args[3]).T, out_type.dtype)


def _batch_numpy(attrs: Any, args: list[np.ndarray], out_type: TensorType) -> np.ndarray:
    x, y = _centred(args[0], args[2]), _centred(args[1], args[3])
    x = x.transpose(0, 2, 1) if attrs.transpose_a else x
    return product(x, y.transpose(0, 2, 1) if attrs.transpose_b else y, out_type.dtype)


def _pool_relation(args: tuple[Type, ...], attrs: Any, ctx: Any) -> Type | None:
    op = "qnn.avg_pool2d"
    if not is_known(args):
        return None
    check_dtype(op, "data", args[0].dtype, ("int8", "uint8", "int16"))
    for name, arg, dtype in zip(("input_scale", "input_zero_point", "output_scale", "output_zero_point"), args[1:],
                                ("float32", "int32", "float32", "int32")):
        check_parameter(op, name, arg, dtype)
    return Op.get("nn.avg_pool2d").relation(args[:1], attrs, ctx)


def _pool_numpy(attrs: Any, args: list[np.ndarray], out_type: TensorType) -> np.ndarray:
    wide = requantise(*args, "int32")
    out = TensorType(out_type.dims, "int32")
    zero = int(args[4].reshape(-1)[0])
    mean = Op.get("nn.avg_pool2d").get_attr("FNumpy")(attrs, [wide - zero], out)
    return saturate(mean.astype(np.int64) + zero, out_type.dtype)


CONV2D, CONV2D_TRANSPOSE = ConvSpec("qnn.conv2d", "NCHW", "OIHW"), ConvSpec("qnn.conv2d_transpose", "NCHW", "IOHW")
_FUSE = {"pattern": OpPattern.OUT_ELEMWISE_FUSABLE, "level": 11, "TNonComputational": True}
declare("qnn.conv2d", inputs=_INPUTS, attrs=Conv2DAttrs, relation=_quantised_relation("qnn.conv2d", "nn.conv2d", _image_channels),
        numpy=_conv_numpy(CONV2D, False), doc="nn.conv2d of (data - zero point) and (weight - zero point), in integers.", **_FUSE)
declare("qnn.conv2d_transpose", inputs=_INPUTS, attrs=Conv2DTransposeAttrs, numpy=_conv_numpy(CONV2D_TRANSPOSE, True),
        relation=_quantised_relation("qnn.conv2d_transpose", "nn.conv2d_transpose", _image_channels),
        doc="nn.conv2d_transpose of (data - zero point) and (weight - zero point), in integers.", **_FUSE)
declare("qnn.dense", inputs=_INPUTS, attrs=DenseAttrs, relation=_quantised_relation("qnn.dense", "nn.dense", lambda out, a: out.dims[-1]),
        numpy=_dense_numpy, doc="nn.dense of (data - zero point) and (weight - zero point), in integers.", **_FUSE)
declare("qnn.contrib_dense_pack", inputs=_INPUTS, attrs=DensePackAttrs, numpy=_pack_numpy,
        relation=_quantised_relation("qnn.contrib_dense_pack", "nn.contrib_dense_pack", lambda out, a: out.dims[-1]),
        doc="qnn.dense with a packed weight.", **_FUSE)
declare("qnn.batch_matmul", inputs=("x", "y", "x_zero_point", "y_zero_point", "x_scale", "y_scale"), attrs=BatchMatmulAttrs,
        relation=_quantised_relation("qnn.batch_matmul", "nn.batch_matmul", lambda out, a: None), numpy=_batch_numpy,
        doc="nn.batch_matmul of (x - zero point) and (y - zero point), in integers.", **_FUSE)
declare("qnn.avg_pool2d", inputs=("data", "input_scale", "input_zero_point", "output_scale", "output_zero_point"), attrs=AvgPool2DAttrs,
        relation=_pool_relation, numpy=_pool_numpy, pattern=OpPattern.OUT_ELEMWISE_FUSABLE, level=11,
        doc="The mean of each window, carried over to the output's scale before it is rounded.")


def conv2d(data: RelayExpr, kernel: RelayExpr, input_zero_point: RelayExpr, kernel_zero_point: RelayExpr, input_scale: RelayExpr,
           kernel_scale: RelayExpr, kernel_size: Any, channels: int | None, strides: Any = (1, 1), padding: Any = (0, 0),
           dilation: Any = (1, 1), groups: int = 1, data_layout: str = "NCHW", kernel_layout: str = "OIHW", out_layout: str = "",
           out_dtype: str = "int32") -> Call:
    """Convolution of quantised data and weight; the result's scale is input_scale * kernel_scale and its zero point 0."""
    return conv_call("qnn.conv2d", Conv2DAttrs, 2, [data, kernel, input_zero_point, kernel_zero_point, input_scale, kernel_scale],
                     strides=strides, padding=padding, dilation=dilation, groups=groups, channels=channels, kernel_size=kernel_size,
                     data_layout=data_layout, kernel_layout=kernel_layout, out_layout=out_layout, out_dtype=out_dtype)


def conv2d_transpose(data: RelayExpr, weight: RelayExpr, input_zero_point: RelayExpr, kernel_zero_point: RelayExpr, input_scale: RelayExpr,
                     kernel_scale: RelayExpr, strides: Any = (1, 1), padding: Any = (0, 0), dilation: Any = (1, 1), groups: int = 1,
                     channels: int | None = None, kernel_size: Any = None, data_layout: str = "NCHW", kernel_layout: str = "IOHW",
                     out_layout: str = "", output_padding: Any = (0, 0), out_dtype: str = "int32") -> Call:
    """Transposed convolution of quantised data and weight."""
    return conv_call("qnn.conv2d_transpose", Conv2DTransposeAttrs, 2,
                     [data, weight, input_zero_point, kernel_zero_point, input_scale, kernel_scale], strides=strides, padding=padding,
                     dilation=dilation, groups=groups, channels=channels, kernel_size=kernel_size, data_layout=data_layout,
                     kernel_layout=kernel_layout, out_layout=out_layout, output_padding=repeat(output_padding, 2), out_dtype=out_dtype)


def dense(data: RelayExpr, weight: RelayExpr, input_zero_point: RelayExpr, kernel_zero_point: RelayExpr, input_scale: RelayExpr,
          kernel_scale: RelayExpr, units: int | None, out_dtype: str = "int32") -> Call:
    """Product of quantised data and the transpose of a quantised weight."""
    return Call(Op.get("qnn.dense"), [data, weight, input_zero_point, kernel_zero_point, input_scale, kernel_scale],
                DenseAttrs(units=units, out_dtype=out_dtype))


def contrib_dense_pack(data: RelayExpr, weight: RelayExpr, input_zero_point: RelayExpr, kernel_zero_point: RelayExpr,
                       input_scale: RelayExpr, kernel_scale: RelayExpr, kernel_layout: str = "NC", units: int | None = None,
                       out_dtype: str = "int32") -> Call:
    """:func:`dense` with a packed weight."""
    return Call(Op.get("qnn.contrib_dense_pack"), [data, weight, input_zero_point, kernel_zero_point, input_scale, kernel_scale],
                DensePackAttrs(units=units, out_dtype=out_dtype, weight_layout=kernel_layout))


def batch_matmul(x: RelayExpr, y: RelayExpr, x_zero_point: RelayExpr, y_zero_point: RelayExpr, x_scale: RelayExpr, y_scale: RelayExpr,
                 out_dtype: str = "int32") -> Call:
    """Products of quantised matrices; ``y`` is (batch, n, k)."""
    return Call(Op.get("qnn.batch_matmul"), [x, y, x_zero_point, y_zero_point, x_scale, y_scale],
                BatchMatmulAttrs(out_dtype=out_dtype, transpose_a=False, transpose_b=True))


def avg_pool2d(data: RelayExpr, input_scale: RelayExpr, input_zero_point: RelayExpr, output_scale: RelayExpr, output_zero_point: RelayExpr,
               pool_size: Any, strides: Any, padding: Any, dilation: Any, ceil_mode: bool = False, count_include_pad: bool = True,
               layout: str = "NHWC", out_layout: str = "") -> Call:
    """Average pooling of a quantised tensor, the result in the output's scale."""
    attrs = AvgPool2DAttrs(pool_size=repeat(pool_size, 2), strides=repeat(strides, 2), dilation=repeat(dilation, 2),
                           padding=pad_tuple(padding, 2), layout=layout, out_layout=out_layout, ceil_mode=ceil_mode,
                           count_include_pad=count_include_pad)
    return Call(Op.get("qnn.avg_pool2d"), [data, input_scale, input_zero_point, output_scale, output_zero_point], attrs)
