"""Loops that only copy or clear memory, seen in the loop language: C has ``memcpy`` and ``memset`` for them."""
from __future__ import annotations

import math
from typing import Any, NamedTuple

from ....ir.expr import FloatImm, IntImm
from ....tir import stmt as st
from ....tir.buffer import BufferLoad
from ....tir.dtypes import lanes_of
from ....tir.transform.merge_loops import steps_of
from .types import item_size


class Bulk(NamedTuple):
    """``loops`` that together store ``size`` bytes one after another: from ``source`` (a load), or all of them ``byte``."""

    loops: list[st.For]
    store: st.BufferStore
    source: BufferLoad | None
    byte: int
    size: int


def find_bulk(s: st.For) -> Bulk | None:
    """A loop nest as one copy or fill of memory; None when it is something else."""
    loops, inner = [], s
    while isinstance(inner, st.For):
        if inner.kind not in (st.ForKind.SERIAL, st.ForKind.PARALLEL) or not isinstance(inner.extent, IntImm) or inner.extent.value < 1:
            return None
        loops.append(inner)
        inner = inner.body
    if not isinstance(inner, st.BufferStore) or lanes_of(inner.value.dtype) != 1 or not _runs(inner.indices, loops):
        return None
    size = math.prod(loop.extent.value for loop in loops) * item_size(inner.buffer.dtype)
    value = inner.value
    if isinstance(value, BufferLoad):
        apart = value.buffer.data is not inner.buffer.data and value.dtype == inner.buffer.dtype
        return Bulk(loops, inner, value, 0, size) if apart and _runs(value.indices, loops) else None
    byte = _byte(value, item_size(inner.buffer.dtype))
    return None if byte is None or value.dtype != inner.buffer.dtype else Bulk(loops, inner, None, byte, size)


def _byte(value: Any, size: int) -> int | None:
    """The byte that a constant is made of, where all its bytes are the same."""
    if isinstance(value, IntImm) and (value.value == 0 or size == 1):
        return int(value.value) & 255
    if isinstance(value, FloatImm) and value.value == 0 and math.copysign(1.0, value.value) > 0:
        return 0
    return None


def _runs(indices: Any, loops: list[st.For]) -> bool:
    """Whether an index moves by one with the innermost loop, and with every other by the length of those inside."""
    if len(indices) != 1:
        return False
    steps, wanted = steps_of(indices[0], [loop.loop_var for loop in loops]), 1
    if steps is None:
        return False
    for loop, step in zip(reversed(loops), reversed(steps)):
        if step != wanted:
            return False
        wanted *= loop.extent.value
    return True
