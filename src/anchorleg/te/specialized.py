"""``SpecializedCondition``: implementations added to a strategy inside its scope are valid only where the condition holds."""
from __future__ import annotations

import threading
from typing import Any, Sequence

from ..ir.expr import PrimExpr
from ..support.errors import ArgumentError

_LOCAL = threading.local()


class SpecializedCondition:
    """A conjunction of conditions on symbolic shapes; a context manager.

    Parameters
    ----------
    clauses: one condition, or a list of conditions that all have to hold.
    """

    def __init__(self, clauses: Any) -> None:
        given = list(clauses) if isinstance(clauses, (list, tuple)) else [clauses]
        if not given:
            raise ArgumentError("a specialised condition needs at least one clause")
        wrong = [c for c in given if not isinstance(c, (bool, PrimExpr))]
        if wrong:
            raise ArgumentError(f"a clause is expected to be a condition, got {type(wrong[0]).__name__}")
        self.clauses: Sequence[Any] = tuple(given)

    def __enter__(self) -> SpecializedCondition:
        _stack().append(self)
        return self

    def __exit__(self, *exc: Any) -> None:
        _stack().pop()

    @staticmethod
    def current() -> SpecializedCondition | None:
        """The innermost scope of this thread, or None."""
        return _stack()[-1] if _stack() else None

    def __repr__(self) -> str:
        return f"SpecializedCondition({', '.join(map(str, self.clauses))})"


def _stack() -> list[SpecializedCondition]:
    if not hasattr(_LOCAL, "stack"):
        _LOCAL.stack = []
    return _LOCAL.stack
