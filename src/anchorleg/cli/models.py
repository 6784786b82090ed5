"""From what a person names (a model, or something compiled) to a module or an executor."""
from __future__ import annotations

import os
from pathlib import Path
from typing import Any, Mapping, Sequence

import click
from click.core import ParameterSource

from ..support.errors import ArgumentError, UnsupportedOpError
from .progress import Steps
from .vm_runner import is_executable, why_vm

MODEL_SUFFIXES = (".onnx",)


def is_model(path: Path) -> bool:
    """Whether the file is a model to compile rather than something compiled."""
    return path.suffix.lower() in MODEL_SUFFIXES


def check_exists(path: Path) -> None:
    """ArgumentError when there is no such file."""
    if not path.is_file():
        raise ArgumentError(f"{path}: no such file" if not path.exists() else f"{path} is a folder; a model file is expected")


def check_writable(path: Path) -> None:
    """ArgumentError when a result could not be written there: asked before the long work, not after it."""
    folder = path.absolute().parent
    if path.is_dir():
        raise ArgumentError(f"{path} is a folder; the name of a file to write is expected")
    if not folder.is_dir():
        raise ArgumentError(f"{path}: there is no folder {folder} to write to")
    if not os.access(folder, os.W_OK):
        raise ArgumentError(f"{path}: the folder {folder} can't be written to; choose another, or change its permissions")


def import_model(path: Path, shapes: Mapping[str, list[int]]) -> tuple[Any, dict[str, Any]]:
    """A model file as (module, parameters)."""
    check_exists(path)
    if not is_model(path):
        raise ArgumentError(f"{path}: expected a model ({', '.join(MODEL_SUFFIXES)})")
    from ..relay import frontend

    return frontend.from_onnx(str(path), dict(shapes) or None, freeze_params=True)


def dynamic_inputs(mod: Any) -> list[str]:
    """The inputs of ``main`` that have a dimension not known."""
    from ..relay.transform.fuse_ops import is_static

    return [p.name_hint for p in mod["main"].params if not is_static(p.type_annotation)]


def shape_options(mod: Any) -> str:
    """The options that would fix all dimensions not known, with letters for what a person has to choose: ``--shape x:D0,3,D2,D3``."""
    names, found = set(dynamic_inputs(mod)), []
    for p in mod["main"].params:
        if p.name_hint in names:
            dims = getattr(p.type_annotation, "dims", ())
            found.append(f"--shape {p.name_hint}:" + ",".join(str(d) if isinstance(d, int) else f"D{i}" for i, d in enumerate(dims)))
    return " ".join(found)


def compile_model(path: Path, target: str, opt_level: int, shapes: Mapping[str, list[int]], executor: str, steps: Steps) -> Any:
    """A model file compiled: the executor's factory."""
    from .. import relay
    from ..ir.transform import PassContext
    from ..target.target import Target

    chosen = Target(target)
    steps.begin("import")
    mod, params = import_model(path, shapes)
    unknown = dynamic_inputs(mod)
    reason = why_vm(mod, unknown) if executor != "vm" else "it was asked for"
    if reason and executor == "graph":
        raise UnsupportedOpError(f"{path}: the graph executor can't run this model, as {reason}: leave --executor out, or fix sizes with "
                                 f"{shape_options(mod) if unknown else '--shape NAME:D0,D1,…'}")
    if reason:
        click.echo(f"executor: virtual machine, as {reason}")
        return _compile_vm(relay, mod, chosen, opt_level, params, steps)
    steps.begin("optimise")
    with PassContext(opt_level=opt_level):
        factory = relay.build(mod, target=chosen, params=params, progress=steps.kernel)
    steps.end()
    return factory


def _compile_vm(relay: Any, mod: Any, target: Any, opt_level: int, params: Any, steps: Steps) -> Any:
    from ..ir.transform import PassContext

    steps.begin("optimise")
    with PassContext(opt_level=opt_level):
        executable = relay.vm.compile(mod, target=target, params=params, progress=steps.kernel)
    steps.end()
    return executable


def compile_ahead(path: Path, target: str, opt_level: int, shapes: Mapping[str, list[int]], steps: Steps,
                  pools: Sequence[tuple[str, int]] = ()) -> Any:
    """A model file compiled ahead of time: C sources with the C interface for the target ``c``, else objects; the factory.

    ``pools`` are names and sizes of the memory that working data may lie in.
    """
    from .. import relay
    from ..ir.memory_pools import PoolInfoProperties, WorkspaceMemoryPools, WorkspacePoolInfo
    from ..ir.transform import PassContext
    from ..relay.backend import Executor, Runtime
    from ..target.target import Target

    chosen = Target(target)
    steps.begin("import")
    mod, params = import_model(path, shapes)
    unknown = dynamic_inputs(mod)
    if unknown:
        raise UnsupportedOpError(f"{path}: dimensions of {', '.join(unknown)} are not known before run time, and a model compiled ahead of time "
                                 f"needs all of them: fix them with {shape_options(mod)}")
    small = chosen.kind.name == "c" or any(word in chosen.mtriple for word in ("none", "unknown-elf"))
    options = {"interface-api": "c", "unpacked-api": True} if small else {}
    declared = WorkspaceMemoryPools([WorkspacePoolInfo(n, [chosen], PoolInfoProperties(size)) for n, size in pools]) if pools else None
    steps.begin("optimise")
    with PassContext(opt_level=opt_level):
        factory = relay.build(mod, target=chosen, params=params, executor=Executor("aot", options), runtime=Runtime("crt" if small else "cpp"),
                              workspace_memory_pools=declared, mod_name="default", progress=steps.kernel)
    steps.end()
    return factory


def load_or_compile(path: Path, target: str, opt_level: int, shapes: Mapping[str, list[int]], executor: str, steps: Steps) -> Any:
    """A factory: of a model compiled now, or of something compiled before."""
    check_exists(path)
    if is_model(path):
        return compile_model(path, target, opt_level, shapes, executor, steps)
    from ..runtime.module import load_module

    steps.begin("load")
    module = load_module(path)
    _refuse_build_options(path, module)
    if module.type_key == "library":
        raise ArgumentError(f"{path} is a shared library without a model: expected a file written by 'anchorleg compile'")
    steps.end()
    return module


def _refuse_build_options(path: Path, module: Any) -> None:
    """ArgumentError for options that would silently do nothing, as the file is compiled already; shapes may say how large random values are."""
    context = click.get_current_context(silent=True)
    given = [name for name in ("target", "opt_level", "shapes", "executor")
             if context is not None and context.get_parameter_source(name) == ParameterSource.COMMANDLINE]
    if given == ["shapes"] and is_executable(module):
        return
    if given:
        options = ", ".join("--shape" if n == "shapes" else f"--{n.replace('_', '-')}" for n in given)
        raise ArgumentError(f"{path} is compiled already, so {options} can't change it: give the option to 'compile', or run the model itself")
