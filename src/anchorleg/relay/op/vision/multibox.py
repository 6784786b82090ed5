"""Anchor boxes of single-shot detectors: multibox_prior, multibox_transform_loc."""
from __future__ import annotations

import math
from typing import Any

import numpy as np

from ....ir.attrs import BOOL, FLOAT, Attrs, Field
from ....ir.expr import Any as AnyDim, RelayExpr
from ....ir.op import Op, OpPattern
from ....ir.type import TensorType, TupleType, Type
from ....support.errors import TypeMismatchError
from ...expr import Call, TupleWrapper
from ..registry import declare
from ..transform.common import FLOATS, known, same_dim, show
from ..type_relations import tensor, tensors


class MultiBoxPriorAttrs(Attrs, name="relay.attrs.MultiBoxPriorAttrs"):
    """Attributes of vision.multibox_prior."""

    sizes = Field(FLOATS, (1.0,), "The sizes of boxes, as fractions of the image.")
    ratios = Field(FLOATS, (1.0,), "Their aspect ratios.")
    steps = Field(FLOATS, (-1.0, -1.0), "The distance between centres, down and across; negative: one cell.")
    offsets = Field(FLOATS, (0.5, 0.5), "Where in its cell a centre lies, down and across.")
    clip = Field(BOOL, False, "Whether boxes are cut to the image.")


class MultiBoxTransformLocAttrs(Attrs, name="relay.attrs.MultiBoxTransformLocAttrs"):
    """Attributes of vision.multibox_transform_loc."""

    clip = Field(BOOL, True, "Whether boxes are cut to the image.")
    threshold = Field(FLOAT, 0.01, "The score below which a box is background.")
    variances = Field(FLOATS, (0.1, 0.1, 0.2, 0.2), "Factors of the predicted offsets.")
    keep_background = Field(BOOL, False, "Whether background boxes are kept.")


def _prior_rel(args: tuple[Type, ...], attrs: MultiBoxPriorAttrs, ctx: Any) -> Type | None:
    data = tensor(args[0], "data")
    if data is None:
        return None
    if len(data.dims) != 4:
        raise TypeMismatchError(f"data must have rank 4, got shape {show(data.dims)}")
    rows, columns = data.dims[2:]
    count = rows * columns * prior_count(attrs) if known(rows) and known(columns) else AnyDim()
    return TensorType((1, count, 4), data.dtype)


def prior_count(attrs: MultiBoxPriorAttrs) -> int:
    """How many boxes each cell has."""
    return len(attrs.sizes) + len(attrs.ratios) - 1


def prior_shapes(attrs: MultiBoxPriorAttrs, rows: int, columns: int) -> list[tuple[float, float]]:
    """Half the width and height of each box of a cell, as fractions of the image."""
    square = [(s * rows / columns / 2, s / 2) for s in attrs.sizes]
    first = attrs.sizes[0]
    return square + [(first * rows / columns * math.sqrt(r) / 2, first / math.sqrt(r) / 2) for r in attrs.ratios[1:]]


def prior_steps(attrs: MultiBoxPriorAttrs, rows: int, columns: int) -> tuple[float, float]:
    """The distance between centres, down and across."""
    return (attrs.steps[0] if attrs.steps[0] > 0 else 1.0 / rows, attrs.steps[1] if attrs.steps[1] > 0 else 1.0 / columns)


def _prior_numpy(attrs: MultiBoxPriorAttrs, args: list[np.ndarray], out_type: Type) -> np.ndarray:
    rows, columns = args[0].shape[2:]
    down, across = prior_steps(attrs, rows, columns)
    y = (np.arange(rows) + attrs.offsets[0])[:, None, None] * down
    x = (np.arange(columns) + attrs.offsets[1])[None, :, None] * across
    w, h = (np.array(v)[None, None, :] for v in zip(*prior_shapes(attrs, rows, columns)))
    boxes = np.stack(np.broadcast_arrays(x - w, y - h, x + w, y + h), axis=-1).reshape(1, -1, 4)
    return np.clip(boxes, 0, 1) if attrs.clip else boxes


def _transform_rel(args: tuple[Type, ...], attrs: MultiBoxTransformLocAttrs, ctx: Any) -> Type | None:
    types = tensors(args, ("cls_prob", "loc_pred", "anchor"))
    if types is None:
        return None
    scores, offsets, anchors = types
    if len(scores.dims) != 3 or len(offsets.dims) != 2 or len(anchors.dims) != 3:
        raise TypeMismatchError(f"expects cls_prob, loc_pred and anchor of rank 3, 2 and 3, got shapes {show(scores.dims)}, "
                                f"{show(offsets.dims)} and {show(anchors.dims)}")
    n = same_dim("the number of anchors", scores.dims[2], anchors.dims[1])
    if known(n):
        same_dim("the second dimension of loc_pred", n * 4, offsets.dims[1])
    same_dim("the third dimension of anchor", 4, anchors.dims[2])
    return TupleType([TensorType((scores.dims[0], n, 6), scores.dtype), TensorType((scores.dims[0],), "int32")])


def _decode(anchor: np.ndarray, offset: np.ndarray, attrs: MultiBoxTransformLocAttrs) -> np.ndarray:
    """Boxes (left, top, right, bottom) from anchors and predicted offsets, n × 4 both."""
    w, h = anchor[:, 2] - anchor[:, 0], anchor[:, 3] - anchor[:, 1]
    x, y = (anchor[:, 0] + anchor[:, 2]) / 2, (anchor[:, 1] + anchor[:, 3]) / 2
    vx, vy, vw, vh = (np.float32(v) for v in attrs.variances)
    cx, cy = offset[:, 0] * vx * w + x, offset[:, 1] * vy * h + y
    half_w, half_h = np.exp(offset[:, 2] * vw) * w / 2, np.exp(offset[:, 3] * vh) * h / 2
    boxes = np.stack([cx - half_w, cy - half_h, cx + half_w, cy + half_h], axis=1)
    return np.clip(boxes, 0, 1) if attrs.clip else boxes


def _transform_numpy(attrs: MultiBoxTransformLocAttrs, args: list[np.ndarray], out_type: Type) -> tuple[np.ndarray, np.ndarray]:
    scores, offsets, anchors = args
    first = 0 if attrs.keep_background else 1
    out, count = np.full((len(scores), scores.shape[2], 6), -1, scores.dtype), np.zeros(len(scores), np.int64)
    for b in range(len(scores)):
        label = scores[b, first:].argmax(axis=0) + first
        score = np.take_along_axis(scores[b], label[None], 0)[0]
        label = np.where((label > 0) & (score < attrs.threshold), 0, label)
        keep = np.ones(len(label), bool) if attrs.keep_background else label > 0
        boxes = _decode(anchors[0], offsets[b].reshape(-1, 4), attrs)
        rows = np.column_stack([label - (0 if attrs.keep_background else 1), score, boxes])[keep]
        out[b, :len(rows)], count[b] = rows, len(rows)
    return out, count


declare("vision.multibox_prior", attrs=MultiBoxPriorAttrs, relation=_prior_rel, pattern=OpPattern.OPAQUE, numpy=_prior_numpy, level=5,
        doc="Anchor boxes around each cell of a feature map.")
declare("vision.multibox_transform_loc", inputs=("cls_prob", "loc_pred", "anchor"), attrs=MultiBoxTransformLocAttrs,
        relation=_transform_rel, pattern=OpPattern.OPAQUE, numpy=_transform_numpy, level=5, doc="Boxes from anchors and predictions.")


def multibox_prior(data: RelayExpr, sizes: Any = (1.0,), ratios: Any = (1.0,), steps: Any = (-1.0, -1.0), offsets: Any = (0.5, 0.5),
                   clip: bool = False) -> Call:
    """Boxes (left, top, right, bottom), as fractions, around each cell of ``data`` (NCHW): one for each size, and one for each
    further ratio at the first size."""
    attrs = MultiBoxPriorAttrs(sizes=sizes, ratios=ratios, steps=steps, offsets=offsets, clip=clip)
    return Call(Op.get("vision.multibox_prior"), [data], attrs)


def multibox_transform_loc(cls_prob: RelayExpr, loc_pred: RelayExpr, anchor: RelayExpr, clip: bool = True, threshold: float = 0.01,
                           variances: Any = (0.1, 0.1, 0.2, 0.2), keep_background: bool = False) -> TupleWrapper:
    """(boxes (batch, n, 6) as class, score, left, top, right, bottom, and -1 past their number; numbers (batch,))."""
    attrs = MultiBoxTransformLocAttrs(clip=clip, threshold=threshold, variances=variances, keep_background=keep_background)
    return TupleWrapper(Call(Op.get("vision.multibox_transform_loc"), [cls_prob, loc_pred, anchor], attrs), 2)


__all__ = ["MultiBoxPriorAttrs", "MultiBoxTransformLocAttrs", "multibox_prior", "multibox_transform_loc", "prior_count", "prior_shapes",
           "prior_steps"]
