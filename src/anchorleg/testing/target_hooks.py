"""The target kind ``example_target_hook``, on which tests try what kinds of external compilers can bring along.

Its pass (``RelayToTIR``) makes loop programs that subtract of functions that add, less the option ``example_attribute``; its ``TIRToRuntime``,
used for functions with the attribute ``tir_to_runtime``, writes C code that multiplies where the loop program subtracts.
"""
from __future__ import annotations

from typing import Any

from .. import te
from ..driver.build_module import lower
from ..ir.expr import FloatImm
from ..ir.module import IRModule
from ..ir.transform import ModulePass, PassContext, PassInfo, Sequential
from ..relay.function import Function
from ..relay.transform.compiler_functions import OutlineCompilerFunctionsWithExistingGlobalSymbols
from ..runtime.source_module import CSourceModule
from ..target.codegen.c import emit_c_kernel
from ..target.codegen.c.packed import packed_source
from ..target.kinds import INT, register_kind
from ..target.target import Target
from ..tir.expr import Mul
from ..tir.functor import ir_transform

NAME = "example_target_hook"


def _less() -> int:
    """The option of the current target, when it is of this kind."""
    current = Target.current()
    return int(current.attrs.get("example_attribute", 0)) if current is not None and current.kind.name == NAME else 0


def _difference(symbol: str, func: Function) -> Any:
    """``x - y - less`` over the shape of the function's result."""
    ty = func.body.checked_type
    x, y = (te.placeholder(ty.concrete_shape, ty.dtype, name=n) for n in "xy")
    less = _less()
    result = te.compute(ty.concrete_shape, lambda *i: x(*i) - y(*i) - FloatImm(ty.dtype, less) if less else x(*i) - y(*i), name="out")
    program = lower(te.create_schedule(result.op), [x, y, result], symbol)[symbol]
    return program.with_attr("target", Target(NAME if func.get_attr("tir_to_runtime") else "llvm"))


def _lower_functions(mod: IRModule, ctx: PassContext) -> IRModule:
    functions: dict[Any, Any] = {}
    for var, func in mod.functions.items():
        if isinstance(func, Function) and func.get_attr("Compiler") == NAME:
            var._checked_type = func.checked_type
            func = _difference(var.name_hint, func)
        functions[var] = func
    return mod.with_functions(functions)


def _multiplying(func: Any) -> Any:
    return func.with_body(ir_transform(func.body, None, lambda n: Mul(n.a, n.b), ["tir.Sub"]))


def _to_runtime(mod: IRModule, target: Target) -> CSourceModule:
    """C code of loop programs, each behind a packed function."""
    kernels = [(v.name_hint, emit_c_kernel(_multiplying(f), f"{v.name_hint}_kernel")) for v, f in mod.functions.items()]
    return CSourceModule(packed_source("Products instead of differences", kernels), "c", [name for name, _ in kernels])


_PASS = Sequential([OutlineCompilerFunctionsWithExistingGlobalSymbols(NAME), ModulePass(_lower_functions, PassInfo(0, "ExampleTargetHook", ["InferType"]))])
KIND = register_kind(NAME, 1, options={"example_attribute": INT}, defaults={"example_attribute": 0},
                     attributes={"is_external_codegen": True, "RelayToTIR": _PASS, "TIRToRuntime": _to_runtime})
