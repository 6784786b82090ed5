"""Options that several commands share, and their parsing."""
from __future__ import annotations

from typing import Any, Callable

import click

from ..support.errors import ArgumentError


def parse_shape(text: str) -> tuple[str, list[int]]:
    """``data:1,3,224,224`` (or ``data=1,3,224,224``) → the input's name and its shape."""
    name, mark, dims = text.rpartition(":" if ":" in text and "=" not in text else "=")
    if not mark or not name:
        raise ArgumentError(f"--shape {text!r}: expected NAME:D0,D1,…  such as data:1,3,224,224")
    try:
        shape = [int(d) for d in dims.replace("x", ",").split(",") if d.strip()]
    except ValueError:
        raise ArgumentError(f"--shape {text!r}: the dimensions are expected to be whole numbers, got {dims!r}") from None
    if any(d < 0 for d in shape):
        raise ArgumentError(f"--shape {text!r}: dimensions can't be negative")
    return name, shape


def parse_shapes(texts: tuple[str, ...]) -> dict[str, list[int]]:
    """All ``--shape`` options together."""
    return dict(parse_shape(t) for t in texts)


def build_options(command: Callable[..., Any], executors: tuple[str, ...] = ("auto", "graph", "vm")) -> Callable[..., Any]:
    """The options that say how to compile, for some of the executors."""
    options = [
        click.option("--target", default="llvm", show_default=True, help="What to compile for, e.g. 'llvm -mcpu=skylake'; 'llvm' is this machine's CPU."),
        click.option("--opt-level", type=click.IntRange(0, 4), default=3, show_default=True, help="0 nothing … 3 everything exact, 4 also fast approximations."),
        click.option("--shape", "shapes", multiple=True, metavar="NAME:D0,D1,…", help="Fix an input's shape; may be repeated."),
        click.option("--executor", type=click.Choice(executors), default="auto", show_default=True, help="How the model is run; auto picks and says why."),
    ]
    for option in reversed(options):
        command = option(command)
    return command
