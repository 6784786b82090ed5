"""The regions that ``compiler_begin`` and ``compiler_end`` mark out in a program.

A region is everything between its begins and its ends::

    %0 = annotation.compiler_begin(%x, compiler="c");  %1 = abs(%0);  annotation.compiler_end(%1, compiler="c")

has one region of the compiler ``c`` with the nodes ``%0``, ``%1`` and the end.
"""
from __future__ import annotations

from collections import deque
from typing import Any, Iterator

from ...ir.expr import RelayExpr
from ...ir.op import Op
from ...ir.visit import post_order
from ...support.errors import ArgumentError
from ..expr import Call, If, RefCreate, RefRead, RefWrite, Tuple, TupleGetItem
from ..function import Function
from .variables import expr_children

BEGIN, END, DEFAULT = "annotation.compiler_begin", "annotation.compiler_end", "default"


def is_begin(expr: Any) -> bool:
    """Whether ``expr`` is the begin of a region."""
    return isinstance(expr, Call) and isinstance(expr.op, Op) and expr.op.name == BEGIN


def is_end(expr: Any) -> bool:
    """Whether ``expr`` is the end of a region."""
    return isinstance(expr, Call) and isinstance(expr.op, Op) and expr.op.name == END


def region_children(node: Any) -> list[Any]:
    """What regions are looked for in: everything but the inside of functions that are somebody else's."""
    if isinstance(node, Function) and any(node.get_attr(a) for a in ("Composite", "Compiler", "Primitive")):
        return []
    return expr_children(node)


def data_children(node: Any) -> list[RelayExpr]:
    """The values a node is computed from, without the function it calls."""
    if isinstance(node, Call):
        return list(node.args)
    if isinstance(node, (Tuple, TupleGetItem, RefCreate, RefRead, RefWrite, If)):
        return [c for c in node.children() if isinstance(c, RelayExpr)]
    return []


class AnnotatedRegion:
    """One region: its number ``id``, its compiler ``target``, the name of the function it is in."""

    __slots__ = ("id", "target", "name", "_owner", "_nodes", "_begins", "_ends", "_into")

    def __init__(self, owner: AnnotatedRegionSet, number: int, target: str, name: str) -> None:
        self.id, self.target, self.name, self._owner = number, target, name, owner
        self._nodes: deque[RelayExpr] = deque()
        self._begins: deque[Call] = deque()
        self._ends: deque[Call] = deque()
        self._into: AnnotatedRegion | None = None

    @property
    def nodes(self) -> list[RelayExpr]:
        """Every expression of the region, its begins and ends included."""
        return list(self._nodes)

    @property
    def args(self) -> list[Call]:
        """The begins: where values come in from outside."""
        return [b for b in self._begins if self._owner.get_region(b.args[0]) is not self]

    @property
    def rets(self) -> list[Call]:
        """The ends: whose values somebody outside needs."""
        return [e for e in self._ends if not self._owner._only_inside(e, self)]

    def __repr__(self) -> str:
        return f"AnnotatedRegion({self.id}, {self.target!r}, {len(self._nodes)} nodes)"


class AnnotatedRegionSet:
    """All regions of an expression, each expression in one at most.

    Parameters
    ----------
    expr: the expression, most often a function.
    region_begin_op, region_end_op: the operators that mark regions.
    func_name: what the regions' functions are named after.

    ArgumentError for an operator with one input inside a region and another that does not come through a begin, and for an
    end without a begin.
    """

    def __init__(self, expr: RelayExpr, region_begin_op: Op | None = None, region_end_op: Op | None = None, func_name: str = "default") -> None:
        self._begin = region_begin_op if region_begin_op is not None else Op.get(BEGIN)
        self._end = region_end_op if region_end_op is not None else Op.get(END)
        self._func_name = func_name
        self._home: dict[int, AnnotatedRegion] = {}
        self._made: list[AnnotatedRegion] = []
        self._users: dict[int, list[Any]] = {}
        self._root = expr
        for node in post_order(expr, region_children):
            self._note_users(node)
            self._enter(node)

    # -- questions

    @property
    def regions(self) -> list[AnnotatedRegion]:
        """The regions, in the order they were met."""
        return [r for r in self._made if r._into is None]

    def __len__(self) -> int:
        return len(self.regions)

    def __iter__(self) -> Iterator[AnnotatedRegion]:
        return iter(self.regions)

    def get_region(self, expr: RelayExpr) -> AnnotatedRegion | None:
        """The region that ``expr`` is in, None when it is in none."""
        found = self._home.get(id(expr))
        return None if found is None else _present(found)

    def _only_inside(self, end: Call, region: AnnotatedRegion) -> bool:
        users = self._users.get(id(end), ())
        return end is not self._root and bool(users) and all(is_call_of(u, self._begin) and self.get_region(u) is region for u in users)

    # -- making

    def merge_regions(self, src: AnnotatedRegion, dest: AnnotatedRegion) -> None:
        """Makes everything of ``src`` part of ``dest``."""
        src, dest = _present(src), _present(dest)
        if src is dest:
            return
        src._into = dest
        for name in ("_nodes", "_begins", "_ends"):
            setattr(dest, name, _joined(getattr(dest, name), getattr(src, name)))
            setattr(src, name, deque())

    def _note_users(self, node: Any) -> None:
        for child in region_children(node):
            if is_call_of(child, self._end):
                self._users.setdefault(id(child), []).append(node)

    def _enter(self, node: Any) -> None:
        if is_call_of(node, self._begin):
            region = AnnotatedRegion(self, len(self._made), str(node.attrs.compiler), self._func_name)
            self._made.append(region)
            region._begins.append(node)
            self._put(node, region)
        elif is_call_of(node, self._end):
            self._close(node)
        else:
            self._gather(node)

    def _put(self, node: Any, region: AnnotatedRegion) -> None:
        region._nodes.append(node)
        self._home[id(node)] = region

    def _close(self, end: Call) -> None:
        region = self.get_region(end.args[0])
        if region is None:
            raise ArgumentError(f"{describe(end)} ends no region: {describe(end.args[0])} has no input that comes through a compiler_begin")
        if region.target != str(end.attrs.compiler):
            raise ArgumentError(f"{describe(end)} ends a region that was begun for the compiler {region.target!r}")
        region._ends.append(end)
        self._put(end, region)

    def _gather(self, node: Any) -> None:
        """Puts a node into the region of its open inputs, which become one."""
        inputs = [c for c in data_children(node) if not is_call_of(c, self._end)]
        homes = [self.get_region(c) for c in inputs]
        first = next((h for h in homes if h is not None), None)
        if first is None:
            return
        for child, home in zip(inputs, homes):
            if home is None:
                raise ArgumentError(f"{describe(node)} is in a region of the compiler {first.target!r}, but its input {describe(child)} does not "
                                    "come through a compiler_begin: mark all inputs of an operator or none")
            if home.target != first.target:
                raise ArgumentError(f"{describe(node)} has inputs in regions of two compilers, {first.target!r} and {home.target!r}")
            self.merge_regions(home, first)
        self._put(node, first)


def is_call_of(expr: Any, op: Op) -> bool:
    """Whether ``expr`` is a call of that operator."""
    return isinstance(expr, Call) and expr.op is op


def describe(expr: Any) -> str:
    """A short name of an expression for messages."""
    if isinstance(expr, Call):
        return f"the call of {expr.op.name}" if isinstance(expr.op, Op) else "a call"
    name = getattr(expr, "name_hint", None)
    return f"%{name}" if name else f"a {type(expr).__name__}"


def _present(region: AnnotatedRegion) -> AnnotatedRegion:
    """The region that this one is part of by now."""
    root = region
    while root._into is not None:
        root = root._into
    while region is not root:
        step = region._into
        region._into = root
        region = step  # type: ignore[assignment]
    return root


def _joined(first: deque[Any], second: deque[Any]) -> deque[Any]:
    """The two one after the other, the shorter moved."""
    if len(first) < len(second):
        second.extendleft(reversed(first))
        return second
    first.extend(second)
    return first


__all__ = ["AnnotatedRegion", "AnnotatedRegionSet", "BEGIN", "DEFAULT", "END", "data_children", "describe", "is_begin", "is_end", "region_children"]
