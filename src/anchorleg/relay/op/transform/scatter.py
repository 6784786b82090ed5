"""Operators that write updates into a copy of a tensor at given indices: scatter_elements and scatter_nd.

Updates are applied in row-major order of their positions; where an index occurs twice, "update" keeps the last.  A
negative index counts from the end.
"""
from __future__ import annotations

from typing import Any, Callable

import numpy as np

from ....ir.attrs import INT, Attrs, Field
from ....ir.expr import RelayExpr
from ....ir.op import Op, OpPattern
from ....ir.type import TensorType, Type
from ....support.errors import TypeMismatchError
from ...expr import Call
from ..registry import declare
from .common import choice, known, normalize_axis, require_integer, same_dim, show, tensors, wrap_negative
from .index import index_depth, need_elements

_NAMES = ("data", "indices", "updates")
REDUCTIONS = ("update", "add", "mul", "mean", "min", "max")
MODES = ("update", "add", "mul", "min", "max")


class ScatterElementsAttrs(Attrs, name="relay.attrs.ScatterElementsAttrs"):
    """Attributes of scatter_elements."""

    axis = Field(INT, 0, "The axis that is indexed.")
    reduction = Field(choice(*REDUCTIONS), "update", "How an update is combined with what is there.")


class ScatterNDAttrs(Attrs, name="relay.attrs.ScatterNDAttrs"):
    """Attributes of scatter_nd."""

    mode = Field(choice(*MODES), "update", "How an update is combined with what is there.")


def _common(args: tuple[Type, ...]) -> tuple[TensorType, ...] | None:
    types = tensors(args, _NAMES)
    if types is None:
        return None
    require_integer("indices", types[1])
    if types[0].dtype != types[2].dtype:
        raise TypeMismatchError(f"data and updates must have one dtype, got {types[0].dtype} and {types[2].dtype}")
    return types


def _scatter_elements_rel(args: tuple[Type, ...], attrs: ScatterElementsAttrs, ctx: Any) -> Type | None:
    types = _common(args)
    if types is None:
        return None
    data, indices, updates = types
    axis = normalize_axis(attrs.axis, len(data.dims))
    need_elements(data.dims[axis], indices.dims)
    if not len(data.dims) == len(indices.dims) == len(updates.dims):
        raise TypeMismatchError(f"data, indices and updates must have one rank, got {show(data.dims)}, "
                                f"{show(indices.dims)} and {show(updates.dims)}")
    for i, (d, n, u) in enumerate(zip(data.dims, indices.dims, updates.dims)):
        n = same_dim(f"dimension {i} of updates", n, u)
        if i != axis and known(d) and known(n) and n > d:
            raise TypeMismatchError(f"dimension {i} of indices, {n}, is larger than that of data, {d}")
    return data


def _scatter_nd_rel(args: tuple[Type, ...], attrs: ScatterNDAttrs, ctx: Any) -> Type | None:
    types = _common(args)
    if types is None:
        return None
    data, indices, updates = types
    depth = index_depth(data, indices)
    for d in data.dims[:depth]:
        need_elements(d, indices.dims[1:])
    want = [*indices.dims[1:], *data.dims[depth:]]
    if len(want) != len(updates.dims):
        raise TypeMismatchError(f"updates must have shape {show(want)}, got {show(updates.dims)}")
    for i, (a, b) in enumerate(zip(want, updates.dims)):
        same_dim(f"dimension {i} of updates", a, b)
    return data


_COMBINE: dict[str, Callable[[np.ndarray, Any, np.ndarray], None]] = {
    "add": np.add.at, "mul": np.multiply.at, "min": np.minimum.at, "max": np.maximum.at,
}


def _combine(out: np.ndarray, where: tuple[Any, ...], updates: np.ndarray, how: str) -> np.ndarray:
    if how == "update":
        out[where] = updates
    elif how == "mean":
        return _mean(out, where, updates)
    elif out.dtype == np.bool_ and how in ("add", "mul"):
        (np.logical_or if how == "add" else np.logical_and).at(out, where, updates)
    else:
        _COMBINE[how](out, where, updates)
    return out


def _mean(out: np.ndarray, where: tuple[Any, ...], updates: np.ndarray) -> np.ndarray:
    """The mean of what is there and all its updates (integers are rounded down)."""
    count = np.ones(out.shape, np.int64)
    np.add.at(count, where, 1)
    total = out.copy()
    np.add.at(total, where, updates)
    return total // count.astype(out.dtype) if out.dtype.kind in "iu" else total / count.astype(out.dtype)


def _scatter_elements_numpy(attrs: ScatterElementsAttrs, args: list[np.ndarray], out_type: Type) -> np.ndarray:
    data, indices, updates = args
    axis = normalize_axis(attrs.axis, data.ndim)
    where = list(np.ogrid[tuple(slice(0, n) for n in indices.shape)])
    where[axis] = wrap_negative(indices, data.shape[axis])
    return _combine(data.copy(), tuple(where), updates, attrs.reduction)


def _scatter_nd_numpy(attrs: ScatterNDAttrs, args: list[np.ndarray], out_type: Type) -> np.ndarray:
    data, indices, updates = args
    where = tuple(wrap_negative(ix, data.shape[i]) for i, ix in enumerate(indices))
    if not where:  # no axis is indexed: every update hits all of data
        return _whole(data, updates.reshape(-1, *data.shape), attrs.mode)
    return _combine(data.copy(), where, updates, attrs.mode)


def _whole(data: np.ndarray, updates: np.ndarray, mode: str) -> np.ndarray:
    out = data[None].copy()
    for u in updates:
        out = _combine(out, (np.zeros(1, np.int64),), u[None], mode)
    return out[0]


declare("scatter_elements", inputs=_NAMES, attrs=ScatterElementsAttrs, relation=_scatter_elements_rel, pattern=OpPattern.OPAQUE,
        numpy=_scatter_elements_numpy, level=3, doc="Writes or combines updates into data, with one index along one axis for each.")
declare("scatter_nd", inputs=_NAMES, attrs=ScatterNDAttrs, relation=_scatter_nd_rel, pattern=OpPattern.OPAQUE,
        numpy=_scatter_nd_numpy, level=3, doc="Writes or combines updates into data by index tuples, which lie along the first axis of indices.")


def scatter_elements(data: RelayExpr, indices: RelayExpr, updates: RelayExpr, axis: int = 0, reduction: str = "update") -> Call:
    """``out[i, indices[i, j, k], k] ∘= updates[i, j, k]`` (for ``axis`` 1) on a copy of ``data``.

    ``reduction``: "update", "add", "mul", "mean" (of the old value and all updates), "min" or "max".
    """
    return Call(Op.get("scatter_elements"), [data, indices, updates], ScatterElementsAttrs(axis=int(axis), reduction=reduction))


def scatter(data: RelayExpr, indices: RelayExpr, updates: RelayExpr, axis: int = 0) -> Call:
    """Older name of :func:`scatter_elements` with reduction "update"."""
    return scatter_elements(data, indices, updates, axis, "update")


def scatter_add(data: RelayExpr, indices: RelayExpr, updates: RelayExpr, axis: int = 0) -> Call:
    """Older name of :func:`scatter_elements` with reduction "add"."""
    return scatter_elements(data, indices, updates, axis, "add")


def scatter_nd(data: RelayExpr, indices: RelayExpr, updates: RelayExpr, mode: str = "update") -> Call:
    """``out[indices[0, y…], …, indices[M-1, y…], x…] ∘= updates[y…, x…]`` on a copy of ``data``.

    ``mode``: "update", "add", "mul", "min" or "max".
    """
    return Call(Op.get("scatter_nd"), [data, indices, updates], ScatterNDAttrs(mode=mode))


__all__ = ["ScatterElementsAttrs", "ScatterNDAttrs", "scatter_elements", "scatter", "scatter_add", "scatter_nd"]
