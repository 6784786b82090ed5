"""Operators that pick elements by index: take, gather, gather_nd, adv_index, one_hot, unravel_index.

Except where an operator has a ``mode``, a negative index counts from the end, and an index past the end is the caller's
mistake.
"""
from __future__ import annotations

from typing import Any

import numpy as np

from ....ir.attrs import INT, OPT_INT, Attrs, Field
from ....ir.expr import RelayExpr
from ....ir.op import Op, OpPattern
from ....ir.type import TensorType, Type
from ....support.errors import ArgumentError, TypeMismatchError
from ...expr import Call
from ..registry import declare
from .common import (Dim, Dims, as_tuple, broadcast_many, choice, constant_ints, dtype_field, is_dynamic, known, normalize_axis,
                     product, require_integer, same_dim, show, tensors, tuple_of_tensors, wrap_negative)


class TakeAttrs(Attrs, name="relay.attrs.TakeAttrs"):
    """Attributes of take."""

    batch_dims = Field(INT, 0, "How many leading dimensions data and indices share.")
    axis = Field(OPT_INT, None, "The axis that is indexed; None: the flattened data.")
    mode = Field(choice("clip", "wrap", "fast"), "clip", "Indices out of range: clip to the range, wrap around, or (fast) not expected.")


class GatherAttrs(Attrs, name="relay.attrs.GatherAttrs"):
    """Attributes of gather."""

    axis = Field(INT, doc="The axis that is indexed.")


class GatherNDAttrs(Attrs, name="relay.attrs.GatherNDAttrs"):
    """Attributes of gather_nd."""

    batch_dims = Field(INT, 0, "How many leading dimensions data and indices share.")
    index_rank = Field(OPT_INT, None, "The number of axes indexed, where the first dimension of indices is not known.")


class OneHotAttrs(Attrs, name="relay.attrs.OneHotAttrs"):
    """Attributes of one_hot."""

    depth = Field(INT, 1, "The size of the new axis.")
    axis = Field(INT, -1, "Where the new axis lies in the result.")
    dtype = dtype_field("The result's data type; empty: that of on_value.")


# ---- take ------------------------------------------------------------------------------------------------------------

def take_layout(data_ndim: int, indices_ndim: int, attrs: TakeAttrs) -> tuple[int, int]:
    """(axis, batch_dims), both counted from the front; TypeMismatchError when they do not fit the ranks."""
    axis = normalize_axis(int(attrs.axis), data_ndim)
    batch = int(attrs.batch_dims) + (indices_ndim if attrs.batch_dims < 0 else 0)
    if not 0 <= batch <= min(axis, indices_ndim):
        raise TypeMismatchError(f"batch_dims={attrs.batch_dims} must be at most axis={axis} and the rank of indices, {indices_ndim}")
    return axis, batch


def _take_rel(args: tuple[Type, ...], attrs: TakeAttrs, ctx: Any) -> Type | None:
    types = tensors(args, ("data", "indices"))
    if types is None:
        return None
    data, indices = types
    require_integer("indices", indices)
    if attrs.axis is None:
        need_elements(product(data.dims), indices.dims)
        return TensorType(indices.dims, data.dtype)
    axis, batch = take_layout(len(data.dims), len(indices.dims), attrs)
    need_elements(data.dims[axis], indices.dims)
    lead = [same_dim(f"batch dimension {i} of indices", data.dims[i], indices.dims[i]) for i in range(batch)]
    return TensorType([*lead, *data.dims[batch:axis], *indices.dims[batch:], *data.dims[axis + 1:]], data.dtype)


def need_elements(size: Dim, indices: Dims) -> None:
    """TypeMismatchError for indices (of that shape) into an axis without elements."""
    some = all(known(d) and d > 0 for d in indices)
    if known(size) and size == 0 and some:
        raise TypeMismatchError(f"indices of shape {show(indices)} into an axis without elements")


def _bounded(indices: np.ndarray, size: int, mode: str) -> np.ndarray:
    wide = indices.astype(np.int64)
    return wide % size if mode == "wrap" and size else np.clip(wide, 0, max(size - 1, 0))


def _take_numpy(attrs: TakeAttrs, args: list[np.ndarray], out_type: Type) -> np.ndarray:
    data, indices = args
    if attrs.axis is None:
        return data.reshape(-1)[_bounded(indices, data.size, attrs.mode)]
    axis, batch = take_layout(data.ndim, indices.ndim, attrs)
    indices = _bounded(indices, data.shape[axis], attrs.mode)
    if not batch:
        return np.take(data, indices, axis=axis)
    outer = data.shape[:batch]
    flat = data.reshape(-1, *data.shape[batch:])
    picked = [np.take(d, i, axis=axis - batch) for d, i in zip(flat, indices.reshape(-1, *indices.shape[batch:]))]
    shape = (*outer, *data.shape[batch:axis], *indices.shape[batch:], *data.shape[axis + 1:])
    return np.stack(picked).reshape(shape) if picked else np.zeros(shape, data.dtype)


# ---- gather, gather_nd, adv_index ------------------------------------------------------------------------------------

def _gather_rel(args: tuple[Type, ...], attrs: GatherAttrs, ctx: Any) -> Type | None:
    types = tensors(args, ("data", "indices"))
    if types is None:
        return None
    data, indices = types
    require_integer("indices", indices)
    axis = normalize_axis(attrs.axis, len(data.dims))
    if len(indices.dims) != len(data.dims):
        raise TypeMismatchError(f"indices must have the rank of data, {len(data.dims)}, got shape {show(indices.dims)}")
    for i, (d, n) in enumerate(zip(data.dims, indices.dims)):
        if i != axis and known(d) and known(n) and n > d:
            raise TypeMismatchError(f"dimension {i} of indices, {n}, is larger than that of data, {d}")
    need_elements(data.dims[axis], indices.dims)
    return TensorType(indices.dims, data.dtype)


def _gather_numpy(attrs: GatherAttrs, args: list[np.ndarray], out_type: Type) -> np.ndarray:
    data, indices = args
    axis = normalize_axis(attrs.axis, data.ndim)
    where = list(np.ogrid[tuple(slice(0, n) for n in indices.shape)])
    where[axis] = wrap_negative(indices, data.shape[axis])
    return data[tuple(where)]


def _gather_nd_rel(args: tuple[Type, ...], attrs: GatherNDAttrs, ctx: Any) -> Type | None:
    types = tensors(args, ("data", "indices"))
    if types is None:
        return None
    data, indices = types
    require_integer("indices", indices)
    depth, batch = index_depth(data, indices, attrs.index_rank), int(attrs.batch_dims)
    if batch + depth > len(data.dims) or batch > len(indices.dims) - 1:
        raise TypeMismatchError(f"{depth} indexed axes after batch_dims={batch} do not fit data of shape {show(data.dims)}")
    out = list(indices.dims[1:])
    for i in range(batch):
        out[i] = same_dim(f"batch dimension {i} of indices", data.dims[i], out[i])
    for d in data.dims[batch:batch + depth]:
        need_elements(d, indices.dims[1:])
    return TensorType([*out, *data.dims[batch + depth:]], data.dtype)


def index_depth(data: TensorType, indices: TensorType, index_rank: int | None = None) -> int:
    """How many axes an index tensor of shape (M, …) indexes: M; TypeMismatchError unless it is known and fits."""
    if not indices.dims:
        raise TypeMismatchError("indices must have at least rank 1")
    depth = indices.dims[0] if known(indices.dims[0]) else index_rank
    if depth is None:
        raise TypeMismatchError(f"the first dimension of indices, the number of indexed axes, must be known; got {show(indices.dims)}")
    if depth > len(data.dims):
        raise TypeMismatchError(f"indices for {depth} axes into data of rank {len(data.dims)}")
    return int(depth)


def _gather_nd_numpy(attrs: GatherNDAttrs, args: list[np.ndarray], out_type: Type) -> np.ndarray:
    data, indices = args
    batch, outer = int(attrs.batch_dims), indices.shape[1:]
    grid = np.ogrid[tuple(slice(0, n) for n in outer)]
    where = [grid[i] for i in range(batch)]
    where += [wrap_negative(ix, data.shape[batch + i]) for i, ix in enumerate(indices)]
    return data[tuple(where)] if where else np.broadcast_to(data, (*outer, *data.shape)).copy()


def _adv_index_rel(args: tuple[Type, ...], attrs: Any, ctx: Any) -> Type | None:
    types = tuple_of_tensors(args[0])
    if types is None:
        return None
    if len(types) < 2 or len(types) - 1 > len(types[0].dims):
        raise TypeMismatchError(f"data of rank {len(types[0].dims) if types else 0} takes between 1 and that many index tensors, got {len(types) - 1}")
    data, indices = types[0], types[1:]
    for i, t in enumerate(indices):
        require_integer(f"index {i}", t)
    places = broadcast_many([t.dims for t in indices])
    for d in data.dims[:len(indices)]:
        need_elements(d, places)
    return TensorType([*places, *data.dims[len(indices):]], data.dtype)


def _adv_index_numpy(attrs: Any, args: list[Any], out_type: Type) -> np.ndarray:
    data, *indices = args[0]
    return data[tuple(wrap_negative(ix, data.shape[i]) for i, ix in enumerate(indices))]


# ---- one_hot, unravel_index ------------------------------------------------------------------------------------------

def _one_hot_rel(args: tuple[Type, ...], attrs: OneHotAttrs, ctx: Any) -> Type | None:
    types = tensors(args, ("indices", "on_value", "off_value"))
    if types is None:
        return None
    require_integer("indices", types[0])
    for what, t in zip(("on_value", "off_value"), types[1:]):
        if t.dims:
            raise TypeMismatchError(f"{what} must be a scalar, got shape {show(t.dims)}")
    if attrs.depth < 0:
        raise TypeMismatchError(f"depth must be at least 0, got {attrs.depth}")
    dims = types[0].dims
    axis = normalize_axis(attrs.axis, len(dims) + 1)
    return TensorType([*dims[:axis], attrs.depth, *dims[axis:]], attrs.dtype or types[1].dtype)


def _one_hot_numpy(attrs: OneHotAttrs, args: list[np.ndarray], out_type: Type) -> np.ndarray:
    indices, on, off = args
    axis = normalize_axis(attrs.axis, indices.ndim + 1)
    steps = np.arange(attrs.depth).reshape([-1 if i == axis else 1 for i in range(indices.ndim + 1)])
    return np.where(np.expand_dims(indices, axis) == steps, on, off)


def _unravel_index_rel(args: tuple[Type, ...], attrs: Any, ctx: Any) -> Type | None:
    types = tensors(args, ("indices", "shape"))
    if types is None:
        return None
    for what, t in zip(("indices", "shape"), types):
        require_integer(what, t)
    if len(types[1].dims) != 1:
        raise TypeMismatchError(f"shape must be a vector, got shape {show(types[1].dims)}")
    return TensorType([types[1].dims[0], *types[0].dims], types[0].dtype)


def _unravel_index_numpy(attrs: Any, args: list[np.ndarray], out_type: Type) -> np.ndarray:
    rest, shape, parts = args[0].astype(np.int64), args[1].tolist(), []
    for i, n in reversed(list(enumerate(shape))):
        parts.append(rest % n if i else rest)
        rest = rest // n
    return np.stack(parts[::-1]) if parts else np.zeros((0, *args[0].shape), args[0].dtype)


declare("take", inputs=("data", "indices"), attrs=TakeAttrs, relation=_take_rel, pattern=OpPattern.INJECTIVE, numpy=_take_numpy,
        level=3, doc="Elements or slices of data along an axis, by index.")
declare("gather", inputs=("data", "indices"), attrs=GatherAttrs, relation=_gather_rel, pattern=OpPattern.INJECTIVE,
        numpy=_gather_numpy, level=3, doc="For each position, the element of data whose index along one axis is given.")
declare("gather_nd", inputs=("data", "indices"), attrs=GatherNDAttrs, relation=_gather_nd_rel, pattern=OpPattern.INJECTIVE,
        numpy=_gather_nd_numpy, level=3, doc="Elements or slices of data by index tuples, which lie along the first axis of indices.")
declare("adv_index", inputs=("inputs",), relation=_adv_index_rel, pattern=OpPattern.INJECTIVE, numpy=_adv_index_numpy, level=3,
        doc="Indexes the first axes of a tensor with one index tensor each, broadcast together.")
declare("one_hot", inputs=("indices", "on_value", "off_value"), attrs=OneHotAttrs, relation=_one_hot_rel,
        pattern=OpPattern.OUT_ELEMWISE_FUSABLE, numpy=_one_hot_numpy, level=10, doc="on_value where a new axis equals the index, else off_value.")
declare("unravel_index", inputs=("indices", "shape"), relation=_unravel_index_rel, pattern=OpPattern.INJECTIVE,
        numpy=_unravel_index_numpy, level=3, doc="Flat indices as index tuples of a tensor of the given shape.")


def take(data: RelayExpr, indices: RelayExpr, axis: int | None = None, batch_dims: int = 0, mode: str = "clip") -> Call:
    """Elements (``axis`` None: of the flattened data) or slices of ``data`` along ``axis``, by ``indices``.

    The first ``batch_dims`` dimensions of both go together.  Indices out of range: ``mode`` "clip" takes the nearest, "wrap"
    counts around, "fast" does not check.
    """
    return Call(Op.get("take"), [data, indices], TakeAttrs(batch_dims=int(batch_dims), axis=axis, mode=mode))


def gather(data: RelayExpr, axis: int, indices: RelayExpr) -> Call:
    """``out[i, j, k] = data[i, indices[i, j, k], k]`` (for ``axis`` 1): as numpy's ``take_along_axis``."""
    return Call(Op.get("gather"), [data, indices], GatherAttrs(axis=int(axis)))


def gather_nd(data: RelayExpr, indices: RelayExpr, batch_dims: int = 0, index_rank: int | None = None) -> Call:
    """``out[y…, x…] = data[indices[0, y…], …, indices[M-1, y…], x…]``; the first ``batch_dims`` dimensions of both go together."""
    return Call(Op.get("gather_nd"), [data, indices], GatherNDAttrs(batch_dims=int(batch_dims), index_rank=index_rank))


def adv_index(inputs: Any) -> Call:
    """``data[i0, i1, …]`` for ``inputs = [data, i0, i1, …]``, as in numpy."""
    return Call(Op.get("adv_index"), [as_tuple("adv_index", inputs)])


def one_hot(indices: RelayExpr, on_value: RelayExpr, off_value: RelayExpr, depth: Any, axis: int, dtype: str) -> Call:
    """A new axis of size ``depth`` at ``axis``, holding ``on_value`` at the index and ``off_value`` elsewhere.

    An index out of range gives ``off_value`` throughout.  ``depth`` may be an expression.
    """
    if is_dynamic(depth):
        from ..dyn.transform import one_hot as dyn_one_hot

        return dyn_one_hot(indices, on_value, off_value, depth, axis, dtype)
    depth = constant_ints(depth)
    if isinstance(depth, list):
        if len(depth) != 1:
            raise ArgumentError(f"one_hot: depth must be one number, got {depth}")
        depth = depth[0]
    return Call(Op.get("one_hot"), [indices, on_value, off_value], OneHotAttrs(depth=int(depth), axis=int(axis), dtype=dtype))


def unravel_index(indices: RelayExpr, shape: RelayExpr) -> Call:
    """Flat ``indices`` as index tuples, along a new first axis, of a tensor of shape ``shape`` (a vector)."""
    return Call(Op.get("unravel_index"), [indices, shape])


__all__ = ["TakeAttrs", "GatherAttrs", "GatherNDAttrs", "OneHotAttrs", "take", "gather", "gather_nd", "adv_index", "one_hot",
           "unravel_index"]
