"""Schedules of injective operations for processors: one pass over memory in vectors, shared among threads.

Producers are inlined.  The last loops are fused as far as every input is read in memory order along them, cut into vectors
(what is left over at the end is handled by loop partitioning), and the loops around are fused and shared among threads when
there is enough work.  Loops that are fused because memory is read in their order need no division to find the indices, whether
their extents are known or not.
"""
from __future__ import annotations

from typing import Any, Sequence

from .. import te
from ..te.operation import ComputeOp
from ..te.schedule import AttachType, Schedule, Stage
from . import tag
from .access import Access
from .utils import as_list, static_int
from .vector import lanes_for, power_of_two_at_most, worth_sharing

MIN_VECTOR = 4  # shorter innermost loops are not worth a vector
PIECE = 1024  # elements that one thread computes at a time where there are not known to be more


def inline_producers(sch: Schedule) -> None:
    """Inlines every operation without a reduction that is no output of the schedule."""
    for stage in sch.stages:
        if is_inlinable(stage):
            stage.compute_inline()


def is_inlinable(stage: Stage) -> bool:
    """Whether a stage may dissolve into its consumers."""
    op = stage.op
    return (isinstance(op, ComputeOp) and not op.reduce_axis and not stage.is_output and op.num_outputs == 1
            and stage.attach_type == AttachType.ROOT and (tag.is_injective(op.tag) or op.tag == ""))


def access_of(sch: Schedule) -> Access:
    """Reads of a schedule's operations, inlined stages seen through."""
    def inlined(op: Any) -> bool:
        stage = sch.stage_of_op(op)
        return stage is not None and stage.attach_type == AttachType.INLINE

    return Access(inlined)


def extent(axes: Sequence[Any]) -> int | None:
    """The product of the axes' extents, None when one is not known."""
    total = 1
    for iv in axes:
        known = static_int(iv.dom.extent)
        if known is None:
            return None
        total *= known
    return total


def lanes_at(access: Access, op: ComputeOp) -> int:
    """How many elements of an operation one vector step should compute."""
    return lanes_for([op.output(i).dtype for i in range(op.num_outputs)] + [t.dtype for t in access.sources(op)])


def schedule_loops(stage: Stage, access: Access) -> Any:
    """Schedules the loops of a stage without reduction; gives the loop that is shared among threads, or None."""
    op, axes = stage.op, list(stage.op.axis)
    if not axes:
        return None
    group = access.trailing_group(op, axes)
    outer, inner = axes[: len(axes) - group], axes[len(axes) - group:]
    rows, length = extent(outer), extent(inner)
    if not outer:
        return _flat(stage, stage.fuse(*inner), length, access)
    fused = stage.fuse(*inner)
    vectorize(stage, fused, length, lanes_at(access, op))
    shared = fused_outer(stage, outer, [static_int(iv.dom.extent) for iv in outer])
    total = None if rows is None or length is None else rows * length
    if shared is not None and rows != 1 and worth_sharing(total, access.cost(op)):
        stage.parallel(shared)
    return shared


def fused_outer(stage: Stage, outer: Sequence[Any], extents: Sequence[int | None]) -> Any:
    """The loop to share among threads: the outer ones fused, as far as that takes no division by an extent that is not known."""
    count = min(1, len(outer))
    while count < len(outer) and extents[count] is not None:
        count += 1
    return stage.fuse(*outer[:count]) if count else None


def _flat(stage: Stage, fused: Any, length: int | None, access: Access) -> Any:
    """A stage that is one run over memory."""
    cost = access.cost(stage.op)
    if length is None:  # whole pieces and a remainder, so that only pieces ask whether they are whole
        piece, fused = stage.split(fused, factor=PIECE)
        vectorize(stage, fused, PIECE, lanes_at(access, stage.op))
        stage.parallel(piece)
        return piece
    steps = vectorize(stage, fused, length, lanes_at(access, stage.op))
    if steps is not None and worth_sharing(length, cost):
        stage.parallel(steps)
    return steps


def vectorize(stage: Stage, axis: Any, length: int | None, lanes: int) -> Any:
    """Cuts a loop into vectors; gives the loop over vectors, or None where it is too short for any."""
    if length is not None:
        lanes = min(lanes, power_of_two_at_most(length))
    if lanes == 1 or lanes < MIN_VECTOR and lanes != length:
        return None
    steps, vector = stage.split(axis, factor=lanes)
    stage.vectorize(vector)
    return steps


def schedule_injective_from_existing(sch: Schedule, out: Any) -> Schedule:
    """Schedules one tensor of a schedule as an injective operation."""
    schedule_loops(sch[out], access_of(sch))
    return sch


def schedule_injective(outs: Any) -> Schedule:
    """A schedule of injective operations; ``outs`` are the tensors that are wanted, all others are inlined."""
    outs = as_list(outs)
    sch = te.create_schedule([t.op for t in outs])
    inline_producers(sch)
    access = access_of(sch)
    for stage in sch.stages:
        if isinstance(stage.op, ComputeOp) and stage.attach_type == AttachType.ROOT and not stage.op.reduce_axis:
            schedule_loops(stage, access)
    return sch


schedule_elemwise = schedule_broadcast = schedule_injective
