"""Schedules of reductions for processors, near the speed of memory.

Two cases, by what lies next to one another in memory:

* elements that are kept apart: a block of them is accumulated in vector registers, the loop over reduced elements outside;
* elements that are reduced together: vectors of partial results are accumulated along memory and then folded in halves,
  so that no chain of dependent scalar operations is left.

The operations before are inlined, those after are computed in the same loop.
"""
from __future__ import annotations

import math
from typing import Any

from .. import te
from ..te.operation import ComputeOp
from ..te.schedule import AttachType, Schedule, Stage
from ..te.tensor import Tensor
from ..tir.dtypes import is_float
from ..tir.expr import IterVar
from .access import Access
from .injective import access_of, extent, inline_producers, lanes_at, schedule_loops
from .utils import as_list, static_int
from .vector import power_of_two_at_most, worth_sharing

CHAINS = 4  # independent accumulators that hide the latency of an addition
SHORT = 4  # elements that are folded one by one
MIN_LENGTH = 8  # shorter runs are reduced one by one
LONG_CHAIN = 256  # sums of more elements are made in parts
PART = 64  # elements of a part, where their number is not known


def schedule_reduce(outs: Any) -> Schedule:
    """A schedule of reductions, the injective operations before them and the element-wise ones after."""
    outs = as_list(outs)
    sch = te.create_schedule([t.op for t in outs])
    inline_producers(sch)
    stages = [s for s in sch.stages if s.attach_type == AttachType.ROOT and isinstance(s.op, ComputeOp)]
    homes = [schedule_reduction(sch, s) for s in stages if s.op.reduce_axis]
    access = access_of(sch)
    for stage in stages:
        if not stage.op.reduce_axis and not any(stage is h for h in homes):
            schedule_loops(stage, access)
    return sch


def schedule_reduction(sch: Schedule, stage: Stage) -> Stage:
    """Schedules one reduction that is computed as a whole, with its only element-wise consumer where it has one.

    Gives the stage whose loops it is computed in: that consumer, or the reduction's own stage, which copies the result out.
    """
    home = _elementwise_consumer(sch, stage)
    if home is None:
        made = sch.cache_write([stage.op.output(i) for i in range(stage.op.num_outputs)], "local")
        home, stage = stage, sch[made[0] if isinstance(made, (list, tuple)) else made]
    stage.set_scope("local")
    access = access_of(sch)
    if _reduces_along_memory(access, stage.op):
        _along_memory(sch, stage, home, access)
    else:
        _across_memory(sch, stage, home, access)
    return home


def _elementwise_consumer(sch: Schedule, stage: Stage) -> Stage | None:
    """The one stage that reads the reduction, when it is an output of the same shape that reads it element by element."""
    readers = [s for s in sch.stages if any(t.op is stage.op for t in s.op.input_tensors)]
    if len(readers) != 1 or not isinstance(readers[0].op, ComputeOp) or readers[0].op.reduce_axis:
        return None
    reader = readers[0]
    if stage.is_output or reader.attach_type != AttachType.ROOT or reader.relations or len(reader.op.axis) != len(stage.op.axis):
        return None
    own = [iv.var for iv in reader.op.axis]
    for load in Access(lambda op: False).loads(reader.op):
        if load.producer.op is stage.op and not all(i is v for i, v in zip(load.indices, own)):
            return None
    return reader


def _reduces_along_memory(access: Access, op: ComputeOp) -> bool:
    along = access.unit_stride_vars(op)
    reduced = max((along.get(id(iv.var), 0) for iv in op.reduce_axis), default=0)
    kept = max((along.get(id(iv.var), 0) for iv in op.axis if static_int(iv.dom.extent) != 1), default=0)
    return reduced > 0 and reduced >= kept


def _cost(access: Access, op: ComputeOp) -> int:
    return access.cost(op) + len(op.body)


def _share(stage: Stage, axis: Any, elements: int | None, cost: int) -> None:
    if worth_sharing(elements, cost):
        stage.parallel(axis)


# -- elements next to one another are kept apart ---------------------------------------------------

def _across_memory(sch: Schedule, stage: Stage, home: Stage, access: Access) -> None:
    op, axes = stage.op, list(home.op.axis)
    if not axes:
        stage.compute_at(home, home.fuse())
        return
    *outer, last = axes
    length, lanes = static_int(last.dom.extent), lanes_at(access, op)
    block = _block(length, lanes)
    steps, inner = home.split(last, factor=block)
    exact = length is not None and length % block == 0
    shared = home.fuse(*outer, *([steps] if exact or not outer else []))
    stage.compute_at(home, shared if exact or not outer else steps)
    if block > 1:
        home.vectorize(inner)
    for each in (stage, _in_two_levels(sch, stage)):
        if each is not None:
            own = list(each.op.axis)
            each.reorder(*own[:-1], *_loops_over(each), own[-1])
            if block > 1:
                each.vectorize(own[-1])
    if _iterations(outer, length, block, exact) != 1:
        _share(home, shared, extent([*axes, *op.reduce_axis]), _cost(access, op))


def _loops_over(stage: Stage) -> list[Any]:
    """The loops of a stage that reduce, after splitting."""
    return [iv for iv in stage.leaf_iter_vars if iv.iter_type == IterVar.CommReduce]


def _in_two_levels(sch: Schedule, stage: Stage) -> Stage | None:
    """Long sums of floats are made in parts: the error of a sum grows with the length of its chain of additions.

    Gives the stage of the parts, computed inside the loop that adds them up.
    """
    op = stage.op
    length = extent(op.reduce_axis)
    if op.num_outputs != 1 or length is not None and length < LONG_CHAIN or not is_float(op.output(0).dtype):
        return None
    first, *rest = op.reduce_axis
    if length is None and not rest and (not op.axis or static_int(op.axis[-1].dom.extent) is None):
        return None  # tests for two remainders, in the inner loop, would cost more than the additions
    if not rest:
        first, _ = stage.split(first, factor=PART if length is None else _near_root(length))
    parts = sch[sch.rfactor(op.output(0), first)]
    parts.set_scope("local")
    parts.compute_at(stage, stage.op.reduce_axis[0])
    return parts


def _near_root(length: int) -> int:
    """The divisor of ``length`` nearest its root, or a power of two near it when there is no good one."""
    root = math.isqrt(length)
    divisors = [d for d in range(max(2, root // 2), root * 2 + 1) if length % d == 0]
    return min(divisors, key=lambda d: abs(d - root)) if divisors else power_of_two_at_most(root)


def _iterations(outer: Any, length: int | None, block: int, exact: bool) -> int | None:
    """How often the shared loop runs; None when that is not known."""
    rows = extent(outer)
    if outer and not exact:
        return rows
    return None if rows is None or length is None else rows * -(-length // block)


def _block(length: int | None, lanes: int) -> int:
    """How many neighbouring results are accumulated at once: several vectors, preferably without a rest."""
    if length is None:
        return lanes
    candidates = [w for w in (lanes * CHAINS, lanes * 2, lanes) if w <= length]
    whole = next((w for w in candidates if length % w == 0), 0)
    return whole or (candidates[0] if candidates else power_of_two_at_most(length))


# -- elements next to one another are reduced together ---------------------------------------------

def _along_memory(sch: Schedule, stage: Stage, home: Stage, access: Access) -> None:
    shared = home.fuse(*home.op.axis)
    stage.compute_at(home, shared)
    if extent(home.op.axis) != 1:
        _share(home, shared, extent([*home.op.axis, *stage.op.reduce_axis]), _cost(access, stage.op))
    vectorize_inner_reduction(sch, stage, access)


def vectorize_inner_reduction(sch: Schedule, stage: Stage, access: Access | None = None) -> None:
    """Turns a reduction along memory into vectors of partial results, folded in halves at the end.

    The stage keeps its place; the parts are computed at its innermost output loop.
    """
    access = access or access_of(sch)
    op = stage.op
    group = access.trailing_group(op, op.reduce_axis)
    inner = list(op.reduce_axis)[len(op.reduce_axis) - group:]
    length, lanes = extent(inner), lanes_at(access, op)
    if length is not None and (length < MIN_LENGTH or lanes == 1 and length < LONG_CHAIN):
        return
    width = _width(_known_run(inner) if length is None else length, lanes)
    _, part = stage.split(stage.fuse(*inner), factor=width)
    parts = _parts(sch, stage, part)
    first = sch[parts]
    first.reorder(*first.op.axis[1:], *first.op.reduce_axis, first.op.axis[0])
    first.vectorize(first.op.axis[0])
    while width > SHORT:
        width //= 2
        _, half = stage.split(stage.op.reduce_axis[0], factor=width)
        folded = sch[_parts(sch, stage, half)]
        folded.reorder(*folded.op.axis[1:], *folded.op.reduce_axis, folded.op.axis[0])
        folded.unroll(folded.op.reduce_axis[0])
        folded.vectorize(folded.op.axis[0])
    stage.unroll(stage.op.reduce_axis[0])


def _known_run(axes: list[Any]) -> int | None:
    """Of how many elements the length of a run, which is not known, is a multiple at least; None for nothing of use."""
    known = math.prod(static_int(iv.dom.extent) or 1 for iv in axes)
    return known if known >= 2 * MIN_LENGTH else None


def _width(length: int | None, lanes: int) -> int:
    """Elements per step: several vectors when the run is long, preferably without a rest."""
    if length is None:
        return lanes
    candidates = [w for w in (lanes * CHAINS, lanes * 2, lanes) if w <= length // 2]
    return next((w for w in candidates if length % w == 0), max((w for w in candidates if w * 4 <= length), default=0)
                or min(lanes, power_of_two_at_most(length)))


def _parts(sch: Schedule, stage: Stage, axis: Any) -> Tensor:
    """The reduction in parts, one for each value of the loop ``axis``, in a local buffer where the stage is computed."""
    made = sch.rfactor(stage.op.output(0), axis)
    parts = made[0] if isinstance(made, (list, tuple)) else made
    own = sch[parts]
    own.set_scope("local")
    if stage.op.axis:
        own.compute_at(stage, stage.op.axis[-1])
    elif stage.attach_type == AttachType.SCOPE:
        own.compute_at(stage.attach_stage, stage.attach_ivar)
    return parts
