"""The one place that writes diagnostics: `say(level, text)` prints to stderr when `ANCHORLEG_DEBUG` allows it."""

from __future__ import annotations

import sys

from . import knobs


def enabled(level: int) -> bool:
    """Whether messages of this level are wanted."""
    return knobs.DEBUG.get() >= level


def say(level: int, text: str) -> None:
    """Print ``text`` to stderr if the debug ladder stands at ``level`` or higher."""
    if enabled(level):
        print(f"[anchorleg] {text}", file=sys.stderr)
