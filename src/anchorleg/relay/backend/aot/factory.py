"""The factory that ``relay.build`` returns for the ahead-of-time executor."""
from __future__ import annotations

from typing import Any, Mapping, NamedTuple, Sequence

from ....ir.memory_pools import AllocatedPoolInfo, ConstantInfo, ConstantPoolInfo, PoolInfo, WorkspacePoolInfo
from ....ir.module import IRModule, NodeMap
from ....runtime.aot_executor import AotExecutorFactory, AotFacts
from ....runtime.module import Module
from ....tir.usmp.utils import PoolAllocation
from ..memory import MemoryLayout
from .c_module import CLibraryModule
from ..memory.picture import draw
from ..te_compiler import with_schedule
from .main_func import MAIN, main_function
from .metadata import ExecutorCodegenMetadata, FunctionInfo
from .program import WORKSPACE, KernelCall, Program


class BuildFacts(NamedTuple):
    """What a build made besides code."""

    fused: IRModule
    request: Any
    program: Program
    layout: MemoryLayout
    functions: Mapping[str, Any]
    lowered: Mapping[str, Any]
    scratch: Mapping[str, int]
    params: Mapping[str, Any]
    constant_pools: Sequence[Any] = ()


class AOTExecutorFactoryModule(AotExecutorFactory):
    """A model compiled ahead of time.

    ``factory["default"](device)`` makes an instance (through LLVM, or a C compiler for the target ``c``).  ``plan`` is the memory
    plan, ``memory_picture()`` an SVG of it, ``function_metadata`` sizes per function, ``lib`` the code (its ``get_source()`` the C text),
    ``interface_header`` the C header of the entry (empty for builds that only this package calls).
    """

    def __init__(self, library: Module, facts: AotFacts, passed_params: Mapping[str, Any], built: BuildFacts) -> None:
        request = built.request
        super().__init__(library, facts, passed_params, request.mod_name)
        self.ir_mod, self.target, self.executor_config, self.runtime = built.fused, request.target, request.executor, request.runtime
        self.built, self.plan = built, built.layout
        self.params = dict(built.params)
        main = {MAIN: main_function(built.program, built.layout, request.names.of(MAIN), request.target, [p.name for p in request.workspace_pools],
                                    request.options.workspace_alignment)}
        self.lowered_ir_mods = NodeMap({request.target: IRModule({**main, **built.lowered})})
        self.function_metadata = _function_metadata(built)
        self.executor_codegen_metadata = _executor_metadata(built)
        self.devices: list[str] = []
        self.interface_header = library.sources.header if isinstance(library, CLibraryModule) else ""

    def get_params(self) -> dict[str, Any]:
        """The parameters: constants of the model by name."""
        return self.params

    def get_devices(self) -> list[str]:
        """Devices the generated code takes contexts of (none)."""
        return self.devices

    def get_executor_config(self) -> None:
        """Nothing: the program is the code."""
        return None

    def memory_picture(self) -> str:
        """The memory plan as an SVG document: time to the right, addresses upwards."""
        return draw(self.plan, f"{self.name}: working memory")


def _function_metadata(built: BuildFacts) -> dict[str, FunctionInfo]:
    target, program = built.request.target, built.program
    io = sum(t.nbytes for t in (*program.inputs, *program.outputs))
    constants = sum(c.nbytes for c in program.constants)
    main = FunctionInfo({target: built.layout.total}, {target: io}, {target: constants}, {}, {target: built.fused["main"]})
    found = {MAIN: main}
    sizes = _kernel_io(program)
    for name, func in built.functions.items():
        primary = {target: built.lowered[name]} if name in built.lowered else {}
        found[name] = FunctionInfo({target: built.scratch[name]}, {target: sizes.get(name, 0)}, {target: 0}, primary, {target: with_schedule(func, target)})
    return found


def _kernel_io(program: Program) -> dict[str, int]:
    """Bytes that each kernel reads and writes."""
    size = {"input": [t.nbytes for t in program.inputs], "output": [t.nbytes for t in program.outputs],
            "constant": [t.nbytes for t in program.constants], "workspace": [b.size for b in program.buffers]}
    return {s.kernel: sum(size[a.kind][a.index] for a in s.args) for s in program.steps if isinstance(s, KernelCall)}


def _executor_metadata(built: BuildFacts) -> ExecutorCodegenMetadata:
    request, program = built.request, built.program
    declared = {p.name: p.info for p in request.workspace_pools}
    workspaces: dict[str, PoolInfo] = {use.name: declared.get(use.name) or _own_pool(use.name, request.target) for use in built.layout.pools}
    pools = [AllocatedPoolInfo(workspaces[use.name], use.used) for use in built.layout.pools if use.used or use.name in declared]
    pools += [_constant_pool(p, request, program) for p in built.constant_pools]
    allocations = {t.symbol: PoolAllocation(workspaces[built.layout.places[p.index].pool], built.layout.places[p.index].offset)
                   for t, p in zip((*program.inputs, *program.outputs), (*program.input_places, *program.output_places)) if p.kind == WORKSPACE}
    inputs = {f"{p.pool_info.pool_name}_{i}_var": AllocatedPoolInfo(p.pool_info, p.allocated_size, i) for i, p in enumerate(pools)}
    return ExecutorCodegenMetadata([t.symbol for t in program.inputs], [t.info for t in program.inputs], [t.symbol for t in program.outputs],
                                   [t.info for t in program.outputs], list(inputs), [], "aot", request.mod_name, request.options.interface,
                                   request.options.unpacked, request.options.workspace_alignment, request.options.constant_alignment,
                                   inputs, allocations)


def _own_pool(name: str, target: Any) -> WorkspacePoolInfo:
    """The pool that the generated code defines itself."""
    pool = WorkspacePoolInfo(name, [target])
    pool.is_internal = True
    return pool


def _constant_pool(pool: Any, request: Any, program: Program) -> AllocatedPoolInfo:
    declared = next(p.info for p in request.constant_pools if p.name == pool.name)
    contents = [ConstantInfo(program.constants[i].symbol, offset, program.constants[i].data) for i, offset in pool.offsets.items()]
    return AllocatedPoolInfo(ConstantPoolInfo(declared.pool_name, declared.targets, contents, declared.properties), pool.size)
