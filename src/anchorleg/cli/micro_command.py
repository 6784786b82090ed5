"""``anchorleg micro``: a model to a project that builds and runs on a machine without an operating system."""
from __future__ import annotations

from pathlib import Path

import click

from ..support.errors import ArgumentError, BuildError
from .inputs import read_inputs
from .models import compile_ahead
from .options import parse_shapes
from .progress import Steps

BOARD_NAMES = ("host", "mps2-an385", "mps2-an500", "riscv32")


@click.command("micro", short_help="Write a project that runs MODEL on a small machine.")
@click.argument("model", type=click.Path(path_type=Path))
@click.option("-o", "--output", required=True, type=click.Path(path_type=Path), help="The folder of the project.")
@click.option("--board", type=click.Choice(BOARD_NAMES), default="mps2-an385", show_default=True, help="The machine: a Cortex-M3, a Cortex-M7, a RISC-V, or this one.")
@click.option("--inputs", multiple=True, metavar="FILE|NAME=FILE", help="The test input; random by default.")
@click.option("--shape", "shapes", multiple=True, metavar="NAME:D0,D1,…", help="Fix an input's shape; may be repeated.")
@click.option("--opt-level", type=click.IntRange(0, 4), default=3, show_default=True, help="0 nothing … 3 everything exact, 4 also fast approximations.")
@click.option("--pool", "pools", multiple=True, metavar="NAME:BYTES", help="A memory pool for working memory, the preferred one first; may be repeated.")
@click.option("--run", is_flag=True, help="Build the project and run it, on an emulator where the board is emulated.")
def command(model: Path, output: Path, board: str, inputs: tuple[str, ...], shapes: tuple[str, ...], opt_level: int, pools: tuple[str, ...], run: bool) -> None:
    """Write a project that runs MODEL (.onnx) on a small machine: C sources, Makefile, start-up code, a test."""
    from ..micro import create_project

    with Steps() as steps:
        factory = compile_ahead(model, "c", opt_level, parse_shapes(shapes), steps, [_parse_pool(p) for p in pools])
        steps.begin("write")
        given = read_inputs(inputs, ({t.name: t.shape for t in factory.facts.inputs}, {t.name: t.dtype for t in factory.facts.inputs})) if inputs else None
        project = create_project(factory, output, board, given)
    (output / "memory.svg").write_text(factory.memory_picture())
    click.echo(f"{output}: {project.board.title}, {sum(c.nbytes for c in factory.built.program.constants) / 1e3:.1f} kB of constants")
    click.echo(factory.plan.report())
    missing = project.missing_tools()
    if missing:
        click.echo(f"to build it, install: {', '.join(missing)}" + (f" (Debian: {project.board.packages})" if project.board.packages else ""))
    if run and missing:
        raise BuildError(f"cannot run the project: {', '.join(missing)} not found")
    if project.shortage():
        told = f"the model is too large for this board: {project.shortage()}"
        if run:
            raise BuildError(f"{told}. Choose another --board, or a smaller model")
        click.echo(told)
    if run:
        printed = project.make("run")
        count = project.instructions(printed)
        click.echo(printed.rstrip().splitlines()[-1] + (f", {count:,} instructions" if count is not None else ""))


def _parse_pool(text: str) -> tuple[str, int]:
    name, mark, size = text.partition(":")
    if not mark or not name or not size.isdigit():
        raise ArgumentError(f"--pool {text!r}: expected NAME:BYTES such as sram:65536")
    return name, int(size)
