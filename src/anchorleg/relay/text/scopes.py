"""What names mean while a program is read: variables by scope, type variables, global names, constructors."""
from __future__ import annotations

from typing import Generic, TypeVar

from ...ir.expr import GlobalVar
from ...ir.module import IRModule
from ...ir.type import GlobalTypeVar
from ..adt import Constructor

T = TypeVar("T")


class Scopes(Generic[T]):
    """Names bound in nested scopes; looking one up costs the same at any depth."""

    def __init__(self) -> None:
        self._bound: dict[str, list[T]] = {}
        self._open: list[list[str]] = [[]]

    def push(self) -> None:
        """Opens a scope."""
        self._open.append([])

    def pop(self, count: int = 1) -> None:
        """Closes the innermost scopes."""
        for _ in range(count):
            for name in self._open.pop():
                self._bound[name].pop()

    def bind(self, name: str, value: T) -> T:
        """Binds a name in the innermost scope."""
        self._bound.setdefault(name, []).append(value)
        self._open[-1].append(name)
        return value

    def find(self, name: str) -> T | None:
        """What a name means here; None when it means nothing."""
        values = self._bound.get(name)
        return values[-1] if values else None

    def names(self) -> list[str]:
        """The names bound here."""
        return [n for n, v in self._bound.items() if v]


class Globals:
    """Global names: functions, data types, constructors; those of a given module first."""

    def __init__(self, module: IRModule | None) -> None:
        self.functions: dict[str, GlobalVar] = {}
        self.types: dict[str, GlobalTypeVar] = {}
        self.constructors: dict[str, Constructor] = {}
        if module is None:
            return
        self.functions.update((g.name_hint, g) for g in module.functions)
        for gtv, data in module.type_definitions.items():
            self.types[gtv.name_hint] = gtv
            self.constructors.update((c.name_hint, c) for c in data.constructors)

    def function(self, name: str) -> GlobalVar:
        """The global of that name, made on first use."""
        if name not in self.functions:
            self.functions[name] = GlobalVar(name)
        return self.functions[name]

    def type(self, name: str) -> GlobalTypeVar:
        """The data type of that name, made on first use."""
        if name not in self.types:
            self.types[name] = GlobalTypeVar(name)
        return self.types[name]
