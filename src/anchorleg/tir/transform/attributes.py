"""Passes that set attributes of functions, and one that picks functions."""
from __future__ import annotations

from typing import Any, Callable

from ...ir.module import IRModule
from ...ir.transform import ModulePass, Pass, PassContext, PassInfo, register_pass
from ...target.target import Target
from ..function import PrimFunc
from .common import func_pass

_ENTRY, _SYMBOL = "tir.is_entry_func", "global_symbol"


def bind_target(func: PrimFunc, target: Any) -> PrimFunc:
    """The function with the attribute ``target``: the one it has, else the given one.

    The target's host belongs to functions that are called from outside (those with a ``global_symbol``); others go without.
    """
    given, own = Target(target), func.get_attr("target")
    exposed = func.get_attr(_SYMBOL) is not None
    if own is None:
        return func.with_attr("target", given if exposed else _without_host(given))
    if exposed and own.host is None and given.host is not None:
        return func.with_attr("target", Target(own, given.host))
    return func


def _without_host(target: Target) -> Target:
    return target if target.host is None else Target({k: v for k, v in target.export().items() if k != "host"})


BindTarget = func_pass("BindTarget", bind_target)


def AnnotateEntryFunc() -> Pass:
    """Marks the function that a module is entered by (``tir.is_entry_func``): its only one, or the only one called from outside."""
    def run(mod: IRModule, ctx: PassContext) -> IRModule:
        functions = dict(mod.functions)
        exposed = functions if len(functions) == 1 else {g: f for g, f in functions.items() if f.get_attr(_SYMBOL) is not None}
        if len(exposed) != 1 or not all(isinstance(f, PrimFunc) for f in exposed.values()):
            return mod
        return mod.with_functions({g: f.with_attr(_ENTRY, True) if g in exposed and not f.get_attr(_ENTRY) else f for g, f in functions.items()})

    return ModulePass(run, PassInfo(0, "tir.AnnotateEntryFunc"))


def Filter(fcond: Callable[[PrimFunc], bool]) -> Pass:
    """Keeps the loop programs that ``fcond`` holds for, and functions of other languages."""
    def run(mod: IRModule, ctx: PassContext) -> IRModule:
        return mod.with_functions({g: f for g, f in mod.functions.items() if not isinstance(f, PrimFunc) or fcond(f)})

    return ModulePass(run, PassInfo(0, "tir.Filter"))


register_pass("tir.AnnotateEntryFunc", AnnotateEntryFunc)
