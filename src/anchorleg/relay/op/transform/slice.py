"""Operators that cut a block out of a tensor, or write one into it: strided_slice, strided_set, slice_like."""
from __future__ import annotations

from typing import Any, NamedTuple, Sequence

import numpy as np

from ....ir.attrs import OPT_INTS, Attrs, Field
from ....ir.expr import Any as AnyDim, RelayExpr
from ....ir.op import Op, OpPattern
from ....ir.type import TensorType, Type
from ....support.errors import ArgumentError, TypeMismatchError
from ...expr import Call, const
from ..registry import declare
from .common import INDICES, Dim, Dims, choice, constant_ints, is_dynamic, known, normalize_axis, show, tensor, tensors


class StridedSliceAttrs(Attrs, name="relay.attrs.StridedSliceAttrs"):
    """Attributes of strided_slice; all lists are per sliced axis."""

    begin = Field(INDICES, None, "Where each slice begins; negative counts from the end.")
    end = Field(INDICES, None, "Where each slice ends, exclusive (or its size, by slice_mode).")
    strides = Field(INDICES, None, "The step of each slice; negative reverses. Missing ones are 1.")
    slice_mode = Field(choice("end", "size"), "end", "end: `end` holds ends; size: it holds sizes (-1: all that is left), strides do not count.")
    axes = Field(OPT_INTS, None, "The axes that are sliced; None: the first ones.")


class SliceLikeAttrs(Attrs, name="relay.attrs.SliceLikeAttrs"):
    """Attributes of slice_like."""

    axes = Field(OPT_INTS, None, "The axes cut to the other tensor's size; None or empty: all.")


class AxisSlice(NamedTuple):
    """One axis of a slice: its first element, the step, and how many elements."""

    begin: int
    stride: int
    size: int


def slice_axes(ndim: int, attrs: StridedSliceAttrs) -> list[tuple[int, int | None, int | None, int]]:
    """(axis, begin, end, stride) of each sliced axis, as written; ``size`` mode is left to :func:`resolve_axis`."""
    begin, end, strides = (list(v or ()) for v in (attrs.begin, attrs.end, attrs.strides))
    axes = None if attrs.axes is None else [normalize_axis(int(a), ndim, "axes") for a in attrs.axes]
    if axes is None:
        n = max(len(begin), len(end))
        axes = list(range(n))
        if n > ndim:
            raise TypeMismatchError(f"{n} axes are sliced, the tensor has {ndim}")
        begin, end = begin + [None] * (n - len(begin)), end + [None] * (n - len(end))
    elif len(begin) != len(axes) or len(end) != len(axes):
        raise TypeMismatchError(f"begin, end and axes must have one length, got {len(begin)}, {len(end)} and {len(axes)}")
    elif len(set(axes)) != len(axes):
        raise TypeMismatchError(f"axes {tuple(attrs.axes)} name an axis twice")
    strides = ([1 if s is None else s for s in strides] + [1] * len(axes))[:len(axes)]
    if 0 in strides:
        raise TypeMismatchError("a stride of 0")
    return list(zip(axes, begin, end, strides))


def resolve_axis(size: int, begin: int | None, end: int | None, stride: int, slice_mode: str) -> AxisSlice:
    """The slice of an axis of known size: negative positions count from the end, all are cut to the axis, as in Python."""
    if slice_mode == "size":
        stride = 1
        first = 0 if begin is None else begin + size if begin < 0 else begin
        end = None if end is None or end < 0 else first + end
        begin = first
    start, stop, step = slice(begin, end, stride).indices(size)
    return AxisSlice(start, step, max(0, -(-(stop - start) // step)))


def slice_plan(shape: Sequence[int], attrs: StridedSliceAttrs) -> list[AxisSlice]:
    """The slice of every axis of a tensor of known shape."""
    plan = [AxisSlice(0, 1, n) for n in shape]
    for axis, begin, end, stride in slice_axes(len(shape), attrs):
        plan[axis] = resolve_axis(shape[axis], begin, end, stride, attrs.slice_mode)
    return plan


_FAR = 2**31 - 1  # what exporters write for "to the end"


def _sliced_dim(dim: Dim, begin: int | None, end: int | None, stride: int, mode: str) -> Dim:
    if known(dim):
        return resolve_axis(dim, begin, end, stride, mode).size
    to_the_end = end is None or end >= _FAR or mode == "size" and end < 0
    return dim if begin in (None, 0) and to_the_end and (stride == 1 or mode == "size") else AnyDim()


def strided_slice_dims(dims: Dims, attrs: StridedSliceAttrs) -> list[Dim]:
    """The shape of a strided slice."""
    out = list(dims)
    for axis, begin, end, stride in slice_axes(len(dims), attrs):
        out[axis] = _sliced_dim(dims[axis], begin, end, stride, attrs.slice_mode)
    return out


def _strided_slice_rel(args: tuple[Type, ...], attrs: StridedSliceAttrs, ctx: Any) -> Type | None:
    data = tensor(args[0], "data")
    return data and TensorType(strided_slice_dims(data.dims, attrs), data.dtype)


def as_slices(plan: list[AxisSlice]) -> tuple[slice, ...]:
    """The plan as Python slices."""
    out = []
    for begin, stride, size in plan:
        stop = begin + stride * size
        out.append(slice(begin, None if stop < 0 else stop, stride) if size else slice(0, 0))
    return tuple(out)


def _strided_slice_numpy(attrs: StridedSliceAttrs, args: list[np.ndarray], out_type: Type) -> np.ndarray:
    return args[0][as_slices(slice_plan(args[0].shape, attrs))].copy()


# ---- strided_set -----------------------------------------------------------------------------------------------------

def _strided_set_rel(args: tuple[Type, ...], attrs: Any, ctx: Any) -> Type | None:
    types = tensors(args, ("data", "v", "begin", "end", "strides"))
    if types is None:
        return None
    data, v = types[:2]
    if data.dtype != v.dtype:
        raise TypeMismatchError(f"data and v must have one dtype, got {data.dtype} and {v.dtype}")
    for name, t in zip(("begin", "end", "strides"), types[2:]):
        if len(t.dims) != 1 or known(t.dims[0]) and t.dims[0] > len(data.dims):
            raise TypeMismatchError(f"{name} must be a vector of at most {len(data.dims)} numbers, got shape {show(t.dims)}")
    return data


def _strided_set_numpy(attrs: Any, args: list[np.ndarray], out_type: Type) -> np.ndarray:
    data, v, begin, end, strides = args
    where = StridedSliceAttrs(begin=begin.tolist(), end=end.tolist(), strides=strides.tolist())
    out = data.copy()
    place = as_slices(slice_plan(data.shape, where))
    if out[place].shape != v.shape:
        raise ArgumentError(f"what is written has shape {v.shape}, the slice {out[place].shape}")
    out[place] = v
    return out


# ---- slice_like ------------------------------------------------------------------------------------------------------

def slice_like_dims(dims: Dims, like: Dims, axes: Sequence[int] | None) -> list[Dim]:
    """The shape of ``slice_like``."""
    chosen = [normalize_axis(int(a), len(dims)) for a in axes] if axes else range(min(len(dims), len(like)))
    out = list(dims)
    for a in chosen:
        if a >= len(like):
            raise TypeMismatchError(f"axis {a} is past the axes of the other tensor, of shape {show(like)}")
        if known(like[a]) and known(dims[a]) and like[a] > dims[a]:
            raise TypeMismatchError(f"axis {a} of {show(dims)} has fewer than the {like[a]} elements asked for")
        out[a] = like[a]
    return out


def _slice_like_rel(args: tuple[Type, ...], attrs: SliceLikeAttrs, ctx: Any) -> Type | None:
    types = tensors(args, ("data", "shape_like"))
    return types and TensorType(slice_like_dims(types[0].dims, types[1].dims, attrs.axes), types[0].dtype)


def _slice_like_numpy(attrs: SliceLikeAttrs, args: list[np.ndarray], out_type: Type) -> np.ndarray:
    shape = slice_like_dims(args[0].shape, args[1].shape, attrs.axes)
    return args[0][tuple(slice(0, n) for n in shape)].copy()


declare("strided_slice", attrs=StridedSliceAttrs, relation=_strided_slice_rel, pattern=OpPattern.INJECTIVE,
        numpy=_strided_slice_numpy, level=4, doc="Cuts out every stride-th element between begin and end of some axes.")
declare("strided_set", inputs=("data", "v", "begin", "end", "strides"), relation=_strided_set_rel, pattern=OpPattern.INJECTIVE,
        numpy=_strided_set_numpy, level=4, doc="A copy of data with a strided slice replaced by v.")
declare("slice_like", inputs=("data", "shape_like"), attrs=SliceLikeAttrs, relation=_slice_like_rel, pattern=OpPattern.INJECTIVE,
        numpy=_slice_like_numpy, level=10, doc="The leading part of data, as large as another tensor.")


def strided_slice(data: RelayExpr, begin: Any, end: Any, strides: Any = None, axes: Any = None, slice_mode: str = "end") -> Call:
    """Every ``strides``-th element from ``begin`` to ``end`` (exclusive) along ``axes`` (None: the first axes).

    Negative positions count from the end; a negative stride reverses; positions past the ends are cut.  With ``slice_mode``
    "size", ``end`` holds sizes (-1: all that is left).  Each list may be an expression; the result's shape is then known at
    run time only.
    """
    if any(map(is_dynamic, (begin, end, strides))):
        from ..dyn.transform import strided_slice as dyn_strided_slice

        return dyn_strided_slice(data, begin, end, strides, axes, slice_mode)
    begin, end, strides = map(constant_ints, (begin, end, strides))
    attrs = StridedSliceAttrs(begin=begin, end=end, strides=[1] if strides is None else strides, slice_mode=slice_mode,
                              axes=None if axes is None else [int(a) for a in axes])
    return Call(Op.get("strided_slice"), [data], attrs)


def strided_set(data: RelayExpr, v: RelayExpr, begin: Any, end: Any, strides: Any = None) -> Call:
    """A copy of ``data`` whose elements from ``begin`` to ``end`` (exclusive), by ``strides``, are those of ``v``."""
    given = [begin, end, [1] if strides is None else strides]
    for i, value in enumerate(given):
        if not isinstance(value, RelayExpr):
            if not isinstance(value, (list, tuple)):
                raise ArgumentError(f"strided_set: begin, end and strides must be lists or expressions, got {value!r}")
            given[i] = const(list(value), "int64" if not value or max(map(abs, value)) >= _FAR else "int32")
    return Call(Op.get("strided_set"), [data, v, *given])


def slice_like(data: RelayExpr, shape_like: RelayExpr, axes: Any = None) -> Call:
    """The leading part of ``data`` that is as large as ``shape_like`` along ``axes`` (None: all axes both have)."""
    return Call(Op.get("slice_like"), [data, shape_like], SliceLikeAttrs(axes=None if axes is None else [int(a) for a in axes]))


__all__ = ["StridedSliceAttrs", "SliceLikeAttrs", "strided_slice", "strided_set", "slice_like"]
