"""Gather and scatter, one-hot, triangles, compress."""
from __future__ import annotations

from typing import Any

import numpy as np

from .....ir.expr import RelayExpr
from .....support.errors import ArgumentError, UnsupportedOpError
from ..context import NodeContext
from ..make import call, cast, const, constant_of, items, reshape, transpose, where
from ..registry import op

_REDUCTIONS = {"none": "update", "add": "add", "mul": "mul", "min": "min", "max": "max"}


def from_the_front(n: NodeContext, indices: RelayExpr, size: Any) -> RelayExpr:
    """Indices in which negative ones, which count from the end, have been made positive."""
    value = n.value(indices)
    if value is not None:
        if isinstance(size, int) and value.size and (value.min() < -size or value.max() >= size):
            raise ArgumentError(f"index {value.min() if value.min() < -size else value.max()} is out of range for an axis of size {size}")
        if not value.size or value.min() >= 0:
            return indices
        if isinstance(size, int):
            return constant_of(np.where(value < 0, value + size, value).astype(value.dtype))
    if n.dtype(indices).startswith("uint"):
        return indices
    dtype = n.dtype(indices)
    extent = const(size, dtype) if isinstance(size, int) else size
    return where(call("less", indices, const(0, dtype)), call("add", indices, extent), indices)


def size_of(n: NodeContext, data: RelayExpr, axis: int, dtype: str) -> Any:
    """The size of an axis: an int, or an expression of that dtype."""
    size = n.dims(data)[axis]
    if isinstance(size, int):
        return size
    return call("take", call("shape_of", data, dtype=dtype), const(axis, "int64"), axis=0, batch_dims=0, mode="clip")


def _inside(n: NodeContext, indices: RelayExpr, sizes: Any) -> RelayExpr:
    """Indices from the front, kept from pointing outside of the data: kernels read and write where they say."""
    dtype = n.dtype(indices)
    sizes = const(sizes, dtype) if isinstance(sizes, int) else sizes
    return call("maximum", call("minimum", indices, call("subtract", sizes, const(1, dtype))), const(0, dtype))


def _along_axis(n: NodeContext, data: RelayExpr, indices: RelayExpr, axis: int) -> RelayExpr:
    """Indices into one axis, from the front and inside of it."""
    size = size_of(n, data, axis, n.dtype(indices))
    found = from_the_front(n, indices, size)
    return found if n.value(indices) is not None and isinstance(size, int) else _inside(n, found, size)


@op("Gather")
def gather(n: NodeContext) -> RelayExpr:
    """Slices along an axis."""
    data, indices = n.needs(2)
    axis = n.axis(n.attr("axis", 0), n.rank(data))
    indices = from_the_front(n, indices, size_of(n, data, axis, n.dtype(indices)))
    safe = n.value(indices) is not None and isinstance(n.dims(data)[axis], int)
    return call("take", data, indices, axis=axis, batch_dims=0, mode="fast" if safe else "clip")


@op("GatherElements")
def gather_elements(n: NodeContext) -> RelayExpr:
    """One element per index."""
    data, indices = n.needs(2)
    axis = n.axis(n.attr("axis", 0), n.rank(data))
    return call("gather", data, _along_axis(n, data, indices, axis), axis=axis)


def _nd_indices(n: NodeContext, data: RelayExpr, indices: RelayExpr, first: int) -> tuple[RelayExpr, int]:
    """Index tuples from the front, with the axis that runs over a tuple's entries moved to the front."""
    depth = n.dims(indices)[-1]
    if not isinstance(depth, int):
        raise UnsupportedOpError("the last dimension of the indices must be known")
    sizes = n.dims(data)[first:first + depth]
    dtype, value = n.dtype(indices), n.value(indices)
    known = all(isinstance(s, int) for s in sizes)
    if known:
        lengths: RelayExpr = const(list(sizes), dtype)
    else:
        lengths = call("strided_slice", call("shape_of", data, dtype=dtype), begin=(first,), end=(first + depth,), strides=(1,), axes=(0,), slice_mode="end")
    if known and value is not None and value.size and ((value < -np.array(sizes)) | (value >= np.array(sizes))).any():
        raise ArgumentError(f"the indices point outside of dimensions of sizes {list(sizes)}")
    if not known or value is None or value.size and value.min() < 0:
        indices = where(call("less", indices, const(0, dtype)), call("add", indices, lengths), indices)
    if not known or value is None:
        indices = _inside(n, indices, lengths)
    rank = n.rank(indices)
    return transpose(indices, [rank - 1, *range(rank - 1)]), depth


@op("GatherND")
def gather_nd(n: NodeContext) -> RelayExpr:
    """Slices at index tuples, within each of the leading ``batch_dims``."""
    data, indices = n.needs(2)
    batch = n.attr("batch_dims", 0)
    moved, depth = _nd_indices(n, data, indices, batch)
    return call("gather_nd", data, moved, batch_dims=batch, index_rank=depth)


@op("Scatter", "ScatterElements")
def scatter_elements(n: NodeContext) -> RelayExpr:
    """A copy with elements replaced by (or combined with) updates."""
    data, indices, updates = n.needs(3)
    axis = n.axis(n.attr("axis", 0), n.rank(data))
    return call("scatter_elements", data, _along_axis(n, data, indices, axis), updates, axis=axis, reduction=_reduction(n))


def _reduction(n: NodeContext) -> str:
    name = n.attr("reduction", "none")
    if name not in _REDUCTIONS:
        raise ArgumentError(f"reduction must be one of {', '.join(_REDUCTIONS)}, got {name!r}")
    return _REDUCTIONS[name]


@op("ScatterND")
def scatter_nd(n: NodeContext) -> RelayExpr:
    """A copy with slices at index tuples replaced by (or combined with) updates."""
    data, indices, updates = n.needs(3)
    moved, _ = _nd_indices(n, data, indices, 0)
    return call("scatter_nd", data, moved, updates, mode=_reduction(n))


@op("TensorScatter")
def tensor_scatter(n: NodeContext) -> RelayExpr:
    """A cache with a run of entries along an axis replaced, from a place given per batch."""
    cache, update = n.needs(2)
    dims, news = n.static_dims(cache), n.static_dims(update, "the update")
    axis = n.axis(n.attr("axis", -2), len(dims))
    start = n.input(2) if n.input(2) is not None else const([0] * dims[0], "int64")
    steps = np.arange(news[axis]).reshape([-1 if i == axis else 1 for i in range(len(dims))])
    place = call("add", reshape(n.to(start, "int64"), [-1] + [1] * (len(dims) - 1)), const(steps, "int64"))
    if n.attr("mode", "linear") == "circular":
        place = call("floor_mod", place, const(dims[axis], "int64"))
    return call("scatter_elements", cache, call("broadcast_to", place, shape=news, dtype=""), update, axis=axis, reduction="update")


@op("OneHot")
def one_hot(n: NodeContext) -> RelayExpr:
    """A new axis with one value at the index and another elsewhere."""
    indices, _, values = n.needs(3)
    depth = int(n.scalar(1, 0, "depth"))
    rank, dtype = n.rank(indices), n.dtype(values)
    axis = n.axis(n.attr("axis", -1), rank + 1)
    indices = from_the_front(n, n.to(indices, "int64"), depth) if n.value(indices) is None else _wrapped(n, indices, depth)
    off, on = items(call("split", values, indices_or_sections=2, axis=0), 2)
    return call("one_hot", indices, reshape(on, []), reshape(off, []), depth=depth, axis=axis, dtype=dtype)


def _wrapped(n: NodeContext, indices: RelayExpr, depth: int) -> RelayExpr:
    value = n.value(indices).astype(np.int64)  # type: ignore[union-attr]
    return constant_of(np.where(value < 0, value + depth, value))


@op("Trilu")
def trilu(n: NodeContext) -> RelayExpr:
    """The upper or lower triangle of each matrix."""
    k = n.input(1)
    k = const(0, "int64") if k is None else reshape(k, [])
    x = n.need(0)
    found = call("trilu", cast(x, "uint8") if n.dtype(x) == "bool" else x, k, upper=bool(n.attr("upper", 1)))
    return cast(found, "bool") if n.dtype(x) == "bool" else found


@op("Compress")
def compress(n: NodeContext) -> RelayExpr:
    """Slices where a condition holds; how many there are must be known unless the condition is computed."""
    data, condition = n.needs(2)
    if "axis" in n.attributes:
        axis = n.axis(n.attr("axis"), n.rank(data))
    else:
        data, axis = reshape(data, [-1]), 0
    value = n.value(condition)
    if value is not None:
        return call("take", data, const(np.flatnonzero(value), "int64"), axis=axis, batch_dims=0, mode="fast")
    places = call("squeeze", call("argwhere", condition), axis=(1,))
    return call("take", data, places, axis=axis, batch_dims=0, mode="clip")


@op("NonZero")
def non_zero(n: NodeContext) -> RelayExpr:
    """The indices of elements that are not zero, one row per axis."""
    x = n.need(0)
    if n.rank(x) == 0:
        x = reshape(x, [1])
        return cast(transpose(call("argwhere", x), [1, 0]), "int64")
    return cast(transpose(call("argwhere", x), [1, 0]), "int64")
