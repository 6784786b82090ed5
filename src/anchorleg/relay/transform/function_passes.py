"""``function_pass``: makes a pass of a function over one Relay function."""
from __future__ import annotations

from typing import Any, Sequence

from ...ir.transform import ModulePass, PassContext, PassInfo, _pass_class
from ...ir.module import IRModule
from ...support.errors import ArgumentError
from .common import map_functions


def function_pass(pass_func: Any = None, opt_level: int | None = None, name: str | None = None,
                  required: Sequence[str] | None = None, traceable: bool = False) -> Any:
    """A pass from ``(func, mod, ctx) -> func``, or from a class with ``transform_function(func, mod, ctx)``."""
    if opt_level is None:
        raise ArgumentError("function_pass: opt_level is required")

    def create(target: Any) -> Any:
        info = PassInfo(opt_level, name or target.__name__, required, traceable)
        if isinstance(target, type):
            return _pass_class(target, info, lambda self: _over_functions(self.transform_function, info))
        return _over_functions(target, info)

    return create(pass_func) if pass_func is not None else create


class FunctionPass(ModulePass):
    """A pass that works function by function."""


def _over_functions(fn: Any, info: PassInfo) -> FunctionPass:
    def run(mod: IRModule, ctx: PassContext) -> IRModule:
        return map_functions(mod, lambda f: fn(f, mod, ctx))

    return FunctionPass(run, info)
