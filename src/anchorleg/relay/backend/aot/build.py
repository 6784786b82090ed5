"""Building ahead of time: fused module → program → memory plan → C sources or LLVM objects → factory."""
from __future__ import annotations

from typing import Any, Callable, Sequence

import numpy as np

from ....ir.module import IRModule
from ....runtime.aot_executor import AotFacts, TensorFacts, pool_contents_name
from ....support.errors import ArgumentError, TypeMismatchError, UnsupportedOpError
from ....support.memory import collector_paused
from ...function import Function
from ..executor_factory import compiled_module
from ..external import compile_external
from ..graph_build import compile_kernels
from ..graph_executor_codegen import GraphCode, KernelNames, flatten_main
from ..kernels import CompiledKernel, kernel_key
from ..memory import MemoryLayout
from ..te_compiler import TECompiler
from ..utils import mangle_module_name
from .c_module import CLibraryModule
from .c_source import CWriter, Names
from .factory import AOTExecutorFactoryModule, BuildFacts
from .foreign import ForeignCode
from .llvm_text import LLVMMain, entry_arguments
from .options import AotOptions, check_options
from .plan import plan_workspace
from .pools import declared_pools, place_constants
from .program import Choices, Program, build_program, origin_of

Progress = Callable[[str, int, int], None]


class Request:
    """What a build is for: names, target, options, pools."""

    def __init__(self, target: Any, executor: Any, runtime: Any, mod_name: str, workspace_pools: Any = None, constant_pools: Any = None,
                 progress: Progress | None = None, external_targets: Sequence[Any] = ()) -> None:
        from ....runtime.name_transforms import sanitize_name

        self.target, self.executor, self.runtime, self.mod_name = target, executor, runtime, mod_name
        self.options: AotOptions = check_options(executor, runtime, target)
        self.names = Names(sanitize_name(mangle_module_name(mod_name)))
        self.workspace_pools, self.constant_pools = declared_pools(workspace_pools, constant_pools, self.options.is_c_interface, target)
        self.progress = progress or (lambda name, done, total: None)
        self.external_targets = list(external_targets)


def build_aot(fused: IRModule, request: Request, ignored: Sequence[str] = ()) -> AOTExecutorFactoryModule:
    """A fused module as an ahead-of-time factory."""
    fused, external = compile_external(fused, request.external_targets)
    functions: dict[str, Function] = {}
    names = KernelNames(request.mod_name, lambda f: kernel_key(f, request.target), (v.name_hint for v in fused.functions))

    def name_kernel(func: Function) -> str:
        name = names(func)
        functions.setdefault(name, func)
        return name

    try:
        code = flatten_main(fused["main"], name_kernel, fused)
    except (TypeMismatchError, UnsupportedOpError) as exc:
        raise type(exc)(str(exc).replace("the graph executor", "the ahead-of-time executor")) from exc
    foreign = ForeignCode(code, fused, external, request.target)
    return _BUILDERS[request.target.kind.name](fused, foreign.renamed(code), functions, request, foreign)


def _output_names(fused: IRModule) -> list[str]:
    given = fused["main"].get_attr("output_tensor_names")
    return [str(n) for n in given] if given else []


def _plan(program: Program, request: Request, alignment: int) -> MemoryLayout:
    options = request.options
    return plan_workspace(program.buffers, request.workspace_pools, request.target, alignment, options.algorithm, options.custom_algorithm)


# -- C


def _build_c(fused: IRModule, code: GraphCode, functions: dict[str, Function], request: Request, foreign: ForeignCode) -> AOTExecutorFactoryModule:
    from ....target.codegen.c import emit_c_kernel

    compiler, lowered = TECompiler(), {}
    for done, (name, func) in enumerate(functions.items()):
        lowered[name] = compiler.lower(func, request.target).prim_func.with_attr("global_symbol", name)
        request.progress(name, done + 1, len(functions))
    lowered.update(foreign.lowered())
    first = {name: emit_c_kernel(f, name) for name, f in lowered.items()}
    choices = Choices(in_place=True, merge_constants=request.options.link_params, workspace_io=request.options.workspace_io)
    program = build_program(code, functions, lambda name: first[name].workspace_bytes if name in first else 0, _output_names(fused), choices)
    layout = _plan(program, request, request.options.workspace_alignment)
    origins = _origins(code, functions)
    in_place = {s.kernel for s in program.steps if getattr(s, "in_place", False)}
    kernels = [*(emit_c_kernel(f, name, origins.get(name, ""), name in in_place) for name, f in lowered.items()), *foreign.c_adapters()]
    constant_pools = place_constants(program.constants, request.constant_pools, request.options.constant_alignment)
    writer = CWriter(request.names, program, layout, kernels, request.options, [p.name for p in request.workspace_pools], constant_pools)
    sources = writer.sources()
    library = CLibraryModule(sources._replace(files={**sources.files, **foreign.c_files()}), f"{request.names.prefix}.h", [*functions, writer.names.of("__tvm_main__")])
    structures = tuple(kind for kind, *_ in writer.entry_structures())
    pools = [(p.name, max(1, p.used)) for p in layout.pools if p.name in writer.external] + [(p.name, p.size) for p in constant_pools]
    unlinked = {c.name: c.data for i, c in enumerate(program.constants) if not writer.linked and i not in writer.pooled}
    maps = (writer.names.of("map_inputs"), writer.names.of("map_outputs")) if request.options.workspace_io else None
    facts = AotFacts(writer.names.of("run"), _tensors(program.inputs), _tensors(program.outputs), structures, tuple(pools), None, tuple(unlinked), maps,
                     any(p.used and p.name not in writer.external for p in layout.pools))
    built = BuildFacts(fused, request, program, layout, functions, lowered, {n: k.workspace_bytes for n, k in first.items()}, code.params, constant_pools)
    contents = {pool_contents_name(p.name): np.frombuffer(writer.pool_contents(p), np.uint8) for p in constant_pools}
    return AOTExecutorFactoryModule(library, facts, {**unlinked, **contents}, built)


def _origins(code: GraphCode, functions: dict[str, Function]) -> dict[str, str]:
    found: dict[str, str] = {}
    for node in code.nodes:
        if node.func_name in functions and node.func_name not in found:
            found[str(node.func_name)] = origin_of(node, functions[str(node.func_name)])
    return found


def _tensors(tensors: Sequence[Any]) -> tuple[TensorFacts, ...]:
    return tuple(TensorFacts(t.name, t.symbol, tuple(t.info.shape), t.info.dtype) for t in tensors)


# -- LLVM


def _build_llvm(fused: IRModule, code: GraphCode, functions: dict[str, Function], request: Request, foreign: ForeignCode) -> AOTExecutorFactoryModule:
    from ....target.cpu import resolve_cpu

    if request.constant_pools:
        raise ArgumentError("constant_memory_pools need the target c: an LLVM object keeps its constants in its own read-only section")
    kernels = compile_kernels(functions, request.target, request.progress)
    cpu = resolve_cpu(request.target)
    hosted = request.options.runtime == "cpp"
    if not hosted:
        foreign.check_embedded()
    threaded = any(k.workspace_bytes_per_task for k in kernels.values())
    scratch_apart = hosted and threaded
    program = build_program(code, functions, lambda n: kernels[n].workspace_bytes if n in kernels and not scratch_apart else 0, _output_names(fused),
                            Choices(merge_constants=request.options.link_params))
    layout = _plan(program, request, max(64, request.options.workspace_alignment))
    names, external = request.names, [p.name for p in request.workspace_pools]
    linked = request.options.link_params
    arguments = ["inputs", "outputs", "workspace_pools", "params"] if hosted else entry_arguments(
        ("inputs", program.inputs), ("outputs", program.outputs), ("workspace_pools", external), ("params", not linked and program.constants))
    entry = names.of("__tvm_main__" if hosted else "run")
    programs = foreign.compiled()
    symbols = {**{name: k.fast_symbol for name, k in kernels.items()}, **programs.symbols, **{f.adapter: f.adapter for f in foreign.functions.values()}}
    main = LLVMMain(entry, program, layout, symbols, hosted, cpu.pointer_bytes, arguments, external, linked, max(64, request.options.constant_alignment))
    library = _link_llvm(main.text(), entry, kernels, request, foreign, programs.objects)
    most = (max((k.workspace_bytes for k in kernels.values()), default=0), max((k.workspace_bytes_per_task for k in kernels.values()), default=0))
    given = [p for p in layout.pools if hosted or p.name in external]
    passed = {c.name: c.data for c in program.constants} if hosted or not linked else {}
    facts = AotFacts(entry, _tensors(program.inputs), _tensors(program.outputs), tuple(arguments), tuple((p.name, max(1, p.used)) for p in given),
                     most if scratch_apart else None, tuple(passed), None, not hosted and any(p.used and p.name not in external for p in layout.pools))
    sizes = {n: k.workspace_bytes for n, k in kernels.items()}
    built = BuildFacts(fused, request, program, layout, functions, {}, sizes, code.params)
    factory = AOTExecutorFactoryModule(library, facts, passed, built)
    if not hosted:
        factory.interface_header = CWriter(names, program, layout, (), request.options, external).header()
    return factory


def _link_llvm(text: str, entry: str, kernels: dict[str, CompiledKernel], request: Request, foreign: ForeignCode, more: Sequence[bytes]) -> Any:
    from ....runtime.compiled import CompiledModule, KernelInfo
    from ....target.build.llvm import compile_text

    made = compiled_module(kernels, request.target)
    table = {**made.kernels, entry: KernelInfo(fast=entry)}
    texts = [text, *([foreign.llvm_adapters()] if foreign.functions else [])]
    objects = [*made.objects, *more, *(compile_text(t, request.target) for t in texts)]
    library = CompiledModule(objects, table, made.triple, made.cpu, made.features, {"ll": text, "": text}, foreign=list(foreign.functions))
    return foreign.attach(library)


_BUILDERS: dict[str, Callable[..., AOTExecutorFactoryModule]] = {"c": _build_c, "llvm": _build_llvm}


def build_for_executor(mod: IRModule, target: Any, executor: Any, mod_name: str, progress: Progress | None, folded: Sequence[str],
                       runtime: Any = None, workspace_memory_pools: Any = None, constant_memory_pools: Any = None,
                       external_targets: Sequence[Any] = ()) -> AOTExecutorFactoryModule:
    """What ``relay.build`` calls for ``Executor("aot")`` with an optimised module."""
    from ...transform.pipelines import FUSE, pipeline
    from ..runtime import Runtime

    request = Request(target, executor, runtime or Runtime("cpp"), mod_name, workspace_memory_pools, constant_memory_pools, progress, external_targets)
    with collector_paused(), target:
        return build_aot(pipeline(FUSE)(mod), request, folded)
