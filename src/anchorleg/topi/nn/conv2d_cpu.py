"""Schedules of convolutions over channel-packed data for processors with vector registers.

The lanes of a vector are output channels.  A tile of neighbouring outputs (several columns, sometimes rows or blocks of channels) is
summed in registers over all input channels and taps; what is fused behind the convolution is applied to the tile
before it is stored.
"""
from __future__ import annotations

import functools
from typing import Any, NamedTuple, Sequence

from ... import te
from ...te import tag
from ...te.operation import ComputeOp, Operation
from ...te.schedule import Schedule
from ...te.tensor import Tensor
from ...tir.data_layout import BijectiveLayout
from .common import dims, pads_of
from .conv import conv2d_NCHWc, depthwise_conv2d_NCHWc
from .pad import pad_axes
from .schedule import (accumulate_locally, extent_of, find_anchor, inline_producers, lanes_of, operations, parallelise, schedule_default,
                       schedule_other, work_of)


USUAL_WIDTHS = (7, 10, 13, 14, 20, 26, 28, 40, 52, 56, 80, 112, 160)  # what a width that is not known may be
TAKEN_APART = 4  # registers that hold the halves of words of bytes
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


def registers_for(anchor: Operation, target: Any) -> int:
    """How many registers are left for the sums of a product, its operands and what it needs besides.

    Where bytes are multiplied without an instruction for it, words are taken apart, which takes some.
    """
    count = registers_of(target)
    if target is None or target.kind.name != "llvm" or anchor.output(0).dtype != "int32":
        return count
    from ...target.cpu import resolve_cpu

    return count if resolve_cpu(target).dot_bytes else count - TAKEN_APART


def _rounds(extent: int, tile: int) -> int:
    return -(-extent // tile)


@functools.lru_cache(maxsize=1024)
def conv_tile(height: int, width: int | None, chunks: int, vectors: int, registers: int, filled: float = 1.0) -> Tile:
    """The tile with the least estimated time per output, of a plane of that height and width (None: not known).

    A step of the sum costs one multiply-add per accumulator, and a load per weight vector and per input value; at least as
    many steps must be in flight as the latency of a multiply-add asks.  Vectors that fill only a part of a register
    (``filled``) are multiplied faster, and loads count for more.
    """
    best, chosen = float("inf"), Tile(1, 1, 1)
    for blocks in (b for b in (1, 2, 3, 4, 6) if chunks % b == 0):
        for cols in range(1, min(width or registers, registers) + 1):
            for rows in range(1, min(height, registers // cols) + 1) if cols == width else (1,):
                sums, weights, values = blocks * rows * cols * vectors, blocks * vectors, rows * cols
                if sums + weights + (1 if weights > 1 else 0) > registers:
                    continue
                steps = max(sums * filled, (weights + values) / 2, IN_FLIGHT * filled)
                waste = _rounds(height, rows) * rows / height * _waste(width, cols)
                crowded = max(0, sums - registers // 2) / registers
                cost = steps / sums * waste + 0.02 * (weights + values) / sums + 0.1 / values + 0.1 * crowded
                if cost < best - 1e-9:
                    best, chosen = cost, Tile(blocks, rows, cols)
    return chosen


def _waste(width: int | None, cols: int) -> float:
    """How many columns are computed for each that is wanted."""
    widths = USUAL_WIDTHS if width is None else (width,)
    return sum(_rounds(w, cols) * cols / w for w in widths) / len(widths)


def conv2d_packed(data: Tensor, kernel: Tensor, strides: Any, padding: Any, dilation: Any, groups: int, data_layout: str,
                  kernel_layout: str, icb: int, ocb: int, out_dtype: str) -> Tensor:
    """A convolution in any plain layout that packs data and weight by channels inside the kernel, and unpacks the result."""
    to_data, to_kernel = BijectiveLayout(data_layout, f"NCHW{icb}c"), BijectiveLayout(kernel_layout, f"OIHW{icb}i{ocb}o")
    padded = pad_axes(data, [data_layout.index(a) for a in "HW"], pads_of(padding, 2))
    packed, weights = _relaid(padded, to_data, "data_vec"), _relaid(kernel, to_kernel, "kernel_vec")
    out = conv2d_NCHWc(packed, weights, strides, 0, dilation, f"NCHW{icb}c", f"NCHW{ocb}c", out_dtype, groups)
    return _unpacked(out, data_layout, ocb)


def depthwise_conv2d_packed(data: Tensor, kernel: Tensor, strides: Any, padding: Any, dilation: Any, data_layout: str, kernel_layout: str,
                            block: int, out_dtype: str) -> Tensor:
    """A depthwise convolution in any plain layout that packs its data by channels inside the kernel, and unpacks the result."""
    to_data = BijectiveLayout(data_layout, f"NCHW{block}c")
    padded = pad_axes(data, [data_layout.index(a) for a in "HW"], pads_of(padding, 2))
    packed = _relaid(padded, to_data, "data_vec")
    weights = _relaid(kernel, BijectiveLayout(kernel_layout, f"OIHW1i{block}o"), "kernel_vec")
    out = depthwise_conv2d_NCHWc(packed, weights, strides, 0, dilation, f"NCHW{block}c", f"NCHW{block}c", out_dtype)
    return _unpacked(out, data_layout, block)


def _relaid(source: Tensor, layout: BijectiveLayout, name: str) -> Tensor:
    return te.compute(layout.forward_shape(dims(source)), lambda *i: source(*layout.backward_index(i)), name=name, tag="layout_copy")


def _unpacked(out: Tensor, data_layout: str, block: int) -> Tensor:
    to_out = BijectiveLayout(data_layout, f"NCHW{block}c")
    return te.compute(to_out.backward_shape(dims(out)), lambda *i: out(*to_out.forward_index(i)), name="unpacked", tag=tag.INJECTIVE)


def schedule_conv2d_NCHWc(outs: Any, target: Any = None) -> Schedule:
    """Register tiles over (channel blocks, rows, columns); the reduction runs over channel block, tap, channel.

    What takes the convolution's result element by element is applied to each tile; a result that is unpacked first is computed
    as a whole.
    """
    outs = list(outs) if isinstance(outs, (list, tuple)) else [outs]
    final = outs[0].op
    anchor = next((op for op in operations(outs) if op.tag == "conv2d_NCHWc"), None)
    if len(outs) != 1 or anchor is None or not _known_channels(anchor):
        return schedule_default(outs, target)
    home = final if find_anchor(final) is anchor else anchor
    s = te.create_schedule([final])
    padding = _large_padding(anchor)
    for op in inline_producers(s, outs):
        if op is not anchor and op is not home and op is not padding:
            schedule_other(s, op, target)
    lanes = lanes_of(target, anchor.output(0).dtype)
    _, chunks, height, width, block = dims(anchor.output(0))
    height, width = height if isinstance(height, int) else 1, width if isinstance(width, int) else None
    tile = conv_tile(height, width, _chunks_per_group(anchor, chunks), max(1, block // lanes), registers_for(anchor, target),
                     max(0.5, min(1.0, block / lanes)))
    local = s[accumulate_locally(s, anchor, home)]
    local.compute_at(s[home], _tile_output(s, home, tile, lanes, work_of(anchor), _padded_rows(anchor, padding, tile), padding))
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


def _known_channels(op: Operation) -> bool:
    """Whether all extents but those of batch and plane are known, and none is 0."""
    extents = [extent_of(iv) for iv in (*op.axis, *op.reduce_axis)]
    return all(e != 0 for e in extents) and all(e is not None for i, e in enumerate(extents) if i not in (0, 2, 3))


def _static(op: Operation) -> bool:
    return all(extent_of(iv) is not None and extent_of(iv) > 0 for iv in (*op.axis, *op.reduce_axis))


def _lane_parts(stage: Any, lane: Any, lanes: int) -> Sequence[Any]:
    """The axis of lanes as (vectors, lanes of one vector), or alone when it is one vector."""
    extent = extent_of(lane)
    if extent is None or extent <= lanes:
        return (lane,)
    return stage.split(lane, factor=lanes)


def _tile_output(s: Schedule, final: ComputeOp, tile: Tile, lanes: int, work: float, stripe: int, padding: Operation | None) -> Any:
    """Loops of the output around one tile; gives the axis at which a tile is computed.

    ``padding`` is computed for ``stripe`` tiles of rows at a time, outside the loop over output channels.
    """
    stage = s[final]
    n, oc, y, x, lane = stage.op.axis
    oco, oci = stage.split(oc, factor=tile.blocks)
    yo, yi = stage.split(y, factor=tile.rows)
    xo, xi = stage.split(x, factor=tile.cols)
    parts = _lane_parts(stage, lane, lanes)
    outer = [n, oco, yo]
    if padding is not None:
        ys, yo = stage.split(yo, factor=stripe)
        outer = [n, ys]
        stage.reorder(n, ys, oco, yo, xo, oci, yi, xi, *parts)
    else:
        stage.reorder(n, oco, yo, xo, oci, yi, xi, *parts)
    for axis in (oci, yi, xi, *parts[:-1]):
        stage.unroll(axis)
    stage.vectorize(parts[-1])
    shared = parallelise(s, stage, outer if padding is not None else _few_divisions(final, outer, (1, tile.blocks, tile.rows)), work)
    if padding is not None:
        s[padding].compute_at(stage, shared)
        _copy_padded(s[padding], lanes)
    return xo


ENOUGH_TASKS = 8  # parts among which threads share work without the rows of a plane


def _few_divisions(final: ComputeOp, axes: Sequence[Any], factors: Sequence[int]) -> Sequence[Any]:
    """The axes to share among threads: without the rows where their number is not known, and blocks of channels are enough."""
    blocks, rows = (extent_of(final.axis[k]) for k in (1, 2))
    return axes[:-1] if rows is None and blocks is not None and blocks // factors[1] >= ENOUGH_TASKS else axes


def _copy_padded(stage: Any, lanes: int) -> None:
    """Loops of a padded copy: vectors of channels; of columns where each plane lies by itself, the ends of a row apart."""
    *_, y, x, lane = stage.op.axis
    if extent_of(lane) >= MIN_LANES:
        stage.vectorize(_lane_parts(stage, lane, lanes)[-1])
    elif extent_of(lane) == 1 and lanes > 1:
        outer, inner = stage.split(x, factor=lanes)
        stage.vectorize(inner)
        stage.pragma(y, "loop_partition_hint", True)  # of the loop within


MIN_LANES = 4  # channels that are worth a vector
LARGE_BYTES = 1 << 20  # padded inputs beyond this, a second-level cache, are padded a stripe at a time
MOST_STRIPE_BYTES = 384 << 10
UNKNOWN_STRIPE = 4  # rows in a stripe of a plane whose size is not known


def _large_padding(anchor: Operation) -> ComputeOp | None:
    """The convolution's padded input when it is worth padding in stripes: packed by vectors, of many rows, and too large for the cache.

    What is not known is taken to be large.
    """
    padded = anchor.input_tensors[0]
    if not padded.op.tag.endswith(",pad") or dims(padded)[4] < MIN_LANES and isinstance(dims(padded)[3], int):
        return None
    if not all(isinstance(d, int) for d in dims(padded)):
        return padded.op
    size = 4
    for d in dims(padded):
        size *= d
    return padded.op if size > LARGE_BYTES and dims(anchor.output(0))[2] >= 16 else None


def _padded_rows(anchor: Operation, padding: Operation | None, tile: Tile) -> int:
    """How many tiles of rows a stripe has: what fits into the cache together with the rows that neighbouring stripes share."""
    if padding is None:
        return 1
    _, chunks, padded, wide, block = dims(padding.output(0))
    if not all(isinstance(d, int) for d in (padded, wide)):
        return max(1, UNKNOWN_STRIPE // tile.rows)
    tiles = _rounds(dims(anchor.output(0))[2], tile.rows)
    most = max(4, MOST_STRIPE_BYTES // (chunks * wide * block * 4) * dims(anchor.output(0))[2] // padded // tile.rows)
    count = min(tiles, most)
    return next((c for c in range(count, max(1, count // 2) - 1, -1) if tiles % c == 0), count)


STRIPE_BYTES = 128 << 10  # of padded input kept between rows: a fraction of a second-level cache
UNKNOWN_COLUMNS = 7  # columns per tile of a plane whose width is not known
EDGE_COLUMNS = 4  # columns per tile where the borders have loops of their own


def schedule_depthwise_conv2d_NCHWc(outs: Any, target: Any = None) -> Schedule:
    """Tiles of columns with the taps unrolled, so that weights and neighbouring inputs stay in registers; also for pools.

    Padding is never a tensor of its own: either the rows and columns at the border get loops of their own, or a stripe of rows
    is padded at a time, in the cache.
    """
    outs = list(outs) if isinstance(outs, (list, tuple)) else [outs]
    anchor = next((op for op in operations(outs) if _by_channels(op)), None)
    if len(outs) != 1 or anchor is None:
        return schedule_default(outs, target)
    final = outs[0].op if find_anchor(outs[0].op) is anchor else anchor
    s = te.create_schedule([outs[0].op])
    padding = next((t.op for t in anchor.input_tensors if t.op.tag.endswith(",pad")), None)
    for op in inline_producers(s, outs, keep=[padding] if padding is not None else []):
        if op is not anchor and op is not final and op is not padding:
            schedule_other(s, op, target)
    lanes = lanes_of(target, anchor.output(0).dtype)
    local = s[accumulate_locally(s, anchor, final)]
    edges = padding is not None and _edges_apart(anchor, padding)
    local.compute_at(s[final], _depthwise_loops(s, final, anchor, padding, edges, lanes, registers_of(target)))
    _depthwise_sum(local, lanes)
    return s


def _by_channels(anchor: Operation) -> bool:
    """Whether windows over (rows, columns) of (n, chunk, y, x, lane) are reduced channel by channel."""
    return (isinstance(anchor, ComputeOp) and anchor.tag in ("depthwise_conv2d_NCHWc", "pool_max", "pool_sum") and len(anchor.axis) == 5
            and len(anchor.reduce_axis) == 2 and _known_channels(anchor))


def _edges_apart(anchor: Operation, padding: Operation) -> bool:
    """Whether loops of their own for the borders pay: few taps, many points between, and enough blocks of channels for the threads."""
    batch, chunks, height, width, _ = dims(anchor.output(0))
    if not _static(anchor):
        return False
    strided = dims(padding.output(0))[2] >= 2 * height
    return _taps(anchor) <= 9 and batch * chunks >= 4 and min(height, width) >= (14 if strided else 40)


def _taps(anchor: Operation) -> int:
    count = 1
    for iv in anchor.reduce_axis:
        count *= extent_of(iv)
    return count


def _depthwise_loops(s: Schedule, final: ComputeOp, anchor: Operation, padding: Operation | None, edges: bool, lanes: int,
                     registers: int) -> Any:
    """The output's loops; gives the axis at which a tile is summed."""
    stage = s[final]
    _, _, height, width, block = dims(anchor.output(0))
    n, oc, y, x, lane = stage.op.axis
    cols = min(EDGE_COLUMNS, width) if edges else _columns_at_once(width, max(1, block // lanes), registers)
    yo, yi = stage.split(y, factor=height if edges else stripe_rows(anchor, padding))
    xo, xi = stage.split(x, factor=cols)
    parts = _lane_parts(stage, lane, lanes)
    stage.reorder(n, oc, yo, yi, xo, xi, *parts)
    for axis in (xi, *parts[:-1]):
        stage.unroll(axis)
    stage.vectorize(parts[-1])
    shared = _few_divisions(final, (n, oc, yo), (1, 1, 1))
    outer = parallelise(s, stage, shared, work_of(anchor))
    outer = outer if len(shared) == 3 else yo
    if edges:
        s[padding].compute_inline()
        for axis in (yi, xo):
            stage.pragma(axis, "loop_partition_hint", True)
    elif padding is not None:
        s[padding].compute_at(stage, outer)
        _copy_padded(s[padding], lanes)
    return xo


def _columns_at_once(width: Any, vectors: int, registers: int) -> int:
    return depthwise_columns(width, vectors, registers) if isinstance(width, int) else max(1, min(UNKNOWN_COLUMNS, registers // (2 * vectors)))


def stripe_rows(anchor: Operation, padding: Operation | None) -> int:
    """Rows of the output whose padded input fits into a stripe, preferably a divisor of the height."""
    _, _, height, width, block = dims(anchor.output(0))
    if padding is None:
        return 1
    _, _, padded, wide, _ = dims(padding.output(0))
    if not all(isinstance(d, int) for d in (height, padded, wide)):
        return 2 * UNKNOWN_STRIPE
    step = max(1, padded // height)
    most = max(1, min(height, (STRIPE_BYTES // (wide * block * 4) - extent_of(anchor.reduce_axis[0])) // step))
    return next((r for r in range(most, max(1, most // 2) - 1, -1) if height % r == 0), most)


def _depthwise_sum(local: Any, lanes: int) -> None:
    n, oc, y, x, lane = local.op.axis
    ry, rx = local.op.reduce_axis
    parts = _lane_parts(local, lane, lanes)
    local.reorder(ry, rx, n, oc, y, x, *parts)
    for axis in (x, *parts[:-1]):
        local.unroll(axis)
    if extent_of(rx) * extent_of(ry) <= 25:
        local.unroll(rx)
    if extent_of(rx) * extent_of(ry) <= 9:
        local.unroll(ry)
    local.vectorize(parts[-1])


def depthwise_columns(width: int, vectors: int, registers: int) -> int:
    """How many columns to sum at once: at most half the registers, preferably a divisor of the width."""
    most = max(1, min(width, registers // (2 * vectors)))
    for cols in range(most, max(1, most // 2) - 1, -1):
        if width % cols == 0:
            return cols
    return most
