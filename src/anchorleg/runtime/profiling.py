"""Times: the loop that measures a call, and the result it gives."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence


class BenchmarkResult:
    """Seconds per call over several repeats.

    Attributes: ``results`` (seconds of each repeat), ``mean``, ``median``, ``max``, ``min``, ``std``.
    """

    __slots__ = ("results", "mean", "median", "max", "min", "std")

    def __init__(self, results: Sequence[float]) -> None:
        self.results = tuple(results)
        self.mean = statistics.fmean(self.results)
        self.median = statistics.median(self.results)
        self.max = max(self.results)
        self.min = min(self.results)
        self.std = statistics.pstdev(self.results)

    def __str__(self) -> str:
        heads = ("mean", "median", "max", "min", "std")
        title = "".join(f"{head + ' (ms)':^14}" for head in heads).rstrip()
        row = "".join(f"{getattr(self, head) * 1e3:^14.4f}" for head in heads).rstrip()
        return f"Execution time summary:\n{title}\n{row}"

    def __repr__(self) -> str:
        return (f"BenchmarkResult(min={self.min}, mean={self.mean}, median={self.median}, max={self.max}, "
                f"std={self.std}, results={self.results})")


def measure(
    call: Callable[[], object], number: int = 10, repeat: int = 1, min_repeat_ms: float = 0,
    limit_zero_time_iterations: int = 100, cooldown_interval_ms: float = 0, repeats_to_cooldown: int = 1,
    before_repeat: Callable[[], object] | None = None,
) -> BenchmarkResult:
    """Call ``call`` once to warm up, then ``repeat`` times ``number`` calls.

    When a repeat is shorter than ``min_repeat_ms`` the number is raised and the repeat is done again, until it is
    long enough.
    """
    call()
    results = []
    for index in range(repeat):
        if before_repeat is not None:
            before_repeat()
        seconds, number = _one_repeat(call, max(1, number), min_repeat_ms, limit_zero_time_iterations)
        results.append(seconds / number)
        if cooldown_interval_ms > 0 and (index + 1) % max(1, repeats_to_cooldown) == 0:
            time.sleep(cooldown_interval_ms / 1e3)
    return BenchmarkResult(results)


def _one_repeat(call: Callable[[], object], number: int, min_ms: float, zero_limit: int) -> tuple[float, int]:
    zeros = 0
    while True:
        seconds = _timed(call, number)
        if seconds * 1e3 >= min_ms:
            return seconds, number
        if seconds == 0.0:
            zeros += 1
            if zeros >= zero_limit:
                return seconds, number
            number *= 2
            continue
        number = max(int(min_ms / 1e3 / (seconds / number)) + 1, int(number * 1.618) + 1)


def _timed(call: Callable[[], object], number: int) -> float:
    start = time.perf_counter()
    for _ in range(number):
        call()
    return time.perf_counter() - start
