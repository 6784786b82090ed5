"""The factories that ``relay.build`` returns: compiled models that still know the module they came from."""
from __future__ import annotations

from typing import Any, Mapping, Sequence

from ...runtime.compiled import CKernelModule, CompiledModule, KernelInfo
from ...runtime.executor_factory import GraphExecutorFactory
from ...target.build.c import is_c
from .graph_arena import arena_bytes
from .graph_executor_codegen import GraphCode
from .graph_plan_memory import MemoryPlan
from .kernels import CompiledKernel, kernel_sources


class ExecutorFactoryModule(GraphExecutorFactory):
    """Base of the factories."""


class GraphExecutorFactoryModule(ExecutorFactoryModule):
    """A model compiled for the graph executor.

    ``factory["default"](device)`` makes an executor; unpacks as ``graph_json, lib, params``.  ``ir_mod`` is the fused
    module, ``graph_code`` the node list with its memory plan, ``functions`` the primitive functions and
    ``function_metadata`` their sizes by name.
    """

    def __init__(self, ir_mod: Any, target: Any, executor: Any, graph_code: GraphCode, lib: CompiledModule, libmod_name: str = "default",
                 ignored: Sequence[str] = (), functions: Mapping[str, Any] | None = None,
                 function_metadata: Mapping[str, Any] | None = None) -> None:
        super().__init__(graph_code.json, lib, graph_code.params, libmod_name, ignored)
        self.ir_mod, self.target, self.executor_config = ir_mod, target, executor
        self.graph_code, self.functions = graph_code, dict(functions or {})
        self.function_metadata = dict(function_metadata or {})

    @property
    def plan(self) -> MemoryPlan:
        """The memory plan: storage of every tensor, and the bytes planned."""
        return self.graph_code.plan

    @property
    def working_bytes(self) -> int:
        """Bytes of the arena that holds what is neither input nor constant."""
        return arena_bytes(self.graph_code.nodes, self.graph_code.heads)

    def get_devices(self) -> list[Any]:
        """Devices chosen at build time (none: the caller's)."""
        return []


def compiled_module(kernels: Mapping[str, CompiledKernel], target: Any, functions: Mapping[str, Any] | None = None) -> CompiledModule:
    """The kernels by name as one module; kernels of several names that share code hold it once.

    With the primitive ``functions`` they were made of, the module can show its code as text.
    """
    from ...runtime.llvm import host_triple
    from ...target.build.llvm import required_features
    from ...target.cpu import resolve_cpu

    table = {name: KernelInfo(k.symbol if k.has_packed else "", k.fast_symbol, k.workspace_bytes, k.workspace_bytes_per_task) for name, k in kernels.items()}
    objects = {k.symbol: k.code for k in kernels.values()}
    sources = kernel_sources(functions, target) if functions else None
    if is_c(target):
        return CKernelModule(list(objects.values()), table, host_triple(), sources=sources)
    cpu = resolve_cpu(target)
    return CompiledModule(list(objects.values()), table, cpu.triple, cpu.cpu, required_features(target), sources)

