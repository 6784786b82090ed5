"""Strategies of the operators of object detection."""
from __future__ import annotations

from typing import Any, Callable

from ....topi.utils import get_const_int
from ....topi.vision import multibox, nms, rcnn
from ....topi.vision.reorg import reorg
from ..op import register_strategy
from ..vision.multibox import prior_shapes, prior_steps
from .generic import naive_schedule, register_injective, simple_strategy


def _nms(attrs: Any, inputs: list[Any], out_type: Any) -> list[Any]:
    return nms.non_max_suppression(*inputs, attrs.force_suppress, attrs.top_k, attrs.coord_start, attrs.score_index, attrs.id_index,
                                   attrs.return_indices, attrs.invalid_to_bottom)


def _prior(attrs: Any, inputs: list[Any], out_type: Any) -> list[Any]:
    rows, columns = (get_const_int(d) for d in inputs[0].shape[2:])
    return [multibox.multibox_prior(rows, columns, prior_shapes(attrs, rows, columns), prior_steps(attrs, rows, columns),
                                    (attrs.offsets[0], attrs.offsets[1]), attrs.clip, out_type.dtype)]


def _regular(attrs: Any, inputs: list[Any], out_type: Any) -> list[Any]:
    return nms.regular_non_max_suppression(*inputs, attrs.max_detections_per_class, attrs.max_detections, attrs.num_classes,
                                           attrs.iou_threshold, attrs.score_threshold)


KERNELS: dict[str, Callable[..., Any]] = {
    "vision.get_valid_counts": lambda attrs, inputs, out_type: nms.get_valid_counts(*inputs, attrs.id_index, attrs.score_index),
    "vision.non_max_suppression": _nms,
    "vision.all_class_non_max_suppression": lambda attrs, inputs, out_type: nms.all_class_non_max_suppression(*inputs, attrs.output_format),
    "vision.regular_non_max_suppression": _regular,
    "vision.multibox_transform_loc": lambda attrs, inputs, out_type: multibox.multibox_transform_loc(
        *inputs, attrs.clip, attrs.threshold, attrs.variances, attrs.keep_background),
    "vision.roi_align": lambda attrs, inputs, out_type: [rcnn.roi_align(
        *inputs, attrs.pooled_size, attrs.spatial_scale, attrs.sample_ratio, attrs.layout, attrs.mode)],
    "vision.roi_pool": lambda attrs, inputs, out_type: [rcnn.roi_pool(*inputs, attrs.pooled_size, attrs.spatial_scale, attrs.layout)],
}

for _name, _compute in KERNELS.items():
    register_strategy(_name, simple_strategy(_compute, naive_schedule, f"{_name}.generic"))
register_injective("vision.multibox_prior", _prior)
register_injective("vision.yolo_reorg", lambda attrs, inputs, out_type: [reorg(inputs[0], attrs.stride)])
