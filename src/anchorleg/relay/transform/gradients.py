"""``gradient``: a function together with the gradients of its parameters, by either way of deriving it."""
from __future__ import annotations

from typing import Any

from ...ir.module import IRModule
from ...support.errors import ArgumentError
from ..function import Function
from .first_order_gradient import FirstOrderGradient
from .higher_order_gradient import higher_order_gradient


def gradient(expr: Any, mod: IRModule | None = None, mode: str = "higher_order") -> Function:
    """A function of the same parameters that returns ``(result, (gradient of each parameter, …))``.

    expr: a typed function, or a global variable of ``mod``.
    mode: ``"higher_order"`` derives any program, with references and closures in the result; ``"first_order"`` derives plain
    graphs of operators and stays one (without ``mod``; see :func:`FirstOrderGradient` for modules).
    Errors: ArgumentError for another mode, or a module with first order; see :func:`higher_order_gradient` for the rest.
    """
    if mode == "higher_order":
        return higher_order_gradient(expr, mod)
    if mode != "first_order":
        raise ArgumentError(f"gradient: expected mode 'higher_order' or 'first_order', got {mode!r}")
    if mod is not None:
        raise ArgumentError("gradient: first order derives one function; for a module use the pass FirstOrderGradient")
    return FirstOrderGradient()(IRModule.from_expr(expr))["main"]  # type: ignore[return-value]


__all__ = ["gradient"]
