"""RemoveUnusedFunctions: global functions that no entry function reaches go."""
from __future__ import annotations

from typing import Sequence

from ...ir.expr import GlobalVar
from ...ir.module import IRModule
from ...ir.transform import ModulePass, Pass, PassContext, PassInfo, register_pass
from ..function import Function
from .inline import callees


def reachable(mod: IRModule, entries: Sequence[str]) -> set[GlobalVar]:
    """The functions that the entries call, directly or not, and the entries themselves."""
    found: set[GlobalVar] = set()
    stack = [mod.get_global_var(name) for name in entries if name in mod]
    while stack:
        var = stack.pop()
        if var in found or var not in mod.functions:
            continue
        found.add(var)
        func = mod.functions[var]
        if isinstance(func, Function):
            stack.extend(mod.get_global_var(c.name_hint) for c in callees(func) if c.name_hint in mod)
    return found


def RemoveUnusedFunctions(entry_functions: Sequence[str] | None = None) -> Pass:
    """Keeps what the entry functions (default: ``main``) reach; functions in other languages always stay."""

    def run(mod: IRModule, ctx: PassContext) -> IRModule:
        keep = reachable(mod, entry_functions or ["main"])
        return mod.with_functions({v: f for v, f in mod.functions.items() if v in keep or not isinstance(f, Function)})

    return ModulePass(run, PassInfo(1, "RemoveUnusedFunctions", []))


register_pass("RemoveUnusedFunctions", RemoveUnusedFunctions)
