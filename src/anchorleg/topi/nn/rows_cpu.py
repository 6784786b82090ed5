"""Schedules of what works row by row: softmax, layer_norm and other normalisations over the last axes.

All reductions of a row, and the values kept between them, are computed inside one loop over the rows, so that a row stays in
the first-level cache.
"""
from __future__ import annotations

from typing import Any, Sequence

from ... import te
from ...te.operation import ComputeOp, Operation
from ...te.schedule import Schedule
from .dense_cpu import fuses_without_division
from .schedule import extent_of, operations, parallelise, same_shape, schedule_default, work_of

OUTPUTS = ("softmax_output", "log_softmax_output", "norm_output")


def schedule_rows(outs: Any, target: Any = None) -> Schedule:
    """One loop over the rows around everything; falls back to the general schedule where the reduced axes are not the last ones."""
    outs = list(outs) if isinstance(outs, (list, tuple)) else [outs]
    final = outs[0].op
    stages = [op for op in operations(outs) if isinstance(op, ComputeOp)]
    reductions = [op for op in stages if op.reduce_axis]
    rank = len(reductions[0].axis) if reductions else 0
    if len(outs) != 1 or not _by_rows(final, reductions, rank):
        return schedule_default(outs, target)
    s = te.create_schedule([final])
    kept = [op for op in stages if op is final or op.reduce_axis or _keep(op, stages)]
    for op in stages:
        if not any(op is k for k in kept):
            s[op].compute_inline()
    rows = _rows_of(s, final, rank, sum(work_of(op) for op in reductions))
    for op in reversed(kept):
        if op is not final:
            _in_row(s, op, final, rows, rank)
    _vectorise(s, final, rank)
    return s


def _by_rows(final: Operation, reductions: Sequence[ComputeOp], rank: int) -> bool:
    """Whether every reduction has the leading axes of ``final`` as its own, and runs over the rest."""
    if not isinstance(final, ComputeOp) or not 0 < rank < len(final.axis) or final.reduce_axis:
        return False
    lead = [iv.dom.extent for iv in final.axis[:rank]]
    if any((extent_of(iv) or 0) < 1 for iv in final.axis[rank:]) or any(extent_of(iv) == 0 for iv in final.axis[:rank]):
        return False
    return all(op.num_outputs == 1 and same_shape([iv.dom.extent for iv in op.axis], lead)
               and len(op.reduce_axis) == len(final.axis) - rank for op in reductions)


def _keep(op: ComputeOp, stages: Sequence[ComputeOp]) -> bool:
    """Whether values are worth keeping for the row: costly ones that are read more than once."""
    return op.tag == "" and op.name == "T_softmax_exp" and sum(any(t.op is op for t in r.input_tensors) for r in stages) > 1


def _rows_of(s: Schedule, final: ComputeOp, rank: int, work: float) -> Any:
    shared = fuses_without_division(final.axis[:rank], {})
    at = parallelise(s, s[final], shared, work)
    return at if len(shared) == rank else final.axis[rank - 1]


def _in_row(s: Schedule, op: ComputeOp, final: ComputeOp, rows: Any, rank: int) -> None:
    from ..injective import access_of
    from ..reduction_schedule import vectorize_inner_reduction

    stage = s[op]
    stage.compute_at(s[final], rows)
    if op.reduce_axis:
        stage.set_scope("local")
        vectorize_inner_reduction(s, stage, access_of(s))
    else:
        _vectorise(s, op, rank)


def _vectorise(s: Schedule, op: ComputeOp, rank: int) -> None:
    """The axes of a row as one loop of vectors."""
    from ..injective import access_of, lanes_at, vectorize

    inner = list(op.axis[rank:])
    access = access_of(s)
    count = min(len(inner), access.trailing_group(op, op.axis))
    group = inner[len(inner) - count:]
    length = 1
    for iv in group:
        length *= extent_of(iv)
    vectorize(s[op], s[op].fuse(*group), length, lanes_at(access, op))
