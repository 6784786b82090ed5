"""Small helpers of the neural network computes: shapes as ints, padding forms, windows."""
from __future__ import annotations

from typing import Any, Sequence

from ...ir.expr import IntImm, PrimExpr
from ...support.errors import ArgumentError
from ...te.tensor import Tensor
from ...tir import op as tir_op


def dims(t: Tensor) -> tuple[Any, ...]:
    """The shape, with constants as Python ints."""
    return tuple(d.value if isinstance(d, IntImm) else d for d in t.shape)


def as_int(value: Any) -> Any:
    """A constant as a Python int; an expression as it is."""
    return value.value if isinstance(value, IntImm) else value


def ints(values: Any, n: int) -> tuple[int, ...]:
    """``n`` ints from one int or a sequence."""
    if isinstance(values, (int, IntImm)):
        return (int(values),) * n
    if len(values) != n:
        raise ArgumentError(f"expected {n} values, got {list(values)}")
    return tuple(int(v) for v in values)


def pads_of(padding: Any, n: int) -> list[tuple[int, int]]:
    """(before, after) for each of ``n`` axes, from 1, ``n`` or ``2n`` ints (befores first)."""
    if isinstance(padding, (int, IntImm)):
        return [(int(padding), int(padding))] * n
    flat = [int(p) for p in padding]
    if len(flat) == 1:
        flat = flat * n
    if len(flat) == n:
        flat = flat * 2
    if len(flat) != 2 * n:
        raise ArgumentError(f"padding: expected 1, {n} or {2 * n} values, got {list(padding)}")
    return list(zip(flat[:n], flat[n:]))


def windows(extent: Any, pads: tuple[int, int], kernel: Any, dilation: int, stride: int) -> Any:
    """How many windows fit along an axis."""
    return (extent + sum(pads) - (kernel - 1) * dilation - 1) // stride + 1


def conjunction(conditions: Sequence[Any]) -> PrimExpr | None:
    """All conditions joined; None when there is none."""
    return tir_op.all(*conditions) if conditions else None


def guarded(conditions: Sequence[Any], value: PrimExpr, other: Any) -> PrimExpr:
    """``value`` where all conditions hold, else ``other``; the value is only evaluated where they do."""
    condition = conjunction(conditions)
    return value if condition is None else tir_op.if_then_else(condition, value, tir_op.const(other, value.dtype)
                                                               if not isinstance(other, PrimExpr) else other)
