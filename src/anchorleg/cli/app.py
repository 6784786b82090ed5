"""The command group, and how errors reach a person: one paragraph and an exit code, a traceback only when asked for."""
from __future__ import annotations

import os
import sys
import traceback
from typing import Sequence

import click

from ..support.errors import AnchorlegError

EXIT_USER = 1
EXIT_INTERNAL = 70
_LAZY = {"compile": "compile_command", "run": "run_command", "show": "show_command", "verify": "verify_command", "micro": "micro_command", "cache": "cache_command"}


class _LazyGroup(click.Group):
    """Loads a command's file when it is used, so that ``--help`` is quick."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(_LAZY)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        if name not in _LAZY:
            return None
        import importlib

        return importlib.import_module(f".{_LAZY[name]}", __package__).command


@click.command(cls=_LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="anchorleg")
@click.option("--traceback", "show_traceback", is_flag=True, help="Show the Python traceback of an error.")
@click.pass_context
def app(ctx: click.Context, show_traceback: bool) -> None:
    """Compile deep-learning models to native code, and run them.

    \b
    anchorleg compile model.onnx -o model.anchor     compile once
    anchorleg run model.anchor --inputs data.npz     run it
    anchorleg run model.onnx                         compile and run on random inputs
    anchorleg show model.onnx --stage relay          look at any stage
    anchorleg verify model.onnx                      check the results
    """
    ctx.obj = {"traceback": show_traceback}


def run_app(args: Sequence[str]) -> int:
    """Runs the command line; the exit code."""
    wants_traceback = "--traceback" in args or bool(os.environ.get("ANCHORLEG_TRACEBACK"))
    try:
        result = app.main(list(args), prog_name="anchorleg", standalone_mode=False)
        return result if isinstance(result, int) else 0
    except click.exceptions.Abort:
        return _fail("interrupted", 130)
    except click.ClickException as exc:
        exc.show()
        return exc.exit_code
    except (AnchorlegError, OSError) as exc:
        return _fail(_paragraph(exc), EXIT_USER, wants_traceback)
    except BrokenPipeError:
        return 0
    except Exception as exc:  # the last line of defence: a bug, told as one
        return _fail(f"internal error: {type(exc).__name__}: {exc} (run again with --traceback and report it)", EXIT_INTERNAL, wants_traceback)


def _paragraph(exc: BaseException) -> str:
    if isinstance(exc, OSError) and not isinstance(exc, AnchorlegError):
        where = f" {exc.filename}" if exc.filename else ""
        return f"{exc.strerror or exc}:{where}" if where else str(exc)
    return str(exc)


def _fail(text: str, code: int, with_traceback: bool = False) -> int:
    if with_traceback:
        traceback.print_exc()
    print(f"anchorleg: {text}", file=sys.stderr)
    return code
