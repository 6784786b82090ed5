"""Convolution by Winograd's minimal filtering: the weight's transformation, and the convolution with transformed weights."""
from __future__ import annotations

from typing import Any

import numpy as np

from ....ir.attrs import INT, Attrs, Field
from ....ir.expr import RelayExpr
from ....ir.op import Op, OpPattern
from ....ir.transform import register_config_option
from ....ir.type import TensorType, Type
from ....support.errors import TypeMismatchError
from ...expr import Call
from ..registry import declare
from ..transform.transpose import convert_layout
from .common import add, check_rank, tensor, wide
from .conv import Conv2DWinogradAttrs, ConvSpec, check_sizes, conv_call, conv_extent, layout_map, out_map
from .numeric import pad, windows
from .utils import pad_pairs


USE_WINOGRAD = "relay.backend.use_winograd"
register_config_option(USE_WINOGRAD, bool, "compute 3x3 convolutions by minimal filtering where that is faster (default: true)")


class ConvWinogradWeightTransformAttrs(Attrs, name="relay.attrs.ConvWinogradWeightTransformAttrs"):
    """Attributes of the weight's transformation."""

    tile_size = Field(INT, doc="Output points per tile and axis.")


SPEC = ConvSpec("nn.contrib_conv2d_winograd_without_weight_transform", "NCHW", "OIHW")
_TRANSFORM = "nn.contrib_conv2d_winograd_weight_transform"


def _transform_relation(args: tuple[Type, ...], attrs: Any, ctx: Any) -> Type | None:
    weight = tensor(args[0], f"{_TRANSFORM}, weight")
    if weight is None:
        return None
    check_rank(_TRANSFORM, weight, 4, "weight")
    o, i, kh, kw = weight.dims
    return TensorType((add(kh, attrs.tile_size - 1), add(kw, attrs.tile_size - 1), o, i), weight.dtype)


def _matrices(tile: int, kernel: int, dtype: np.dtype) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    from ....topi.nn.winograd_util import winograd_transform_arrays

    return winograd_transform_arrays(tile, kernel, dtype)


def _transform_numpy(attrs: Any, args: list[np.ndarray], out_type: Any) -> np.ndarray:
    w = args[0].astype(wide(str(args[0].dtype)))
    _, _, g_rows = _matrices(attrs.tile_size, w.shape[2], w.dtype)
    _, _, g_cols = _matrices(attrs.tile_size, w.shape[3], w.dtype)
    return np.einsum("ah,oihw,bw->aboi", g_rows, w, g_cols, optimize=True)


def _relation(args: tuple[Type, ...], attrs: Any, ctx: Any) -> Type | None:
    data = tensor(args[0], f"{SPEC.op}, data")
    if data is None:
        return None
    if attrs.channels is None or attrs.kernel_size is None:
        raise TypeMismatchError(f"{SPEC.op}: channels and kernel_size must be given, the transformed weight does not tell them")
    check_sizes(SPEC.op, 2, attrs)
    n, _, *space = layout_map(SPEC.op, "data_layout", attrs.data_layout, "NCHW").forward_shape(data.dims)
    out = [conv_extent(SPEC.op, d, p, k, dil, s) for d, p, k, dil, s in
           zip(space, pad_pairs(attrs.padding, 2), attrs.kernel_size, attrs.dilation, attrs.strides)]
    return TensorType(out_map(SPEC, attrs).backward_shape((n, attrs.channels, *out)), attrs.out_dtype or data.dtype)


def _numpy(attrs: Any, args: list[np.ndarray], out_type: TensorType) -> np.ndarray:
    if tuple(attrs.strides) != (1, 1) or tuple(attrs.dilation) != (1, 1) or attrs.groups != 1:
        raise TypeMismatchError(f"{SPEC.op}: expected strides 1, dilation 1 and one group, got {attrs}")
    x = convert_layout(args[0], attrs.data_layout, "NCHW").astype(wide(str(args[0].dtype)))
    m, (kh, kw) = attrs.tile_size, attrs.kernel_size
    n, o, oh, ow = out_map(SPEC, attrs).forward_shape(out_type.concrete_shape)
    th, tw = -(-oh // m), -(-ow // m)
    (top, _), (left, _) = pad_pairs(attrs.padding, 2)
    size = (m + kh - 1, m + kw - 1)
    reach = (th - 1) * m + size[0] - top - x.shape[2], (tw - 1) * m + size[1] - left - x.shape[3]
    tiles = windows(pad(x, [(0, 0), (0, 0), (top, reach[0]), (left, reach[1])]), (2, 3), size, (m, m), (1, 1))
    (a_h, b_h, _), (a_w, b_w, _) = _matrices(m, kh, x.dtype), _matrices(m, kw, x.dtype)
    v = np.einsum("ya,ncpqyz,zb->abcnpq", b_h, tiles, b_w, optimize=True)
    weight = args[1] if attrs.kernel_layout == "OIHW" else convert_layout(args[1], attrs.kernel_layout, "HWOI")
    product = np.matmul(weight.astype(x.dtype), v.reshape(*size, x.shape[1], -1)).reshape(*size, o, n, th, tw)
    y = np.einsum("ya,abonpq,zb->nopyqz", a_h, product, a_w, optimize=True).reshape(n, o, th * m, tw * m)
    return convert_layout(y[:, :, :oh, :ow], "NCHW", attrs.out_layout or attrs.data_layout)


declare(_TRANSFORM, inputs=("weight",), attrs=ConvWinogradWeightTransformAttrs, relation=_transform_relation,
        pattern=OpPattern.OUT_ELEMWISE_FUSABLE, numpy=_transform_numpy, level=10,
        doc="A weight (O, I, kh, kw) carried over to (tile + kh - 1, tile + kw - 1, O, I).")
declare(SPEC.op, inputs=("data", "weight"), attrs=Conv2DWinogradAttrs, relation=_relation, pattern=OpPattern.OUT_ELEMWISE_FUSABLE,
        numpy=_numpy, level=10, doc="A convolution of stride 1 with a transformed weight, computed tile by tile.")


def contrib_conv2d_winograd_weight_transform(weight: RelayExpr, tile_size: int) -> Call:
    """A weight (O, I, kh, kw) transformed for tiles of ``tile_size`` output points: (tile + kh - 1, tile + kw - 1, O, I)."""
    return Call(Op.get(_TRANSFORM), [weight], ConvWinogradWeightTransformAttrs(tile_size=tile_size))


def contrib_conv2d_winograd_without_weight_transform(
        data: RelayExpr, weight: RelayExpr, tile_size: int, strides: Any = (1, 1), padding: Any = (0, 0), dilation: Any = (1, 1),
        groups: int = 1, channels: int | None = None, kernel_size: Any = None, data_layout: str = "NCHW", kernel_layout: str = "OIHW",
        out_layout: str = "", out_dtype: str = "") -> Call:
    """2-D convolution of stride 1 with a weight that :func:`contrib_conv2d_winograd_weight_transform` made."""
    return conv_call(SPEC.op, Conv2DWinogradAttrs, 2, [data, weight], tile_size=tile_size, strides=strides, padding=padding,
                     dilation=dilation, groups=groups, channels=channels, kernel_size=kernel_size, data_layout=data_layout,
                     kernel_layout=kernel_layout, out_layout=out_layout, out_dtype=out_dtype)
