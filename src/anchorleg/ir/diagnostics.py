"""What a check found wrong, as values: a renderer of one's own is given them before the exception is raised.

Exceptions carry the whole text already; a renderer is for tools that want each message, and its place, by itself.
"""
from __future__ import annotations

import enum
import sys
from typing import Any, Callable, Iterable

from ..runtime.registry import get_global_func, register_func, remove_global_func
from .span import Span

_OVERRIDE = "diagnostics.OverrideRenderer"  # kept where all global functions are, so that no state is held here


class DiagnosticLevel(enum.IntEnum):
    """How grave a message is."""

    BUG = 10
    ERROR = 20
    WARNING = 30
    NOTE = 40
    HELP = 50


class Diagnostic:
    """One message, and where what it speaks of came from (None where unknown)."""

    __slots__ = ("level", "span", "message")

    def __init__(self, level: DiagnosticLevel | int, span: Span | None, message: str) -> None:
        self.level, self.span, self.message = DiagnosticLevel(level), span, message

    def __repr__(self) -> str:
        place = f"{self.span!r}: " if self.span is not None else ""
        return f"{place}{self.level.name.lower()}: {self.message}"


class DiagnosticContext:
    """The messages about one module, and what shows them."""

    def __init__(self, module: Any, renderer: "DiagnosticRenderer") -> None:
        self.module, self.renderer = module, renderer
        self.diagnostics: list[Diagnostic] = []

    def emit(self, diagnostic: Diagnostic) -> None:
        """Adds a message."""
        self.diagnostics.append(diagnostic)

    def render(self) -> None:
        """Shows the messages."""
        self.renderer.render(self)


class DiagnosticRenderer:
    """Shows a context's messages by a function of it."""

    def __init__(self, render_func: Callable[[DiagnosticContext], Any]) -> None:
        self._show = render_func

    def render(self, ctx: DiagnosticContext) -> None:
        """Shows the messages of ``ctx``."""
        self._show(ctx)


def _to_stderr(ctx: DiagnosticContext) -> None:
    for diagnostic in ctx.diagnostics:
        print(repr(diagnostic), file=sys.stderr)


def get_renderer() -> DiagnosticRenderer:
    """The renderer in use: the overriding one, else one that writes to stderr."""
    make = get_global_func(_OVERRIDE, allow_missing=True)
    return make() if make is not None else DiagnosticRenderer(_to_stderr)


def override_renderer(render_func: Callable[[DiagnosticContext], Any] | None) -> None:
    """From now on gives every context to ``render_func``; None: no longer."""
    if render_func is not None:
        renderer = DiagnosticRenderer(render_func)
        register_func(_OVERRIDE, lambda: renderer, override=True)
    elif get_global_func(_OVERRIDE, allow_missing=True) is not None:
        remove_global_func(_OVERRIDE)


def report(module: Any, found: Iterable[tuple[Span | None, str]]) -> None:
    """Gives errors to the overriding renderer; without one nothing is done, as the exception says it all."""
    if get_global_func(_OVERRIDE, allow_missing=True) is None:
        return
    ctx = DiagnosticContext(module, get_renderer())
    for span, message in found:
        ctx.emit(Diagnostic(DiagnosticLevel.ERROR, span, message))
    ctx.render()


__all__ = ["Diagnostic", "DiagnosticContext", "DiagnosticLevel", "DiagnosticRenderer", "get_renderer", "override_renderer", "report"]
