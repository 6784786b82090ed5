"""Operators that repeat elements, undo that, or choose between tensors: broadcast_to, tile, repeat, collapse_sum, where."""
from __future__ import annotations

from typing import Any

import numpy as np

from ....ir.attrs import INT, OPT_INTS, Attrs, Field
from ....ir.expr import Any as AnyDim, RelayExpr
from ....ir.op import Op, OpPattern
from ....ir.type import TensorType, Type
from ....support.errors import TypeMismatchError
from ...expr import Call, Constant, const
from ..attrs_common import InitOpAttrs
from ..registry import declare
from .common import (Dim, Dims, as_int_list, broadcast_many, is_dynamic, known, normalize_axis, require_integer, show,
                     tensor, tensors)


class TileAttrs(Attrs, name="relay.attrs.TileAttrs"):
    """Attributes of tile."""

    reps = Field(OPT_INTS, None, "How often the tensor is repeated along each axis.")


class RepeatAttrs(Attrs, name="relay.attrs.RepeatAttrs"):
    """Attributes of repeat."""

    repeats = Field(INT, doc="How often each element is repeated.")
    axis = Field(INT, doc="The axis along which elements are repeated.")


# ---- broadcast_to ----------------------------------------------------------------------------------------------------

def _fits(dims: Dims, target: Dims) -> None:
    """TypeMismatchError unless a tensor of shape ``dims`` broadcasts to exactly ``target``."""
    result = broadcast_many((dims, target))
    if len(result) != len(target) or any(known(a) and known(b) and a != b for a, b in zip(result, target)):
        raise TypeMismatchError(f"a tensor of shape {show(dims)} does not broadcast to {show(target)}")


def _broadcast_to_rel(args: tuple[Type, ...], attrs: InitOpAttrs, ctx: Any) -> Type | None:
    data = tensor(args[0], "data")
    if data is None:
        return None
    _fits(data.dims, attrs.shape or ())
    return TensorType(attrs.shape or (), data.dtype)


def _broadcast_to_like_rel(args: tuple[Type, ...], attrs: Any, ctx: Any) -> Type | None:
    types = tensors(args, ("data", "broadcast_type"))
    if types is None:
        return None
    _fits(types[0].dims, types[1].dims)
    return TensorType(types[1].dims, types[0].dtype)


def _broadcast_to_numpy(attrs: InitOpAttrs, args: list[np.ndarray], out_type: Type) -> np.ndarray:
    return np.broadcast_to(args[0], [int(d) for d in attrs.shape or ()]).copy()


def _broadcast_to_like_numpy(attrs: Any, args: list[np.ndarray], out_type: Type) -> np.ndarray:
    return np.broadcast_to(args[0], args[1].shape).copy()


# ---- collapse_sum ----------------------------------------------------------------------------------------------------

def _collapse_sum_like_rel(args: tuple[Type, ...], attrs: Any, ctx: Any) -> Type | None:
    types = tensors(args, ("data", "collapse_type"))
    if types is None:
        return None
    _fits(types[1].dims, types[0].dims)
    return TensorType(types[1].dims, types[0].dtype)


def _collapse_sum_to_rel(args: tuple[Type, ...], attrs: InitOpAttrs, ctx: Any) -> Type | None:
    types = tensors(args, ("data", "shape"))
    if types is None:
        return None
    data, shape = types
    require_integer("shape", shape)
    if len(shape.dims) != 1 or not known(shape.dims[0]):
        raise TypeMismatchError(f"shape must be a vector of known length, got shape {show(shape.dims)}")
    dims = attrs.shape if attrs.shape is not None else [AnyDim() for _ in range(shape.dims[0])]
    _fits(dims, data.dims)
    return TensorType(dims, data.dtype)


def collapse_sum(data: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """Sums ``data`` over the axes along which a tensor of ``shape`` would be broadcast to it."""
    lead = data.ndim - len(shape)
    axes = tuple(range(lead)) + tuple(i + lead for i, n in enumerate(shape) if n == 1 and data.shape[i + lead] != 1)
    return data.sum(axis=axes, dtype=data.dtype).reshape(shape) if axes else data.copy()


def _collapse_sum_like_numpy(attrs: Any, args: list[np.ndarray], out_type: Type) -> np.ndarray:
    return collapse_sum(args[0], args[1].shape)


def _collapse_sum_to_numpy(attrs: InitOpAttrs, args: list[np.ndarray], out_type: Type) -> np.ndarray:
    return collapse_sum(args[0], tuple(int(v) for v in args[1]))


# ---- tile, repeat, where ---------------------------------------------------------------------------------------------

def tile_dims(dims: Dims, reps: Any) -> list[Dim]:
    """The shape of ``tile``: both shapes are filled up with ones on the left."""
    counts = [int(r) for r in reps or ()]
    if any(r < 0 for r in counts):
        raise TypeMismatchError(f"repetitions must be at least 0, got {tuple(counts)}")
    n = max(len(dims), len(counts))
    sizes, counts = [1] * (n - len(dims)) + list(dims), [1] * (n - len(counts)) + counts
    return [d * r if known(d) else d if r == 1 else AnyDim() for d, r in zip(sizes, counts)]


def _tile_rel(args: tuple[Type, ...], attrs: TileAttrs, ctx: Any) -> Type | None:
    data = tensor(args[0], "data")
    return data and TensorType(tile_dims(data.dims, attrs.reps), data.dtype)


def _tile_numpy(attrs: TileAttrs, args: list[np.ndarray], out_type: Type) -> np.ndarray:
    return np.tile(args[0], [int(r) for r in attrs.reps or ()])


def _repeat_rel(args: tuple[Type, ...], attrs: RepeatAttrs, ctx: Any) -> Type | None:
    data = tensor(args[0], "data")
    if data is None:
        return None
    if attrs.repeats < 0:
        raise TypeMismatchError(f"repeats must be at least 0, got {attrs.repeats}")
    axis = normalize_axis(attrs.axis, len(data.dims))
    dims = list(data.dims)
    dims[axis] = dims[axis] * attrs.repeats if known(dims[axis]) else dims[axis] if attrs.repeats == 1 else AnyDim()
    return TensorType(dims, data.dtype)


def _repeat_numpy(attrs: RepeatAttrs, args: list[np.ndarray], out_type: Type) -> np.ndarray:
    return np.repeat(args[0], attrs.repeats, axis=attrs.axis)


def _where_rel(args: tuple[Type, ...], attrs: Any, ctx: Any) -> Type | None:
    types = tensors(args, ("condition", "x", "y"))
    if types is None:
        return None
    condition, x, y = types
    if x.dtype != y.dtype:
        raise TypeMismatchError(f"x and y must have one dtype, got {x.dtype} and {y.dtype}")
    return TensorType(broadcast_many((condition.dims, x.dims, y.dims)), x.dtype)


def _where_numpy(attrs: Any, args: list[np.ndarray], out_type: Type) -> np.ndarray:
    return np.where(args[0] != 0, args[1], args[2])


declare("broadcast_to", attrs=InitOpAttrs, relation=_broadcast_to_rel, pattern=OpPattern.BROADCAST, numpy=_broadcast_to_numpy,
        level=4, doc="Repeats the data to fill a given shape, by numpy's rule.")
declare("broadcast_to_like", inputs=("data", "broadcast_type"), relation=_broadcast_to_like_rel, pattern=OpPattern.BROADCAST,
        numpy=_broadcast_to_like_numpy, level=10, doc="Repeats the data to fill the shape of another tensor.")
declare("collapse_sum_like", inputs=("data", "collapse_type"), relation=_collapse_sum_like_rel, pattern=OpPattern.COMM_REDUCE,
        numpy=_collapse_sum_like_numpy, level=10, doc="Sums over the axes along which another tensor would be broadcast to this one.")
declare("collapse_sum_to", inputs=("data", "shape"), attrs=InitOpAttrs, relation=_collapse_sum_to_rel, pattern=OpPattern.COMM_REDUCE,
        numpy=_collapse_sum_to_numpy, level=4, doc="Sums over the axes along which a tensor of a given shape would be broadcast to this one.")
declare("tile", attrs=TileAttrs, relation=_tile_rel, pattern=OpPattern.BROADCAST, numpy=_tile_numpy, level=3,
        doc="Repeats a whole tensor along its axes.")
declare("repeat", attrs=RepeatAttrs, relation=_repeat_rel, pattern=OpPattern.BROADCAST, numpy=_repeat_numpy, level=3,
        doc="Repeats each element along an axis.")
declare("where", inputs=("condition", "x", "y"), relation=_where_rel, pattern=OpPattern.BROADCAST, numpy=_where_numpy, level=4,
        doc="x where the condition is not 0, else y; all three are broadcast together.")


def broadcast_to(data: RelayExpr, shape: Any) -> Call:
    """``data`` repeated to fill ``shape``: an int, a list, a constant, or an expression."""
    if is_dynamic(shape):
        from ..dyn.transform import broadcast_to as dyn_broadcast_to

        return dyn_broadcast_to(data, shape)
    return Call(Op.get("broadcast_to"), [data], InitOpAttrs(shape=as_int_list("broadcast_to", "shape", shape)))


def broadcast_to_like(data: RelayExpr, broadcast_type: RelayExpr) -> Call:
    """``data`` repeated to fill the shape of ``broadcast_type``."""
    return Call(Op.get("broadcast_to_like"), [data, broadcast_type])


def collapse_sum_like(data: RelayExpr, collapse_type: RelayExpr) -> Call:
    """``data`` summed to the shape of ``collapse_type``: what undoes a broadcast in a gradient."""
    return Call(Op.get("collapse_sum_like"), [data, collapse_type])


def collapse_sum_to(data: RelayExpr, shape: Any) -> Call:
    """``data`` summed to ``shape``: a list or an expression."""
    if isinstance(shape, (list, tuple)):
        shape = const([int(v) for v in shape], "int32")
    static = as_int_list("collapse_sum_to", "shape", shape) if isinstance(shape, Constant) else None
    return Call(Op.get("collapse_sum_to"), [data, shape], InitOpAttrs(shape=static))


def tile(data: RelayExpr, reps: Any) -> Call:
    """``data`` repeated ``reps`` times along each axis: a list, a constant, or an expression."""
    if is_dynamic(reps):
        from ..dyn.transform import tile as dyn_tile

        return dyn_tile(data, reps)
    return Call(Op.get("tile"), [data], TileAttrs(reps=as_int_list("tile", "reps", reps)))


def repeat(data: RelayExpr, repeats: int, axis: int) -> Call:
    """Each element of ``data`` repeated ``repeats`` times along ``axis``."""
    return Call(Op.get("repeat"), [data], RepeatAttrs(repeats=int(repeats), axis=int(axis)))


def where(condition: RelayExpr, x: RelayExpr, y: RelayExpr) -> Call:
    """``x`` where ``condition`` is not 0, else ``y``; the three are broadcast together."""
    return Call(Op.get("where"), [condition, x, y])


__all__ = ["TileAttrs", "RepeatAttrs", "broadcast_to", "broadcast_to_like", "collapse_sum_like", "collapse_sum_to", "tile", "repeat",
           "where"]
