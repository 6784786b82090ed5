"""FastMath: ``exp``, ``tanh``, ``erf`` and softmax become their faster, less accurate forms (level 4 only)."""
from __future__ import annotations

from typing import Any

from ...ir.expr import RelayExpr
from ...ir.module import IRModule
from ...ir.op import Op
from ..expr import Call
from ..function import Function
from .common import declare_pass, rewrite_exprs

FAST = {"exp": "fast_exp", "tanh": "fast_tanh", "erf": "fast_erf", "nn.softmax": "nn.fast_softmax"}


def _rule(old: Any, new: Any) -> RelayExpr:
    if not isinstance(new, Call) or not isinstance(new.op, Op) or new.op.name not in FAST:
        return new
    ty = old.checked_type
    return new.replace(op=Op.get(FAST[new.op.name])) if getattr(ty, "dtype", "") == "float32" else new


def fast_math(func: Function, mod: IRModule, ctx: Any) -> Function:
    """Replaces transcendental functions of float32 by their fast forms; NaN stays NaN."""
    return rewrite_exprs(func, _rule)  # type: ignore[return-value]


FastMath = declare_pass("FastMath", 4, fast_math)
