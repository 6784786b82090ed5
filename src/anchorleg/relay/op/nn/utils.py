"""Argument forms of the operators' constructors: how many paddings, strides and sizes a caller may give."""
from __future__ import annotations

from typing import Any, Sequence

from ....ir.expr import IntImm
from ....support.errors import ArgumentError


def repeat(value: Any, n: int) -> tuple[Any, ...] | None:
    """An int as ``n`` copies of it; a sequence as a tuple; None as None."""
    if value is None:
        return None
    return (value,) * n if isinstance(value, (int, IntImm)) else tuple(value)


def pad_tuple(padding: Any, n: int) -> tuple[int, ...]:
    """The padding of ``n`` spatial axes as (all befores, all afters).

    Accepted: one int for every side; ``n`` ints, one per axis; ``2n`` ints, befores first.
    """
    if isinstance(padding, (int, IntImm)):
        return (int(padding),) * (2 * n)
    if not isinstance(padding, Sequence):
        raise ArgumentError(f"padding: expected an int or a sequence of ints, got {padding!r}")
    if len(padding) == 2 * n:
        return tuple(padding)
    if len(padding) == n:
        return (*padding, *padding)
    if len(padding) == 1:
        return tuple(padding) * (2 * n)
    raise ArgumentError(f"padding: expected 1, {n} or {2 * n} values, got {len(padding)}: {list(padding)}")


def get_pad_tuple1d(padding: Any) -> tuple[int, ...]:
    """(left, right) from 1 or 2 values."""
    return pad_tuple(padding, 1)


def get_pad_tuple2d(padding: Any) -> tuple[int, ...]:
    """(top, left, bottom, right) from 1, 2 or 4 values."""
    return pad_tuple(padding, 2)


def get_pad_tuple3d(padding: Any) -> tuple[int, ...]:
    """(front, top, left, back, bottom, right) from 1, 3 or 6 values."""
    return pad_tuple(padding, 3)


def pad_pairs(padding: Sequence[int], n: int) -> list[tuple[int, int]]:
    """(before, after) of each of ``n`` spatial axes, from an attribute of 1, ``n`` or ``2n`` values."""
    full = pad_tuple(tuple(int(p) for p in padding), n)
    return list(zip(full[:n], full[n:]))
