"""``anchorleg compile``: a model to a file that runs anywhere the package (or, for a .so, a C program) is."""
from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import click

from ..support.errors import UnsupportedOpError
from .models import check_writable, compile_ahead, compile_model
from .options import build_options, parse_shapes
from .progress import Steps, byte_size
from .vm_runner import is_executable


@click.command("compile")
@click.argument("model", type=click.Path(path_type=Path))
@click.option("-o", "--output", required=True, type=click.Path(path_type=Path), help="The file to write; a name ending in .so is linked as a shared library.")
@click.option("--output-format", type=click.Choice(["library", "mlf"]), default="library", show_default=True,
              help="library: a file to load and run; mlf: Model Library Format, a tar file of sources or objects for other build systems.")
@partial(build_options, executors=("auto", "graph", "vm", "aot"))
def command(model: Path, output: Path, target: str, opt_level: int, shapes: tuple[str, ...], executor: str, output_format: str) -> None:
    """Compile MODEL (.onnx) into one file."""
    if executor == "aot":
        _compile_ahead(model, output, target, opt_level, shapes, output_format)
        return
    with Steps() as steps:
        check_writable(output)
        factory = compile_model(model, target, opt_level, parse_shapes(shapes), executor, steps)
        steps.begin("write")
        _write(factory, output, output_format)
    if is_executable(factory):
        click.echo(f"{output}: {byte_size(output.stat().st_size)}, {len(factory.packed)} kernels and shape functions, virtual machine")
        click.echo(steps.summary())
        return
    count = len(factory.function_metadata)
    click.echo(f"{output}: {byte_size(output.stat().st_size)}, {count} kernel{'' if count == 1 else 's'}, graph executor "
               f"(all shapes are known), {byte_size(factory.working_bytes)} of working memory")
    click.echo(steps.summary())


def _write(factory: Any, output: Path, output_format: str) -> None:
    if is_executable(factory) and output_format != "library":
        raise UnsupportedOpError(f"a model for the virtual machine has no {output_format} form: leave --output-format out")
    if output_format == "library":
        factory.export_library(output)
        return
    from ..micro import export_model_library_format

    export_model_library_format(factory, output)


def _compile_ahead(model: Path, output: Path, target: str, opt_level: int, shapes: tuple[str, ...], output_format: str) -> None:
    with Steps() as steps:
        check_writable(output)
        factory = compile_ahead(model, target, opt_level, parse_shapes(shapes), steps)
        steps.begin("write")
        _write(factory, output, output_format)
    click.echo(f"{output}: {byte_size(output.stat().st_size)}, {len(factory.function_metadata) - 1} kernels, ahead of time")
    click.echo(factory.plan.report())
    click.echo(steps.summary())
