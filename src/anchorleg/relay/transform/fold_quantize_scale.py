"""FoldQuantizeScale: the division by which quantisation begins moves into the constants that the data were multiplied by.

before::

    rint(divide(nn.relu(add(multiply(%x, S), B)), 0.2f))

after::

    rint(nn.relu(add(multiply(%x, S / 0.2f), B / 0.2f)))

One rounding of a product takes the place of two, as in quantised operators that requantise by one factor.
"""
from __future__ import annotations

from typing import Any

import numpy as np

from ...ir.expr import RelayExpr
from ..expr import Call, Constant
from ..function import Function
from .common import call, constant, declare_pass, is_op, mentions, rewrite_exprs, scalar_value
from .fold_scale_axis import use_counts

_THROUGH = ("nn.relu", "clip", "reshape", "transpose", "expand_dims", "squeeze", "mean", "nn.max_pool2d", "nn.global_avg_pool2d", "nn.avg_pool2d")
_SUMS = ("add", "subtract", "nn.bias_add")


def is_quantised(expr: Any) -> bool:
    """Whether this is ``rint(x / a positive number)`` of float32."""
    if not is_op(expr, "rint") or not is_op(expr.args[0], "divide") or getattr(expr._checked_type, "dtype", "") != "float32":
        return False
    by = scalar_value(expr.args[0].args[1])
    return by is not None and by > 0


class _Division:
    """Moves a division to the constants from which an expression is made; ``counts`` says how many read each expression."""

    def __init__(self, counts: dict[int, int]) -> None:
        self.counts = counts

    def of(self, old: Any, new: Any, by: np.float32) -> RelayExpr | None:
        """``new`` / ``by`` (a positive number); None where the division would have to be done.  ``old`` is ``new`` before rewriting."""
        done: dict[int, RelayExpr | None] = {}
        stack = [(old, new, False)]
        while stack:
            a, b, ready = stack.pop()
            inner = self._inner(a, b)
            if inner and not ready:
                stack.append((a, b, True))
                stack.extend((x, y, False) for x, y in inner)
            elif id(a) not in done:
                done[id(a)] = self._divided(a, b, by, [done[id(x)] for x, _ in inner])
        return done[id(old)]

    def _own(self, expr: Any) -> bool:
        return isinstance(expr, Call) and self.counts.get(id(expr), 0) <= 1

    def _inner(self, old: Any, new: Any) -> list[tuple[Any, Any]]:
        """What the division moves on to."""
        if not self._own(old):
            return []
        return list(zip(old.args, new.args)) if is_op(old, *_SUMS) else [(old.args[0], new.args[0])] if is_op(old, *_THROUGH) else []

    def _divided(self, old: Any, new: Any, by: np.float32, inner: list[RelayExpr | None]) -> RelayExpr | None:
        if isinstance(old, Constant):
            return constant(old.data.numpy() / by, "float32")
        if is_op(old, "multiply") and self._own(old) and isinstance(old.args[1], Constant):
            return call("multiply", new.args[0], constant(old.args[1].data.numpy() / by, "float32"), span=new.span)
        if not inner or any(i is None for i in inner):
            return None
        attrs = new.attrs
        if is_op(old, "clip"):
            attrs = attrs.replace(a_min=float(np.float32(attrs.a_min) / by), a_max=float(np.float32(attrs.a_max) / by))
        return Call(new.op, [*inner, *new.args[len(inner):]], attrs, (), new.span)  # type: ignore[list-item]


def fold(func: Function, mod: Any, ctx: Any) -> Function:
    """Divides constants instead of the data that quantisation divides."""
    if not mentions(mod, is_quantised):
        return func
    division = _Division(use_counts(func))

    def rule(old: Any, new: Any) -> RelayExpr:
        if not is_quantised(old):
            return new
        real, by = old.args[0].args
        made = division.of(real, new.args[0].args[0], np.float32(scalar_value(by)))
        return new if made is None else call("rint", made, span=new.span)

    return rewrite_exprs(func, rule)  # type: ignore[return-value]


FoldQuantizeScale = declare_pass("FoldQuantizeScale", 3, fold)
