"""Variables of an expression: free, bound, all; the same for type variables; and the visit of every expression."""
from __future__ import annotations

from typing import Any, Callable, Iterator

from ...ir.expr import RelayExpr
from ...ir.node import Node
from ...ir.type import TypeVar
from ...ir.visit import post_order
from ..adt import Constructor, Match, Pattern, PatternVar, TypeData
from ..expr import Call, Let, Var
from ..function import Function


def expr_children(node: Node) -> list[Node]:
    """The expressions directly under an expression, bound variables and patterns' variables included, types left out."""
    if isinstance(node, Call):
        return [node.op, *node.args]
    if isinstance(node, Function):
        return [*node.params, node.body]
    if isinstance(node, Match):
        found: list[Node] = [node.data]
        for clause in node.clauses:
            found.extend(pattern_vars(clause.lhs))
            found.append(clause.rhs)
        return found
    if isinstance(node, (Var, Constructor)):
        return []
    return [c for c in node.children() if isinstance(c, RelayExpr)]


def pattern_vars(pattern: Pattern) -> list[Var]:
    """The variables a pattern binds, left to right."""
    return [p.var for p in post_order(pattern, lambda n: [c for c in n.children() if isinstance(c, Pattern)])
            if isinstance(p, PatternVar)]


def exprs(expr: RelayExpr) -> Iterator[RelayExpr]:
    """Every expression under ``expr`` once, children first; ``let`` chains of any length are fine."""
    return post_order(expr, expr_children)  # type: ignore[return-value]


def post_order_visit(expr: RelayExpr, fvisit: Callable[[RelayExpr], Any]) -> None:
    """Calls ``fvisit`` on every expression under ``expr`` once, children first."""
    for node in exprs(expr):
        fvisit(node)


def bound_vars(expr: RelayExpr | Pattern) -> list[Var]:
    """The variables bound in an expression (parameters, lets, patterns) or by a pattern, in order of appearance."""
    if isinstance(expr, Pattern):
        return pattern_vars(expr)
    found: dict[Var, None] = {}
    for node in _in_order(expr):
        found.update(dict.fromkeys(_binders(node)))
    return list(found)


def all_vars(expr: RelayExpr) -> list[Var]:
    """Every variable that occurs in an expression, free or bound, in order of appearance."""
    return [n for n in _in_order(expr) if isinstance(n, Var)]


def free_vars(expr: RelayExpr) -> list[Var]:
    """The variables an expression uses and does not bind, in order of appearance.

    As every variable object is bound in at most one place, a variable bound anywhere inside counts as bound.
    """
    bound = set(bound_vars(expr))
    return [v for v in all_vars(expr) if v not in bound]


def free_vars_of_parts(root: RelayExpr) -> dict[int, tuple[Var, ...]]:
    """What :func:`free_vars` gives for every expression under ``root``, by id, from one walk.

    Parts that use the same variables share one tuple, so that a deep program costs little more than its nodes.
    """
    found: dict[int, tuple[Var, ...]] = {}
    for node in exprs(root):
        used = (node,) if isinstance(node, Var) else _union([found[id(c)] for c in expr_children(node)])
        binders = set(_binders(node))
        if binders and any(v in binders for v in used):
            used = tuple(v for v in used if v not in binders)
        found[id(node)] = used
    return found


def _union(parts: list[tuple[Var, ...]]) -> tuple[Var, ...]:
    """All variables in order of appearance; one of the parts itself where it holds them all."""
    distinct = list({id(p): p for p in parts if p}.values())
    if len(distinct) <= 1:
        return distinct[0] if distinct else ()
    merged = tuple(dict.fromkeys(v for p in distinct for v in p))
    return next((p for p in distinct if p == merged), merged)


def _binders(node: Node) -> tuple[Var, ...] | list[Var]:
    if isinstance(node, Function):
        return node.params
    if isinstance(node, Let):
        return (node.var,)
    if isinstance(node, Match):
        return [v for clause in node.clauses for v in pattern_vars(clause.lhs)]
    return ()


def _in_order(root: Node, children: Callable[[Node], list[Node]] = expr_children) -> Iterator[Node]:
    """Every node once, parents first, left to right."""
    seen: set[int] = set()
    stack = [root]
    while stack:
        node = stack.pop()
        if id(node) in seen:
            continue
        seen.add(id(node))
        yield node
        stack.extend(reversed(children(node)))


# ------------------------------------------------------------------------------------------------------- type variables


def _all_children(node: Node) -> list[Node]:
    return [] if isinstance(node, Constructor) else node.children()


def bound_type_vars(expr: Any, mod: Any = None) -> list[TypeVar]:
    """The type variables bound in an expression or a type, in order of appearance."""
    found: dict[TypeVar, None] = {}
    for node in _in_order(expr, _all_children):
        if isinstance(node, TypeData):
            found.update(dict.fromkeys(node.type_vars))
        elif hasattr(node, "type_params"):
            found.update(dict.fromkeys(node.type_params))
    return list(found)


def all_type_vars(expr: Any, mod: Any = None) -> list[TypeVar]:
    """Every type variable that occurs in an expression or a type, in order of appearance."""
    return [n for n in _in_order(expr, _all_children) if isinstance(n, TypeVar)]


def free_type_vars(expr: Any, mod: Any = None) -> list[TypeVar]:
    """The type variables that an expression or a type uses and does not bind, in order of appearance."""
    bound = set(bound_type_vars(expr))
    return [v for v in all_type_vars(expr) if v not in bound]


def all_dtypes(expr: RelayExpr) -> set[str]:
    """The element types of every tensor in the types of an expression's parts (run InferType first)."""
    from ...ir.type import TensorType

    types: list[Node] = [t for e in exprs(expr) for t in (e._checked_type, getattr(e, "type_annotation", None)) if t is not None]
    return {t.dtype for t in post_order(types) if isinstance(t, TensorType)}


__all__ = ["post_order_visit", "bound_vars", "all_vars", "free_vars", "bound_type_vars", "all_type_vars", "free_type_vars", "all_dtypes",
           "pattern_vars", "exprs", "expr_children"]
