"""Schedules of matrix products for processors with vector registers.

A tile of a few rows by a few vectors of columns is summed in registers over the whole inner extent.  The right operand is read
along memory: it is packed beforehand (``dense_pack``), or has its columns side by side already.
"""
from __future__ import annotations

import functools
from typing import Any

from ... import te
from ...te.operation import ComputeOp, Operation
from ...te.schedule import Schedule
from ...te.tensor import Tensor
from .common import dims
from .conv2d_cpu import registers_for
from .dense import batch_matmul, matmul
from .schedule import (accumulate_locally, extent_of, find_anchor, inline_producers, lanes_of, parallelise, schedule_default, schedule_other,
                       work_of)

MOST_VECTORS = 4  # vectors of columns per tile
MANY_ROWS = 1 << 20    # what a number of rows that is not known is taken for
PRODUCTS = ("dense_pack", "batch_matmul", "matmul", "dense")


@functools.lru_cache(maxsize=1024)
def row_tile(rows: int, vectors: int, registers: int) -> int:
    """How many rows to sum at once: enough multiply-adds per load, little waste at the end, all sums in registers."""
    best, chosen = float("inf"), 1
    for count in range(1, max(2, (registers - 1) // vectors)):
        sums = count * vectors
        if sums + vectors + 1 > registers or count > rows or count > 6:
            break
        steps = max(sums, (count + vectors) / 2, 8)
        cost = steps / sums * (-(-rows // count) * count / rows) + 0.02 * (count + vectors) / sums
        if cost < best - 1e-9:
            best, chosen = cost, count
    return chosen


def column_tile(columns: int, lanes: int) -> int:
    """How many columns to sum at once: up to four vectors, preferably without a remainder; 0 when there is not one vector."""
    if columns < lanes:
        return 0
    for count in range(MOST_VECTORS, 0, -1):
        if columns % (count * lanes) == 0:
            return count * lanes
    return min(MOST_VECTORS, columns // lanes) * lanes


def batch_matmul_cpu(tensor_a: Tensor, tensor_b: Tensor, out_dtype: str | None = None, transpose_a: bool = False,
                     transpose_b: bool = True) -> Tensor:
    """``batch_matmul`` that reads the right operand along memory: transposed, it is copied first."""
    if transpose_b:
        given = tensor_b
        b, j, k = dims(given)
        tensor_b = te.compute((b, k, j), lambda n, y, x: given(n, x, y), name="T_columns", tag="transposed_copy")
    return batch_matmul(tensor_a, tensor_b, None, out_dtype, transpose_a, False)


def dense_cpu(data: Tensor, weight: Tensor, out_dtype: str | None = None) -> Tensor:
    """``dense`` that copies the weight (units, in) so that units lie side by side."""
    units, inner = dims(weight)
    columns = te.compute((inner, units), lambda y, x: weight(x, y), name="T_columns", tag="transposed_copy")
    return matmul(data, columns, None, out_dtype)


def schedule_product(outs: Any, target: Any = None) -> Schedule:
    """Register tiles of rows by vectors of columns, for ``dense_pack``, ``matmul`` and ``batch_matmul``."""
    outs = list(outs) if isinstance(outs, (list, tuple)) else [outs]
    anchor = find_anchor(outs[0].op)
    if len(outs) != 1 or anchor is None or not _fits(anchor):
        return schedule_default(outs, target)
    lanes = lanes_of(target, anchor.output(0).dtype)
    tile = _columns(anchor, lanes)
    if not tile:
        return schedule_default(outs, target)
    final = outs[0].op
    s = te.create_schedule([final])
    for op in inline_producers(s, outs):
        if op is not anchor and op is not final:
            schedule_other(s, op, target)
    rows = row_tile((extent_of(final.axis[-2]) or MANY_ROWS) if len(final.axis) > 1 else 1, max(1, tile // lanes), registers_for(anchor, target))
    local = s[accumulate_locally(s, anchor, final)]
    local.compute_at(s[final], _tile_output(s, final, rows, tile, lanes, work_of(anchor)))
    *lead, x = local.op.axis
    xo, xi = local.split(x, factor=lanes)
    local.reorder(*local.op.reduce_axis, *lead, xo, xi)
    for axis in (*lead, xo):
        local.unroll(axis)
    local.vectorize(xi)
    if lead and extent_of(final.axis[-2]) is None:
        local.pragma(lead[-1], "often_single", True)
    return s


def _fits(anchor: Operation) -> bool:
    """Whether this is a product of known extents whose right operand lies side by side along the columns."""
    from .schedule import reads_contiguously

    if not isinstance(anchor, ComputeOp) or anchor.tag not in PRODUCTS:
        return False
    if any(extent_of(iv) == 0 for iv in (*anchor.axis, *anchor.reduce_axis)):
        return False
    return anchor.tag == "dense_pack" or reads_contiguously(anchor, anchor.axis[-1].var)


def _columns(anchor: Operation, lanes: int) -> int:
    """Columns per tile: for packed weights a divisor of the block."""
    columns = extent_of(anchor.axis[-1])
    if columns is None:  # of a copy, tiles may read past the end; else the remainder, which goes element by element, is short
        batched = all(extent_of(iv) is not None for iv in anchor.axis[:-2])
        return 2 * lanes if batched and anchor.input_tensors[1].op.tag == "transposed_copy" else lanes
    if anchor.tag != "dense_pack":
        return column_tile(columns, lanes)
    block = dims(anchor.input_tensors[1])[2]
    return next((n * lanes for n in range(MOST_VECTORS * 2, 0, -1) if block % (n * lanes) == 0 and n * lanes <= block), 0)


def _tile_output(s: Schedule, final: ComputeOp, rows: int, tile: int, lanes: int, work: float) -> Any:
    """Loops of the output around one tile; gives the axis at which a tile is computed.

    Columns go outside rows, so that a panel of the right operand stays in the cache while rows pass by.
    """
    stage = s[final]
    *lead, x = stage.op.axis
    xo, xi = stage.split(x, factor=tile)
    vo, vi = stage.split(xi, factor=lanes)
    if not lead:
        stage.unroll(vo)
        stage.vectorize(vi)
        parallelise(s, stage, (xo,), work)
        return xo
    yo, yi = stage.split(lead[-1], factor=rows)
    stage.reorder(*lead[:-1], xo, yo, yi, vo, vi)
    for axis in (yi, vo):
        stage.unroll(axis)
    stage.vectorize(vi)
    if any(extent_of(iv) is None for iv in final.axis):
        shared = fuses_without_division(final.axis[:-2] if extent_of(final.axis[-1]) is None else (*lead[:-1], xo), {id(xo): extent_of(final.axis[-1])})
        parallelise(s, stage, shared, work)
        return yo
    if _enough(final, lead, tile):
        parallelise(s, stage, (*lead[:-1], xo), work)
        return yo
    return parallelise(s, stage, (*lead[:-1], xo, yo), work)


def fuses_without_division(axes: Any, known: dict[int, Any]) -> tuple[Any, ...]:
    """The first axes, as many as fuse without divisions by a number that is not known."""
    count = 1
    while count < len(axes) and (known.get(id(axes[count])) or extent_of(axes[count])) is not None:
        count += 1
    return tuple(axes[:count])


def _enough(final: ComputeOp, lead: Any, tile: int) -> bool:
    """Whether batch and panels of columns alone give every thread something to do."""
    total = -(-extent_of(final.axis[-1]) // tile)
    for iv in lead[:-1]:
        total *= extent_of(iv)
    return total >= 8
