"""The schedule of operations that read memory in another order than they write it: transposes and changes of layout.

A tile of the output's last axis by the axis along which the input is contiguous is copied at a time, so that each line of
memory that is touched is used up while it is at hand.
"""
from __future__ import annotations

from typing import Any

from .. import te
from ..te.operation import ComputeOp
from ..te.schedule import AttachType, Schedule, Stage
from .access import Access
from .injective import access_of, extent, fused_outer, inline_producers, lanes_at, schedule_loops
from .utils import as_list, static_int
from .vector import worth_sharing

TILE = 16  # elements along the input's contiguous axis; a cache line of float32


def schedule_transpose(outs: Any) -> Schedule:
    """A schedule of injective operations in which reads that cross the order of writing are blocked."""
    outs = as_list(outs)
    sch = te.create_schedule([t.op for t in outs])
    inline_producers(sch)
    access = access_of(sch)
    for stage in sch.stages:
        if isinstance(stage.op, ComputeOp) and stage.attach_type == AttachType.ROOT and not stage.op.reduce_axis:
            crossing = crossing_axis(stage.op, access)
            if crossing is None:
                schedule_loops(stage, access)
            else:
                schedule_tiles(stage, crossing, access)
    return sch


def crossing_axis(op: ComputeOp, access: Access) -> Any:
    """The axis along which the largest input is contiguous, when that is not the last real one; else None."""
    real = [iv for iv in op.axis if static_int(iv.dom.extent) != 1]
    if len(real) < 2:
        return None
    sizes = access.unit_stride_vars(op)
    inner = sizes.get(id(real[-1].var), 0)
    best = max(real[:-1], key=lambda iv: sizes.get(id(iv.var), 0))
    found = sizes.get(id(best.var), 0)
    return best if found > inner and (static_int(best.dom.extent) or TILE) >= 2 else None


def schedule_tiles(stage: Stage, crossing: Any, access: Access) -> None:
    """Blocks the last axis and ``crossing``, each together with the axes around it that every input is read along with it."""
    op = stage.op
    last = next(iv for iv in reversed(op.axis) if static_int(iv.dom.extent) != 1)
    groups = [_around(op, axis, access) for axis in (last, crossing)]
    if any(iv is other for iv in groups[0] for other in groups[1]):
        groups = [[last], [crossing]]
    outer_axes = [iv for iv in op.axis if not any(iv is k for g in groups for k in g)]
    total = extent(op.axis)
    (last, length), (crossing, width) = ((stage.fuse(*g) if len(g) > 1 else g[0], extent(g)) for g in groups)
    blocks, inside = stage.split(crossing, factor=_tile(width))
    factor = _tile(length, lanes_at(access, op))
    steps, vector = stage.split(last, factor=factor)
    stage.reorder(*outer_axes, blocks, steps, inside, vector)
    if factor > 1:
        stage.vectorize(vector)
    sizes = [*(static_int(iv.dom.extent) for iv in outer_axes), width]
    shared = fused_outer(stage, [*outer_axes, blocks], sizes)
    if worth_sharing(total, access.cost(op)):
        stage.parallel(shared)


def _around(op: ComputeOp, axis: Any, access: Access) -> list[Any]:
    """``axis`` and those right before it that are read together with it."""
    at = next(k for k, iv in enumerate(op.axis) if iv is axis)
    first = at
    while first > 0 and static_int(op.axis[first - 1].dom.extent) != 1 and access.together(op, op.axis[first - 1: at + 1]):
        first -= 1
    return list(op.axis[first: at + 1])


def _tile(size: int | None, most: int = TILE) -> int:
    """The largest power of two up to ``most`` that divides ``size``; for sizes with no such divisor of 4 or more, ``most``."""
    if size is None:
        return most
    divisor = 1
    while divisor < most and size % (divisor * 2) == 0:
        divisor *= 2
    return divisor if divisor >= min(4, most) or size < 4 else min(most, 4)


__all__ = ["schedule_transpose", "crossing_axis", "schedule_tiles"]
