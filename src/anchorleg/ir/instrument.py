"""Instruments: objects that watch passes run."""
from __future__ import annotations

import time
from pathlib import Path
from typing import Any


class PassInstrument:
    """Override what you want to watch."""

    def enter_pass_ctx(self) -> None:
        """Called when the context is entered."""

    def exit_pass_ctx(self) -> None:
        """Called when the context is left."""

    def should_run(self, mod: Any, info: Any) -> bool:
        """Whether the pass may run."""
        return True

    def run_before_pass(self, mod: Any, info: Any) -> None:
        """Called before a pass."""

    def run_after_pass(self, mod: Any, info: Any) -> None:
        """Called after a pass."""


def pass_instrument(cls: type) -> type:
    """Makes an instrument of a class that defines some of the methods."""
    return type(cls.__name__, (cls, PassInstrument), {"__doc__": cls.__doc__, "__module__": cls.__module__})


class PassTimingInstrument(PassInstrument):
    """Records how long each pass took; ``render()`` gives an indented table in milliseconds, until the context is left."""

    def __init__(self) -> None:
        self._open: list[tuple[str, float]] = []
        self._rows: list[tuple[int, str, float]] = []

    def run_before_pass(self, mod: Any, info: Any) -> None:
        self._open.append((info.name, time.perf_counter()))
        self._rows.append((len(self._open) - 1, info.name, -1.0))

    def run_after_pass(self, mod: Any, info: Any) -> None:
        name, started = self._open.pop()
        took = time.perf_counter() - started
        at = max(i for i, row in enumerate(self._rows) if row[2] < 0 and row[1] == name and row[0] == len(self._open))
        self._rows[at] = (len(self._open), name, took)

    def exit_pass_ctx(self) -> None:
        self._open.clear()
        self._rows.clear()

    def render(self) -> str:
        """The times recorded so far."""
        return "\n".join(f"{'  ' * depth}{name}: {took * 1e3:.2f} ms" for depth, name, took in self._rows)


class PrintBeforeAll(PassInstrument):
    """Prints the module before every pass."""

    def run_before_pass(self, mod: Any, info: Any) -> None:
        print(f"Before Running Pass: {info}\n{mod}")


class PrintAfterAll(PassInstrument):
    """Prints the module after every pass."""

    def run_after_pass(self, mod: Any, info: Any) -> None:
        print(f"After Running Pass: {info}\n{mod}")


class DumpIR(PassInstrument):
    """Writes the module after every pass into a folder, numbered in order."""

    def __init__(self, dump_dir: str | Path) -> None:
        self.dump_dir, self.count = Path(dump_dir), 0

    def run_after_pass(self, mod: Any, info: Any) -> None:
        self.dump_dir.mkdir(parents=True, exist_ok=True)
        (self.dump_dir / f"{self.count:03d}_{info.name.replace('/', '_')}.txt").write_text(str(mod))
        self.count += 1
