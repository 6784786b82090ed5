"""Legalize: operators that a target can't take, or takes badly, become others with the same meaning.

The rules are attached to operators as ``FTVMLegalize``: ``fn(attrs, inputs, types) -> expr | None``, where ``types`` are the
argument types followed by the result type.
"""
from __future__ import annotations

from typing import Any

from ...ir.expr import RelayExpr
from ...ir.module import IRModule
from ...ir.op import Op
from ...ir.transform import ModulePass, Pass, PassContext, PassInfo, register_pass
from ..expr import Call
from .common import map_functions, mentions, rewrite_exprs


def Legalize(legalize_map_attr_name: str = "FTVMLegalize") -> Pass:
    """Applies each operator's rule attached under ``legalize_map_attr_name``."""

    def rule(old: Any, new: Any) -> RelayExpr:
        fn = new.op.get_attr(legalize_map_attr_name) if isinstance(new, Call) and isinstance(new.op, Op) else None
        if fn is None:
            return new
        replaced = fn(new.attrs, list(new.args), [a.checked_type for a in old.args] + [old.checked_type])
        return new if replaced is None else replaced

    def run(mod: IRModule, ctx: PassContext) -> IRModule:
        if not mentions(mod, lambda n: isinstance(n, Op) and n.has_attr(legalize_map_attr_name)):
            return mod
        return map_functions(mod, lambda f: rewrite_exprs(f, rule))  # type: ignore[arg-type,return-value]

    return ModulePass(run, PassInfo(1, "Legalize", ["InferType"]))


register_pass("Legalize", Legalize)
