"""``anchorleg show``: any stage between the model and the machine code, as text."""
from __future__ import annotations

from pathlib import Path
from typing import Any, Callable

import click

from ..support.errors import ArgumentError
from .models import check_exists, import_model, is_model
from .options import build_options, parse_shapes

STAGES = ("onnx", "relay", "optimized", "fused", "te", "tir", "llvm", "asm")
_PER_KERNEL = ("te", "tir", "llvm", "asm")


@click.command("show")
@click.argument("model", type=click.Path(path_type=Path))
@click.option("--stage", type=click.Choice(STAGES), default="relay", show_default=True, help="What to show.")
@click.option("--kernel", metavar="NAME", help="For te, tir, llvm and asm: one kernel (part of its name is enough); a list of all when left out.")
@build_options
def command(model: Path, stage: str, kernel: str | None, target: str, opt_level: int, shapes: tuple[str, ...], executor: str) -> None:
    """Show a stage of MODEL's way to machine code."""
    check_exists(model)
    if not is_model(model):
        raise ArgumentError(f"{model}: show takes a model (.onnx), not something compiled")
    if stage == "onnx":
        click.echo(_onnx_text(model))
        return
    mod, params = import_model(model, parse_shapes(shapes))
    click.echo(_text(mod, params, stage, kernel, target, opt_level))


def _onnx_text(model: Path) -> str:
    import onnx

    return onnx.printer.to_text(onnx.load(str(model), load_external_data=False))


def _text(mod: Any, params: Any, stage: str, kernel: str | None, target: str, opt_level: int) -> str:
    from ..ir.transform import PassContext
    from ..relay.build_module import fuse, optimize
    from ..target.target import Target

    if stage == "relay":
        return mod.astext(show_meta_data=False)
    chosen = Target(target)
    with PassContext(opt_level=opt_level):
        optimised, _ = optimize(mod, chosen, params)
        if stage == "optimized":
            return optimised.astext(show_meta_data=False)
        fused = fuse(optimised, chosen)
        return fused.astext(show_meta_data=False) if stage == "fused" else _kernel_text(fused, chosen, stage, kernel)


def _kernel_text(fused: Any, target: Any, stage: str, wanted: str | None) -> str:
    from ..relay.backend.graph_executor_codegen import KernelNames, flatten_main
    from ..relay.backend.kernels import kernel_key

    functions: dict[str, Any] = {}
    names = KernelNames("default", lambda f: kernel_key(f, target))
    flatten_main(fused["main"], lambda f: functions.setdefault(names(f), f) and names(f))
    if wanted is None:
        return "\n".join(["kernels (choose one with --kernel NAME):", *(f"  {n}" for n in functions)])
    exact = [n for n in functions if n == wanted] or [n for n in functions if wanted in n]
    if len(exact) != 1:
        found = ", ".join(exact or functions)
        raise ArgumentError(f"--kernel {wanted}: {'several kernels have' if exact else 'no kernel has'} that in their name: {found}")
    return _SHOW[stage](functions[exact[0]], exact[0], target)


def _te(func: Any, name: str, target: Any) -> str:
    from ..relay.backend.te_compiler import TECompiler

    from ..te.text import schedule_text

    return schedule_text(TECompiler().lower(func, target).schedule)


def _tir(func: Any, name: str, target: Any) -> str:
    from ..relay.backend.te_compiler import TECompiler

    return str(TECompiler().lower(func, target).prim_func)


def _llvm(func: Any, name: str, target: Any) -> str:
    from ..relay.backend.te_compiler import TECompiler
    from ..target.codegen.llvm import emit_kernel

    lowered = TECompiler().lower(func, target).prim_func
    return emit_kernel(lowered.with_attr("global_symbol", name), target).ir_text


def _asm(func: Any, name: str, target: Any) -> str:
    from ..target.build.llvm import assembly_of

    return assembly_of(_llvm(func, name, target), target)


_SHOW: dict[str, Callable[[Any, str, Any], str]] = {"te": _te, "tir": _tir, "llvm": _llvm, "asm": _asm}
