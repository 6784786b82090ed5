"""``T.macro``: statements of a script that are written where the macro is called."""
from __future__ import annotations

import ast
import inspect
from types import FunctionType
from typing import Any, Callable, Mapping, NamedTuple

from ..support.errors import ArgumentError
from .source import Source, captured_names, source_of_object


class Macro:
    """A function whose body is read anew at every call.

    ``hygienic``: its free names are those around its definition; else those around the call.
    """

    def __init__(self, func: FunctionType, hygienic: bool) -> None:
        self.func, self.hygienic, self.signature = func, hygienic, inspect.signature(func)
        self.source: Source = source_of_object(func)
        node = self.source.tree.body[0]
        if not isinstance(node, ast.FunctionDef):
            raise self.source.error(node, "T.macro decorates a function")
        self.node = node

    @property
    def outer(self) -> dict[str, Any]:
        """The names around the definition, as they are now."""
        return captured_names(self.func)

    def arguments(self, args: tuple[Any, ...], keywords: Mapping[str, Any]) -> dict[str, Any]:
        """Parameter → value for a call."""
        bound = self.signature.bind(*args, **keywords)
        bound.apply_defaults()
        return dict(bound.arguments)

    def __call__(self, *args: Any, **keywords: Any) -> MacroCall:
        return MacroCall(self, args, keywords)


class MacroCall(NamedTuple):
    """A macro where it is called."""

    macro: Macro
    args: tuple[Any, ...]
    keywords: Mapping[str, Any]


def macro(*args: Any, hygienic: bool = True) -> Macro | Callable[[FunctionType], Macro]:
    """Makes a macro of a function: ``@T.macro`` or ``@T.macro(hygienic=False)``."""
    if not args:
        return lambda func: Macro(func, hygienic)
    if len(args) == 1 and isinstance(args[0], FunctionType):
        return Macro(args[0], hygienic)
    raise ArgumentError("T.macro decorates a function; its only option is the keyword hygienic=")
