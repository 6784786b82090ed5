"""``anchorleg compile``: a model to a file that runs anywhere the package (or, for a .so, a C program) is."""
from __future__ import annotations

from pathlib import Path

import click

from .models import check_writable, compile_model
from .options import build_options, parse_shapes
from .progress import Steps, byte_size


@click.command("compile")
@click.argument("model", type=click.Path(path_type=Path))
@click.option("-o", "--output", required=True, type=click.Path(path_type=Path), help="The file to write; a name ending in .so is linked as a shared library.")
@build_options
def command(model: Path, output: Path, target: str, opt_level: int, shapes: tuple[str, ...], executor: str) -> None:
    """Compile MODEL (.onnx) into one file."""
    with Steps() as steps:
        check_writable(output)
        factory = compile_model(model, target, opt_level, parse_shapes(shapes), executor, steps)
        steps.begin("write")
        factory.export_library(output)
    plan = factory.plan
    count = len(factory.function_metadata)
    click.echo(f"{output}: {byte_size(output.stat().st_size)}, {count} kernel{'' if count == 1 else 's'}, graph executor "
               f"(all shapes are known), {byte_size(plan.planned_bytes)} of working memory")
    click.echo(steps.summary())
