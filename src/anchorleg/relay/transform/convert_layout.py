"""ConvertLayout: the whole graph moves to layouts that the caller names.

``ConvertLayout({"nn.conv2d": ["NHWC", "default"]})`` makes every conv2d work in NHWC; layout transforms appear only where
layout-bound neighbours need them.
"""
from __future__ import annotations

from typing import Mapping, Sequence

from ...ir.expr import RelayExpr
from ...ir.module import IRModule
from ...ir.op import Op
from ...ir.transform import ModulePass, Pass, PassContext, PassInfo
from ...support.errors import ArgumentError
from ..expr import Call
from .common import map_functions
from .layout.rewrite import LayoutRewriter


def ConvertLayout(desired_layouts: Mapping[str, Sequence[str]]) -> Pass:
    """Moves the named operators to the named layouts (one per layout-bound argument; ``default`` picks the usual one)."""
    wanted = {name: [str(x) for x in layouts] for name, layouts in desired_layouts.items()}
    for name in wanted:
        if not Op.get(name).has_attr("FTVMConvertOpLayout"):
            raise ArgumentError(f"ConvertLayout: operator {name!r} has no rule for converting its layout")

    def convert(call: Call, args: Sequence[RelayExpr]) -> RelayExpr | None:
        if call.op.name not in wanted:
            return None
        fn = call.op.get_attr("FTVMConvertOpLayout")
        infos = [a.checked_type for a in call.args] + [call.checked_type]
        return fn(call.attrs, list(args), infos, wanted[call.op.name])

    def run(mod: IRModule, ctx: PassContext) -> IRModule:
        return map_functions(mod, lambda f: LayoutRewriter(convert).rewrite(f))

    return ModulePass(run, PassInfo(3, "ConvertLayout", ["InferType"]))


