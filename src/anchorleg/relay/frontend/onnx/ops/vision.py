"""Regions of interest, boxes, grids."""
from __future__ import annotations

import math
from typing import Any

import numpy as np

from .....ir.expr import RelayExpr
from .....support.errors import ArgumentError, UnsupportedOpError
from ....op.dyn import transform as dyn
from ..context import NodeContext
from ..make import call, concat, const, expand_dims, items, reduce, reshape, slice_axis, stack, transpose, where
from ..registry import op
from .elementwise import add_all
from .linear import matmul


@op("GridSample", since=16)
def grid_sample(n: NodeContext) -> RelayExpr:
    """The data at places given as a grid."""
    x, grid = n.needs(2)
    rank = n.rank(x)
    if rank not in (4, 5):
        raise UnsupportedOpError(f"images of two or three spatial dimensions are supported, got {rank - 2}")
    names = {"bilinear": "bilinear", "linear": "bilinear", "nearest": "nearest", "bicubic": "bicubic", "cubic": "bicubic"}
    mode = n.attr("mode", "linear")
    if mode not in names:
        raise ArgumentError(f"mode must be one of {', '.join(names)}, got {mode!r}")
    return call("image.grid_sample", x, transpose(grid, [0, rank - 1, *range(1, rank - 1)]), method=names[mode],
                layout="NCHW" if rank == 4 else "NCDHW", padding_mode=n.attr("padding_mode", "zeros"),
                align_corners=bool(n.attr("align_corners", 0)))


@op("AffineGrid")
def affine_grid(n: NodeContext) -> RelayExpr:
    """The grid of places that affine maps take a regular grid to."""
    theta, size = n.need(0), n.known_ints(1, "size")
    assert size is not None
    space = size[2:]
    lines = [_line(s, bool(n.attr("align_corners", 0))) for s in space]
    mesh = np.meshgrid(*lines, indexing="ij")[::-1]
    base = np.stack([m.reshape(-1) for m in mesh] + [np.ones(math.prod(space))], 1)
    grid = matmul(n, n.like(base, theta), transpose(theta, [0, 2, 1]))
    return reshape(grid, [size[0], *space, len(space)])


def _line(size: int, align_corners: bool) -> np.ndarray:
    return np.linspace(-1, 1, size) if align_corners and size > 1 else (np.arange(size) * 2 + 1) / size - 1


@op("RoiAlign")
def roi_align(n: NodeContext) -> RelayExpr:
    """Boxes of the data, each averaged (or its largest values taken) to a small grid."""
    x, boxes, batch = n.needs(3)
    scale, mode = n.attr("spatial_scale", 1.0), n.attr("mode", "avg")
    if mode not in ("avg", "max"):
        raise ArgumentError(f"mode must be avg or max, got {mode!r}")
    half = n.attr("coordinate_transformation_mode", "half_pixel" if n.version >= 16 else "output_half_pixel") == "half_pixel"
    samples, size = n.attr("sampling_ratio", 0), (n.attr("output_height", 1), n.attr("output_width", 1))
    if half or mode == "max":
        if samples <= 0:
            raise UnsupportedOpError("RoiAlign with half_pixel or mode max needs a sampling_ratio over 0")
        return _sampled_boxes(n, x, boxes, batch, size, samples, scale, half, mode)
    rois = concat([expand_dims(n.to(batch, n.dtype(boxes)), 1), boxes], 1)
    return call("vision.roi_align", x, rois, pooled_size=size, spatial_scale=scale, sample_ratio=samples, layout="NCHW", mode=mode)


def _sampled_boxes(n: NodeContext, x: RelayExpr, boxes: RelayExpr, batch: RelayExpr, size: tuple[int, int], samples: int, scale: float,
                   half: bool, mode: str) -> RelayExpr:
    """Each box sampled at a fixed number of places: four neighbours of each, weighted, then averaged (or the largest taken)."""
    height, width = n.static_dims(x)[2:]
    count = n.static_dims(boxes, "the boxes")[0]
    scaled = call("subtract", call("multiply", boxes, n.like(scale, boxes)), n.like(0.5 if half else 0.0, boxes))
    first, last = items(call("split", scaled, indices_or_sections=2, axis=1), 2)  # (x, y) of both corners
    extent = call("subtract", last, first)
    extent = extent if half else call("maximum", extent, n.like(1, boxes))
    near, far, low, high, inside = [], [], [], [], []
    for axis, limit in ((1, height), (0, width)):
        parts = size[0 if axis == 1 else 1]
        steps = n.like(((np.arange(parts * samples) + 0.5) / (parts * samples))[None], boxes)
        one = slice_axis(first, 1, axis, axis + 1)
        at = call("add", one, call("multiply", slice_axis(extent, 1, axis, axis + 1), steps))
        inside.append(call("logical_and", call("greater_equal", at, n.like(-1, at)), call("less_equal", at, n.like(limit, at))))
        at = call("clip", at, a_min=0.0, a_max=float(limit - 1))
        whole = call("floor", at)
        low.append(call("cast", whole, dtype="int64"))
        high.append(call("cast", call("minimum", call("add", whole, n.like(1, at)), n.like(limit - 1, at)), dtype="int64"))
        far.append(call("subtract", at, whole))
        near.append(call("subtract", n.like(1, at), far[-1]))
    rows, columns = size[0] * samples, size[1] * samples
    full = [count, rows, columns]
    planes = transpose(x, [0, 2, 3, 1])
    kept = call("expand_dims", call("cast", call("logical_and", *_grid(inside)), dtype=n.dtype(x)), axis=3, num_newaxis=1)

    def corner(ys: RelayExpr, xs: RelayExpr, wy: RelayExpr, wx: RelayExpr) -> RelayExpr:
        places = [reshape(batch, [count, 1, 1]), *_grid([ys, xs])]
        index = stack([call("broadcast_to", n.to(p, "int64"), shape=full, dtype="") for p in places], 0)
        weight = call("expand_dims", call("multiply", *_grid([wy, wx])), axis=3, num_newaxis=1)
        return call("multiply", call("gather_nd", planes, index, batch_dims=0, index_rank=3), n.to(weight, n.dtype(x)))

    vertical, horizontal = (((low[k], near[k]), (high[k], far[k])) for k in (0, 1))
    corners = [corner(ys, xs, wy, wx) for ys, wy in vertical for xs, wx in horizontal]
    blocks = [count, size[0], samples, size[1], samples, -1]
    if mode == "max":
        found = reduce("max", reshape(call("multiply", stack_max(corners), kept), blocks), [2, 4], False)
    else:
        found = reduce("mean", reshape(call("multiply", add_all(corners), kept), blocks), [2, 4], False)
    return transpose(found, [0, 3, 1, 2])


def _grid(pair: list[RelayExpr]) -> list[RelayExpr]:
    """Values by row and by column, such that they broadcast to (boxes, rows, columns)."""
    return [expand_dims(pair[0], 2), expand_dims(pair[1], 1)]


def stack_max(parts: list[RelayExpr]) -> RelayExpr:
    """The largest of the parts, element by element."""
    total = parts[0]
    for each in parts[1:]:
        total = call("maximum", total, each)
    return total


@op("MaxRoiPool")
def max_roi_pool(n: NodeContext) -> RelayExpr:
    """The largest elements of boxes of the data."""
    return call("vision.roi_pool", *n.needs(2), pooled_size=tuple(n.attr("pooled_shape")), spatial_scale=n.attr("spatial_scale", 1.0),
                layout="NCHW")


@op("NonMaxSuppression")
def non_max_suppression(n: NodeContext) -> RelayExpr:
    """For each class the boxes with the highest scores that overlap little, as (batch, class, box)."""
    boxes, scores = n.needs(2)
    if n.attr("center_point_box", 0):
        boxes = _corners(n, boxes)
    limit = n.value(n.input(2))
    if n.input(2) is None or limit is not None and int(limit.reshape(-1)[0]) <= 0:
        return const(np.zeros((0, 3)), "int64")  # by default no box is kept
    most = n.to(reshape(n.need(2), []), "int32")
    lowest = n.input(4)
    least = const(-np.finfo(np.float32).max, "float32") if lowest is None else reshape(lowest, [])
    overlap = _just_over(n, n.input(3))
    whole = call("vision.all_class_non_max_suppression", boxes, scores, most, overlap, least, output_format="onnx")
    found, count = items(whole, 2)
    count = n.to(reshape(count, [1]), "int64")
    if limit is None:  # Relay's operator keeps all where none are asked for
        asked = n.to(reshape(n.need(2), [1]), "int64")
        count = where(call("greater", asked, const(0, "int64")), count, const([0], "int64"))
    ends = concat([count, const([3], "int64")], 0)
    return n.to(dyn.strided_slice(found, const([0, 0], "int64"), ends, const([1, 1], "int64")), "int64")



def _just_over(n: NodeContext, threshold: RelayExpr | None) -> RelayExpr:
    """The next number up: Relay's operator suppresses at the threshold, ONNX only over it."""
    value = np.zeros(1, np.float32) if threshold is None else n.value(threshold)
    if value is None:
        scalar = reshape(threshold, [])  # type: ignore[arg-type]
        step = call("maximum", call("multiply", call("abs", scalar), const(2.0**-23, "float32")), const(2.0**-126, "float32"))
        return call("add", scalar, step)
    return const(np.nextafter(value.reshape(-1)[0], np.float32(np.inf)), "float32")


def _corners(n: NodeContext, boxes: RelayExpr) -> RelayExpr:
    """(x, y, width, height) of a centre as (y1, x1, y2, x2)."""
    x, y, w, h = items(call("split", boxes, indices_or_sections=4, axis=2), 4)
    half = n.like(0.5, boxes)
    w, h = call("multiply", w, half), call("multiply", h, half)
    return concat([call("subtract", y, h), call("subtract", x, w), call("add", y, h), call("add", x, w)], 2)


@op("Col2Im")
def col2im(n: NodeContext) -> RelayExpr:
    """Blocks laid back into an image, overlapping ones added."""
    x, image, block = n.need(0), n.known_ints(1, "image_shape"), n.known_ints(2, "block_shape")
    assert image is not None and block is not None
    rank = len(image)
    strides, dilation = n.attr("strides", [1] * rank), n.attr("dilations", [1] * rank)
    pads = n.attr("pads", [0] * 2 * rank)
    padded = [s + pads[i] + pads[i + rank] for i, s in enumerate(image)]
    counts = [(p - d * (b - 1) - 1) // s + 1 for p, d, b, s in zip(padded, dilation, block, strides)]
    places: Any = np.zeros((), np.int64)
    for i in range(rank):
        at = np.arange(block[i])[:, None] * dilation[i] + np.arange(counts[i])[None] * strides[i]
        shape = [block[i] if j == i else counts[i] if j == rank + i else 1 for j in range(2 * rank)]
        places = places + at.reshape(shape) * math.prod(padded[i + 1:])
    batch, columns = n.static_dims(x)[:2]
    channels = columns // math.prod(block)
    flat = reshape(x, [batch, channels, -1])
    where_to = const(np.broadcast_to(places.reshape(-1), (batch, channels, places.size)), "int64")
    base = call("full", n.like(0, x), shape=(batch, channels, math.prod(padded)), dtype=n.dtype(x))
    whole = reshape(call("scatter_elements", base, where_to, flat, axis=2, reduction="add"), [batch, channels, *padded])
    return call("strided_slice", whole, begin=pads[:rank], end=[p + s for p, s in zip(pads, image)], strides=[1] * rank,
                axes=list(range(2, 2 + rank)), slice_mode="end")
