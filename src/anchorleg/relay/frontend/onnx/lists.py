"""Sequences whose length only a running model knows: lists of the Prelude, the last element first.

A sequence of known length is a tuple.  Where a loop makes a sequence longer or shorter from turn to turn, it carries a
list: with the last element at the head, appending one costs the same however many there are.
"""
from __future__ import annotations

from typing import TYPE_CHECKING, Any, Sequence

from ....ir.expr import Any as AnyDim, RelayExpr
from ....ir.module import IRModule
from ....ir.type import FuncType, TensorType, TupleType, Type, TypeCall
from ....support.errors import UnsupportedOpError
from ...adt import Clause, Match, PatternConstructor, PatternVar, PatternWildcard
from ...expr import Call, If, Let, Tuple, Var
from ...function import Function
from ...library import import_from_std
from ...transform.infer_type import infer_type
from .branches import join
from .make import call, cast, const, expand_dims, items, where

if TYPE_CHECKING:
    from .context import NodeContext

_ALIKE = "must have one number of dimensions and element type"


class Lists:
    """The list type and its functions in a module."""

    def __init__(self) -> None:
        self.mod = IRModule()
        import_from_std(self.mod, "prelude.rly")
        self.name = self.mod.get_global_type_var("List")
        self.cons, self.nil = (next(c for c in self.mod.type_definitions[self.name].constructors if c.name_hint == h) for h in ("Cons", "Nil"))

    def of(self, element: Type) -> TypeCall:
        """The type of lists of such elements."""
        return TypeCall(self.name, [element])


def is_list(t: Type) -> bool:
    """Whether a type is one of lists."""
    return isinstance(t, TypeCall)


def element_type(n: NodeContext, whole: RelayExpr) -> TensorType:
    """The type of a list's elements."""
    return n.builder.type_of(whole).args[0]  # type: ignore[attr-defined]


def as_list(n: NodeContext, whole: RelayExpr, t: Type) -> RelayExpr:
    """A sequence as a list of the given type."""
    have = n.builder.type_of(whole)
    if not isinstance(have, TupleType) or not is_list(t):
        return whole
    fields = list(whole.fields) if isinstance(whole, Tuple) else n.settled(*items(whole, len(have.fields)))
    found = _labelled(n, Call(n.importer.lists.nil, []), t)
    for each in fields:
        found = _labelled(n, Call(n.importer.lists.cons, [each, found]), t)
    return found


def of_elements(n: NodeContext, elements: Sequence[RelayExpr]) -> RelayExpr:
    """A list of elements, of which one is chosen when the model runs; they must have one number of dimensions and element type."""
    if not elements:
        raise UnsupportedOpError("there is no element in an empty sequence")
    elements = n.settled(*elements)
    joined: Any = n.builder.type_of(elements[0])
    for each in elements[1:]:
        joined = join(joined, n.builder.type_of(each))
        if joined is None:
            raise UnsupportedOpError(f"the elements of a sequence {_ALIKE} where its model chooses among them")
    return as_list(n, Tuple(elements), n.importer.lists.of(joined))


def append(n: NodeContext, whole: RelayExpr, element: RelayExpr) -> RelayExpr:
    """The list with one more element at its end."""
    have, (element,) = element_type(n, whole), n.settled(element)
    joined = join(have, n.builder.type_of(element))
    if joined is None:
        raise UnsupportedOpError(f"the elements of a sequence whose length is not known {_ALIKE}")
    return _labelled(n, Call(n.importer.lists.cons, [element, whole]), n.importer.lists.of(joined))


def length(n: NodeContext, whole: RelayExpr) -> RelayExpr:
    """How many elements there are, as an int64 scalar."""
    count = Call(n.importer.lists.mod.get_global_var("length"), [whole], None, [element_type(n, whole)])
    return cast(_labelled(n, count, TensorType((), "int32")), "int64", "int32")


def at(n: NodeContext, whole: RelayExpr, position: RelayExpr) -> RelayExpr:
    """The element at a place, counted from the end where negative."""
    position = n.to(position, "int64")
    last = call("subtract", length(n, whole), const(1, "int64"))
    back = where(call("less", position, const(0, "int64")), call("subtract", const(-1, "int64"), position), call("subtract", last, position))
    (place,) = n.settled(cast(back, "int32", "int64"))
    t = element_type(n, whole)
    return _labelled(n, Call(n.importer.lists.mod.get_global_var("nth"), [whole, place], None, [t]), t)


def concatenated(n: NodeContext, whole: RelayExpr, axis: int, new_axis: bool) -> RelayExpr:
    """The elements joined along an axis."""
    t = element_type(n, whole)
    rank = len(t.dims) + new_axis
    axis = n.axis(axis, rank)
    dims = list(t.dims)
    dims[axis:axis + (not new_axis)] = [AnyDim()]
    result = TensorType(dims, t.dtype)
    rest, joined, loop = Var("rest", n.builder.type_of(whole)), Var("joined", result), Var("join", FuncType([n.builder.type_of(whole), result], result))

    def shaped(x: RelayExpr) -> RelayExpr:
        return expand_dims(x, axis) if new_axis else x

    first, others = Var("element"), Var("others")
    lists = n.importer.lists
    more = Call(loop, [others, call("concatenate", Tuple([shaped(first), joined]), axis=axis)])
    body = Match(rest, [Clause(PatternConstructor(lists.cons, [PatternVar(first), PatternVar(others)]), more),
                        Clause(PatternConstructor(lists.nil, []), joined)])
    last, before = Var("last"), Var("before")
    start = Match(whole, [Clause(PatternConstructor(lists.cons, [PatternVar(last), PatternVar(before)]), Call(loop, [before, shaped(last)]))], False)
    found = infer_type(Let(loop, Function([rest, joined], body, result), start), lists.mod)
    return _labelled(n, found, result)


def without_last(n: NodeContext, whole: RelayExpr) -> RelayExpr:
    """The list without its last element."""
    lists, others = n.importer.lists, Var("others")
    found = Match(whole, [Clause(PatternConstructor(lists.cons, [PatternWildcard(), PatternVar(others)]), others)], False)
    return _labelled(n, infer_type(found, lists.mod), n.builder.type_of(whole))


def inserted(n: NodeContext, whole: RelayExpr, element: RelayExpr, position: RelayExpr) -> RelayExpr:
    """The list with one more element before a place, counted from the end where negative."""
    (element,) = n.settled(element)
    joined = join(element_type(n, whole), n.builder.type_of(element))
    if joined is None:
        raise UnsupportedOpError(f"the elements of a sequence whose length is not known {_ALIKE}")
    return _changed(n, whole, position, 0, n.importer.lists.of(joined), lambda rest: Call(n.importer.lists.cons, [element, rest]))


def without(n: NodeContext, whole: RelayExpr, position: RelayExpr) -> RelayExpr:
    """The list without the element at a place, counted from the end where negative."""
    lists, others = n.importer.lists, Var("others")
    return _changed(n, whole, position, 1, n.builder.type_of(whole), lambda rest: Match(
        rest, [Clause(PatternConstructor(lists.cons, [PatternWildcard(), PatternVar(others)]), others)], False))


def _changed(n: NodeContext, whole: RelayExpr, position: RelayExpr, own: int, t: Type, change: Any) -> RelayExpr:
    """The list with what is left behind a place's ``own`` elements and those after it changed; a place that is not there fits no clause."""
    lists, position = n.importer.lists, n.to(position, "int64")
    back = where(call("less", position, const(0, "int64")), call("subtract", const(-own, "int64"), position),
                 call("subtract", call("subtract", length(n, whole), const(own, "int64")), position))
    (after,) = n.settled(cast(back, "int32", "int64"))
    rest, count, loop = Var("rest", t), Var("after", TensorType((), "int32")), Var("change", FuncType([t, TensorType((), "int32")], t))
    first, others = Var("element"), Var("others")
    deeper = Call(lists.cons, [first, Call(loop, [others, call("subtract", count, const(1, "int32"))])])
    body = If(call("equal", count, const(0, "int32")), change(rest),
              Match(rest, [Clause(PatternConstructor(lists.cons, [PatternVar(first), PatternVar(others)]), deeper)], False))
    return _labelled(n, infer_type(Let(loop, Function([rest, count], body, t), Call(loop, [whole, after])), lists.mod), t)


def _labelled(n: NodeContext, expr: Any, t: Type) -> Any:
    expr._checked_type, expr.span = t, n.builder.span
    return expr
