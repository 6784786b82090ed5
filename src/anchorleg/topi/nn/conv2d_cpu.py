"""Schedules of convolutions over channel-packed data for processors with vector registers.

The lanes of a vector are output channels.  A tile of neighbouring outputs (several columns, sometimes rows or blocks of channels) is
summed in registers over all input channels and taps; what is fused behind the convolution is applied to the tile
before it is stored.
"""
from __future__ import annotations

import functools
from typing import Any, NamedTuple, Sequence

from ... import te
from ...te.operation import ComputeOp, Operation
from ...te.schedule import Schedule
from .common import dims
from .schedule import (accumulate_locally, extent_of, find_anchor, inline_producers, lanes_of, parallelise, schedule_default, schedule_other,
                       work_of)


IN_FLIGHT = 12  # independent sums that keep the multiply-add units of current processors busy


class Tile(NamedTuple):
    """What is summed at once: blocks of output channels, rows and columns."""

    blocks: int
    rows: int
    cols: int


def registers_of(target: Any) -> int:
    """How many vector registers the target's processor has."""
    if target is None or target.kind.name != "llvm":
        return 16
    from ...target.cpu import resolve_cpu

    return resolve_cpu(target).num_vector_registers


def _rounds(extent: int, tile: int) -> int:
    return -(-extent // tile)


@functools.lru_cache(maxsize=1024)
def conv_tile(height: int, width: int, chunks: int, vectors: int, registers: int) -> Tile:
    """The tile with the least estimated time per output.

    A step of the sum costs one multiply-add per accumulator, and a load per weight vector and per input value; at least as
    many steps must be in flight as the latency of a multiply-add asks.
    """
    best, chosen = float("inf"), Tile(1, 1, 1)
    for blocks in (b for b in (1, 2, 4) if chunks % b == 0):
        for cols in range(1, min(width, registers) + 1):
            for rows in (1, 2, 4) if cols == width else (1,):
                if rows > height:
                    continue
                sums, weights, values = blocks * rows * cols * vectors, blocks * vectors, rows * cols
                if sums + weights + (1 if weights > 1 else 0) > registers:
                    continue
                steps = max(sums, (weights + values) / 2, IN_FLIGHT)
                waste = _rounds(height, rows) * rows * _rounds(width, cols) * cols / (height * width)
                crowded = max(0, sums - registers // 2) / registers
                cost = steps / sums * waste + 0.02 * (weights + values) / sums + 0.1 / values + 0.1 * crowded
                if cost < best - 1e-9:
                    best, chosen = cost, Tile(blocks, rows, cols)
    return chosen


def schedule_conv2d_NCHWc(outs: Any, target: Any = None) -> Schedule:
    """Register tiles over (channel blocks, rows, columns); the reduction runs over channel block, tap, channel."""
    outs = list(outs) if isinstance(outs, (list, tuple)) else [outs]
    anchor = find_anchor(outs[0].op)
    if len(outs) != 1 or anchor is None or anchor.tag != "conv2d_NCHWc" or not _static(anchor):
        return schedule_default(outs, target)
    s = te.create_schedule([outs[0].op])
    final = outs[0].op
    for op in inline_producers(s, outs):
        if op is not anchor and op is not final:
            schedule_other(s, op, target)
    lanes = lanes_of(target, anchor.output(0).dtype)
    _, chunks, height, width, block = dims(anchor.output(0))
    vectors = max(1, block // lanes)
    tile = conv_tile(height, width, _chunks_per_group(anchor, chunks), vectors, registers_of(target))
    local = s[accumulate_locally(s, anchor, final)]
    local.compute_at(s[final], _tile_output(s, final, tile, lanes, work_of(anchor)))
    n, oc, y, x, lane = local.op.axis
    ko, ry, rx, ki = local.op.reduce_axis
    parts = _lane_parts(local, lane, lanes)
    local.reorder(ko, ry, rx, ki, n, y, x, oc, *parts)  # a value is loaded, used for every block, and gone
    for axis in (oc, y, x, *parts[:-1]):
        local.unroll(axis)
    local.vectorize(parts[-1])
    return s


def _chunks_per_group(anchor: Operation, chunks: int) -> int:
    """How many blocks of output channels share their input channels."""
    data, kernel = anchor.input_tensors
    groups = dims(data)[1] // max(1, dims(kernel)[1])
    return chunks // max(1, groups)


def _static(op: Operation) -> bool:
    return all(extent_of(iv) is not None and extent_of(iv) > 0 for iv in (*op.axis, *op.reduce_axis))


def _lane_parts(stage: Any, lane: Any, lanes: int) -> Sequence[Any]:
    """The axis of lanes as (vectors, lanes of one vector), or alone when it is one vector."""
    extent = extent_of(lane)
    if extent is None or extent <= lanes:
        return (lane,)
    return stage.split(lane, factor=lanes)


def _tile_output(s: Schedule, final: ComputeOp, tile: Tile, lanes: int, work: float) -> Any:
    """Loops of the output around one tile; gives the axis at which a tile is computed."""
    stage = s[final]
    n, oc, y, x, lane = stage.op.axis
    oco, oci = stage.split(oc, factor=tile.blocks)
    yo, yi = stage.split(y, factor=tile.rows)
    xo, xi = stage.split(x, factor=tile.cols)
    parts = _lane_parts(stage, lane, lanes)
    stage.reorder(n, oco, yo, xo, oci, yi, xi, *parts)
    for axis in (oci, yi, xi, *parts[:-1]):
        stage.unroll(axis)
    stage.vectorize(parts[-1])
    parallelise(s, stage, (n, oco, yo), work)
    return xo


def schedule_depthwise_conv2d_NCHWc(outs: Any, target: Any = None) -> Schedule:
    """Tiles of columns with all taps unrolled, so that weights and neighbouring inputs stay in registers."""
    outs = list(outs) if isinstance(outs, (list, tuple)) else [outs]
    anchor = find_anchor(outs[0].op)
    if len(outs) != 1 or anchor is None or anchor.tag != "depthwise_conv2d_NCHWc" or not _static(anchor):
        return schedule_default(outs, target)
    s = te.create_schedule([outs[0].op])
    final = outs[0].op
    for op in inline_producers(s, outs):
        if op is not anchor and op is not final:
            schedule_other(s, op, target)
    lanes = lanes_of(target, anchor.output(0).dtype)
    _, _, height, width, block = dims(anchor.output(0))
    taps = 1
    for iv in anchor.reduce_axis:
        taps *= extent_of(iv)
    cols = depthwise_columns(width, max(1, block // lanes), registers_of(target))
    local = s[accumulate_locally(s, anchor, final)]
    local.compute_at(s[final], _tile_output(s, final, Tile(1, 1, cols), lanes, work_of(anchor)))
    n, oc, y, x, lane = local.op.axis
    ry, rx = local.op.reduce_axis
    parts = _lane_parts(local, lane, lanes)
    local.reorder(ry, rx, n, oc, y, x, *parts)
    for axis in (x, *parts[:-1]):
        local.unroll(axis)
    if taps <= 25:
        local.unroll(rx)
    if taps <= 9:
        local.unroll(ry)
    local.vectorize(parts[-1])
    return s


def depthwise_columns(width: int, vectors: int, registers: int) -> int:
    """How many columns to sum at once: about a third of the registers, preferably a divisor of the width."""
    most = max(1, min(width, registers // (2 * vectors)))
    for cols in range(most, max(1, most // 2) - 1, -1):
        if width % cols == 0:
            return cols
    return most
