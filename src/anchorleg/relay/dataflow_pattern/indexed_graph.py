"""A program as a numbered graph: who uses whom, and who post-dominates whom."""
from __future__ import annotations

from typing import Any

from ...ir.expr import BaseFunc, RelayExpr
from ...ir.visit import post_order
from ..adt import Match
from ..analysis.scopes import Scope, common_scope
from ..analysis.variables import expr_children, pattern_vars
from ..expr import Call, Let, Var
from ..function import Function


class GraphNode:
    """An expression, its number in post-order, what flows in and out, and its place in the tree of post-dominators."""

    __slots__ = ("expr", "index", "inputs", "outputs", "place", "dominated")

    def __init__(self, expr: RelayExpr, index: int) -> None:
        self.expr, self.index = expr, index
        self.inputs: list[GraphNode] = []
        self.outputs: list[GraphNode] = []
        self.place = Scope()
        self.dominated: list[GraphNode] = []

    def dominates(self, other: GraphNode) -> bool:
        """Whether everything ``other`` leads to goes through this node."""
        return other.place.depth > self.place.depth and other.place.up_to(self.place.depth) is self.place


class IndexedGraph:
    """The graph of an expression; values come before the let variables that name them."""

    def __init__(self, root: RelayExpr) -> None:
        self.nodes = [GraphNode(e, i) for i, e in enumerate(post_order(root, _order_children))]  # type: ignore[arg-type]
        self.by_expr: dict[RelayExpr, GraphNode] = {n.expr: n for n in self.nodes}
        for node in self.nodes:
            self._connect(node)
        self._post_dominators()

    def __len__(self) -> int:
        return len(self.nodes)

    def __getitem__(self, expr: RelayExpr) -> GraphNode:
        return self.by_expr[expr]

    def _flow(self, source: RelayExpr, target: GraphNode) -> None:
        node = self.by_expr[source]
        if node.index < target.index:  # a recursive function's use of its own name is no flow
            node.outputs.append(target)
            target.inputs.append(node)

    def _connect(self, node: GraphNode) -> None:
        expr: Any = node.expr
        if isinstance(expr, Let):
            self._flow(expr.value, self.by_expr[expr.var])
            self._flow(expr.body, node)
        elif isinstance(expr, Function):
            self._flow(expr.body, node)
        elif isinstance(expr, Match):
            for clause in expr.clauses:
                for var in pattern_vars(clause.lhs):
                    self._flow(expr.data, self.by_expr[var])
                self._flow(clause.rhs, node)
        elif not isinstance(expr, (Var, BaseFunc)):
            for child in expr_children(expr):
                self._flow(child, node)  # type: ignore[arg-type]

    def _post_dominators(self) -> None:
        owner: dict[int, GraphNode] = {}
        for node in reversed(self.nodes):
            parent = _common([out.place for out in node.outputs])
            node.place = Scope(parent)
            owner[id(node.place)] = node
            if parent is not None:
                owner[id(parent)].dominated.append(node)


def _common(places: list[Scope]) -> Scope | None:
    """The nearest common post-dominator; None when uses lead to different ends."""
    if not places:
        return None
    found = places[0]
    for place in places[1:]:
        if place is found:
            continue
        if _root(place) is not _root(found):
            return None
        found = common_scope(found, place)
    return found


def _root(place: Scope) -> Scope:
    return place.up_to(0)


def _order_children(node: Any) -> list[Any]:
    if isinstance(node, Let):
        return [node.value, node.var, node.body]
    if isinstance(node, Call):
        return [node.op, *node.args]
    if isinstance(node, Match):
        return [node.data, *(e for c in node.clauses for e in (*pattern_vars(c.lhs), c.rhs))]
    return [] if isinstance(node, BaseFunc) and not isinstance(node, Function) else expr_children(node)
