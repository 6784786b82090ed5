"""Convolutions by Winograd's minimal filtering over channel-packed data, for processors with vector registers.

A 3x3 convolution of stride 1 is computed by square tiles of m x m outputs: every tile of (m + 2) x (m + 2) inputs is transformed,
each of its points is multiplied by a transformed weight and summed over the input channels (a matrix product over the tiles of a
block), and the sums are transformed back.  That takes (m + 2)^2 multiply-adds per tile, channel and output channel instead of 9 m^2.

Tiles are worked off in blocks whose products fill the registers; what lies between the three steps stays in the cache.
"""
from __future__ import annotations

import functools
from typing import Any, NamedTuple, Sequence

import numpy as np

from ... import te
from ...ir.expr import PrimExpr
from ...te import tag
from ...te.operation import ComputeOp, Operation
from ...te.schedule import Schedule
from ...te.tensor import Tensor
from ...tir import op as tir_op
from ...tir.expr import Select
from .common import dims, pads_of, windows
from .conv2d_cpu import registers_of
from .pad import pad_axes
from .schedule import extent_of, inline_producers, operations, parallelise, same_shape, schedule_default, schedule_other, work_of
from .winograd_util import winograd_transform_arrays

TAG = "conv2d_winograd_NCHWc"
KERNEL = 3  # taps per axis
SECOND_LEVEL = 1 << 20  # bytes of the cache that transformed weights are best kept in
THIRD_LEVEL = 8 << 20
STEP_BYTES = {"second": 64.0, "third": 20.0, "memory": 7.0}  # bytes a cycle
WORTH = 0.8  # of the direct convolution's time, above which it is preferred


class Blocks(NamedTuple):
    """Tiles of m x m outputs, and how many rows and columns of them are worked off at once."""

    m: int
    rows: int
    cols: int

    def count(self, height: int, width: int) -> int:
        """How many blocks cover a map."""
        return _ceil(height, self.m * self.rows) * _ceil(width, self.m * self.cols)


def _ceil(a: int, b: int) -> int:
    return -(-a // b)


@functools.lru_cache(maxsize=1024)
def tile_blocks(m: int, height: int, width: int, registers: int) -> Blocks:
    """The block of tiles that leaves least unused, and of these the largest: weights are read once per block."""
    best, chosen = float("inf"), Blocks(m, 1, 1)
    across = _ceil(width, m)
    for cols in range(1, min(across, registers - 4) + 1):
        for rows in range(1, min(_ceil(height, m), (registers - 4) // cols) + 1):
            blocks = Blocks(m, rows, cols)
            tiles = blocks.count(height, width) * rows * cols
            cost = tiles * (1 + 1 / (rows * cols)) * (1 if cols == across else 1.02)
            if cost < best:
                best, chosen = cost, blocks
    return chosen


def _bandwidth(size: int) -> float:
    return STEP_BYTES["second" if size <= SECOND_LEVEL // 2 else "third" if size <= THIRD_LEVEL else "memory"]


def winograd_tile_size(height: int, width: int, channels: int, outputs: int, lanes: int, registers: int) -> int:
    """The m of the tiles that pay for a 3x3 convolution with this output, or 0 where summing directly is as good."""
    weights = channels * outputs * 4 * KERNEL * KERNEL
    direct = max(height * width * channels * outputs * KERNEL * KERNEL / lanes, weights / _bandwidth(weights))
    costs = {m: _cost(m, height, width, channels, outputs, lanes, registers) for m in (2, 4)}
    m = min(costs, key=lambda each: costs[each])
    return m if costs[m] < WORTH * direct else 0


def _cost(m: int, height: int, width: int, channels: int, outputs: int, lanes: int, registers: int) -> float:
    """Cycles of a processor that starts one vector multiply-add each."""
    blocks = tile_blocks(m, height, width, registers)
    count, points = blocks.count(height, width), (m + KERNEL - 1) ** 2
    tiles = count * blocks.rows * blocks.cols
    products = tiles * points * channels * outputs / lanes
    weights = channels * outputs * 4 * points
    transforms = tiles * points * (channels * 12 + outputs * 10) / lanes
    return max(products * 1.05, weights * count / _bandwidth(weights)) + transforms


def conv2d_winograd_NCHWc(data: Tensor, weight: Tensor, tile_size: int, padding: Any, out_dtype: str = "float32") -> Tensor:
    """A 3x3 convolution of stride 1 of packed data (n, c / cb, h, w, cb) by tiles of ``tile_size`` squared outputs.

    ``weight`` is transformed and packed: (o / ob, α, α, c / cb, cb, ob) with α = ``tile_size`` + 2; the result (n, o / ob, oh, ow, ob).
    """
    m, alpha = tile_size, tile_size + KERNEL - 1
    n, chunks, h, w, cb = dims(data)
    oc_chunks, _, _, _, _, ob = dims(weight)
    pads = pads_of(padding, 2)
    oh, ow = windows(h, pads[0], KERNEL, 1, 1), windows(w, pads[1], KERNEL, 1, 1)
    blocks = tile_blocks(m, oh, ow, registers_of(_target()))
    th, tw = _ceil(oh, m * blocks.rows) * blocks.rows, _ceil(ow, m * blocks.cols) * blocks.cols
    reach = [(p[0], max(0, (t - 1) * m + alpha - p[0] - e)) for p, t, e in zip(pads, (th, tw), (h, w))]
    padded = pad_axes(data, (2, 3), reach)
    a_t, b, _ = winograd_transform_arrays(m, KERNEL, "float64")
    rows = te.compute((n, chunks, th, tw, alpha, alpha, cb), lambda i, c, y, x, p, q, lane: _combined(
        b.T, p, lambda k: padded(i, c, y * m + k, x * m + q, lane)), name="input_rows")
    points = te.compute((n, alpha, alpha, chunks, th, tw, cb), lambda i, p, q, c, y, x, lane: _combined(
        b.T, q, lambda k: rows(i, c, y, x, p, k, lane)), name="input_points")
    ko, ki = te.reduce_axis((0, chunks), name="ic_outer"), te.reduce_axis((0, cb), name="ic_inner")
    product = te.compute((n, oc_chunks, alpha, alpha, th, tw, ob), lambda i, o, p, q, y, x, lane: te.sum(
        points(i, p, q, ko, y, x, ki) * weight(o, p, q, ko, ki, lane), axis=[ko, ki]), name="products")
    back = te.compute((n, oc_chunks, th, tw, m, alpha, ob), lambda i, o, y, x, p, q, lane: _combined(
        a_t, p, lambda k: product(i, o, k, q, y, x, lane)), name="output_rows")
    return te.compute((n, oc_chunks, oh, ow, ob), lambda i, o, y, x, lane: _combined(
        a_t, x % m, lambda k: back(i, o, y // m, x // m, y % m, k, lane)), name="conv2d_winograd", tag=TAG)


def _target() -> Any:
    from ...target.target import Target

    return Target.current(allow_none=True)


def _combined(matrix: np.ndarray, row: PrimExpr, value: Any) -> PrimExpr:
    """``matrix[row] @ values`` with the entries in the code: loops over ``row`` are to be unrolled."""
    sums = [_sum_of(matrix[r], value) for r in range(len(matrix))]
    result = sums[-1]
    for r in range(len(sums) - 2, -1, -1):
        result = Select(tir_op.equal(row, r), sums[r], result)
    return result


def _sum_of(entries: Sequence[float], value: Any) -> PrimExpr:
    """The sum of values times entries; positive units first, so that no negation is left alone."""
    order = sorted((k for k, e in enumerate(entries) if e), key=lambda k: (entries[k] != 1, entries[k] < 0))
    total: Any = None
    for k in order:
        term, entry = value(k), float(entries[k])
        if total is None:
            total = term if entry == 1 else term * tir_op.const(entry, term.dtype)
        elif abs(entry) == 1:
            total = total + term if entry > 0 else total - term
        else:
            total = total + term * tir_op.const(entry, term.dtype)
    return total


def schedule_conv2d_winograd_NCHWc(outs: Any, target: Any = None) -> Schedule:
    """Block by block of tiles: transform the inputs of all channels, then for every block of output channels multiply and transform back.

    Where there are few blocks, the inputs of all of them are transformed first and the threads share the output channels.
    """
    outs = list(outs) if isinstance(outs, (list, tuple)) else [outs]
    anchor = next((op for op in operations(outs) if op.tag == TAG), None)
    if len(outs) != 1 or anchor is None:
        return schedule_default(outs, target)
    final = outs[0].op
    home = final if _takes_elementwise(final, anchor) else anchor
    s = te.create_schedule([final])
    parts = _parts(anchor)
    for op in inline_producers(s, outs, keep=list(parts.values())):
        if op is not home and all(op is not p for p in parts.values()):
            schedule_other(s, op, target)
    height, width = dims(anchor.output(0))[2:4]
    m = dims(parts["back"].output(0))[4]
    blocks = tile_blocks(m, height, width, registers_of(target))
    block, channel, tile = _output_loops(s, home, anchor, blocks)
    if home is not anchor:
        s[anchor].set_scope("local")
        s[anchor].compute_at(s[home], tile)
        _unroll(s[anchor], anchor.axis[:-1])
    _product_loops(s, s[home], channel, parts)
    _input_loops(s, s[home], block, parts)
    _register_rows(s, parts["back"], s[anchor], _row_axis(s, home, anchor))
    return s


def _takes_elementwise(final: Operation, anchor: Operation) -> bool:
    """Whether ``final`` has the anchor's shape and reads it, through operations of that shape, at its own indices."""
    stack, seen = [final], set()
    while stack:
        op = stack.pop()
        if op is anchor:
            return True
        if id(op) in seen or not isinstance(op, ComputeOp) or op.reduce_axis or not tag.is_broadcast(op.tag):
            continue
        seen.add(id(op))
        if same_shape(op.output(0).shape, anchor.output(0).shape):
            stack.extend(t.op for t in op.input_tensors)
    return False


def _parts(anchor: Operation) -> dict[str, Operation]:
    back = anchor.input_tensors[0].op
    product = back.input_tensors[0].op
    points = next(t.op for t in product.input_tensors if t.op.name == "input_points")
    rows = points.input_tensors[0].op
    found = {"anchor": anchor, "back": back, "product": product, "points": points, "rows": rows}
    source = rows.input_tensors[0].op
    if source.tag.endswith(",pad"):
        found["padded"] = source
    return found


def _unroll(stage: Any, axes: Sequence[Any]) -> None:
    for axis in axes:
        stage.unroll(axis)
    stage.vectorize(stage.op.axis[-1])


FEW_BLOCKS = 6


def _output_loops(s: Schedule, home: Operation, anchor: Operation, blocks: Blocks) -> tuple[Any, Any, Any]:
    """Loops of the output: the axes of a block, of the output channels, and of a tile."""
    stage, m = s[home], blocks.m
    n, oc, y, x, lane = home.axis
    height, width = extent_of(y), extent_of(x)
    yo, yi = stage.split(y, factor=m * blocks.rows)
    xo, xi = stage.split(x, factor=m * blocks.cols)
    ty, yi = stage.split(yi, factor=m)
    tx, xi = stage.split(xi, factor=m)
    stage.reorder(n, yo, xo, oc, ty, tx, yi, xi, lane)
    stage.unroll(yi)
    stage.unroll(xi)
    stage.vectorize(lane)
    if blocks.count(height, width) * extent_of(n) > FEW_BLOCKS:
        block = parallelise(s, stage, (n, yo, xo), work_of(home) * extent_of(lane))
        return block, oc, tx
    return None, parallelise(s, stage, (n, yo, xo, oc), float("inf")), tx


def _product_loops(s: Schedule, home: Any, channel: Any, parts: dict[str, Operation]) -> None:
    """For each point, the sums of a block of tiles in registers."""
    product = parts["product"]
    sums = s.cache_write(product.output(0), "local")
    stage = s[product]
    stage.compute_at(home, channel)
    n, oc, p, q, y, x, lane = stage.op.axis
    _unroll(stage, (y, x))
    local = s[sums]
    local.compute_at(stage, q)
    *axes, y, x, lane = local.op.axis
    ko, ki = local.op.reduce_axis
    local.reorder(ko, ki, *axes, y, x, lane)
    local.unroll(y)
    local.unroll(x)
    local.vectorize(lane)


def _input_loops(s: Schedule, home: Any, block: Any, parts: dict[str, Operation]) -> None:
    stage = s[parts["points"]]
    n, p, q, c, y, x, lane = stage.op.axis
    stage.reorder(n, c, y, x, p, q, lane)
    _unroll(stage, (p, q))
    if block is None:
        outer = parallelise(s, stage, (n, c), work_of(parts["points"]) * 4)
    else:
        stage.compute_at(home, block)
        outer = c
    rows = s[parts["rows"]]
    rows.set_scope("local")
    rows.compute_at(stage, p)
    _unroll(rows, rows.op.axis[:-1])
    if "padded" in parts:
        padded = s[parts["padded"]]
        padded.compute_at(stage, outer)
        padded.vectorize(padded.op.axis[-1])


def _register_rows(s: Schedule, back: Operation, stage: Any, axis: Any) -> None:
    s[back].set_scope("local")
    s[back].compute_at(stage, axis)
    _unroll(s[back], back.axis[:-1])


def _row_axis(s: Schedule, home: Operation, anchor: Operation) -> Any:
    """The loop over the rows of a tile, in the stage that sums them."""
    if home is not anchor:
        return anchor.axis[2]
    return s[home].leaf_iter_vars[-3]
