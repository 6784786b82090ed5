"""Moving data between axes: batch_flatten, depth_to_space, space_to_depth, space_to_batch_nd, batch_to_space_nd."""
from __future__ import annotations

import math
from typing import Any, Sequence

import numpy as np

from ....ir.attrs import FLOAT, INT, INTS, NESTED_INTS, STR, Attrs, Field
from ....ir.expr import RelayExpr
from ....ir.op import Op, OpPattern
from ....ir.type import TensorType, Type
from ....support.errors import TypeMismatchError
from ....tir.data_layout import BijectiveLayout
from ...expr import Call
from ..registry import declare
from ..transform.transpose import convert_layout
from .common import add, div, known, mul, shown, tensor
from .conv import layout_map
from .numeric import pad


class SubPixelAttrs(Attrs, name="relay.attrs.SubPixelAttrs"):
    """Attributes of nn.depth_to_space and nn.space_to_depth."""

    block_size = Field(INT, 1, "Side of the square of pixels that one pixel's channels become.")
    layout = Field(STR, "NCHW", "Layout of the data.")
    mode = Field(STR, "DCR", "Which part of the channels is the block: DCR the first, CRD the last.")


class SpaceToBatchNDAttrs(Attrs, name="relay.attrs.SpaceToBatchNDAttrs"):
    """Attributes of nn.space_to_batch_nd."""

    block_shape = Field(INTS, (1, 1), "Extent of a block along each spatial axis.")
    paddings = Field(NESTED_INTS, doc="(before, after) for each spatial axis.")
    pad_value = Field(FLOAT, 0.0, "What is put into the padding.")


class BatchToSpaceNDAttrs(Attrs, name="relay.attrs.BatchToSpaceNDAttrs"):
    """Attributes of nn.batch_to_space_nd."""

    block_shape = Field(INTS, (1, 1), "Extent of a block along each spatial axis.")
    crops = Field(NESTED_INTS, doc="(before, after) to cut from each spatial axis.")


def _flatten_relation(args: tuple[Type, ...], attrs: Any, ctx: Any) -> Type | None:
    data = tensor(args[0], "nn.batch_flatten, data")
    if data is None:
        return None
    if not data.dims:
        raise TypeMismatchError("nn.batch_flatten: expected data with a batch axis, got a scalar")
    rest: Any = 1
    for d in data.dims[1:]:
        rest = mul(rest, d)
    return TensorType((data.dims[0], rest), data.dtype)


def _flatten_numpy(attrs: Any, args: list[np.ndarray], out_type: Any) -> np.ndarray:
    return args[0].reshape(args[0].shape[0], math.prod(args[0].shape[1:]))


def _exact(op: str, dim: Any, by: int, what: str) -> Any:
    if known(dim) and dim % by:
        raise TypeMismatchError(f"{op}: {what} of extent {dim} cannot be divided by {by}")
    return div(dim, by)


def _pixel_layout(op: str, attrs: Any) -> BijectiveLayout:
    if attrs.mode not in ("DCR", "CRD"):
        raise TypeMismatchError(f"{op}: mode must be DCR or CRD, got {attrs.mode!r}")
    if attrs.block_size < 1:
        raise TypeMismatchError(f"{op}: block_size must be positive, got {attrs.block_size}")
    return layout_map(op, "layout", attrs.layout, "NCHW")


def _depth_to_space_relation(args: tuple[Type, ...], attrs: Any, ctx: Any) -> Type | None:
    op, data = "nn.depth_to_space", tensor(args[0], "nn.depth_to_space, data")
    if data is None:
        return None
    mapping, b = _pixel_layout(op, attrs), attrs.block_size
    n, c, h, w = mapping.forward_shape(data.dims)
    return TensorType(mapping.backward_shape((n, _exact(op, c, b * b, "the channel axis"), mul(h, b), mul(w, b))), data.dtype)


def _space_to_depth_relation(args: tuple[Type, ...], attrs: Any, ctx: Any) -> Type | None:
    op, data = "nn.space_to_depth", tensor(args[0], "nn.space_to_depth, data")
    if data is None:
        return None
    mapping, b = _pixel_layout(op, attrs), attrs.block_size
    n, c, h, w = mapping.forward_shape(data.dims)
    out = (n, mul(c, b * b), _exact(op, h, b, "the height"), _exact(op, w, b, "the width"))
    return TensorType(mapping.backward_shape(out), data.dtype)


def _depth_to_space_numpy(attrs: Any, args: list[np.ndarray], out_type: Any) -> np.ndarray:
    x, b = convert_layout(args[0], attrs.layout, "NCHW"), attrs.block_size
    n, c, h, w = x.shape
    if attrs.mode == "DCR":
        x = x.reshape(n, b, b, c // (b * b), h, w).transpose(0, 3, 4, 1, 5, 2)
    else:
        x = x.reshape(n, c // (b * b), b, b, h, w).transpose(0, 1, 4, 2, 5, 3)
    return convert_layout(x.reshape(n, c // (b * b), h * b, w * b), "NCHW", attrs.layout)


def _space_to_depth_numpy(attrs: Any, args: list[np.ndarray], out_type: Any) -> np.ndarray:
    x, b = convert_layout(args[0], attrs.layout, "NCHW"), attrs.block_size
    n, c, h, w = x.shape
    x = x.reshape(n, c, h // b, b, w // b, b)
    order = (0, 3, 5, 1, 2, 4) if attrs.mode == "DCR" else (0, 1, 3, 5, 2, 4)
    return convert_layout(x.transpose(order).reshape(n, c * b * b, h // b, w // b), "NCHW", attrs.layout)


def _check_blocks(op: str, data: TensorType, blocks: Sequence[int], pairs: Sequence[Any], name: str) -> None:
    if len(pairs) != len(blocks) or any(not isinstance(p, tuple) or len(p) != 2 for p in pairs):
        raise TypeMismatchError(f"{op}: {name} must be one pair for each of the {len(blocks)} block extents, got {list(pairs)}")
    if len(blocks) >= len(data.dims) or any(b < 1 for b in blocks):
        raise TypeMismatchError(f"{op}: block_shape {list(blocks)} does not fit shape {shown(data.dims)}")


def _to_batch_relation(args: tuple[Type, ...], attrs: Any, ctx: Any) -> Type | None:
    op, data = "nn.space_to_batch_nd", tensor(args[0], "nn.space_to_batch_nd, data")
    if data is None:
        return None
    _check_blocks(op, data, attrs.block_shape, attrs.paddings, "paddings")
    dims = [mul(data.dims[0], math.prod(attrs.block_shape)), *data.dims[1:]]
    for i, (block, (before, after)) in enumerate(zip(attrs.block_shape, attrs.paddings), 1):
        dims[i] = _exact(op, add(dims[i], before + after), block, f"padded axis {i}")
    return TensorType(dims, data.dtype)


def _to_batch_numpy(attrs: Any, args: list[np.ndarray], out_type: Any) -> np.ndarray:
    blocks, m = [int(b) for b in attrs.block_shape], len(attrs.block_shape)
    rest = args[0].ndim - 1 - m
    x = pad(args[0], [(0, 0), *[tuple(map(int, p)) for p in attrs.paddings], *[(0, 0)] * rest], attrs.pad_value)
    split = [x.shape[0]]
    for extent, b in zip(x.shape[1:], blocks):
        split += [extent // b, b]
    split += x.shape[1 + m:]
    inner, outer = [2 + 2 * i for i in range(m)], [1 + 2 * i for i in range(m)]
    order = [*inner, 0, *outer, *range(1 + 2 * m, len(split))]
    return x.reshape(split).transpose(order).reshape(out_type.concrete_shape)


def _to_space_relation(args: tuple[Type, ...], attrs: Any, ctx: Any) -> Type | None:
    op, data = "nn.batch_to_space_nd", tensor(args[0], "nn.batch_to_space_nd, data")
    if data is None:
        return None
    _check_blocks(op, data, attrs.block_shape, attrs.crops, "crops")
    dims = [_exact(op, data.dims[0], math.prod(attrs.block_shape), "the batch axis"), *data.dims[1:]]
    for i, (block, (before, after)) in enumerate(zip(attrs.block_shape, attrs.crops), 1):
        dims[i] = add(mul(dims[i], block), -(before + after))
        if known(dims[i]) and dims[i] < 0:
            raise TypeMismatchError(f"{op}: crops {(before, after)} cut more than axis {i} has")
    return TensorType(dims, data.dtype)


def _to_space_numpy(attrs: Any, args: list[np.ndarray], out_type: Any) -> np.ndarray:
    x, blocks, m = args[0], [int(b) for b in attrs.block_shape], len(attrs.block_shape)
    batch = x.shape[0] // math.prod(blocks)
    x = x.reshape(*blocks, batch, *x.shape[1:])
    order = [m]
    for i in range(m):
        order += [m + 1 + i, i]
    x = x.transpose([*order, *range(2 * m + 1, x.ndim)])
    x = x.reshape(batch, *[args[0].shape[1 + i] * b for i, b in enumerate(blocks)], *args[0].shape[1 + m:])
    cut = [slice(int(b), x.shape[i] - int(a)) for i, (b, a) in enumerate(attrs.crops, 1)]
    return x[(slice(None), *cut)]


declare("nn.batch_flatten", relation=_flatten_relation, pattern=OpPattern.INJECTIVE, numpy=_flatten_numpy, level=2, TReshapeOp=True,
        doc="All axes but the first made one.")
declare("nn.depth_to_space", attrs=SubPixelAttrs, relation=_depth_to_space_relation, pattern=OpPattern.INJECTIVE,
        numpy=_depth_to_space_numpy, level=5, doc="Channels to squares of pixels.")
declare("nn.space_to_depth", attrs=SubPixelAttrs, relation=_space_to_depth_relation, pattern=OpPattern.INJECTIVE,
        numpy=_space_to_depth_numpy, level=5, doc="Squares of pixels to channels.")
declare("nn.space_to_batch_nd", attrs=SpaceToBatchNDAttrs, relation=_to_batch_relation, pattern=OpPattern.INJECTIVE,
        numpy=_to_batch_numpy, level=5, doc="Blocks of the spatial axes to the batch axis.")
declare("nn.batch_to_space_nd", attrs=BatchToSpaceNDAttrs, relation=_to_space_relation, pattern=OpPattern.INJECTIVE,
        numpy=_to_space_numpy, level=5, doc="The batch axis to blocks of the spatial axes.")


def batch_flatten(data: RelayExpr) -> Call:
    """``data`` as a matrix: every axis but the first made one."""
    return Call(Op.get("nn.batch_flatten"), [data])


def depth_to_space(data: RelayExpr, block_size: int, layout: str = "NCHW", mode: str = "DCR") -> Call:
    """Turns blocks of ``block_size²`` channels into squares of pixels."""
    return Call(Op.get("nn.depth_to_space"), [data], SubPixelAttrs(block_size=block_size, layout=layout, mode=mode))


def space_to_depth(data: RelayExpr, block_size: int, layout: str = "NCHW") -> Call:
    """Turns squares of pixels into channels."""
    return Call(Op.get("nn.space_to_depth"), [data], SubPixelAttrs(block_size=block_size, layout=layout))


def space_to_batch_nd(data: RelayExpr, block_shape: Any, paddings: Any, pad_value: float = 0) -> Call:
    """Divides the spatial axes (those after the first), padded, into blocks, and makes the batch of them."""
    attrs = SpaceToBatchNDAttrs(block_shape=block_shape, paddings=paddings, pad_value=pad_value)
    return Call(Op.get("nn.space_to_batch_nd"), [data], attrs)


def batch_to_space_nd(data: RelayExpr, block_shape: Any, crops: Any) -> Call:
    """The inverse of :func:`space_to_batch_nd`."""
    return Call(Op.get("nn.batch_to_space_nd"), [data], BatchToSpaceNDAttrs(block_shape=block_shape, crops=crops))
