"""Operators that reorder axes: transpose and layout_transform."""
from __future__ import annotations

from typing import Any, Sequence

import numpy as np

from ....ir.attrs import OPT_INTS, STR, Attrs, Field
from ....ir.expr import RelayExpr
from ....ir.op import Op, OpPattern
from ....ir.type import TensorType, Type
from ....support.errors import TypeMismatchError
from ....tir.data_layout import BijectiveLayout, Layout
from ...expr import Call
from ..registry import declare
from .common import normalize_axis, tensor


class TransposeAttrs(Attrs, name="relay.attrs.TransposeAttrs"):
    """Attributes of transpose."""

    axes = Field(OPT_INTS, None, "The order of the axes; None (or empty): reversed.")


class LayoutTransformAttrs(Attrs, name="relay.attrs.LayoutTransformAttrs"):
    """Attributes of layout_transform."""

    src_layout = Field(STR, doc="The layout of the input, e.g. NCHW.")
    dst_layout = Field(STR, doc="The layout of the result, e.g. NCHW16c.")


def transpose_axes(ndim: int, axes: Sequence[int] | None) -> list[int]:
    """The order of axes, counted from the front; TypeMismatchError unless each axis occurs once."""
    if not axes:
        return list(range(ndim))[::-1]
    if len(axes) != ndim:
        raise TypeMismatchError(f"axes {tuple(int(a) for a in axes)} name {len(axes)} axes, the tensor has {ndim}")
    order = [normalize_axis(int(a), ndim) for a in axes]
    if len(set(order)) != ndim:
        raise TypeMismatchError(f"axes {tuple(int(a) for a in axes)} name an axis twice")
    return order


def _transpose_rel(args: tuple[Type, ...], attrs: TransposeAttrs, ctx: Any) -> Type | None:
    data = tensor(args[0], "data")
    return data and TensorType([data.dims[a] for a in transpose_axes(len(data.dims), attrs.axes)], data.dtype)


def _transpose_numpy(attrs: TransposeAttrs, args: list[np.ndarray], out_type: Type) -> np.ndarray:
    return args[0].transpose(transpose_axes(args[0].ndim, attrs.axes)) if args[0].ndim else args[0]


def _layout_transform_rel(args: tuple[Type, ...], attrs: LayoutTransformAttrs, ctx: Any) -> Type | None:
    data = tensor(args[0], "data")
    return data and TensorType(BijectiveLayout(attrs.src_layout, attrs.dst_layout).forward_shape(data.dims), data.dtype)


def convert_layout(data: np.ndarray, src: str, dst: str) -> np.ndarray:
    """A tensor in layout ``src`` laid out as ``dst``; blocks that are not full are filled with zeros."""
    way = BijectiveLayout(src, dst)
    plain, sizes = _to_plain(data, way.src_layout)
    order = [a.letter for a in way.src_layout.axes if a.is_primal]
    return _from_plain(plain, order, way.dst_layout, dict(zip(order, sizes)))


def _to_plain(data: np.ndarray, layout: Layout) -> tuple[np.ndarray, list[int]]:
    """Joins the blocks of each axis; axes in the order of the layout's capitals."""
    order: list[int] = []
    sizes: list[int] = []
    for axis in (a.letter for a in layout.axes if a.is_primal):
        parts = [layout.index_of(axis)] + [i for i, b in enumerate(layout.axes) if not b.is_primal and b.primal == axis]
        order.extend(parts)
        sizes.append(int(np.prod([data.shape[p] for p in parts], dtype=np.int64)))
    return data.transpose(order).reshape(sizes), sizes


def _from_plain(plain: np.ndarray, letters: list[str], layout: Layout, sizes: dict[str, int]) -> np.ndarray:
    """Splits the blocks of each axis, padding with zeros, and puts the parts in the layout's order."""
    pads, shape, names = [], [], []
    for letter in letters:
        factors = [a.factor for a in layout.axes if not a.is_primal and a.primal == letter]
        block = int(np.prod(factors, dtype=np.int64))
        outer = -(-sizes[letter] // block)
        pads.append((0, outer * block - sizes[letter]))
        shape.extend([outer, *factors])
        names.extend([letter] + [i for i, a in enumerate(layout.axes) if not a.is_primal and a.primal == letter])
    padded = np.pad(plain, pads) if any(p[1] for p in pads) else plain
    order = [names.index(a.letter if a.is_primal else i) for i, a in enumerate(layout.axes)]
    return padded.reshape(shape).transpose(order) if order else padded


def _layout_transform_numpy(attrs: LayoutTransformAttrs, args: list[np.ndarray], out_type: Type) -> np.ndarray:
    return convert_layout(args[0], attrs.src_layout, attrs.dst_layout)


declare("transpose", attrs=TransposeAttrs, relation=_transpose_rel, pattern=OpPattern.INJECTIVE, numpy=_transpose_numpy, level=3,
        doc="Reorders the axes.")
declare("layout_transform", attrs=LayoutTransformAttrs, relation=_layout_transform_rel, pattern=OpPattern.INJECTIVE,
        numpy=_layout_transform_numpy, level=5, doc="Reorders and blocks the axes from one layout to another.")


def transpose(data: RelayExpr, axes: Any = None) -> Call:
    """``data`` with its axes in the order ``axes`` (None: reversed)."""
    return Call(Op.get("transpose"), [data], TransposeAttrs(axes=None if axes is None else [int(a) for a in axes]))


def layout_transform(data: RelayExpr, src_layout: str, dst_layout: str) -> Call:
    """``data``, in layout ``src_layout``, laid out as ``dst_layout``, e.g. from NCHW to NCHW16c; new blocks are filled up with zeros."""
    return Call(Op.get("layout_transform"), [data], LayoutTransformAttrs(src_layout=src_layout, dst_layout=dst_layout))


__all__ = ["TransposeAttrs", "LayoutTransformAttrs", "transpose", "layout_transform"]
