"""From what a person names (a model, or something compiled) to a module or an executor."""
from __future__ import annotations

from pathlib import Path
from typing import Any, Mapping

from ..support.errors import ArgumentError, UnsupportedOpError
from .progress import Steps

MODEL_SUFFIXES = (".onnx",)


def is_model(path: Path) -> bool:
    """Whether the file is a model to compile rather than something compiled."""
    return path.suffix.lower() in MODEL_SUFFIXES


def check_exists(path: Path) -> None:
    """ArgumentError when there is no such file."""
    if not path.is_file():
        raise ArgumentError(f"{path}: no such file" if not path.exists() else f"{path} is a folder; a model file is expected")


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


def compile_model(path: Path, target: str, opt_level: int, shapes: Mapping[str, list[int]], executor: str, steps: Steps) -> Any:
    """A model file compiled: the executor's factory."""
    from .. import relay
    from ..ir.transform import PassContext
    from ..target.target import Target

    chosen = Target(target)
    steps.begin("import")
    mod, params = import_model(path, shapes)
    unknown = dynamic_inputs(mod)
    if unknown:
        raise UnsupportedOpError(f"{path}: the input{'s' if len(unknown) > 1 else ''} {', '.join(unknown)} have dimensions that are not known "
                                 "before run time, and the graph executor needs all of them: fix them with --shape NAME:D0,D1,…")
    steps.begin("optimise")
    with PassContext(opt_level=opt_level):
        factory = relay.build(mod, target=chosen, params=params, progress=steps.kernel)
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
    steps.end()
    return module
