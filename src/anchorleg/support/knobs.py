"""Every environment variable the package reads, typed, in one place.

A knob is read from the environment each time it is asked for, so a test or a notebook can change
it while running.  `table()` renders the documentation of all of them.

    >>> from anchorleg.support import knobs
    >>> knobs.DEBUG.get()
    0
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, TypeVar

from .errors import ArgumentError

T = TypeVar("T")

_FALSE = {"0", "false", "off", "no", ""}
_TRUE = {"1", "true", "on", "yes"}


@dataclass(frozen=True)
class Knob(Generic[T]):
    """One environment variable.

    Attributes
    ----------
    names : the variable's names, the first that is set wins.
    kind : a word for the documentation: ``int``, ``bool``, ``path`` or ``size``.
    default : a callable giving the value when no name is set.
    default_text : how the default is described in the table.
    parse : text → value; raises `ValueError` with the reason when the text makes no sense.
    doc : what the knob does.
    """

    names: tuple[str, ...]
    kind: str
    default: Callable[[], T]
    default_text: str
    parse: Callable[[str], T]
    doc: str

    def get(self) -> T:
        """The knob's present value; raises `ArgumentError` naming the variable if it is malformed."""
        name, text = self._raw()
        if text is None:
            return self.default()
        try:
            return self.parse(text)
        except ValueError as err:
            raise ArgumentError(f"environment variable {name}={text!r}: {err}") from None

    def is_set(self) -> bool:
        """Whether the environment gives this knob a value."""
        return self._raw()[1] is not None

    def _raw(self) -> tuple[str, str | None]:
        for name in self.names:
            text = os.environ.get(name)
            if text is not None and text.strip():
                return name, text.strip()
        return self.names[0], None

    @contextmanager
    def override(self, value: object) -> Iterator[None]:
        """Set the variable to ``str(value)`` within a ``with`` block and restore it afterwards."""
        name = self.names[0]
        old = os.environ.get(name)
        os.environ[name] = str(value)
        try:
            yield
        finally:
            if old is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = old


def _int_at_least(low: int) -> Callable[[str], int]:
    def parse(text: str) -> int:
        try:
            value = int(text)
        except ValueError:
            raise ValueError("expected a whole number") from None
        if value < low:
            raise ValueError(f"expected a whole number of at least {low}")
        return value

    return parse


def _bool(text: str) -> bool:
    word = text.lower()
    if word in _TRUE:
        return True
    if word in _FALSE:
        return False
    raise ValueError("expected 0 or 1")


_UNITS = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}


def parse_size(text: str) -> int:
    """Bytes from text such as ``512M``, ``2GB`` or ``1048576``."""
    word = text.strip().lower().removesuffix("b").removesuffix("i")
    unit = word[-1:] if word[-1:].isalpha() else ""
    digits = word[: len(word) - len(unit)]
    if unit not in _UNITS or not digits.replace(".", "", 1).isdigit():
        raise ValueError("expected a size such as 512M, 2G or a number of bytes")
    return int(float(digits) * _UNITS[unit])


def _default_cache_dir() -> Path:
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "anchorleg"


def _path(text: str) -> Path:
    return Path(text).expanduser()


def _optional_path(text: str) -> Path | None:
    return Path(text).expanduser()


def cores_allowed() -> int:
    """The number of cores this process may use: its affinity mask, bounded by the cgroup's CPU quota."""
    try:
        count = len(os.sched_getaffinity(0))
    except AttributeError:
        count = os.cpu_count() or 1
    quota = _cgroup_quota()
    return max(1, min(count, quota) if quota else count)


def _cgroup_quota() -> int:
    """Cores granted by a cgroup-v2 quota, rounded up; 0 when there is none."""
    try:
        quota, period = Path("/sys/fs/cgroup/cpu.max").read_text().split()[:2]
        return 0 if quota == "max" else -(-int(quota) // int(period))
    except (OSError, ValueError, ZeroDivisionError):
        return 0


NUM_THREADS: Knob[int] = Knob(
    ("ANCHORLEG_NUM_THREADS", "TVM_NUM_THREADS"), "int", cores_allowed, "cores allowed to the process",
    _int_at_least(1), "Threads a parallel kernel uses, the calling one included.",
)
BUILD_THREADS: Knob[int] = Knob(
    ("ANCHORLEG_BUILD_THREADS",), "int", cores_allowed, "cores allowed to the process",
    _int_at_least(1), "Threads that compile kernels at the same time.",
)
CACHE: Knob[bool] = Knob(
    ("ANCHORLEG_CACHE",), "bool", lambda: True, "1", _bool,
    "Whether compiled kernels are kept on disk and used again by later processes; 0 turns this off.",
)
CACHE_DIR: Knob[Path] = Knob(
    ("ANCHORLEG_CACHE_DIR",), "path", _default_cache_dir, "$XDG_CACHE_HOME/anchorleg or ~/.cache/anchorleg",
    _path, "Folder of the persistent cache.",
)
CACHE_SIZE: Knob[int] = Knob(
    ("ANCHORLEG_CACHE_SIZE",), "size", lambda: 2 << 30, "2G", parse_size,
    "Bound on the persistent cache's size; the entries unused for longest go first.",
)
DEBUG: Knob[int] = Knob(
    ("ANCHORLEG_DEBUG",), "int", lambda: 0, "0", _int_at_least(0),
    "How much is told on stderr, each step including those before it: 1 time of each kernel, 2 passes and "
    "cache, 3 Relay after each pass, 4 TE schedules, 5 TIR, 6 LLVM IR, 7 assembly.",
)
DUMP: Knob[Path | None] = Knob(
    ("ANCHORLEG_DUMP",), "path", lambda: None, "unset: nothing is written", _optional_path,
    "Folder that receives, per build, Relay after each pass, every kernel's TIR, LLVM IR and assembly, the "
    "memory plan and the times.",
)


def all_knobs() -> list[tuple[str, Knob]]:
    """Every knob of this file as ``(python name, knob)``, in the order written."""
    return [(name, value) for name, value in globals().items() if isinstance(value, Knob)]


def table() -> str:
    """A Markdown table of every environment variable, its kind, default and meaning."""
    rows = ["| variable | kind | default | meaning |", "|---|---|---|---|"]
    for _, knob in all_knobs():
        names = ", ".join(f"`{name}`" for name in knob.names)
        rows.append(f"| {names} | {knob.kind} | {knob.default_text} | {knob.doc} |")
    return "\n".join(rows)
