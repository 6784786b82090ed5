"""What a measurement is asked and what it answers."""
from __future__ import annotations

from typing import Any, NamedTuple, Sequence


class MeasureInput(NamedTuple):
    """A configuration of a task on a target."""

    target: Any
    task: Any
    config: Any


class MeasureResult(NamedTuple):
    """Seconds per run (or exceptions), an error number, and the time spent."""

    costs: Sequence[Any]
    error_no: int
    all_cost: float
    timestamp: float


class MeasureErrorNo:
    """What became of a measurement."""

    NO_ERROR = 0
    INSTANTIATION_ERROR = 1
    COMPILE_HOST = 2
    COMPILE_DEVICE = 3
    RUNTIME_DEVICE = 4
    WRONG_ANSWER = 5
    BUILD_TIMEOUT = 6
    RUN_TIMEOUT = 7
    UNKNOWN_ERROR = 8
