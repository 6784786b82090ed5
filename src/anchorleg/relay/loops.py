"""Loops as functions that call themselves."""
from __future__ import annotations

from typing import Callable, Sequence

from ..ir.expr import RelayExpr
from .expr import Call, If, Let, Tuple, Var
from .function import Function


def while_loop(cond: Callable[..., RelayExpr], loop_vars: Sequence[RelayExpr], loop_bodies: Callable[..., Sequence[RelayExpr]]) -> Let:
    """A function that repeats ``loop_bodies`` while ``cond`` holds and gives the last values as a tuple.

    Parameters
    ----------
    cond: ``(*values) -> bool scalar``.
    loop_vars: the variables that stand for the values of a turn; for what is no variable a new one is made.
    loop_bodies: ``(*values) -> the values of the next turn``.

    Returns ``let``-bound function; call it with the first values: ``while_loop(…)(*first)``.
    """
    loop = Var("while_loop")
    values = [v if isinstance(v, Var) else Var(f"arg{i}") for i, v in enumerate(loop_vars)]
    body = If(cond(*values), Call(loop, list(loop_bodies(*values))), Tuple(values))
    return Let(loop, Function(values, body), loop)



__all__ = ["while_loop"]
