"""Sequences: tuples where their length is known, lists otherwise."""
from __future__ import annotations

from typing import Sequence

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
from ..make import call, concat, const, items, reshape, split, squeeze, stack, transpose
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


def _list(n: NodeContext) -> RelayExpr | None:
    """The first input, if it is a sequence whose length is not known."""
    return n.need(0) if lists.is_list(n.builder.type_of(n.need(0))) else None


@op("SequenceAt")
def at(n: NodeContext) -> RelayExpr:
    """One element."""
    if _list(n) is not None:
        return lists.at(n, n.need(0), n.need(1))
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
    if _list(n) is not None:
        if n.input(2) is not None:
            raise UnsupportedOpError("inserting at a place into a sequence whose length is not known is not supported: only at its end")
        return lists.append(n, n.need(0), n.need(1))
    fields = _fields(n, 0)
    fields.insert(_at(n, 2, len(fields), len(fields)), n.need(1))
    return Tuple(fields)


@op("SequenceErase")
def erase(n: NodeContext) -> RelayExpr:
    """With one element less."""
    if _list(n) is not None:
        if n.input(1) is not None:
            raise UnsupportedOpError("erasing at a place of a sequence whose length is not known is not supported: only at its end")
        return lists.without_last(n, n.need(0))
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
    size, sizes = n.dims(x)[axis], n.known(1, "split")
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
    each = 1 if sizes is None else int(sizes)
    order = [axis, *(i for i in range(n.rank(x)) if i != axis)]
    rows, back = n.settled(transpose(x, order))[0], list(np.argsort(order))
    step = const(each, "int64")
    (total,) = n.settled(row_count(rows))

    def turn(vs: Sequence[RelayExpr]) -> list[RelayExpr]:
        following = call("add", vs[0], step)
        part = transpose(dyn.strided_slice(rows, reshape(vs[0], [1]), reshape(following, [1]), [1]), back)
        if sizes is None:
            part = squeeze(part, [axis]) if not n.attr("keepdims", 1) else part
        return [following, with_last(n, vs[1], part)]

    return while_loop(n, lambda vs: call("less", vs[0], total), turn, [const(0, "int64"), Tuple([])], ["at", "parts"])[1]


def with_last(n: NodeContext, whole: RelayExpr, element: RelayExpr) -> RelayExpr:
    """A sequence with one more element at its end."""
    if lists.is_list(n.builder.type_of(whole)):
        return lists.append(n, whole, element)
    return Tuple([*elements(n, whole), element])
