"""Sequences: tuples where their length is known, lists otherwise."""
from __future__ import annotations

from typing import Callable, Sequence

import numpy as np

from .....ir.expr import RelayExpr
from .....ir.type import TupleType
from .....support.errors import ArgumentError, UnsupportedOpError
from ....expr import Tuple
from ....op.dyn import transform as dyn
from ....op.type_relations import show
from .. import lists
from ..context import NodeContext
from ..collect import row_count
from ..make import call, concat, const, items, reshape, slice_axis, split, squeeze, stack, transpose
from ..registry import op
from ..while_loop import while_loop


def _fields(n: NodeContext, index: int) -> list[RelayExpr]:
    return elements(n, n.need(index))


def elements(n: NodeContext, whole: RelayExpr) -> list[RelayExpr]:
    """The elements of a sequence, which is a tuple (or something that gives one)."""
    if isinstance(whole, Tuple):
        return list(whole.fields)
    t = n.builder.type_of(whole)
    if not isinstance(t, TupleType):
        raise UnsupportedOpError(f"a sequence is expected, got {show(t)}")
    return items(whole, len(t.fields))


def _at(n: NodeContext, index: int, size: int, default: int) -> int:
    value = n.scalar(index, default, "the position")
    if not -size <= value <= size:
        raise ArgumentError(f"position {value} is out of range for a sequence of {size}")
    return value + size if value < 0 else value


@op("SequenceConstruct")
def construct(n: NodeContext) -> RelayExpr:
    """The inputs in a row."""
    return Tuple(n.present())


@op("SequenceEmpty")
def empty(n: NodeContext) -> RelayExpr:
    """Nothing."""
    return Tuple([])


def _list(n: NodeContext, position: int | None = None) -> RelayExpr | None:
    """The first input as a list, if its length is not known, or the place in it (that input) is not; None for a sequence of fields."""
    if lists.is_list(n.builder.type_of(n.need(0))):
        return n.need(0)
    where = None if position is None else n.input(position)
    return None if where is None or n.value(where) is not None else lists.of_elements(n, _fields(n, 0))


@op("SequenceAt")
def at(n: NodeContext) -> RelayExpr:
    """One element."""
    whole = _list(n, 1)
    if whole is not None:
        return lists.at(n, whole, n.need(1))
    fields = _fields(n, 0)
    return fields[_at(n, 1, len(fields), 0)]


@op("SequenceLength")
def length(n: NodeContext) -> RelayExpr:
    """How many there are."""
    if _list(n) is not None:
        return lists.length(n, n.need(0))
    return const(len(_fields(n, 0)), "int64")


@op("SequenceInsert")
def insert(n: NodeContext) -> RelayExpr:
    """With one more element."""
    whole = _list(n, 2)
    if whole is not None:
        return lists.append(n, whole, n.need(1)) if n.input(2) is None else lists.inserted(n, whole, n.need(1), n.need(2))
    fields = _fields(n, 0)
    fields.insert(_at(n, 2, len(fields), len(fields)), n.need(1))
    return Tuple(fields)


@op("SequenceErase")
def erase(n: NodeContext) -> RelayExpr:
    """With one element less."""
    whole = _list(n, 1)
    if whole is not None:
        return lists.without_last(n, whole) if n.input(1) is None else lists.without(n, whole, n.need(1))
    fields = _fields(n, 0)
    del fields[_at(n, 1, len(fields), len(fields) - 1)]
    return Tuple(fields)


@op("ConcatFromSequence")
def concat_from(n: NodeContext) -> RelayExpr:
    """The elements joined along an axis, or along a new one."""
    if _list(n) is not None:
        return lists.concatenated(n, n.need(0), n.attr("axis"), bool(n.attr("new_axis", 0)))
    fields = _fields(n, 0)
    if n.attr("new_axis", 0):
        return stack(fields, n.axis(n.attr("axis"), n.rank(fields[0]) + 1))
    return concat(fields, n.axis(n.attr("axis"), n.rank(fields[0])))


@op("SplitToSequence")
def split_to(n: NodeContext) -> RelayExpr:
    """Parts along an axis."""
    x = n.need(0)
    axis = n.axis(n.attr("axis", 0), n.rank(x))
    size, sizes = n.dims(x)[axis], n.value(n.input(1))
    if n.input(1) is not None and sizes is None:
        return _split_by_input(n, x, axis, n.to(n.need(1), "int64"))
    if not isinstance(size, int):
        return _split_lasting(n, x, axis, sizes)
    if sizes is None:
        parts = split(x, size, axis)
        return Tuple(parts if n.attr("keepdims", 1) else [squeeze(p, [axis]) for p in parts])
    if sizes.ndim == 0:
        return Tuple(split(x, list(range(int(sizes), size, int(sizes))), axis))
    return Tuple(split(x, list(sizes.cumsum()[:-1]), axis))


def _split_lasting(n: NodeContext, x: RelayExpr, axis: int, sizes: np.ndarray | None) -> RelayExpr:
    """The parts along an axis whose size only a running model knows, as a list."""
    if sizes is not None and sizes.ndim:
        return Tuple(split(x, list(sizes.cumsum()[:-1]), axis))  # their sum is the axis's size
    rows, part = _rows_along(n, x, axis)
    return _equal_parts(n, rows, part, const(1 if sizes is None else int(sizes), "int64"), sizes is None and not n.attr("keepdims", 1), axis)


def _rows_along(n: NodeContext, x: RelayExpr, axis: int) -> tuple[RelayExpr, Callable[[RelayExpr, RelayExpr, RelayExpr], RelayExpr]]:
    """``x`` with an axis moved to the front, and what gives a part of that from one place to another, with the axis back in its place."""
    order = [axis, *(i for i in range(n.rank(x)) if i != axis)]
    back = list(np.argsort(order))

    def part(rows: RelayExpr, first: RelayExpr, end: RelayExpr) -> RelayExpr:
        return transpose(dyn.strided_slice(rows, reshape(first, [1]), reshape(end, [1]), [1]), back)

    return n.settled(transpose(x, order))[0], part


def _equal_parts(n: NodeContext, rows: RelayExpr, part: Callable[..., RelayExpr], step: RelayExpr, drop: bool, axis: int) -> RelayExpr:
    """Parts of ``step`` rows each, the last of the rest, as a list."""
    total, step = n.settled(row_count(rows), step)

    def turn(vs: Sequence[RelayExpr]) -> list[RelayExpr]:
        following = call("add", vs[0], step)
        found = part(rows, vs[0], following)
        return [following, with_last(n, vs[1], squeeze(found, [axis]) if drop else found)]

    return while_loop(n, lambda vs: call("less", vs[0], total), turn, [const(0, "int64"), Tuple([])], ["at", "parts"])[1]


def _split_by_input(n: NodeContext, x: RelayExpr, axis: int, sizes: RelayExpr) -> RelayExpr:
    """The parts, of one size or of a vector of sizes that a running model knows, as a list."""
    rows, part = _rows_along(n, x, axis)
    if n.rank(sizes) == 0:
        return _equal_parts(n, rows, part, call("maximum", sizes, const(1, "int64")), False, axis)
    shape = call("shape_of", rows, dtype="int64")
    whole = concat([call("sum", sizes, axis=(0,), keepdims=True, exclude=False), slice_axis(shape, 0, 1, np.iinfo(np.int64).max)], 0)
    rows, sizes = n.settled(dyn.reshape(rows, whole), sizes)  # refused where the sizes do not add up
    (count,) = n.settled(row_count(sizes))

    def turn(vs: Sequence[RelayExpr]) -> list[RelayExpr]:
        end = call("add", vs[1], call("take", sizes, vs[0], axis=0, batch_dims=0, mode="clip"))
        return [call("add", vs[0], const(1, "int64")), end, with_last(n, vs[2], part(rows, vs[1], end))]

    start = [const(0, "int64"), const(0, "int64"), Tuple([])]
    return while_loop(n, lambda vs: call("less", vs[0], count), turn, start, ["turn", "at", "parts"])[2]


def with_last(n: NodeContext, whole: RelayExpr, element: RelayExpr) -> RelayExpr:
    """A sequence with one more element at its end."""
    if lists.is_list(n.builder.type_of(whole)):
        return lists.append(n, whole, element)
    return Tuple([*elements(n, whole), element])
