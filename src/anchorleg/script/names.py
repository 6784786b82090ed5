"""The names a script may use: its own variables by scope, then those around it."""
from __future__ import annotations

import builtins
from contextlib import contextmanager
from typing import Any, Iterator, Mapping

from ..ir.expr import GlobalVar
from ..support.errors import ArgumentError

_SAFE = ("abs all any bool dict enumerate float int len list max min pow print range reversed round set slice sorted str sum tuple zip True False None "
         "isinstance").split()
BUILTINS = {name: getattr(builtins, name) for name in _SAFE if hasattr(builtins, name)}


class Names:
    """Scopes of variables, the innermost last, over the names captured from the surroundings."""

    def __init__(self, outer: Mapping[str, Any]) -> None:
        self.outer = dict(outer)
        self.scopes: list[dict[str, Any]] = [{}]

    @contextmanager
    def scope(self) -> Iterator[None]:
        """A scope whose names end with it."""
        self.scopes.append({})
        try:
            yield
        finally:
            self.scopes.pop()

    def define(self, name: str, value: Any) -> None:
        """Gives a name a value in the innermost scope."""
        self.scopes[-1][name] = value

    def find(self, name: str) -> Any:
        """The value of a name; KeyError when there is none."""
        for scope in reversed(self.scopes):
            if name in scope:
                return scope[name]
        if name in self.outer:
            return self.outer[name]
        return BUILTINS[name]

    def holds(self, value: Any) -> bool:
        """Whether a variable of the script is this very value."""
        return any(each is value for scope in self.scopes for each in scope.values())

    def everything(self) -> dict[str, Any]:
        """All names as one dictionary."""
        found = dict(self.outer)
        for scope in self.scopes:
            found.update(scope)
        return found


class FunctionNames:
    """What the name of a module's class, and ``cls``, stand for inside it: its functions by name."""

    def __init__(self, functions: Mapping[str, GlobalVar]) -> None:
        self.functions = functions

    def find(self, name: str) -> GlobalVar:
        """The function of that name; ArgumentError when the module has none."""
        if name not in self.functions:
            raise ArgumentError(f"the module has no function {name!r}; it has: {', '.join(self.functions) or 'none'}")
        return self.functions[name]
