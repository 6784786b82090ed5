"""Operators that join tensors or take one apart: concatenate, stack, split."""
from __future__ import annotations

from typing import Any, Sequence

import numpy as np

from ....ir.attrs import INT, Attrs, Field
from ....ir.expr import Any as AnyDim, IntImm, RelayExpr
from ....ir.op import Op, OpPattern
from ....ir.type import TensorType, TupleType, Type
from ....support.errors import ArgumentError, TypeMismatchError
from ...expr import Call, TupleWrapper
from ..registry import declare
from .common import Dim, Dims, as_tuple, constant_ints, known, normalize_axis, same_dim, show, tensor, tuple_of_tensors


def _sections(value: Any) -> int | tuple[int, ...]:
    return int(value) if isinstance(value, (int, np.integer, IntImm)) else tuple(int(v) for v in value)


class ConcatenateAttrs(Attrs, name="relay.attrs.ConcatenateAttrs"):
    """Attributes of concatenate."""

    axis = Field(INT, 0, "The axis along which the tensors are joined.")


class StackAttrs(Attrs, name="relay.attrs.StackAttrs"):
    """Attributes of stack."""

    axis = Field(INT, 0, "The axis of the result along which the tensors lie.")


class SplitAttrs(Attrs, name="relay.attrs.SplitAttrs"):
    """Attributes of split."""

    indices_or_sections = Field(_sections, doc="A number of equal parts, or the ascending positions at which to cut.")
    axis = Field(INT, 0, "The axis that is cut.")


def _check_alike(types: Sequence[TensorType]) -> None:
    if not types:
        raise TypeMismatchError("expects at least one tensor")
    first = types[0]
    for i, t in enumerate(types):
        if len(t.dims) != len(first.dims):
            raise TypeMismatchError(f"all inputs must have one rank; input 0 has shape {show(first.dims)}, input {i} {show(t.dims)}")
        if t.dtype != first.dtype:
            raise TypeMismatchError(f"all inputs must have one dtype; input 0 has {first.dtype}, input {i} {t.dtype}")


def _merge(types: Sequence[TensorType], axis: int) -> list[Dim]:
    """The common dimensions of all inputs away from ``axis``."""
    dims = list(types[0].dims)
    for i, t in enumerate(types):
        for d in range(len(dims)):
            if d != axis:
                dims[d] = same_dim(f"dimension {d} of input {i}, of shape {show(t.dims)}", dims[d], t.dims[d])
    return dims


def _total(sizes: Dims) -> Dim:
    return sum(sizes) if all(map(known, sizes)) else sizes[0] if len(sizes) == 1 else AnyDim()


def _concatenate_rel(args: tuple[Type, ...], attrs: ConcatenateAttrs, ctx: Any) -> Type | None:
    types = tuple_of_tensors(args[0])
    if types is None:
        return None
    _check_alike(types)
    axis = normalize_axis(attrs.axis, len(types[0].dims))
    dims = _merge(types, axis)
    dims[axis] = _total([t.dims[axis] for t in types])
    if known(dims[axis]):  # a size that only some inputs tell is not promised of a result that would be known altogether
        dims = [d if i == axis or all(known(t.dims[i]) for t in types) else AnyDim() for i, d in enumerate(dims)]
    return TensorType(dims, types[0].dtype)


def _stack_rel(args: tuple[Type, ...], attrs: StackAttrs, ctx: Any) -> Type | None:
    types = tuple_of_tensors(args[0])
    if types is None:
        return None
    _check_alike(types)
    dims = _merge(types, -1)
    axis = normalize_axis(attrs.axis, len(dims) + 1)
    return TensorType([*dims[:axis], len(types), *dims[axis:]], types[0].dtype)


def split_bounds(size: Dim, sections: int | tuple[int, ...]) -> list[tuple[int | None, int | None]]:
    """Begin and end of each part of an axis; None where they depend on an unknown size."""
    if isinstance(sections, int):
        return _equal_bounds(size, sections)
    cuts = [0, *sections]
    for a, b in zip(cuts, cuts[1:]):
        if b < a:
            raise TypeMismatchError(f"the positions must ascend from 0, got {tuple(sections)}")
    if known(size) and cuts[-1] > size:
        raise TypeMismatchError(f"position {cuts[-1]} is past the end of an axis of size {size}")
    return list(zip(cuts, [*cuts[1:], size if known(size) else None]))


def _equal_bounds(size: Dim, parts: int) -> list[tuple[int | None, int | None]]:
    if parts < 1:
        raise TypeMismatchError(f"the number of parts must be at least 1, got {parts}")
    if not known(size):
        return [(None, None)] * parts
    if size % parts:
        raise TypeMismatchError(f"an axis of size {size} does not divide into {parts} equal parts")
    each = size // parts
    return [(i * each, (i + 1) * each) for i in range(parts)]


def _split_rel(args: tuple[Type, ...], attrs: SplitAttrs, ctx: Any) -> Type | None:
    data = tensor(args[0], "data")
    if data is None:
        return None
    axis = normalize_axis(attrs.axis, len(data.dims))
    fields = []
    for begin, end in split_bounds(data.dims[axis], attrs.indices_or_sections):
        size = AnyDim() if begin is None or end is None else end - begin
        fields.append(TensorType([*data.dims[:axis], size, *data.dims[axis + 1:]], data.dtype))
    return TupleType(fields)


def _concatenate_numpy(attrs: ConcatenateAttrs, args: list[Any], out_type: Type) -> np.ndarray:
    return np.concatenate(list(args[0]), axis=attrs.axis)


def _stack_numpy(attrs: StackAttrs, args: list[Any], out_type: Type) -> np.ndarray:
    return np.stack(list(args[0]), axis=attrs.axis)


def _split_numpy(attrs: SplitAttrs, args: list[Any], out_type: Type) -> tuple[np.ndarray, ...]:
    data, axis = args[0], attrs.axis
    bounds = split_bounds(data.shape[axis], attrs.indices_or_sections)
    moved = np.moveaxis(data, axis, 0)
    return tuple(np.ascontiguousarray(np.moveaxis(moved[begin:end], 0, axis)) for begin, end in bounds)


declare("concatenate", attrs=ConcatenateAttrs, relation=_concatenate_rel, pattern=OpPattern.INJECTIVE, numpy=_concatenate_numpy,
        level=1, doc="Joins a tuple of tensors along an axis.")
declare("stack", attrs=StackAttrs, relation=_stack_rel, pattern=OpPattern.INJECTIVE, numpy=_stack_numpy, level=3,
        doc="Joins a tuple of tensors along a new axis.")
declare("split", attrs=SplitAttrs, relation=_split_rel, pattern=OpPattern.INJECTIVE, numpy=_split_numpy, level=3,
        doc="Cuts a tensor into a tuple of tensors along an axis.")


def concatenate(data: Any, axis: int) -> Call:
    """A list (or tuple-typed expression) of tensors, joined along ``axis``; they agree in dtype and in all other dimensions."""
    return Call(Op.get("concatenate"), [as_tuple("concatenate", data)], ConcatenateAttrs(axis=int(axis)))


def stack(data: Any, axis: int) -> Call:
    """A list (or tuple-typed expression) of tensors of one shape, joined along a new axis at ``axis``."""
    return Call(Op.get("stack"), [as_tuple("stack", data)], StackAttrs(axis=int(axis)))


def split(data: RelayExpr, indices_or_sections: Any, axis: int = 0) -> TupleWrapper:
    """``data`` cut along ``axis``: into that many equal parts, or at the given ascending positions."""
    where = constant_ints(indices_or_sections)
    if isinstance(where, RelayExpr):
        raise ArgumentError("split: indices_or_sections must be an int or a list of ints; how many parts there are cannot be left to run time")
    attrs = SplitAttrs(indices_or_sections=where, axis=int(axis))
    parts = attrs.indices_or_sections
    return TupleWrapper(Call(Op.get("split"), [data], attrs), parts if isinstance(parts, int) else len(parts) + 1)


__all__ = ["ConcatenateAttrs", "StackAttrs", "SplitAttrs", "concatenate", "stack", "split"]
