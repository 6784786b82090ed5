"""Computes of object detection."""
from __future__ import annotations

from .multibox import multibox_prior, multibox_transform_loc
from .nms import all_class_non_max_suppression, get_valid_counts, non_max_suppression, regular_non_max_suppression
from .rcnn import roi_align, roi_pool
from .reorg import reorg

__all__ = ["all_class_non_max_suppression", "get_valid_counts", "multibox_prior", "multibox_transform_loc", "non_max_suppression",
           "regular_non_max_suppression", "reorg", "roi_align", "roi_pool"]
