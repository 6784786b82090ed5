"""Grayscale dilation: image.dilation2d."""
from __future__ import annotations

from typing import Any

import numpy as np

from ....ir.attrs import INTS, STR, Attrs, Field
from ....ir.expr import Any as AnyDim, RelayExpr
from ....ir.op import Op, OpPattern
from ....ir.type import TensorType, Type
from ....support.errors import TypeMismatchError
from ...expr import Call
from ..attrs_common import OPT_DTYPE
from ..registry import declare
from ..transform.common import Dim, known, same_dim
from ..transform.transpose import convert_layout
from ..type_relations import tensors
from .resize import spatial_axes


class Dilation2DAttrs(Attrs, name="relay.attrs.Dilation2DAttrs"):
    """Attributes of image.dilation2d."""

    strides = Field(INTS, (1, 1), "Vertical and horizontal distance between windows.")
    padding = Field(INTS, (0, 0), "Zeros around the image: one number, (vertical, horizontal) or (top, left, bottom, right).")
    dilations = Field(INTS, (1, 1), "Vertical and horizontal distance between elements of a window.")
    data_layout = Field(STR, "NCHW", "The layout of the data: NCHW or NHWC.")
    kernel_layout = Field(STR, "IHW", "The layout of the weight: IHW or HWI.")
    out_dtype = Field(OPT_DTYPE, "", "The result's data type; empty: the input's.")


def four_pads(padding: Any) -> tuple[int, int, int, int]:
    """Padding as (top, left, bottom, right)."""
    p = [int(v) for v in padding]
    if len(p) not in (1, 2, 4):
        raise TypeMismatchError(f"padding must be 1, 2 or 4 numbers, got {tuple(p)}")
    return tuple(p * 4 if len(p) == 1 else p * 2 if len(p) == 2 else p)  # type: ignore[return-value]


def _extent(size: Dim, kernel: Dim, pads: int, stride: int, dilation: int) -> Dim:
    if not known(size) or not known(kernel):
        return AnyDim()
    out = (size + pads - (kernel - 1) * dilation - 1) // stride + 1
    if out < 1:
        raise TypeMismatchError(f"a window of {(kernel - 1) * dilation + 1} elements does not fit an axis of {size + pads}")
    return out


def _dilation_rel(args: tuple[Type, ...], attrs: Dilation2DAttrs, ctx: Any) -> Type | None:
    types = tensors(args, ("data", "weight"))
    if types is None:
        return None
    data, weight = types
    n, c, h, w = spatial_axes(attrs.data_layout, "NCHW", len(data.dims))
    ki, kh, kw = spatial_axes(attrs.kernel_layout, "IHW", len(weight.dims))
    top, left, bottom, right = four_pads(attrs.padding)
    (sy, sx), (dy, dx) = attrs.get_int_tuple("strides"), attrs.get_int_tuple("dilations")
    dims = list(data.dims)
    dims[c] = same_dim("the number of channels of weight", data.dims[c], weight.dims[ki])
    dims[h] = _extent(data.dims[h], weight.dims[kh], top + bottom, sy, dy)
    dims[w] = _extent(data.dims[w], weight.dims[kw], left + right, sx, dx)
    return TensorType(dims, attrs.out_dtype or data.dtype)


def _dilation_numpy(attrs: Dilation2DAttrs, args: list[np.ndarray], out_type: Type) -> np.ndarray:
    data = convert_layout(args[0], attrs.data_layout, "NCHW")
    weight = convert_layout(args[1], attrs.kernel_layout, "IHW")
    top, left, bottom, right = four_pads(attrs.padding)
    (sy, sx), (dy, dx) = attrs.get_int_tuple("strides"), attrs.get_int_tuple("dilations")
    padded = np.pad(data, [(0, 0), (0, 0), (top, bottom), (left, right)])
    rows = (padded.shape[2] - (weight.shape[1] - 1) * dy - 1) // sy + 1
    columns = (padded.shape[3] - (weight.shape[2] - 1) * dx - 1) // sx + 1
    taps = []
    for i, j in np.ndindex(*weight.shape[1:]):
        window = padded[:, :, i * dy:i * dy + (rows - 1) * sy + 1:sy, j * dx:j * dx + (columns - 1) * sx + 1:sx]
        taps.append(window + weight[None, :, i, j, None, None])
    return convert_layout(np.max(taps, axis=0), "NCHW", attrs.data_layout)


declare("image.dilation2d", inputs=("data", "weight"), attrs=Dilation2DAttrs, relation=_dilation_rel, pattern=OpPattern.OPAQUE,
        numpy=_dilation_numpy, level=2, doc="The maximum over a window of data + weight, for each channel.")


def dilation2d(data: RelayExpr, weight: RelayExpr, strides: Any = (1, 1), padding: Any = (0, 0), dilations: Any = (1, 1),
               data_layout: str = "NCHW", kernel_layout: str = "IHW", out_dtype: str = "") -> Call:
    """``out[n, c, y, x] = max over (i, j) of data[n, c, y·s + i·d, x·s + j·d] + weight[c, i, j]``, with zeros around the data."""
    attrs = Dilation2DAttrs(strides=strides, padding=padding, dilations=dilations, data_layout=data_layout,
                            kernel_layout=kernel_layout, out_dtype=out_dtype)
    return Call(Op.get("image.dilation2d"), [data, weight], attrs)


__all__ = ["Dilation2DAttrs", "dilation2d"]
