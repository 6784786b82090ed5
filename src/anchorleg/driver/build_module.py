"""``lower`` and ``build``: from schedules to loop programs, and on to machine code."""
from __future__ import annotations

from typing import TYPE_CHECKING, Any, Callable, Mapping, Sequence

from ..ir.module import IRModule
from ..support.errors import ArgumentError, TargetError
from ..support.names import c_identifier
from ..te.lower.prim_func import schedule_to_prim_func
from ..te.schedule import Schedule
from ..te.tensor import Tensor
from ..tir.buffer import Buffer
from ..tir.expr import Var
from ..tir.function import PrimFunc
from .pipeline import lowering_passes, run_passes

if TYPE_CHECKING:
    from ..runtime.module import Module
    from ..target.target import Target


def get_binds(args: Sequence[Any], compact: bool = False, binds: Mapping[Tensor, Buffer] | None = None) -> tuple[dict[Tensor, Buffer], list[Any]]:
    """The buffer of each tensor argument, and the arguments with tensors replaced by their buffers."""
    table = dict(binds or {})
    for a in args:
        if isinstance(a, Tensor) and a not in table:
            table[a] = Buffer(None, a.dtype, a.shape, (), 0, a.name)
    return table, [table[a] if isinstance(a, Tensor) else a for a in args]


def schedule_to_module(sch: Schedule, args: Sequence[Any], name: str = "main", binds: Mapping[Tensor, Buffer] | None = None) -> IRModule:
    """The loop program of a schedule before any pass: multi-dimensional buffers, ``BufferRealize``."""
    return IRModule({name: schedule_to_prim_func(sch, args, name, binds)})


def lower(inp: Schedule | PrimFunc | IRModule, args: Sequence[Tensor | Buffer | Var] | None = None, name: str = "main",
          binds: Mapping[Tensor, Buffer] | None = None, simple_mode: bool = False) -> IRModule:
    """A schedule (with its arguments), a function or a module as flat loop programs.

    ``binds`` gives tensors buffers of a certain layout; ``simple_mode`` leaves loops unpartitioned, for readable output.
    """
    if isinstance(inp, Schedule):
        if args is None:
            raise ArgumentError("lower: a schedule needs args=, the list of the function's parameters")
        mod = schedule_to_module(inp, args, name, binds)
    elif isinstance(inp, PrimFunc):
        mod = IRModule({name: inp if inp.get_attr("global_symbol") == name else inp.with_attr("global_symbol", name)})
    elif isinstance(inp, IRModule):
        mod = inp
    else:
        raise ArgumentError(f"lower expects a te.Schedule, PrimFunc or IRModule, got {type(inp).__name__}")
    return run_passes(mod, lowering_passes(simple_mode))


def build(inputs: Any, args: Sequence[Any] | None = None, target: Any = None, target_host: Any = None, runtime: Any = None,
          name: str = "default_function", binds: Mapping[Tensor, Buffer] | None = None) -> Module:
    """Compiles a schedule (with ``args``), a function, a module, a list of them or a dict target → module.

    The result is a runtime Module with one function per loop program.  ``target`` defaults to the current one, else ``llvm``.
    """
    by_target: dict[Target, IRModule] = {}
    for each, mod in _by_target(inputs, args, target, name, binds):
        into = by_target.setdefault(_target(each, target_host), IRModule())
        into.update(mod)
    built = [_builder(t)(mod, t) for t, mod in by_target.items()]
    for other in built[1:]:
        built[0].import_module(other)
    if not built:
        raise ArgumentError("build: there is nothing to build, the module has no functions")
    return built[0]


def _by_target(inputs: Any, args: Any, target: Any, name: str, binds: Any) -> list[tuple[Any, IRModule]]:
    if isinstance(inputs, Mapping) and not isinstance(inputs, IRModule):
        return [(t, lower(m)) for t, m in inputs.items()]
    if isinstance(inputs, (list, tuple)):
        return [pair for each in inputs for pair in _by_target(each, args, target, name, binds)]
    mod = lower(inputs, args, name, binds)
    if target is not None:
        return [(target, mod)]
    return [(f.get_attr("target"), IRModule({g: f})) for g, f in mod.items()]


def _target(given: Any, host: Any) -> Target:
    from ..target.target import Target

    chosen = given if given is not None else Target.current(allow_none=True)
    return Target(chosen if chosen is not None else "llvm", host)


def _builder(target: Target) -> Callable[[IRModule, Target], Module]:
    from ..runtime.registry import get_global_func

    kind = target.kind.name
    if kind in _BUILDERS:
        return _BUILDERS[kind]
    found = get_global_func(f"target.build.{kind}", allow_missing=True)
    if found is None:
        raise TargetError(f"build: nothing builds code for target kind {kind!r}; buildable here: {', '.join(_BUILDERS)}")
    return found


def build_llvm(mod: IRModule, target: Target) -> Module:
    """Machine code of the module's loop programs for a target of kind ``llvm``."""
    from ..runtime.compiled import CompiledModule, KernelInfo
    from ..target.build.llvm import compile_text, required_features
    from ..target.codegen.llvm import emit_kernel
    from ..target.cpu import resolve_cpu

    functions = {g.name_hint: f.with_attr("global_symbol", g.name_hint) for g, f in mod.items() if isinstance(f, PrimFunc)}
    kernels = {name: emit_kernel(f, target) for name, f in functions.items()}
    objects = [compile_text(k.ir_text, target) for k in kernels.values()]
    cpu = resolve_cpu(target)
    infos = {name: KernelInfo(k.symbol, f"{k.symbol}__fast", k.workspace_bytes, k.workspace_bytes_per_task) for name, k in kernels.items()}
    text = "\n".join(k.ir_text for k in kernels.values())
    return CompiledModule(objects, infos, cpu.triple, cpu.cpu, required_features(target), {"ll": text, "": text}, entry=next(iter(infos), None))


def build_c(mod: IRModule, target: Target) -> Module:
    """Code of the module's loop programs for the target ``c``, compiled by the machine's C compiler; ``get_source()`` is the C text.

    BuildError when there is no compiler.
    """
    from ..runtime.compiled import CKernelModule, KernelInfo
    from ..runtime.llvm import host_triple
    from ..target.build.c import c_text, library_text, object_code, packed_entry, require_compiler

    require_compiler()
    functions = {g.name_hint: f.with_attr("global_symbol", g.name_hint) for g, f in mod.items() if isinstance(f, PrimFunc)}
    texts = {name: c_text(f, c_identifier(name)) for name, f in functions.items()}
    objects = [o for name, t in texts.items() for o in (object_code(t.text), packed_entry(functions[name], c_identifier(name), t.workspace_bytes))]
    infos = {name: KernelInfo(c_identifier(name), f"{c_identifier(name)}__fast", t.workspace_bytes) for name, t in texts.items()}
    return CKernelModule(objects, infos, host_triple(), sources={"c": library_text(functions)}, entry=next(iter(infos), None))


_BUILDERS: dict[str, Callable[[IRModule, Target], Module]] = {"llvm": build_llvm, "c": build_c}
