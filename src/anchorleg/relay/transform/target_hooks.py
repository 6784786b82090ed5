"""The passes that target kinds bring along for the functions of their external compilers (``RelayToTIR``).

A kind's pass is given the whole module.  It turns functions with ``Compiler="<kind>"`` into loop programs, or into functions marked
``Extern`` with their code in the module's attribute ``external_mods`` and their constants in ``const_name_to_constant``.
"""
from __future__ import annotations

import contextlib
from typing import Any, Sequence

from ...ir.module import IRModule
from ...ir.transform import ModulePass, Pass, PassContext, PassInfo
from ...support.errors import BuildError, TypeMismatchError
from ..analysis.variables import exprs
from ..function import Function

HOOK = "RelayToTIR"


def compiler_of(node: Any) -> str | None:
    """The external compiler that a function is for; None for other things and for functions that are compiled already."""
    if not isinstance(node, Function) or node.get_attr("Extern"):
        return None
    name = node.get_attr("Compiler")
    return None if name is None else str(name)


def external_functions(mod: IRModule) -> dict[str, list[str]]:
    """Compiler → symbols of its functions, global ones and literals, in the order of the functions' names."""
    found: dict[str, list[str]] = {}
    for var, func in mod.functions_items():
        if compiler_of(func) is not None:
            found.setdefault(compiler_of(func), []).append(var.name_hint)  # type: ignore[arg-type]
        elif isinstance(func, Function) and not func.get_attr("Extern"):
            for node in exprs(func.body):
                if compiler_of(node) is not None:
                    found.setdefault(compiler_of(node), []).append(str(node.get_attr("global_symbol", "(no symbol)")))  # type: ignore[attr-defined,arg-type]
    return found


def has_external(mod: IRModule) -> bool:
    """Whether a module has functions that are not compiled as Relay: of external compilers, or loop programs."""
    return any(not isinstance(f, Function) for f in mod.functions.values()) or bool(external_functions(mod))


def RelayToTIRTargetHook(targets: Sequence[Any] = ()) -> Pass:
    """Runs the pass of each target kind that a function names as its compiler.

    ``targets`` are the targets of external compilers that the user gave: the one of a pass's kind is the current target while it runs.
    """
    def run(mod: IRModule, ctx: PassContext) -> IRModule:
        from ...target.kinds import KINDS

        for compiler, symbols in external_functions(mod).items():
            hook = KINDS[compiler].get_attr(HOOK) if compiler in KINDS else None
            if hook is not None:
                mod = _hooked(mod, hook, compiler, symbols, next((t for t in targets if t.kind.name == compiler), None))
        return mod

    return ModulePass(run, PassInfo(0, "RelayToTIRTargetHook", ["InferType"]))


def _hooked(mod: IRModule, hook: Pass, compiler: str, symbols: Sequence[str], target: Any) -> IRModule:
    try:
        with target if target is not None else contextlib.nullcontext():
            result = hook(mod)
    except Exception as exc:
        raise BuildError(f"the external compiler {compiler!r} (the {HOOK} pass of its target kind) failed on the functions {', '.join(symbols)}: "
                         f"{type(exc).__name__}: {exc}") from exc
    if not isinstance(result, IRModule):
        raise TypeMismatchError(f"the {HOOK} pass of the external compiler {compiler!r}, run for the functions {', '.join(symbols)}, is expected to return "
                                f"an IRModule, got {type(result).__name__}")
    return result


__all__ = ["HOOK", "RelayToTIRTargetHook", "compiler_of", "external_functions", "has_external"]
