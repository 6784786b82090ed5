"""Progress for a person: the step under way, the kernels done, the time taken; silent when nobody looks."""
from __future__ import annotations

import sys
import time
from types import TracebackType


def byte_size(count: int) -> str:
    """A number of bytes for a person: ``640 bytes``, ``12.3 kB``, ``97.5 MB``."""
    if count < 1000:
        return f"{count} bytes"
    scaled, unit = next((count / size, u) for size, u in ((1e9, "GB"), (1e6, "MB"), (1e3, "kB")) if count >= size)
    return f"{scaled:.1f} {unit}"


class Steps:
    """Shows steps with their times on stderr when it is a terminal; records them always."""

    def __init__(self, quiet: bool = False) -> None:
        self.live = not quiet and sys.stderr.isatty()
        self.quiet = quiet
        self.times: list[tuple[str, float]] = []
        self._name = ""
        self._started = 0.0
        self._progress: object = None

    def __enter__(self) -> Steps:
        if self.live:
            from rich.console import Console
            from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

            columns = (SpinnerColumn(), TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
            self._progress = Progress(*columns, console=Console(stderr=True), transient=True)
            self._progress.start()
            self._task = self._progress.add_task("start", total=None)
        return self

    def __exit__(self, kind: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None) -> None:
        if kind is None:
            self.end()
        if self._progress is not None:
            self._progress.stop()  # type: ignore[attr-defined]

    def begin(self, name: str) -> None:
        """Starts a step, ending the one before."""
        self.end()
        self._name, self._started = name, time.perf_counter()
        self._show(name, 0, None)

    def end(self) -> None:
        """Ends the step under way."""
        if self._name:
            self.times.append((self._name, time.perf_counter() - self._started))
            self._name = ""

    def kernel(self, name: str, done: int, total: int) -> None:
        """One more kernel is compiled."""
        if self._name == "optimise":
            self.begin("compile kernels")
        self._show(f"compile {name[-48:]}", done, total)

    def _show(self, text: str, done: int, total: int | None) -> None:
        if self._progress is not None:
            self._progress.update(self._task, description=text, completed=done, total=total)  # type: ignore[attr-defined]

    def summary(self) -> str:
        """The steps with their times, on one line."""
        return " · ".join(f"{name} {took:.2f} s" for name, took in self.times)
