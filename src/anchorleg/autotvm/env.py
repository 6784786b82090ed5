"""Switches of tuning that reach across modules: whether a tuner runs, whether notices are printed."""
from __future__ import annotations


class AutotvmGlobalScope:
    """``in_tuning``: a tuner is measuring; ``silent``: no notices."""

    current: AutotvmGlobalScope | None = None

    def __init__(self) -> None:
        AutotvmGlobalScope.current = self
        self.in_tuning = False
        self.silent = False

    def deep_copy(self, global_scope: AutotvmGlobalScope) -> None:
        """Takes over another scope's switches."""
        self.in_tuning, self.silent = global_scope.in_tuning, global_scope.silent


GLOBAL_SCOPE = AutotvmGlobalScope()


def reset_global_scope(global_scope: AutotvmGlobalScope) -> None:
    """Sets the switches of this process (a worker's) to another's."""
    GLOBAL_SCOPE.deep_copy(global_scope)
    AutotvmGlobalScope.current = global_scope
