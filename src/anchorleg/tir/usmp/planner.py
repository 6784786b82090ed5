"""``UnifiedStaticMemoryPlanner``: the whole way from a module's allocations to places in pools."""
from __future__ import annotations

from typing import Any, Callable

from ...ir.module import IRModule
from ...ir.transform import ModulePass, Pass, PassContext, PassInfo, register_pass
from ...runtime.registry import get_global_func
from ...support.errors import ArgumentError
from .algo import greedy_by_conflicts, greedy_by_size, hill_climb
from .analysis import extract_buffer_info
from .io_allocates import create_allocates_for_io
from .transform import assign_pool_info, convert_pool_allocations_to_offsets
from .utils import assign_stmt_pool_allocations, get_io_pool_allocations

_MAIN, _DEFAULT = "__tvm_main__", "greedy_by_size"
_ALGORITHMS: dict[str, Callable[..., Any]] = {"greedy_by_size": greedy_by_size, "greedy_by_conflicts": greedy_by_conflicts, "hill_climb": hill_climb}


def UnifiedStaticMemoryPlanner() -> Pass:
    """The pass: finds the buffers of ``__tvm_main__`` and of what it calls, places them, and puts the places into the program.

    Options of the PassContext: ``tir.usmp.algorithm``; ``tir.usmp.custom_algorithm``, a function registered as
    ``tir.usmp.algo.<name>``; ``tir.usmp.use_workspace_io``, which plans inputs and outputs too (module attribute
    ``io_tensor_pool_allocations``) and needs the executor's ``interface-api`` to be ``c``.
    """
    def run(mod: IRModule, ctx: PassContext) -> IRModule:
        with_io = bool(ctx.get("tir.usmp.use_workspace_io", False))
        executor = mod.get_attr("executor", None)
        if with_io and (executor is None or executor.get("interface-api", "packed") != "c"):
            raise ArgumentError("tir.usmp.use_workspace_io option is only compatible with interface_api c.\n"
                                "Please use interface_api c to be able to enable tir.usmp.use_workspace_io")
        return _planned(mod, _algorithm(ctx), with_io)

    return ModulePass(run, PassInfo(0, "tir.transform.UnifiedStaticMemoryPlanner"))


def _algorithm(ctx: PassContext) -> Callable[..., Any]:
    custom = ctx.get("tir.usmp.custom_algorithm", None)
    if custom:
        found = get_global_func(f"tir.usmp.algo.{custom}", allow_missing=True)
        if found is None:
            raise ArgumentError(f"The selected custom USMP algorithm : {custom} is not defined. Please register it as tir.usmp.algo.{custom}")
        return found
    name = ctx.get("tir.usmp.algorithm", None) or _DEFAULT
    if name not in _ALGORITHMS:
        raise ArgumentError(f"The selected USMP algorithm : {name} is not defined; there are: {', '.join(_ALGORITHMS)}")
    return _ALGORITHMS[name]


def _planned(mod: IRModule, algorithm: Callable[..., Any], with_io: bool) -> IRModule:
    mod = assign_pool_info()(create_allocates_for_io()(mod) if with_io else mod)
    if _MAIN not in mod:
        raise ArgumentError(f"the module has no function {_MAIN!r}, whose memory is planned: run AOTLowerMain first")
    found = extract_buffer_info(mod[_MAIN], mod)
    places = algorithm(list(found.buffer_info_stmts), found.memory_pressure)
    planned = convert_pool_allocations_to_offsets(assign_stmt_pool_allocations(found.buffer_info_stmts, places))(mod)
    return planned.with_attr("io_tensor_pool_allocations", get_io_pool_allocations(places)) if with_io else planned


register_pass("tir.transform.UnifiedStaticMemoryPlanner", UnifiedStaticMemoryPlanner)

__all__ = ["UnifiedStaticMemoryPlanner"]
