"""Operators that change shapes: reshape, transpose, slice, split, concatenate, expand, tile, and shape queries."""
from __future__ import annotations

from typing import Any, Sequence

import numpy as np

from .....ir.expr import RelayExpr
from .....support.errors import ArgumentError
from ....op.dyn import transform as dyn
from ....op.type_relations import broadcast_shapes, product
from ..branches import Fork, Outcome
from ..context import NodeContext
from ..make import call, concat, const, expand_dims, reshape, slice_axis, split, squeeze, transpose
from ..registry import op
from .activation import flatten_at

_FAR = 2**63 - 1
_MOST_UNKNOWN = 3  # axes of unknown size that may be squeezed: each doubles the ways the rest of the model can go


# ---- reshape -----------------------------------------------------------------------------------------------------------

@op("Reshape")
def reshape_v1(n: NodeContext) -> RelayExpr:
    """The shape is an attribute."""
    return reshape(n.need(0), n.attr("shape"))


@op("Reshape", since=5)
def reshape_v5(n: NodeContext) -> RelayExpr:
    """The shape is an input; 0 copies a dimension unless ``allowzero``, -1 is worked out."""
    data, shape = n.needs(2)
    value = n.value(shape)
    if value is None:
        return _reshape_to(n, data, shape)
    sizes = [int(v) for v in value.reshape(-1)]
    if any(s < -1 for s in sizes):
        raise ArgumentError(f"the new shape {sizes} has a size below -1")
    return call("reshape", data, newshape=tuple(sizes), allowzero=bool(n.attr("allowzero", 0)))


def _reshape_to(n: NodeContext, data: RelayExpr, shape: RelayExpr) -> RelayExpr:
    """A reshape to a computed shape: static where all sizes but one are known or are dimensions of the data."""
    value, dims = n.builder.partial.get(shape), n.dims(data)
    if value is not None:
        sizes = [_size_or_copy(v, dims[i] if i < len(dims) else None) for i, v in enumerate(value)]
        if sizes.count(None) + sizes.count(-1) <= 1 and not any(isinstance(v, int) and v == 0 for v in value):
            return reshape(data, [-1 if s is None else s for s in sizes])
    return _told(dyn.reshape(data, shape, bool(n.attr("allowzero", 0))), value)


def _told(y: RelayExpr, value: Sequence[Any] | None) -> RelayExpr:
    """A tensor reshaped to a computed shape, with those of its sizes in its type that are numbers whatever the input."""
    sizes = [v if isinstance(v, int) and v > 0 else 0 for v in (() if value is None else value)]
    return reshape(y, sizes) if any(sizes) else y


def _size_or_copy(value: Any, dim: Any) -> int | None:
    if isinstance(value, int):
        return value
    return 0 if value is dim else None


@op("Flatten")
def flatten(n: NodeContext) -> RelayExpr:
    """A matrix: axes before ``axis`` by the rest."""
    x = n.need(0)
    rank = n.rank(x)
    axis = n.attr("axis", 1)
    if not -rank <= axis <= rank:
        raise ArgumentError(f"axis {axis} is out of range for {rank} dimensions")
    return flatten_at(n, x, axis + rank if axis < 0 else axis)


@op("Transpose")
def transpose_(n: NodeContext) -> RelayExpr:
    """Axes permuted; reversed by default."""
    rank = n.rank(n.need(0))
    axes = n.axes(n.attr("perm", list(range(rank))[::-1]), rank)
    if sorted(axes) != list(range(rank)):
        raise ArgumentError(f"perm {axes} is not an order of {rank} axes")
    return transpose(n.need(0), axes)


def _axes_of(n: NodeContext, since: int) -> list[int] | None:
    return n.known_ints(1, "axes") if n.version >= since else n.attr("axes", None)


@op("Squeeze")
def squeeze_(n: NodeContext) -> Outcome | RelayExpr:
    """Axes of size 1 removed: those named, or all."""
    x = n.need(0)
    axes = _axes_of(n, 13)
    return _squeeze_ones(n, x) if axes is None else squeeze(x, n.axes(axes, n.rank(x)))


def _squeeze_ones(n: NodeContext, x: RelayExpr) -> Outcome:
    """``x`` without all axes of size 1.  How many dimensions are left depends on sizes that only a running model knows."""
    dims = n.dims(x)
    unknown = [i for i, d in enumerate(dims) if not isinstance(d, int)]
    if len(unknown) > _MOST_UNKNOWN:
        n.static_dims(x)  # refuses it
    (shape,) = n.settled(call("shape_of", x, dtype="int64"))
    ways: dict[int, Outcome] = {}
    for ones in reversed(range(2 ** len(unknown))):  # bit i: whether the unknown axis i has size 1
        gone = [i for i, d in enumerate(dims) if isinstance(d, int) and d == 1] + [a for i, a in enumerate(unknown) if ones >> i & 1]
        ways[ones] = n.settled(squeeze(x, sorted(gone)))
    for i in reversed(range(len(unknown))):
        size = call("take", shape, const(unknown[i], "int64"), axis=0, batch_dims=0, mode="fast")
        (is_one,) = n.settled(call("equal", size, const(1, "int64")))
        ways = {low: Fork(is_one, ways[low | 1 << i], ways[low]) for low in range(1 << i)}
    return ways[0]


@op("Unsqueeze")
def unsqueeze(n: NodeContext) -> RelayExpr:
    """New axes of size 1, at places counted in the result."""
    x = n.need(0)
    axes = _axes_of(n, 13)
    if axes is None:
        raise ArgumentError("axes are missing")
    rank = n.rank(x) + len(axes)
    places = sorted(n.axes(axes, rank))
    if len(set(places)) != len(places):
        raise ArgumentError(f"axes {axes} name an axis twice")
    for place in places:
        x = expand_dims(x, place)
    return x


# ---- joining and cutting -----------------------------------------------------------------------------------------------

@op("Concat")
def concat_(n: NodeContext) -> RelayExpr:
    """Tensors joined along an axis; parts without elements are left out where that is sure."""
    parts = n.present()
    rank = max(n.rank(p) for p in parts)
    axis = n.axis(n.attr("axis", 1) if n.version < 4 else n.attr("axis"), rank)
    full = [p for p in parts if n.rank(p) == rank and not _is_empty_along(n.dims(p), axis)]
    return concat(full or parts[:1], axis)


def _is_empty_along(dims: Sequence[Any], axis: int) -> bool:
    return isinstance(dims[axis], int) and dims[axis] == 0


@op("Split")
def split_(n: NodeContext) -> list[RelayExpr]:
    """Parts along an axis: of given sizes, or as equal as can be."""
    x = n.need(0)
    axis = n.axis(n.attr("axis", 0), n.rank(x))
    sizes = n.known_ints(1, "split") if n.version >= 13 or n.input(1) is not None else n.attr("split", None)
    count = n.attr("num_outputs", len(n.outputs))
    if sizes is None:
        size = n.dims(x)[axis]
        if not isinstance(size, int):
            return split(x, count, axis)
        each = -(-size // count)
        sizes = [max(0, min(each, size - i * each)) for i in range(count)]
    if len(set(sizes)) == 1:
        return split(x, len(sizes), axis)
    return split(x, np.cumsum(sizes)[:-1], axis)


@op("Slice")
def slice_v1(n: NodeContext) -> RelayExpr:
    """Bounds are attributes."""
    starts, ends = n.attr("starts"), n.attr("ends")
    return _slice(n, starts, ends, n.attr("axes", None), None)


def _slice(n: NodeContext, starts: Sequence[int], ends: Sequence[int], axes: Sequence[int] | None,
           steps: Sequence[int] | None) -> RelayExpr:
    x = n.need(0)
    axes = n.axes(range(len(starts)) if axes is None else axes, n.rank(x))
    steps = [1] * len(axes) if steps is None else steps
    kept = [(b, e, s, a) for b, e, s, a in zip(starts, ends, steps, axes) if not (b == 0 and s == 1 and e >= 2**31 - 1)]
    if not kept:
        return x
    begin, end, strides, axes = zip(*kept)
    return call("strided_slice", x, begin=begin, end=end, strides=strides, axes=axes, slice_mode="end")


@op("Slice", since=10)
def slice_v10(n: NodeContext) -> RelayExpr:
    """Bounds are inputs, with steps."""
    values = [n.value(n.input(i)) for i in range(1, 5)]
    absent = [n.input(i) is None for i in range(1, 5)]
    if all(v is not None or a for v, a in zip(values, absent)) and not absent[0] and not absent[1]:
        starts, ends, axes, steps = (None if v is None else [int(i) for i in v.reshape(-1)] for v in values)
        return _slice(n, starts, ends, axes, steps)  # type: ignore[arg-type]
    return _dynamic_slice(n)


def _dynamic_slice(n: NodeContext) -> RelayExpr:
    x, starts, ends = n.needs(3)
    rank, (count, *_) = n.rank(x), n.static_dims(starts, "starts")
    axes = n.known_ints(3, "axes")
    axes = n.axes(range(count) if axes is None else axes, rank)
    static = _partial_slice(n, starts, ends, axes)
    if static is not None:
        return static
    dtype = n.dtype(starts)
    steps = n.input(4) if n.input(4) is not None else const([1] * count, dtype)
    whole = [const([v] * rank, dtype) for v in (0, np.iinfo(dtype).max, 1)]
    bounds = [call("scatter_elements", base, const(axes, "int64"), each, axis=0, reduction="update")
              for base, each in zip(whole, (starts, ends, steps))]
    return dyn.strided_slice(x, *bounds)


def _partial_slice(n: NodeContext, starts: RelayExpr, ends: RelayExpr, axes: list[int]) -> RelayExpr | None:
    """A slice that takes whole axes because its ends are the sizes of the data."""
    first, last = n.builder.partial.get(starts), n.builder.partial.get(ends)
    if first is None or last is None or n.input(4) is not None and n.value(n.input(4)) is None:
        return None
    dims = n.dims(n.need(0))
    last = [_FAR if last[i] is dims[a] else last[i] for i, a in enumerate(axes)]
    if not all(isinstance(v, int) for v in [*first, *last]):
        return None
    steps = n.value(n.input(4))
    return _slice(n, list(first), last, axes, None if steps is None else [int(s) for s in steps])


# ---- repeating -----------------------------------------------------------------------------------------------------------

@op("Expand")
def expand(n: NodeContext) -> RelayExpr:
    """Broadcast, both ways, with a shape."""
    x, shape = n.needs(2)
    value, dims = n.value(shape), n.dims(x)
    if value is None:
        return _expand_dynamic(n, x, shape)
    wanted = broadcast_shapes(dims, [int(v) for v in value.reshape(-1)])
    return broadcast_to(x, dims, wanted)


def broadcast_to(x: RelayExpr, dims: Sequence[Any], wanted: Sequence[Any]) -> RelayExpr:
    """``x`` of shape ``dims`` broadcast to a shape; itself when it has it."""
    if len(dims) == len(wanted) and all(a is b or isinstance(a, int) and isinstance(b, int) and a == b for a, b in zip(dims, wanted)):
        return x
    return call("broadcast_to", x, shape=tuple(wanted), dtype="") if all(isinstance(w, int) for w in wanted) else x


def _expand_dynamic(n: NodeContext, x: RelayExpr, shape: RelayExpr) -> RelayExpr:
    known, dims = n.builder.partial.get(shape), n.dims(x)
    if known is not None and len(known) <= len(dims) and all(
            v is d or isinstance(v, int) and v in (1, d if isinstance(d, int) else None) for v, d in zip(known[::-1], dims[::-1])):
        return x  # it has that shape already
    (rank,) = n.static_dims(shape, "the shape to expand to")
    if all(isinstance(d, int) and d == 1 for d in dims) and len(dims) <= rank:
        return dyn.broadcast_to(x, shape)
    ones = dyn.broadcast_to(n.like(1, x), shape)
    if n.dtype(x) == "bool":
        return call("logical_and", x, ones)
    return call("multiply", x, ones)


@op("Tile")
def tile_v1(n: NodeContext) -> RelayExpr:
    """One axis repeated."""
    rank = n.rank(n.need(0))
    tiles, axis = n.scalar(1, 1, "tiles"), n.axis(n.scalar(2, 0, "axis"), rank)
    return call("tile", n.need(0), reps=tuple(tiles if i == axis else 1 for i in range(rank)))


@op("Tile", since=6)
def tile_v6(n: NodeContext) -> RelayExpr:
    """Every axis repeated as often as an input says."""
    x, reps = n.needs(2)
    value = n.value(reps)
    if value is None:
        return dyn.tile(x, reps)
    counts = tuple(int(v) for v in value.reshape(-1))
    return x if all(c == 1 for c in counts) else call("tile", x, reps=counts)


# ---- queries -------------------------------------------------------------------------------------------------------------

@op("Shape")
def shape(n: NodeContext) -> RelayExpr:
    """The dimensions, or a range of them, as int64."""
    x = n.need(0)
    dims = n.dims(x)
    part = slice(n.attr("start", 0), n.attr("end", None))
    if all(isinstance(d, int) for d in dims[part]):
        return const(list(dims[part]), "int64")
    whole = call("shape_of", x, dtype="int64")
    begin, end, _ = part.indices(len(dims))
    return whole if (begin, end) == (0, len(dims)) else slice_axis(whole, 0, begin, end)


@op("Size")
def size(n: NodeContext) -> RelayExpr:
    """The number of elements."""
    total = product(n.dims(n.need(0)))
    return const(total, "int64") if isinstance(total, int) else call("ndarray_size", n.need(0), dtype="int64")


# ---- blocks --------------------------------------------------------------------------------------------------------------

@op("DepthToSpace")
def depth_to_space(n: NodeContext) -> RelayExpr:
    """Channels become blocks of pixels."""
    return call("nn.depth_to_space", n.need(0), block_size=n.attr("blocksize"), layout="NCHW", mode=n.attr("mode", "DCR"))


@op("SpaceToDepth")
def space_to_depth(n: NodeContext) -> RelayExpr:
    """Blocks of pixels become channels: the block's place is the outer part of a channel's number (DCR) or the inner one (CRD)."""
    x, block = n.need(0), n.attr("blocksize")
    if n.attr("mode", "DCR") == "CRD":
        batch, channels, height, width = n.static_dims(x)
        split_up = reshape(x, [batch, channels, height // block, block, width // block, block])
        return reshape(transpose(split_up, [0, 1, 3, 5, 2, 4]), [batch, channels * block * block, height // block, width // block])
    return call("nn.space_to_depth", n.need(0), block_size=n.attr("blocksize"), layout="NCHW")


@op("CenterCropPad")
def center_crop_pad(n: NodeContext) -> RelayExpr:
    """Each axis cut or padded with zeros around the middle, to a given size."""
    x, sizes = n.need(0), n.known_ints(1, "shape")
    dims = n.static_dims(x)
    axes = n.axes(n.attr("axes", range(len(dims))), len(dims))
    widths, begin, end = [(0, 0)] * len(dims), [0] * len(dims), list(dims)
    for axis, want in zip(axes, sizes or ()):
        more = want - dims[axis]
        if more >= 0:
            widths[axis] = (more // 2, more - more // 2)
        else:
            begin[axis] = -more // 2
            end[axis] = begin[axis] + want
    x = call("strided_slice", x, begin=begin, end=end, strides=[1] * len(dims), axes=list(range(len(dims))), slice_mode="end")
    return call("nn.pad", x, n.like(0, x), pad_width=tuple(widths), pad_mode="constant")


__all__ = ["broadcast_to"]
