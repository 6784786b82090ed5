"""How converters build expressions: operators by name, constants, tuples."""
from __future__ import annotations

from typing import Any, Sequence

import numpy as np

from ....ir.expr import RelayExpr
from ....ir.op import Op
from ....runtime import ndarray
from ....runtime.dtype import numpy_dtype
from ...expr import Call, Constant, Tuple, TupleGetItem
from ...op.registry import attrs_class


def call(op_name: str, *args: RelayExpr, **attrs: Any) -> Call:
    """A call of a Relay operator; ``attrs`` are its attributes, the rest take their defaults."""
    found = Op.get(op_name)
    cls = attrs_class(found)
    return Call(found, args, cls(**attrs) if cls is not None else None)


def const(value: Any, dtype: Any) -> Constant:
    """A constant tensor of that dtype (a Relay dtype name or a numpy dtype)."""
    return Constant(ndarray.array(np.asarray(value, dtype=numpy_dtype(dtype))))


def constant_of(array: np.ndarray) -> Constant:
    """A constant holding a copy of a numpy array."""
    return Constant(ndarray.array(array))


def items(tuple_expr: RelayExpr, count: int) -> list[RelayExpr]:
    """The fields of a tuple-typed expression."""
    return [TupleGetItem(tuple_expr, i) for i in range(count)]


def cast(x: RelayExpr, dtype: str, have: str = "") -> RelayExpr:
    """``x`` as ``dtype``; ``x`` itself when it is known to have it (``have``)."""
    return x if have == dtype else call("cast", x, dtype=dtype)


def reshape(x: RelayExpr, shape: Sequence[Any]) -> RelayExpr:
    """``x`` in another shape; 0 copies a dimension and -1 is worked out."""
    return call("reshape", x, newshape=tuple(shape))


def transpose(x: RelayExpr, axes: Sequence[int]) -> RelayExpr:
    """``x`` with its axes permuted; two permutations in a row become one, and the identity none."""
    axes = [int(a) for a in axes]
    if isinstance(x, Call) and isinstance(x.op, Op) and x.op.name == "transpose" and x.attrs.axes is not None:
        inner = [int(a) % len(axes) for a in x.attrs.axes]
        x, axes = x.args[0], [inner[a] for a in axes]
    return x if axes == list(range(len(axes))) else call("transpose", x, axes=tuple(axes))


def concat(parts: Sequence[RelayExpr], axis: int) -> RelayExpr:
    """The parts joined along ``axis``; a single part is itself."""
    return parts[0] if len(parts) == 1 else call("concatenate", Tuple(parts), axis=axis)


def stack(parts: Sequence[RelayExpr], axis: int) -> RelayExpr:
    """The parts joined along a new axis."""
    return call("stack", Tuple(parts), axis=axis)


_GROUP = 32  # tensors joined at once: more are joined in equal groups first, which then share a kernel


def stack_many(parts: Sequence[RelayExpr]) -> RelayExpr:
    """The parts joined along a new first axis, however many they are."""
    if len(parts) <= _GROUP:
        return stack(parts, 0)
    groups = [stack(parts[i:i + _GROUP], 0) for i in range(0, len(parts), _GROUP)]
    while len(groups) > _GROUP:
        groups = [concat(groups[i:i + _GROUP], 0) for i in range(0, len(groups), _GROUP)]
    return concat(groups, 0)


def split(x: RelayExpr, sections: Any, axis: int) -> list[RelayExpr]:
    """``x`` cut into equal parts (an int) or at the given places along ``axis``."""
    if isinstance(sections, int):
        count, places = sections, sections
    else:
        count, places = len(sections) + 1, tuple(int(s) for s in sections)
    return [x] if count == 1 else items(call("split", x, indices_or_sections=places, axis=axis), count)


def slice_axis(x: RelayExpr, axis: int, begin: int, end: int, step: int = 1) -> RelayExpr:
    """``x[begin:end:step]`` along one axis."""
    return call("strided_slice", x, begin=(begin,), end=(end,), strides=(step,), axes=(axis,), slice_mode="end")


def expand_dims(x: RelayExpr, axis: int, count: int = 1) -> RelayExpr:
    """``x`` with ``count`` new axes of size 1 at ``axis``."""
    return call("expand_dims", x, axis=axis, num_newaxis=count) if count else x


def squeeze(x: RelayExpr, axes: Sequence[int]) -> RelayExpr:
    """``x`` without these axes of size 1."""
    return call("squeeze", x, axis=tuple(axes)) if axes else x


def reduce(name: str, x: RelayExpr, axes: Sequence[int] | None, keepdims: bool = True) -> RelayExpr:
    """A reduction over ``axes`` (None: all)."""
    return call(name, x, axis=None if axes is None else tuple(axes), keepdims=keepdims, exclude=False)


def where(condition: RelayExpr, yes: RelayExpr, no: RelayExpr) -> RelayExpr:
    """Elements of ``yes`` where the condition holds, of ``no`` elsewhere; all broadcast together."""
    return call("where", condition, yes, no)
