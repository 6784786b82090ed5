"""Schedules of convolutions in plain layouts (NCW, NCHW, NCDHW) whose few channels are not worth packing.

The lanes of a vector are neighbouring outputs of a row, or, where those read far-apart inputs, the taps of a long kernel.
"""
from __future__ import annotations

import functools
from typing import Any, NamedTuple

from ... import te
from ...te.operation import ComputeOp, Operation
from ...te.schedule import Schedule
from .conv2d_cpu import registers_of
from .schedule import (accumulate_locally, extent_of, find_anchor, inline_producers, lanes_of, parallelise, reads_contiguously, schedule_default,
                       schedule_other, work_of)

IN_FLIGHT = 8  # independent sums that keep the multiply-add units busy
LONG = 16  # taps in a row from which they are summed as vectors
MOST_CHANNELS = 4  # output channels that share the inputs of a tile


class PlaneTile(NamedTuple):
    """What is summed at once: output channels, rows, and vectors of so many lanes."""

    channels: int
    rows: int
    vectors: int
    lanes: int


@functools.lru_cache(maxsize=1024)
def plane_tile(channels: int, height: int, width: int, lanes: int, registers: int) -> PlaneTile:
    """The tile with the least estimated time per output: loads and multiply-adds, weighed with what is left over at the edges."""
    best, chosen = float("inf"), PlaneTile(1, 1, 1, max(1, lanes))
    for wide in (n for n in (lanes, lanes // 2) if n > 1 and (n <= width or n == lanes // 2)):
        for vectors in range(1, 5):
            for rows in range(1, min(height, 8) + 1):
                values = rows * vectors
                sums = channels * values
                if sums + values + 1 > registers:
                    continue
                across, down = -(-width // (wide * vectors)) * wide * vectors, -(-height // rows) * rows
                steps = max(sums * wide / lanes, (values + channels) / 2, IN_FLIGHT * wide / lanes)
                ragged = 1.2 if width % (wide * vectors) else 1.0
                cost = steps / (sums * wide) * across * down * ragged + 1e-3 * values
                if cost < best:
                    best, chosen = cost, PlaneTile(channels, rows, vectors, wide)
    return chosen


def schedule_planes(outs: Any, target: Any = None) -> Schedule:
    """Tiles of channels, rows and vectors along a row; long kernels over scattered inputs along their taps."""
    outs = list(outs) if isinstance(outs, (list, tuple)) else [outs]
    final = outs[0].op
    anchor = find_anchor(final) if len(outs) == 1 else None
    if anchor is None or len(anchor.axis) < 3 or any(not extent_of(iv) for iv in (*anchor.axis, *anchor.reduce_axis)):
        return schedule_default(outs, target)
    in_rows = reads_contiguously(anchor, anchor.axis[-1].var)
    if not in_rows and extent_of(anchor.reduce_axis[-1]) < LONG:
        return schedule_default(outs, target)
    s = te.create_schedule([final])
    for op in inline_producers(s, outs):
        if op is not anchor and op is not final:
            schedule_other(s, op, target)
    if in_rows:
        _rows(s, anchor, final, target)
    else:
        _taps(s, anchor)
    return s


def _taps(s: Schedule, anchor: Operation) -> None:
    from ..reduction_schedule import schedule_reduction

    schedule_reduction(s, s[anchor])


def _rows(s: Schedule, anchor: Operation, final: ComputeOp, target: Any) -> None:
    extents = [extent_of(iv) for iv in anchor.axis]
    together = extents[1] if extents[1] <= MOST_CHANNELS and _shares_inputs(anchor) else 1
    height = extents[-2] if len(extents) > 3 else 1
    tile = plane_tile(together, height, extents[-1], lanes_of(target, anchor.output(0).dtype), registers_of(target))
    local = s[accumulate_locally(s, anchor, final)]
    stage = s[final]
    n, oc, *space = stage.op.axis
    oco, oci = stage.split(oc, factor=tile.channels)
    outer, inner = [n, oco], [oci]
    if len(space) > 1:
        yo, yi = stage.split(space[-2], factor=tile.rows)
        outer, inner = [*outer, *space[:-2], yo], [*inner, yi]
    xo, xi = stage.split(space[-1], factor=tile.vectors * tile.lanes)
    xv, lane = stage.split(xi, factor=tile.lanes)
    stage.reorder(*outer, xo, *inner, xv, lane)
    for axis in (*inner, xv):
        stage.unroll(axis)
    stage.vectorize(lane)
    parallelise(s, stage, outer, work_of(anchor))
    local.compute_at(stage, xo)
    *own, x = local.op.axis
    xv, lane = local.split(x, factor=tile.lanes)
    local.reorder(*local.op.reduce_axis, *own, xv, lane)
    for axis in (*own[1:], xv):
        local.unroll(axis)
    local.vectorize(lane)


def _shares_inputs(anchor: Operation) -> bool:
    """Whether all output channels read the same inputs: the channel occurs in the weight's indices alone."""
    from ...ir.visit import post_order
    from ...tir.buffer import ProducerLoad

    var = anchor.axis[1].var
    loads = [n for n in post_order(anchor.body) if isinstance(n, ProducerLoad)]
    return sum(any(n is var for i in load.indices for n in post_order(i)) for load in loads) <= 1
