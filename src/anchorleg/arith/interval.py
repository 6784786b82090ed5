"""Intervals of integers as pairs ``(low, high)`` of Python ints, with ``-INF`` and ``INF`` for no bound.

Everything beyond ``±LIMIT`` (which lies outside every 64-bit type) is taken as infinite, so plain integer arithmetic works on bounds
as long as its results go through :func:`clamp`.
"""
from __future__ import annotations

from typing import Callable

Interval = "tuple[int, int]"
INF = 1 << 90
LIMIT = 1 << 80
EVERYTHING = (-INF, INF)


def clamp(value: int) -> int:
    """A bound, with what is beyond the limit made infinite."""
    if value > LIMIT:
        return INF
    return -INF if value < -LIMIT else value


def finite(value: int) -> bool:
    """Whether a bound is a number."""
    return -LIMIT <= value <= LIMIT


def meet(a: tuple[int, int], b: tuple[int, int]) -> tuple[int, int]:
    """What lies in both; ``a`` when that is empty (the code is then unreachable, and any answer is right)."""
    low, high = max(a[0], b[0]), min(a[1], b[1])
    return (low, high) if low <= high else a


def join(a: tuple[int, int], b: tuple[int, int]) -> tuple[int, int]:
    """The least interval that holds both."""
    return min(a[0], b[0]), max(a[1], b[1])


def scale(a: tuple[int, int], k: int) -> tuple[int, int]:
    """The interval times a number."""
    x, y = clamp(a[0] * k), clamp(a[1] * k)
    return (x, y) if k >= 0 else (y, x)


def mul(a: tuple[int, int], b: tuple[int, int]) -> tuple[int, int]:
    """The products of members."""
    return _corners(a, b, lambda x, y: x * y)


def floor_div_bound(value: int, divisor: int) -> int:
    """floor(bound / divisor), infinite bounds staying so."""
    if not finite(value):
        return value if divisor > 0 else -value
    return value // divisor


def trunc_div_bound(value: int, divisor: int) -> int:
    """The quotient cut towards zero, infinite bounds staying so."""
    if not finite(value):
        return value if divisor > 0 else -value
    q = abs(value) // abs(divisor)
    return q if (value >= 0) == (divisor > 0) else -q


def quotient(a: tuple[int, int], b: tuple[int, int], div: Callable[[int, int], int]) -> tuple[int, int]:
    """Quotients of members by members other than zero (a zero divisor is no value)."""
    parts = [p for p in ((b[0], min(b[1], -1)), (max(b[0], 1), b[1])) if p[0] <= p[1]]
    if not parts:
        return EVERYTHING
    result: tuple[int, int] | None = None
    for low, high in parts:
        values = [div(x, y) for x in a for y in (low, high)]
        here = min(values), max(values)
        result = here if result is None else join(result, here)
    return result or EVERYTHING


def _corners(a: tuple[int, int], b: tuple[int, int], fn: Callable[[int, int], int]) -> tuple[int, int]:
    values = [clamp(fn(x, y)) for x in a for y in b]
    return min(values), max(values)
