"""Substitution: replacing variables of an expression by expressions, and type variables by types."""
from __future__ import annotations

from typing import Any, Mapping

from ...ir.expr import RelayExpr
from ...ir.node import Node
from ...ir.type import Type, TypeVar
from ...ir.visit import rewrite
from ...support.errors import ArgumentError
from ..adt import Constructor
from ..analysis.variables import free_vars
from ..expr import Constant, Var, const
from ..function import Function
from .common import rewrite_exprs


def substitute(expr: RelayExpr, binds: Mapping[Var, RelayExpr]) -> RelayExpr:
    """``expr`` with every occurrence of the given variables replaced; the same object when none occurs."""
    memo: dict[int, Any] = {id(v): (v, e) for v, e in binds.items()}
    return rewrite(expr, lambda n: n, memo, lambda n: not isinstance(n, (Type, Constructor, Var)))  # type: ignore[return-value]


def substitute_typed(expr: RelayExpr, binds: Mapping[Var, RelayExpr]) -> RelayExpr:
    """As :func:`substitute`, for values of the variables' own types: what is rebuilt keeps its type."""
    table = {id(v): e for v, e in binds.items()}
    return rewrite_exprs(expr, lambda old, new: table.get(id(old), new))


def bind(expr: RelayExpr, binds: Mapping[Var, RelayExpr]) -> RelayExpr:
    """``expr`` with free variables replaced.

    Of a function, parameters that are bound go; variables that come in with the values are added as parameters, so that a
    closed function stays closed.
    """
    if not isinstance(expr, Function):
        return substitute(expr, binds)
    body = substitute(expr.body, binds)
    params = tuple(p for p in expr.params if p not in binds)
    if body is expr.body and len(params) == len(expr.params):
        return expr
    bound = expr.replace(params=params, body=body)
    was_free = set(free_vars(expr))
    return bound.replace(params=(*params, *(v for v in free_vars(bound) if v not in was_free)))


def bind_params_by_name(func: Function, params: Mapping[str, Any]) -> Function:
    """``func`` with the parameters of these names bound to constants (NDArray, numpy array or Python number).

    Names that the function does not have are ignored; ArgumentError when a name fits several parameters.
    """
    by_name: dict[str, list[Var]] = {}
    for p in func.params:
        by_name.setdefault(p.name_hint, []).append(p)
    binds: dict[Var, RelayExpr] = {}
    for name, value in params.items():
        found = by_name.get(name, [])
        if len(found) > 1:
            raise ArgumentError(f"the function has {len(found)} parameters named {name!r}: a value can be bound by name to one only")
        if found:
            binds[found[0]] = value if isinstance(value, Constant) else const(value)
    return bind(func, binds) if binds else func  # type: ignore[return-value]


def bind_type_vars(node: Any, binds: Mapping[TypeVar, Type]) -> Any:
    """A type, or the types inside an expression, with type variables replaced."""
    memo: dict[int, Any] = {id(v): (v, t) for v, t in binds.items()}
    return rewrite(node, lambda n: n, memo, lambda n: not isinstance(n, Constructor)) if isinstance(node, Node) else node
