"""Moving data between axes: flatten, depth_to_space, space_to_depth, space_to_batch_nd, batch_to_space_nd, fifo_buffer."""
from __future__ import annotations

from typing import Any, Sequence

from ... import te
from ...te import tag
from ...te.tensor import Tensor
from ...tir import op as tir_op
from ...tir.data_layout import BijectiveLayout
from .common import as_int, dims
from .pad import pad


def flatten(data: Tensor) -> Tensor:
    """All axes but the first made one."""
    first, *rest = dims(data)
    total: Any = 1
    for d in rest:
        total = total * d

    def element(i: Any, j: Any) -> Any:
        index, left = [], j
        for d in reversed(rest):
            index.append(left % d)
            left = left // d
        return data(i, *reversed(index))

    return te.compute((first, total), element, name="T_flatten", tag=tag.INJECTIVE)


def depth_to_space(data: Tensor, block_size: int, layout: str = "NCHW", mode: str = "DCR") -> Tensor:
    """Blocks of channels to squares of pixels; DCR: the block is the outer part of the channels, CRD: the inner."""
    to_plain = BijectiveLayout(layout, "NCHW")
    n, c, h, w = to_plain.forward_shape(dims(data))
    b, kept = block_size, c // (block_size * block_size)

    def element(*index: Any) -> Any:
        i, ch, y, x = to_plain.forward_index(index)
        part = (y % b) * b + x % b
        channel = part * kept + ch if mode == "DCR" else ch * (b * b) + part
        return data(*to_plain.backward_index([i, channel, y // b, x // b]))

    return te.compute(to_plain.backward_shape([n, kept, h * b, w * b]), element, name="depth_to_space", tag=tag.INJECTIVE)


def space_to_depth(data: Tensor, block_size: int, layout: str = "NCHW", mode: str = "DCR") -> Tensor:
    """Squares of pixels to blocks of channels."""
    to_plain = BijectiveLayout(layout, "NCHW")
    n, c, h, w = to_plain.forward_shape(dims(data))
    b = block_size

    def element(*index: Any) -> Any:
        i, ch, y, x = to_plain.forward_index(index)
        part, channel = (ch // c, ch % c) if mode == "DCR" else (ch % (b * b), ch // (b * b))
        return data(*to_plain.backward_index([i, channel, y * b + part // b, x * b + part % b]))

    return te.compute(to_plain.backward_shape([n, c * b * b, h // b, w // b]), element, name="space_to_depth", tag=tag.INJECTIVE)


def space_to_batch_nd(data: Tensor, block_shape: Sequence[Any], pad_before: Sequence[Any], pad_after: Sequence[Any],
                      pad_value: float = 0.0) -> Tensor:
    """Blocks of the (padded) spatial axes to the batch axis."""
    blocks = [as_int(b) for b in block_shape]
    m, rank = len(blocks), data.ndim
    rest = [0] * (rank - m - 1)
    x = pad(data, [0, *map(as_int, pad_before), *rest], [0, *map(as_int, pad_after), *rest], pad_value)
    batch, *space = dims(x)
    count: Any = 1
    for b in blocks:
        count = count * b

    def element(i: Any, *at: Any) -> Any:
        part, where = i // batch, list(at)
        for d in reversed(range(m)):
            where[d] = at[d] * blocks[d] + part % blocks[d]
            part = part // blocks[d]
        return x(i % batch, *where)

    return te.compute([batch * count, *[s // b for s, b in zip(space, blocks)], *space[m:]], element, name="space_to_batch_nd", tag=tag.INJECTIVE)


def batch_to_space_nd(data: Tensor, block_shape: Sequence[Any], crop_begin_list: Sequence[Any], crop_end_list: Sequence[Any]) -> Tensor:
    """The batch axis to blocks of the spatial axes, which are then cropped."""
    blocks, begins, ends = ([as_int(v) for v in values] for values in (block_shape, crop_begin_list, crop_end_list))
    batch, *space = dims(data)
    count: Any = 1
    for b in blocks:
        count = count * b
    kept = batch // count
    outs = [s * b - lo - hi for s, b, lo, hi in zip(space, blocks, begins, ends)]

    def element(i: Any, *at: Any) -> Any:
        part: Any = 0
        where = list(at)
        for d, (b, lo) in enumerate(zip(blocks, begins)):
            y = at[d] + lo
            part, where[d] = part * b + y % b, y // b
        return data(part * kept + i, *where)

    return te.compute([kept, *outs, *space[len(blocks):]], element, name="batch_to_space_nd", tag=tag.INJECTIVE)


def fifo_buffer(data: Tensor, buffer: Tensor, axis: int) -> Tensor:
    """``buffer`` moved along ``axis`` so that ``data`` comes in at the end."""
    axis = axis % buffer.ndim
    length, new = dims(buffer)[axis], dims(data)[axis]

    def element(*i: Any) -> Any:
        old = buffer(*i[:axis], i[axis] + new, *i[axis + 1:])
        fresh = data(*i[:axis], i[axis] - (length - new), *i[axis + 1:])
        return tir_op.if_then_else(i[axis] < length - new, old, fresh)

    return te.compute(buffer.shape, element, name="fifo_buffer", tag=tag.INJECTIVE)
