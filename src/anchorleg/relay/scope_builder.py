"""``ScopeBuilder``: writes nested lets and conditions in the order they are thought of."""
from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any, Callable

from ..ir.expr import RelayExpr
from ..ir.type import IncompleteType, Type
from ..support.errors import ArgumentError
from .expr import If, Let, TupleWrapper, Var, var


class ScopeError(ArgumentError, RuntimeError):
    """A scope that is not finished, or finished twice."""


class WithScope(AbstractContextManager):
    """A ``with`` block that runs a function when it ends without an error."""

    def __init__(self, enter_value: Any, exit_cb: Callable[[], None]) -> None:
        self._value, self._close = enter_value, exit_cb

    def __enter__(self) -> Any:
        return self._value

    def __exit__(self, kind: Any, value: Any, trace: Any) -> None:
        if value is None:
            self._close()


class _Scope:
    """Bindings in order, and the result once it is known; an ``If`` without its second branch may wait here."""

    def __init__(self) -> None:
        self.bindings: list[tuple[Var, RelayExpr]] = []
        self.result: RelayExpr | None = None
        self.waiting: tuple[RelayExpr, RelayExpr] | None = None  # condition and first branch

    def expression(self) -> RelayExpr:
        if self.waiting is not None:
            raise ScopeError("if_scope must be followed by else_scope")
        if self.result is None:
            raise ScopeError("ret was not called in this scope")
        value = self.result
        for bound, expr in reversed(self.bindings):
            value = Let(bound, expr, value)
        return value


class ScopeBuilder:
    """Collects lets and results::

        sb = relay.ScopeBuilder()
        with sb.if_scope(cond):
            doubled = sb.let("doubled", relay.add(x, x))
            sb.ret(doubled)
        with sb.else_scope():
            sb.ret(x)
        expr = sb.get()
    """

    def __init__(self) -> None:
        self._scopes = [_Scope()]

    def let(self, var: Any, value: RelayExpr | TupleWrapper) -> Var:
        """Binds a variable (a Var, a name, or a pair of name and type) to a value; the variable."""
        if isinstance(var, (tuple, list)):
            if len(var) > 2:
                raise ArgumentError(f"let expects a name, a (name, type) pair or a Var, got {len(var)} elements")
            var = _var(*var)
        elif isinstance(var, str):
            var = _var(var)
        self._scopes[-1].bindings.append((var, value.astuple() if isinstance(value, TupleWrapper) else value))
        return var

    def if_scope(self, cond: RelayExpr) -> WithScope:
        """The branch taken when ``cond`` holds; an ``else_scope`` must follow."""
        self._scopes.append(_Scope())

        def close() -> None:
            branch = self._scopes.pop().expression()
            outer = self._scopes[-1]
            if outer.result is not None or outer.waiting is not None:
                raise ScopeError("the scope has its result already: an if_scope cannot follow it")
            outer.waiting = (cond, branch)

        return WithScope(None, close)

    def else_scope(self) -> WithScope:
        """The branch taken otherwise; the condition becomes the result of the scope around."""
        self._scopes.append(_Scope())

        def close() -> None:
            branch = self._scopes.pop().expression()
            outer = self._scopes[-1]
            if outer.waiting is None:
                raise ScopeError("else_scope must follow an if_scope")
            outer.result, outer.waiting = If(*outer.waiting, branch), None

        return WithScope(None, close)

    def type_of(self, expr: RelayExpr) -> Type | None:
        """The type of a variable, or a placeholder that inference fills with the expression's type."""
        if isinstance(expr, Var):
            return expr.type_annotation
        placeholder = IncompleteType()
        self.let(Var("unify", placeholder), expr)
        return placeholder

    def ret(self, value: RelayExpr | TupleWrapper) -> None:
        """Sets the result of the current scope."""
        scope = self._scopes[-1]
        if scope.result is not None or scope.waiting is not None:
            raise ScopeError("ret was already called in this scope")
        scope.result = value.astuple() if isinstance(value, TupleWrapper) else value

    def get(self) -> RelayExpr:
        """The expression that was built."""
        if len(self._scopes) != 1:
            raise ScopeError("a scope is still open")
        return self._scopes[0].expression()


_var = var
