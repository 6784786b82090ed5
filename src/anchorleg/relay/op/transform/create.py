"""Operators that make tensors from little: arange, meshgrid."""
from __future__ import annotations

import math
from typing import Any

import numpy as np

from ....ir.attrs import RAW, Attrs, Field
from ....ir.expr import Any as AnyDim, RelayExpr
from ....ir.op import Op, OpPattern
from ....ir.type import TensorType, TupleType, Type
from ....support.errors import ArgumentError, TypeMismatchError
from ...expr import Call, Constant, Tuple, TupleWrapper, const
from ..attrs_common import DTYPE
from ..registry import declare
from .common import Dim, choice, show, tuple_of_tensors


class ArangeAttrs(Attrs, name="relay.attrs.ArangeAttrs"):
    """Attributes of arange.  The bounds repeat the inputs where those are constants, and are None otherwise: from them the
    result's size is known before run time."""

    start = Field(RAW, None, "The first value, as a constant.")
    stop = Field(RAW, None, "The end, exclusive, as a constant.")
    step = Field(RAW, None, "The distance between values, as a constant.")
    dtype = Field(DTYPE, "float32", "The result's data type.")


class MeshgridAttrs(Attrs, name="relay.attrs.MeshgridAttrs"):
    """Attributes of meshgrid."""

    indexing = Field(choice("ij", "xy"), "ij", "ij: axes in the order of the inputs; xy: the first two swapped.")


def arange_size(start: Any, stop: Any, step: Any) -> int:
    """How many values ``arange`` gives; TypeMismatchError for a step of 0."""
    if step == 0:
        raise TypeMismatchError("step must not be 0")
    if all(isinstance(v, (int, np.integer)) for v in (start, stop, step)):
        return max(0, -(-(int(stop) - int(start)) // int(step)))
    return max(0, math.ceil((float(stop) - float(start)) / float(step)))


def _arange_size(attrs: ArangeAttrs) -> Dim:
    bounds = (attrs.start, attrs.stop, attrs.step)
    if not all(isinstance(b, Constant) for b in bounds):
        return AnyDim()
    return arange_size(*(b.data.numpy().item() for b in bounds))


def _arange_rel(args: tuple[Type, ...], attrs: ArangeAttrs, ctx: Any) -> Type | None:
    scalar = TensorType((), attrs.dtype)
    for arg in args:
        ctx.unify(arg, scalar)
    return TensorType((_arange_size(attrs),), attrs.dtype)


def _arange_numpy(attrs: ArangeAttrs, args: list[np.ndarray], out_type: Type) -> np.ndarray:
    start, stop, step = (a.item() for a in args)
    steps = np.arange(arange_size(start, stop, step)).astype(args[0].dtype)
    return (args[0] + steps * args[2]).astype(args[0].dtype)


def _meshgrid_rel(args: tuple[Type, ...], attrs: MeshgridAttrs, ctx: Any) -> Type | None:
    types = tuple_of_tensors(args[0])
    if types is None:
        return None
    dims: list[Dim] = []
    for i, t in enumerate(types):
        if len(t.dims) > 1:
            raise TypeMismatchError(f"inputs must be vectors or scalars, input {i} has shape {show(t.dims)}")
        if t.dtype != types[0].dtype:
            raise TypeMismatchError(f"inputs must have one dtype, got {types[0].dtype} and {t.dtype}")
        dims.append(t.dims[0] if t.dims else 1)
    if attrs.indexing == "xy" and len(dims) >= 2:
        dims[:2] = dims[1], dims[0]
    return TupleType([TensorType(dims, t.dtype) for t in types])


def _meshgrid_numpy(attrs: MeshgridAttrs, args: list[Any], out_type: Type) -> tuple[np.ndarray, ...]:
    return tuple(np.meshgrid(*args[0], indexing=attrs.indexing))


declare("arange", inputs=("start", "stop", "step"), attrs=ArangeAttrs, relation=_arange_rel, pattern=OpPattern.OPAQUE,
        numpy=_arange_numpy, level=3, doc="Evenly spaced values of an interval.")
declare("meshgrid", attrs=MeshgridAttrs, relation=_meshgrid_rel, pattern=OpPattern.INJECTIVE, numpy=_meshgrid_numpy, level=3,
        doc="Coordinate grids from coordinate vectors.")


def arange(start: Any, stop: Any = None, step: Any = None, dtype: str = "float32") -> Call:
    """The values ``start``, ``start + step``, … below ``stop`` (all scalars of type ``dtype``).

    One bound alone is ``stop``, with 0 as start.  Where all are constants the result's size is known before run time.
    """
    if stop is None:
        start, stop = const(0, dtype), start
    bounds = [start, stop, const(1, dtype) if step is None else step]
    bounds = [b if isinstance(b, RelayExpr) else const(b, dtype) for b in bounds]
    named = [b if isinstance(b, Constant) else None for b in bounds]
    return Call(Op.get("arange"), bounds, ArangeAttrs(start=named[0], stop=named[1], step=named[2], dtype=dtype))


def meshgrid(data: Any, indexing: str = "ij") -> TupleWrapper:
    """One grid for each vector of ``data``, whose values vary along that vector's axis; "xy" swaps the first two axes."""
    fields = list(data)
    if not fields:
        raise ArgumentError("meshgrid: expects at least one vector")
    return TupleWrapper(Call(Op.get("meshgrid"), [Tuple(fields)], MeshgridAttrs(indexing=indexing)), len(fields))


__all__ = ["ArangeAttrs", "MeshgridAttrs", "arange", "meshgrid"]
