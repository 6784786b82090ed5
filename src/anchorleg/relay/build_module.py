"""``relay.build``: a whole model, from a module of Relay to something that runs."""
from __future__ import annotations

import warnings
from typing import Any, Callable, Mapping, Sequence

from ..ir.module import IRModule
from ..ir.transform import PassContext
from ..support.errors import ArgumentError, TypeMismatchError
from ..support.memory import collector_paused
from .backend.executor import Executor
from .backend.runtime import Runtime
from .function import Function
from .transform.bind import bind_params_by_name

Progress = Callable[[str, int, int], None]


def _as_module(mod: Any, params: Mapping[str, Any] | None) -> IRModule:
    if isinstance(mod, Function):
        warnings.warn("relay.build of a Function is deprecated: pass an IRModule", DeprecationWarning, stacklevel=3)
        mod = IRModule.from_expr(mod)
    if not isinstance(mod, IRModule):
        raise TypeMismatchError(f"expected an IRModule to build, got {type(mod).__name__}")
    if not params:
        return mod
    bound = mod.copy()
    bound["main"] = bind_params_by_name(mod["main"], params)
    return bound


def _main_target(target: Any) -> Any:
    """The target that kernels are built for unless the program places them on a device of another."""
    from .backend.placement import main_target

    return main_target(_targets(target)[0])


def _targets(target: Any) -> tuple[list[Any], list[Any]]:
    """The targets that kernels are built for, and those of external compilers."""
    from ..target.target import Target

    ordinary, external = Target.split_external(Target.canon_multi_target_and_host(Target.target_or_current(target)))
    return list(dict.fromkeys(ordinary)), external


def optimize(mod: Any, target: Any = None, params: Mapping[str, Any] | None = None) -> tuple[IRModule, dict[str, Any]]:
    """The module after all target-independent and layout passes of the current level, not yet fused.

    Of a program that says where values are (``relay.annotation.on_device``), devices are planned before and after.
    """
    from .backend.placement import place, settle
    from .transform.pipelines import OPTIMIZE, pipeline

    targets = _targets(target)[0]
    with _main_target(target):
        return settle(pipeline(OPTIMIZE)(place(_as_module(mod, params), targets)), targets), {}


def fuse(mod: IRModule, target: Any = None) -> IRModule:
    """An optimised module with its operators gathered into primitive functions."""
    from .backend.placement import pin
    from .transform.pipelines import FUSE, pipeline

    with _main_target(target):
        return pin(pipeline(FUSE)(mod))


def optimize_and_fuse(mod: Any, target: Any = None, params: Mapping[str, Any] | None = None) -> tuple[IRModule, dict[str, Any]]:
    """The module as ``build`` hands it to code generation (upstream's ``relay.optimize``)."""
    return fuse(optimize(mod, target, params)[0], target), {}


def build(ir_mod: Any, target: Any = None, target_host: Any = None, executor: Executor = Executor("graph"),
          runtime: Runtime = Runtime("cpp"), workspace_memory_pools: Any = None, constant_memory_pools: Any = None,
          params: Mapping[str, Any] | None = None, mod_name: str = "default", progress: Progress | None = None) -> Any:
    """Compiles a model for an executor.

    Parameters
    ----------
    ir_mod: the module; its ``main`` is the model.
    target: what to compile for, e.g. ``"llvm"`` (this machine's CPU with all its features); default: the current target.  Targets of
        external compilers, with options for them, may follow in a list: ``["llvm", Target("ccompiler -header=…")]``.  A list, or a dict
        from devices to targets, may have one for each kind of device that the program places values on.
    params: values of ``main``'s parameters that do not change; they are folded in.
    executor, runtime: see ``relay.backend``.
    workspace_memory_pools, constant_memory_pools: for the ahead-of-time executor: the memory the model may use (``ir.memory_pools``).
    mod_name: prefix of the kernels' names.
    progress: called as ``progress(kernel name, done, total)``.

    Returns the executor's factory: ``lib["default"](device)`` makes a runnable module.
    """
    if not isinstance(executor, Executor):
        raise TypeMismatchError(f"executor is expected to be a relay.backend.Executor, got {type(executor).__name__} {executor!r}")
    if not isinstance(runtime, Runtime):
        raise TypeMismatchError(f"runtime is expected to be a relay.backend.Runtime, got {type(runtime).__name__} {runtime!r}")
    if executor.name not in _BUILDERS:
        raise ArgumentError(f"no builder for executor {executor.name!r}; available: {', '.join(_BUILDERS)}")
    chosen, external = _main_target(target), _targets(target)[1]
    more = {"runtime": runtime, "external_targets": external, "workspace_memory_pools": workspace_memory_pools, "constant_memory_pools": constant_memory_pools}
    if executor.name != "aot" and (workspace_memory_pools is not None or constant_memory_pools is not None):
        raise ArgumentError(f'memory pools are for the ahead-of-time executor, got Executor("{executor.name}"): leave them out, or build with Executor("aot")')
    if executor.name in _CHECKS:
        _CHECKS[executor.name](chosen, executor, mod_name, **more)
    with collector_paused():
        optimised, _ = optimize(ir_mod, target, params)
        made = _BUILDERS[executor.name](optimised, chosen, executor, mod_name, progress, tuple(params or ()), **more)
        if hasattr(made, "__dict__"):
            made.source_mod = ir_mod  # what was handed in, for archives
        return made


def _build_graph(mod: IRModule, target: Any, executor: Executor, mod_name: str, progress: Progress | None, folded: Sequence[str],
                 **more: Any) -> Any:
    from .backend.graph_build import build_graph

    return build_graph(fuse(mod, target), target, executor, mod_name, progress, folded, more.get("external_targets", ()))


def _build_aot(mod: IRModule, target: Any, executor: Executor, mod_name: str, progress: Progress | None, folded: Sequence[str], **more: Any) -> Any:
    from .backend.aot.build import build_for_executor
    from .backend.placement import without_devices

    return build_for_executor(without_devices(mod, "aot"), target, executor, mod_name, progress, folded, **more)


def _check_aot(target: Any, executor: Executor, mod_name: str, **more: Any) -> None:
    from .backend.aot.build import Request

    Request(target, executor, more["runtime"], mod_name, more["workspace_memory_pools"], more["constant_memory_pools"])


_BUILDERS: dict[str, Callable[..., Any]] = {"graph": _build_graph, "aot": _build_aot}
_CHECKS: dict[str, Callable[..., None]] = {"aot": _check_aot}  # what can be refused before any work is done


def register_executor_builder(name: str, builder: Callable[..., Any]) -> None:
    """Makes ``relay.build(executor=Executor(name))`` use ``builder(mod, target, executor, mod_name, progress, folded, **more)``.

    ``more`` has the runtime, the memory pools and the targets of external compilers that ``build`` was given.
    """
    _BUILDERS[name] = builder


__all__ = ["bind_params_by_name", "build", "fuse", "optimize", "register_executor_builder", "PassContext"]
