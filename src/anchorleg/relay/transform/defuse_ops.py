"""DefuseOps: the inverse of FuseOps; calls of primitive functions become the operators inside them."""
from __future__ import annotations

from typing import Any

from ...ir.expr import RelayExpr
from ...ir.module import IRModule
from ..expr import Call
from ..function import Function
from .bind import substitute
from .common import declare_pass, rewrite_exprs


def _rule(old: Any, new: Any) -> RelayExpr:
    if isinstance(new, Call) and isinstance(new.op, Function) and new.op.get_attr("Primitive"):
        return substitute(new.op.body, dict(zip(new.op.params, new.args)))
    return new


def defuse(func: Function, mod: IRModule, ctx: Any) -> Function:
    """Puts the operators of primitive functions back into the graph."""
    return rewrite_exprs(func, _rule)  # type: ignore[return-value]


DefuseOps = declare_pass("DefuseOps", 3, defuse)
