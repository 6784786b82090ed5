"""Non-maximum suppression: of boxes that overlap too much only the one of the highest score is kept."""
from __future__ import annotations

from typing import Any

import numpy as np

from ....ir.attrs import BOOL, FLOAT, INT, OPT_FLOAT, Attrs, Field
from ....ir.expr import RelayExpr
from ....ir.op import Op, OpPattern
from ....ir.type import TensorType, TupleType, Type
from ....support.errors import TypeMismatchError
from ...expr import Call, TupleWrapper, const
from ..algorithm.sort import stable_order
from ..registry import declare
from ..transform.common import choice, known, product, same_dim, show
from ..type_relations import tensors


class GetValidCountsAttrs(Attrs, name="relay.attrs.GetValidCountsAttrs"):
    """Attributes of vision.get_valid_counts."""

    score_threshold = Field(OPT_FLOAT, None, "Not used: the threshold is an input.")
    id_index = Field(INT, 0, "Where a box holds its class; -1: nowhere.")
    score_index = Field(INT, 1, "Where a box holds its score.")


class NonMaximumSuppressionAttrs(Attrs, name="relay.attrs.NonMaximumSuppressionAttrs"):
    """Attributes of vision.non_max_suppression."""

    force_suppress = Field(BOOL, False, "Whether boxes of different classes suppress each other.")
    top_k = Field(INT, -1, "How many boxes, by score, are looked at; -1: all.")
    coord_start = Field(INT, 2, "Where a box holds its four coordinates.")
    score_index = Field(INT, 1, "Where a box holds its score.")
    id_index = Field(INT, 0, "Where a box holds its class; -1: nowhere.")
    return_indices = Field(BOOL, True, "Whether indices are returned, rather than boxes.")
    invalid_to_bottom = Field(BOOL, False, "Whether boxes that are kept are moved to the top.")


class AllClassNonMaximumSuppressionAttrs(Attrs, name="relay.attrs.AllClassNonMaximumSuppressionAttrs"):
    """Attributes of vision.all_class_non_max_suppression."""

    output_format = Field(choice("onnx", "tensorflow"), "onnx", "The form of the results.")


class RegularNonMaximumSuppressionAttrs(Attrs, name="relay.attrs.RegularNonMaximumSuppressionAttrs"):
    """Attributes of vision.regular_non_max_suppression."""

    max_detections_per_class = Field(INT, doc="How many boxes are kept for each class.")
    max_detections = Field(INT, doc="How many boxes are kept in all.")
    num_classes = Field(INT, doc="The number of classes, without background.")
    iou_threshold = Field(FLOAT, doc="The overlap from which a box is suppressed.")
    score_threshold = Field(FLOAT, doc="The score below which boxes are left out.")


def _rank(what: str, t: TensorType, rank: int) -> None:
    if len(t.dims) != rank:
        raise TypeMismatchError(f"{what} must have rank {rank}, got shape {show(t.dims)}")


def overlap(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Intersection over union of boxes given by two opposite corners (last axis of size 4); 0 for empty unions."""
    low_a, high_a = np.minimum(a[..., :2], a[..., 2:]), np.maximum(a[..., :2], a[..., 2:])
    low_b, high_b = np.minimum(b[..., :2], b[..., 2:]), np.maximum(b[..., :2], b[..., 2:])
    sides = np.maximum(np.minimum(high_a, high_b) - np.maximum(low_a, low_b), 0)
    common = sides[..., 0] * sides[..., 1]
    union = (high_a - low_a).prod(-1) + (high_b - low_b).prod(-1) - common
    return np.where(union <= 0, np.zeros_like(union), common / np.where(union <= 0, np.ones_like(union), union))


# ---- get_valid_counts ------------------------------------------------------------------------------------------------

def _valid_counts_rel(args: tuple[Type, ...], attrs: Any, ctx: Any) -> Type | None:
    types = tensors(args, ("data", "score_threshold"))
    if types is None:
        return None
    data = types[0]
    _rank("data", data, 3)
    return TupleType([TensorType(data.dims[:1], "int32"), data, TensorType(data.dims[:2], "int32")])


def _valid_counts_numpy(attrs: GetValidCountsAttrs, args: list[np.ndarray], out_type: Type) -> tuple[np.ndarray, ...]:
    data, threshold = args
    boxes, where = np.full_like(data, -1), np.full(data.shape[:2], -1)
    valid = data[..., attrs.score_index] > threshold.reshape(())
    if attrs.id_index >= 0:
        valid &= data[..., attrs.id_index] >= 0
    for i, keep in enumerate(valid):
        index = np.nonzero(keep)[0]
        boxes[i, :len(index)], where[i, :len(index)] = data[i, index], index
    return valid.sum(axis=1), boxes, where


# ---- non_max_suppression ---------------------------------------------------------------------------------------------

def _nms_rel(args: tuple[Type, ...], attrs: NonMaximumSuppressionAttrs, ctx: Any) -> Type | None:
    types = tensors(args, ("data", "valid_count", "indices", "max_output_size", "iou_threshold"))
    if types is None:
        return None
    data, count, indices = types[:3]
    _rank("data", data, 3)
    _rank("valid_count", count, 1)
    _rank("indices", indices, 2)
    same_dim("the batch of valid_count", data.dims[0], count.dims[0])
    if not attrs.return_indices:
        return data
    return TupleType([TensorType(data.dims[:2], "int32"), TensorType((data.dims[0], 1), "int32")])


def _suppress(boxes: np.ndarray, attrs: NonMaximumSuppressionAttrs, limit: int, threshold: float) -> np.ndarray:
    """Which of the boxes, in descending order of score, are kept."""
    kept: list[int] = []
    flags = np.zeros(len(boxes), bool)
    coords = boxes[:, attrs.coord_start:attrs.coord_start + 4]
    for j, box in enumerate(boxes):
        if len(kept) == limit:
            break
        if not box[attrs.score_index] > 0:
            continue
        rivals = [k for k in kept if _compete(boxes[k], box, attrs)]
        if not rivals or not (overlap(coords[rivals], coords[j]) >= threshold).any():
            kept.append(j)
            flags[j] = True
    return flags


def _compete(a: np.ndarray, b: np.ndarray, attrs: NonMaximumSuppressionAttrs) -> bool:
    if attrs.id_index < 0:
        return True
    return bool(a[attrs.id_index] >= 0 and (attrs.force_suppress or a[attrs.id_index] == b[attrs.id_index]))


def _nms_one(data: np.ndarray, count: int, limit: int, threshold: float, attrs: NonMaximumSuppressionAttrs) -> tuple[np.ndarray, np.ndarray]:
    """Boxes in order (suppressed ones -1) and their positions in ``data`` (-1 likewise)."""
    out, where = np.full_like(data, -1), np.full(len(data), -1)
    count = int(np.clip(count, 0, len(data)))
    if threshold <= 0:
        out[:count], where[:count] = data[:count], np.arange(count)
        return out, where
    order = stable_order(data[:count, attrs.score_index], 0, False)
    order = order[:attrs.top_k] if 0 < attrs.top_k < count else order
    keep = _suppress(data[order], attrs, limit, threshold)
    out[:len(order)][keep], where[:len(order)][keep] = data[order][keep], order[keep]
    return out, where


def _nms_numpy(attrs: NonMaximumSuppressionAttrs, args: list[np.ndarray], out_type: Type) -> Any:
    data, counts, indices, limit, threshold = args
    boxes, where, number = np.empty_like(data), np.full(data.shape[:2], -1), np.zeros((len(data), 1), np.int64)
    for i in range(len(data)):
        boxes[i], at = _nms_one(data[i], int(counts[i]), int(limit.reshape(())), float(threshold.reshape(())), attrs)
        kept = at >= 0
        if attrs.invalid_to_bottom or attrs.return_indices:
            number[i] = kept.sum()
            where[i, :number[i, 0]] = indices[i][at[kept]]
        if attrs.invalid_to_bottom:
            boxes[i] = np.concatenate([boxes[i][kept], np.full_like(boxes[i][~kept], -1)])
    return (where, number) if attrs.return_indices else boxes


# ---- all_class_non_max_suppression -----------------------------------------------------------------------------------

def _all_class_rel(args: tuple[Type, ...], attrs: AllClassNonMaximumSuppressionAttrs, ctx: Any) -> Type | None:
    types = tensors(args, ("boxes", "scores", "max_output_boxes_per_class", "iou_threshold", "score_threshold"))
    if types is None:
        return None
    boxes, scores = types[:2]
    _rank("boxes", boxes, 3)
    _rank("scores", scores, 3)
    batch = same_dim("the batch of scores", boxes.dims[0], scores.dims[0])
    n = same_dim("the number of boxes of scores", boxes.dims[1], scores.dims[2])
    each = product([scores.dims[1], n])
    if attrs.output_format == "onnx":
        return TupleType([TensorType((product([batch, scores.dims[1], n]), 3), "int64"), TensorType((1,), "int64")])
    return TupleType([TensorType((batch, each, 2), "int64"), TensorType((batch, each), "float32"), TensorType((batch,), "int64")])


def select_class(boxes: np.ndarray, scores: np.ndarray, limit: int, iou: float, least: float) -> list[int]:
    """The boxes of one class that are kept, best first."""
    order = [i for i in stable_order(scores, 0, False) if scores[i] > least]
    kept: list[int] = []
    if iou <= 0:
        return kept
    for i in order:
        if 0 < limit <= len(kept):
            break
        if not kept or not (overlap(boxes[kept], boxes[i]) >= iou).any():
            kept.append(int(i))
    return kept


def _all_class_numpy(attrs: AllClassNonMaximumSuppressionAttrs, args: list[np.ndarray], out_type: Type) -> tuple[np.ndarray, ...]:
    boxes, scores, *rest = args
    limit, iou, least = (v.reshape(()).item() for v in rest)
    found = [[(b, c, i) for c in range(scores.shape[1]) for i in select_class(boxes[b], scores[b, c], limit, iou, least)]
             for b in range(len(boxes))]
    per_batch = scores.shape[1] * scores.shape[2]
    if attrs.output_format == "onnx":
        rows = [r for each in found for r in each]
        table = np.zeros((len(boxes) * per_batch, 3), np.int64)
        table[:len(rows)] = np.array(rows, np.int64).reshape(-1, 3)
        return table, np.array([len(rows)])
    table, values = np.zeros((len(boxes), per_batch, 2), np.int64), np.zeros((len(boxes), per_batch), np.float32)
    for b, rows in enumerate(found):
        for k, (_, c, i) in enumerate(rows):
            table[b, k], values[b, k] = (c, i), scores[b, c, i]
    return table, values, np.array([len(rows) for rows in found])


# ---- regular_non_max_suppression -------------------------------------------------------------------------------------

def _regular_rel(args: tuple[Type, ...], attrs: RegularNonMaximumSuppressionAttrs, ctx: Any) -> Type | None:
    types = tensors(args, ("boxes", "scores"))
    if types is None:
        return None
    boxes, scores = types
    _rank("boxes", boxes, 3)
    _rank("scores", scores, 3)
    same_dim("the number of boxes of scores", boxes.dims[1], scores.dims[1])
    if known(scores.dims[2]) and scores.dims[2] < attrs.num_classes:
        raise TypeMismatchError(f"scores hold {scores.dims[2]} classes, fewer than num_classes={attrs.num_classes}")
    batch, n = boxes.dims[0], attrs.max_detections
    return TupleType([TensorType((batch, n, 4), "float32"), TensorType((batch, n), "float32"), TensorType((batch, n), "float32"),
                      TensorType((batch,), "int32")])


def _regular_numpy(attrs: RegularNonMaximumSuppressionAttrs, args: list[np.ndarray], out_type: Type) -> tuple[np.ndarray, ...]:
    boxes, scores = args
    n, first = attrs.max_detections, scores.shape[2] - attrs.num_classes
    out = np.zeros((len(boxes), n, 4), np.float32), np.zeros((len(boxes), n), np.float32), np.zeros((len(boxes), n), np.float32), np.zeros(len(boxes))
    for b in range(len(boxes)):
        best: list[tuple[float, int, int]] = []
        for c in range(attrs.num_classes):
            column = scores[b, :, c + first]
            kept = _regular_class(boxes[b], column, attrs)
            best = sorted(best + [(-float(column[i]), c, i) for i in kept], key=lambda e: e[0])[:n]
        for k, (score, c, i) in enumerate(best):
            out[0][b, k], out[1][b, k], out[2][b, k] = boxes[b, i], c, -score
        out[3][b] = len(best)
    return out


def _regular_class(boxes: np.ndarray, scores: np.ndarray, attrs: RegularNonMaximumSuppressionAttrs) -> list[int]:
    order = [i for i in stable_order(scores, 0, False) if scores[i] >= attrs.score_threshold]
    kept: list[int] = []
    for i in order:
        if len(kept) == min(attrs.max_detections_per_class, len(order)):
            break
        if not kept or not (overlap(boxes[kept], boxes[i]) > attrs.iou_threshold).any():
            kept.append(int(i))
    return kept


declare("vision.get_valid_counts", inputs=("data", "score_threshold"), attrs=GetValidCountsAttrs, relation=_valid_counts_rel,
        pattern=OpPattern.OPAQUE, numpy=_valid_counts_numpy, level=5, doc="Moves the boxes above a score to the top and counts them.")
declare("vision.non_max_suppression", inputs=("data", "valid_count", "indices", "max_output_size", "iou_threshold"),
        attrs=NonMaximumSuppressionAttrs, relation=_nms_rel, pattern=OpPattern.OPAQUE, numpy=_nms_numpy, level=5,
        doc="Suppresses boxes that overlap one of a higher score.")
declare("vision.all_class_non_max_suppression",
        inputs=("boxes", "scores", "max_output_boxes_per_class", "iou_threshold", "score_threshold"),
        attrs=AllClassNonMaximumSuppressionAttrs, relation=_all_class_rel, pattern=OpPattern.OPAQUE, numpy=_all_class_numpy, level=5,
        doc="Non-maximum suppression for each class by itself.")
declare("vision.regular_non_max_suppression", inputs=("boxes", "scores"), attrs=RegularNonMaximumSuppressionAttrs,
        relation=_regular_rel, pattern=OpPattern.OPAQUE, numpy=_regular_numpy, level=5, doc="Non-maximum suppression as TFLite does it.")


def _scalar(value: Any, dtype: str) -> RelayExpr:
    return value if isinstance(value, RelayExpr) else const(value, dtype)


def get_valid_counts(data: RelayExpr, score_threshold: Any, id_index: int = 0, score_index: int = 1) -> TupleWrapper:
    """(count, boxes, indices): the boxes of ``data`` (batch, n, 5 or 6) whose score exceeds the threshold, moved to the top.

    What is left is -1.  A box whose class (at ``id_index``) is negative does not count.
    """
    attrs = GetValidCountsAttrs(id_index=id_index, score_index=score_index)
    return TupleWrapper(Call(Op.get("vision.get_valid_counts"), [data, _scalar(score_threshold, "float32")], attrs), 3)


def non_max_suppression(data: RelayExpr, valid_count: RelayExpr, indices: RelayExpr, max_output_size: Any = -1, iou_threshold: Any = 0.5,
                        force_suppress: bool = False, top_k: int = -1, coord_start: int = 2, score_index: int = 1, id_index: int = 0,
                        return_indices: bool = True, invalid_to_bottom: bool = False) -> Any:
    """Keeps of the first ``valid_count`` boxes of each batch entry those that overlap no better one by ``iou_threshold`` or more.

    With ``return_indices``: (indices (batch, n), of the boxes kept, best first, then -1; their number (batch, 1)).
    Otherwise the boxes in order of their scores, suppressed ones -1 (moved down with ``invalid_to_bottom``).
    """
    attrs = NonMaximumSuppressionAttrs(force_suppress=force_suppress, top_k=top_k, coord_start=coord_start, score_index=score_index,
                                       id_index=id_index, return_indices=return_indices, invalid_to_bottom=invalid_to_bottom)
    args = [data, valid_count, indices, _scalar(max_output_size, "int32"), _scalar(iou_threshold, "float32")]
    call = Call(Op.get("vision.non_max_suppression"), args, attrs)
    return TupleWrapper(call, 2) if return_indices else call


def all_class_non_max_suppression(boxes: RelayExpr, scores: RelayExpr, max_output_boxes_per_class: Any = -1, iou_threshold: Any = -1.0,
                                  score_threshold: Any = -1.0, output_format: str = "onnx") -> TupleWrapper:
    """Suppression for each class by itself; ``boxes`` (batch, n, 4), ``scores`` (batch, class, n).

    "onnx": (rows (batch, class, box), their number); "tensorflow": (rows (class, box) for each batch entry, scores, numbers).
    Rows past the number are 0.
    """
    args = [boxes, scores, _scalar(max_output_boxes_per_class, "int32"), _scalar(iou_threshold, "float32"), _scalar(score_threshold, "float32")]
    attrs = AllClassNonMaximumSuppressionAttrs(output_format=output_format)
    return TupleWrapper(Call(Op.get("vision.all_class_non_max_suppression"), args, attrs), 2 if output_format == "onnx" else 3)


def regular_non_max_suppression(boxes: RelayExpr, scores: RelayExpr, max_detections_per_class: int, max_detections: int,
                                num_classes: int, iou_threshold: float, score_threshold: float) -> TupleWrapper:
    """(boxes, classes, scores, numbers) of the best ``max_detections`` boxes after suppression for each class.

    ``scores`` (batch, n, classes) may hold background classes first, which are left out.
    """
    attrs = RegularNonMaximumSuppressionAttrs(max_detections_per_class=max_detections_per_class, max_detections=max_detections,
                                              num_classes=num_classes, iou_threshold=iou_threshold, score_threshold=score_threshold)
    return TupleWrapper(Call(Op.get("vision.regular_non_max_suppression"), [boxes, scores], attrs), 4)


__all__ = ["GetValidCountsAttrs", "NonMaximumSuppressionAttrs", "AllClassNonMaximumSuppressionAttrs",
           "RegularNonMaximumSuppressionAttrs", "get_valid_counts", "non_max_suppression", "all_class_non_max_suppression",
           "regular_non_max_suppression"]
