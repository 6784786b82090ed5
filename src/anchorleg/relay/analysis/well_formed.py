"""Whether an expression is well formed: every variable is bound at most once and used only in its scope."""
from __future__ import annotations

from typing import Any

from ...ir.expr import BaseFunc, RelayExpr
from ...ir.module import IRModule
from ..adt import Match
from ..expr import Let, Var
from ..function import Function
from .variables import expr_children, pattern_vars


def well_formed(expr: RelayExpr | IRModule) -> bool:
    """Whether every variable is bound at most once, and never used outside the scope that binds it."""
    return not ill_formed_reasons(expr)


def ill_formed_reasons(expr: RelayExpr | IRModule) -> list[str]:
    """What is wrong with an expression or a module's functions: one sentence per variable concerned."""
    if isinstance(expr, IRModule):
        return [r for f in expr.functions.values() if isinstance(f, Function) for r in ill_formed_reasons(f)]
    return _Checker().run(expr)


class _Checker:
    """Walks scopes on an explicit stack; an entry is a node to visit, or the variables to forget when a scope ends."""

    def __init__(self) -> None:
        self.current: set[Var] = set()
        self.ever: set[Var] = set()
        self.free: set[Var] = set()
        self.reasons: dict[str, None] = {}

    def run(self, root: RelayExpr) -> list[str]:
        stack: list[Any] = [root]
        done: set[int] = set()
        while stack:
            item = stack.pop()
            if isinstance(item, _Enter):
                self._bind(item.variables)
                stack.append(_Leave(item.variables))
                stack.extend(reversed(item.inside))
            elif isinstance(item, _Leave):
                self.current.difference_update(item.variables)
            elif isinstance(item, Var):
                self._use(item)
            elif id(item) not in done:
                done.add(id(item))
                stack.extend(reversed(_steps(item)))
        return list(self.reasons)

    def _bind(self, variables: list[Var]) -> None:
        for var in variables:
            if var in self.ever or var in self.free:
                self.reasons[f"the variable %{var.name_hint} is bound more than once, or used before it is bound"] = None
            self.current.add(var)
            self.ever.add(var)

    def _use(self, var: Var) -> None:
        if var in self.current:
            return
        if var in self.ever:
            self.reasons[f"the variable %{var.name_hint} is used outside the scope that binds it"] = None
        self.free.add(var)


class _Enter:
    """A scope: the variables it binds and what lies inside."""

    def __init__(self, variables: list[Var], inside: list[Any]) -> None:
        self.variables, self.inside = variables, inside


class _Leave:
    """The end of a scope."""

    def __init__(self, variables: list[Var]) -> None:
        self.variables = variables


def _steps(node: RelayExpr) -> list[Any]:
    """What to visit under a node, in order, with its scopes."""
    if isinstance(node, Function):
        return [_Enter(list(node.params), [node.body])]
    if isinstance(node, Let):
        return [_Enter([node.var], [node.value, node.body])]
    if isinstance(node, Match):
        return [node.data, *(_Enter(pattern_vars(c.lhs), [c.rhs]) for c in node.clauses)]
    return [] if isinstance(node, BaseFunc) else expr_children(node)
