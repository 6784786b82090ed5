"""``function_pass``: makes a pass of a function over one Relay function."""
from __future__ import annotations

from typing import Any, Sequence

from ...ir.module import IRModule
from ...ir.transform import ModulePass, PassContext, PassInfo, pass_decorator
from .common import map_functions


def function_pass(pass_func: Any = None, opt_level: int | None = None, name: str | None = None,
                  required: Sequence[str] | None = None, traceable: bool = False) -> Any:
    """A pass from ``(func, mod, ctx) -> func``, or from a class with ``transform_function(func, mod, ctx)``."""
    return pass_decorator("function_pass", "transform_function", _over_functions)(pass_func, opt_level, name, required, traceable)


class FunctionPass(ModulePass):
    """A pass that works function by function."""


def _over_functions(fn: Any, info: PassInfo) -> FunctionPass:
    def run(mod: IRModule, ctx: PassContext) -> IRModule:
        return map_functions(mod, lambda f: fn(f, mod, ctx))

    return FunctionPass(run, info)
