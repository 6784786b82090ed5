"""In which scope each expression of a graph belongs: the innermost one that encloses all its uses."""
from __future__ import annotations

from typing import Any, Iterator

from ...ir.expr import RelayExpr
from ...ir.op import Op
from ...ir.visit import post_order
from ...support.errors import ArgumentError
from ..adt import Match
from ..expr import If, Let
from ..function import Function
from .variables import expr_children


class Scope:
    """A node in the tree of scopes.  ``jump`` leads far up, so that ancestors are found in logarithmic time."""

    __slots__ = ("parent", "depth", "jump")

    def __init__(self, parent: Scope | None = None) -> None:
        self.parent = parent
        if parent is None:
            self.depth, self.jump = 0, self
            return
        far = parent.jump
        self.depth = parent.depth + 1
        self.jump = far.jump if parent.depth - far.depth == far.depth - far.jump.depth else parent

    def up_to(self, depth: int) -> Scope:
        """The ancestor at that depth."""
        at = self
        while at.depth > depth:
            at = at.jump if at.jump.depth >= depth else at.parent  # type: ignore[assignment]
        return at


def common_scope(a: Scope, b: Scope) -> Scope:
    """The innermost scope around both."""
    if a is b:
        return a
    a, b = a.up_to(min(a.depth, b.depth)), b.up_to(min(a.depth, b.depth))
    while a is not b:
        a, b = (a.jump, b.jump) if a.jump is not b.jump else (a.parent, b.parent)  # type: ignore[assignment]
    return a


def _uses(node: Any) -> Iterator[tuple[Any, int]]:
    """The expressions under a node in the order they are met, each with the number of the scope it is in (0: the node's own)."""
    if isinstance(node, Function):
        yield from ((p, 1) for p in node.params)
        yield node.body, 1
    elif isinstance(node, Let):
        yield from ((e, 1) for e in (node.var, node.value, node.body))
    elif isinstance(node, If):
        yield from ((node.cond, 0), (node.true_branch, 1), (node.false_branch, 2))
    elif isinstance(node, Match):
        yield node.data, 0
        yield from ((clause.rhs, i + 1) for i, clause in enumerate(node.clauses))
    else:
        yield from ((c, 0) for c in expr_children(node))


def scopes_of(root: RelayExpr) -> tuple[dict[RelayExpr, Scope], list[RelayExpr]]:
    """The scope of every expression, and those expressions whose scope lies outside that of their first use."""
    order = list(post_order(root, lambda n: [c for c, _ in _uses(n)]))
    scope: dict[Any, Scope] = {root: Scope()}
    for node in reversed(order):
        inner: dict[int, Scope] = {0: scope[node]}
        for child, number in _uses(node):
            if number not in inner:
                inner[number] = Scope(scope[node])
            here = inner[number]
            known = scope.get(child)
            scope[child] = here if known is None else common_scope(known, here)
    return scope, _first_uses(root, scope)


def _first_uses(root: RelayExpr, scope: dict[Any, Scope]) -> list[RelayExpr]:
    """Expressions whose first use, in reading order, lies in a scope further in than their own."""
    lifted: list[RelayExpr] = []
    seen: set[int] = {id(root)}
    stack: list[tuple[Any, Scope | None]] = [(root, None)]
    while stack:
        node, user = stack.pop()
        if user is not None:
            if id(node) in seen:
                continue
            seen.add(id(node))
            if scope[node].depth < user.depth and not isinstance(node, Op):
                lifted.append(node)
        own = scope[node]
        inner: dict[int, Scope] = {0: own}
        for child, number in reversed(list(_uses(node))):
            stack.append((child, inner.setdefault(number, Scope(own))))  # only its depth counts here
    return lifted


def check_basic_block_normal_form(e: RelayExpr) -> bool:
    """Whether every expression stands in the scope in which it is first used, i.e. what several scopes use is bound by a let.

    ArgumentError, showing an expression concerned, when one does not.
    """
    _, lifted = scopes_of(e)
    if lifted:
        raise ArgumentError("this expression is used in several scopes and bound in none that encloses them, which basic block normal "
                            f"form asks for (run ToBasicBlockNormalForm):\n{lifted[0]}")
    return True
