"""QnnCanonicalize: quantised operators become plain integer operators.

before::

    qnn.requantize(%x : int32, 0.5f, 0, 2f, 10, out_dtype="int8")

after::

    cast(clip(fixed_point_multiply(%x, multiplier=1073741824, shift=-1) + 10, -128, 127), "int8")
"""
from __future__ import annotations

from typing import Any

from ...ir.expr import RelayExpr
from ...ir.module import IRModule
from ...ir.op import Op
from ...ir.transform import ModulePass, Pass, PassContext, PassInfo, register_pass
from ..expr import Call
from .common import map_functions, mentions, rewrite_exprs


def _is_quantised(node: Any) -> bool:
    return isinstance(node, Op) and node.name.startswith("qnn.")


def QnnCanonicalize() -> Pass:
    """The pass; upstream's ``relay.qnn.transform.CanonicalizeOps``."""
    def rule(old: Any, new: Any) -> RelayExpr:
        if not (isinstance(new, Call) and _is_quantised(new.op)):
            return new
        fn = new.op.get_attr("FTVMQnnCanonicalize")
        types = [a.checked_type for a in old.args] + [old.checked_type]
        replaced = fn(new.attrs, list(new.args), types) if fn is not None else None
        if replaced is None:
            return new
        if replaced.span is None:
            replaced.span = new.span
        return replaced

    def run(mod: IRModule, ctx: PassContext) -> IRModule:
        if not mentions(mod, _is_quantised):
            return mod
        from ..op.qnn.canonicalize import attach_rules

        attach_rules()
        return map_functions(mod, lambda f: rewrite_exprs(f, rule))  # type: ignore[arg-type,return-value]

    return ModulePass(run, PassInfo(0, "QnnCanonicalize", ["InferType"]))


register_pass("QnnCanonicalize", QnnCanonicalize)
