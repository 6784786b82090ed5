"""Shape functions that users declare for their operators (``register_shape_func``), which compiled code then computes sizes with.

A declared function ``(attrs, inputs, ranks) -> tensors`` is written in TE: for each argument it is given the sizes, as a vector
of int64, or the elements where it is *data dependent*, and returns one vector of int64 for each result.
"""
from __future__ import annotations

from typing import Any, Callable, NamedTuple, Sequence

from ....ir.op import Op
from ....ir.type import TensorType, Type
from ....support.errors import ArgumentError
from ...expr import Call
from .registry import flatten_types

ShapeFunction = Callable[[Any, Sequence[Any], Sequence[int]], Sequence[Any]]


class Declared(NamedTuple):
    """A declared function and, for each argument, whether it reads elements rather than sizes."""

    function: ShapeFunction
    reads_elements: tuple[bool, ...]


def declared(call: Any) -> Declared | None:
    """What is declared for the operator of a call; None where nothing is."""
    if not isinstance(call, Call) or not isinstance(call.op, Op):
        return None
    function = call.op.get_attr("FShapeFunc")
    if function is None:
        return None
    flags = [bool(f) for f in call.op.get_attr("TShapeDataDependent") or [False]]
    if len(flags) == 1:
        flags = flags * len(call.args)
    if len(flags) != len(call.args):
        raise ArgumentError(f"{call.op.name}: the shape function declares data_dependent for {len(flags)} arguments, the operator has {len(call.args)}")
    return Declared(function, tuple(flags))


def ranks_of(ty: Type) -> list[int]:
    """The ranks of the tensors of a type."""
    return [len(t.dims) for t in flatten_types(ty)]


def input_types(call: Call, found: Declared) -> list[TensorType]:
    """The types of what the function reads: of arguments, or of the vectors of their sizes."""
    return [t if elements else TensorType([len(t.dims)], "int64")
            for arg, elements in zip(call.args, found.reads_elements) for t in flatten_types(arg.checked_type)]


__all__ = ["Declared", "declared", "input_types", "ranks_of"]
