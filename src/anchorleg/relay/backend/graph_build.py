"""Building for the graph executor: node list, kernels, factory."""
from __future__ import annotations

from typing import Any, Callable, Sequence

from ...ir.module import IRModule
from ...support.cache import open_cache
from ..function import Function
from .aot.metadata import FunctionInfo
from .executor_factory import GraphExecutorFactoryModule, compiled_module
from .external import compile_external
from .graph_executor_codegen import KernelNames, flatten_main, infos_of
from .graph_plan_memory import tensor_bytes
from .kernels import CompiledKernel, KernelBuilder, kernel_key
from .placement import target_of
from .te_compiler import with_schedule


def build_graph(mod: IRModule, target: Any, executor: Any, mod_name: str, progress: Callable[[str, int, int], None] | None,
                ignored: Sequence[str] = (), external_targets: Sequence[Any] = ()) -> GraphExecutorFactoryModule:
    """A fused module as the graph executor's factory module.

    ``ignored`` names parameters that were folded in; ``external_targets`` are the targets of external compilers.
    """
    mod, external = compile_external(mod, external_targets)
    functions: dict[str, Function] = {}
    names = KernelNames(mod_name, lambda f: kernel_key(f, target_of(f, target)), (v.name_hint for v in mod.functions))

    def name_kernel(func: Function) -> str:
        name = names(func)
        functions.setdefault(name, func)
        return name

    code = flatten_main(mod["main"], name_kernel, mod)
    kernels = compile_kernels(functions, target, progress)
    library = external.attach(compiled_module(kernels, target, functions), target)
    return GraphExecutorFactoryModule(mod, target, executor, code, library, mod_name, ignored, functions,
                                      {name: _function_info(func, kernels[name], target_of(func, target)) for name, func in functions.items()})


def _function_info(func: Function, kernel: CompiledKernel, target: Any) -> FunctionInfo:
    io = sum(tensor_bytes(t) for value in (*func.params, func.body) for t in infos_of(value.checked_type, "a kernel"))
    return FunctionInfo({target: kernel.workspace_bytes}, {target: io}, {target: 0}, {}, {target: with_schedule(func, target)})


def compile_kernels(functions: dict[str, Function], target: Any, progress: Callable[[str, int, int], None] | None) -> dict[str, CompiledKernel]:
    """Object code for each named primitive function."""
    done = [0]

    def tick(name: str) -> None:
        done[0] += 1
        if progress is not None:
            progress(name, done[0], len(functions))

    with KernelBuilder(cache=open_cache("kernels")) as builder:
        keys = {name: builder.request(func, target_of(func, target)) for name, func in functions.items()}
        kernels = {}
        for name, key in keys.items():
            kernels[name] = builder.result(key)
            tick(name)
    return kernels
