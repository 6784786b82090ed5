"""SplitArgs: a concatenation of more tensors than a kernel may have arguments is taken in several steps.

before::

    concatenate((%a, %b, %c, %d), axis=1)                      # max_function_args=4

after::

    %0 = concatenate(annotation.stop_fusion((%a, %b, %c)), axis=1); concatenate(annotation.stop_fusion((%0, %d)), axis=1)
"""
from __future__ import annotations

from typing import Any

from ...ir.expr import RelayExpr
from ...ir.module import IRModule
from ...ir.transform import ModulePass, Pass, PassContext, PassInfo, register_pass
from ...ir.type import TensorType
from ..expr import Call, Tuple
from .common import call, is_op, map_functions, rewrite_exprs


def _arguments(ty: Any) -> int:
    """How many arguments a tensor takes: itself and, where its shape is dynamic, the unknown extents and all strides."""
    if not isinstance(ty, TensorType) or ty.is_static:
        return 1
    return 1 + sum(not isinstance(d, int) for d in ty.dims) + len(ty.dims)


def _joined(parts: list[RelayExpr], node: Call) -> RelayExpr:
    return call("concatenate", call("annotation.stop_fusion", Tuple(parts)), attrs=node.attrs, span=node.span)


def split(old: Call, new: Call, limit: int) -> RelayExpr:
    """One concatenation in steps of at most ``limit`` arguments, the result counted."""
    parts = new.args[0]
    if not isinstance(parts, Tuple):
        return new
    ty = old.checked_type
    limit -= 1 if ty.is_static else len(ty.dims) + 1  # type: ignore[attr-defined]
    counts = [_arguments(t) for t in old.args[0].checked_type.fields]  # type: ignore[attr-defined]
    if sum(counts) < limit:
        return new
    held: list[RelayExpr] = []
    used = 0
    for part, count in zip(parts.fields, counts):
        if used + count > limit and held:
            held = [_joined(held, new)]
            used = count
        used += count
        held.append(part)
    return _joined(held, new)


def SplitArgs(max_function_args: int) -> Pass:
    """Splits concatenations so that no kernel takes more than ``max_function_args`` arguments; 0: no limit."""

    def rule(old: Any, new: Any) -> RelayExpr:
        return split(old, new, max_function_args) if is_op(new, "concatenate") else new

    def run(mod: IRModule, ctx: PassContext) -> IRModule:
        return map_functions(mod, lambda f: rewrite_exprs(f, rule)) if max_function_args > 0 else mod  # type: ignore[arg-type,return-value]

    return ModulePass(run, PassInfo(1, "SplitArgs", ["InferType"]))


register_pass("SplitArgs", lambda: SplitArgs(0))
__all__ = ["SplitArgs"]
