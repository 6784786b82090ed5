"""Operators whose result's shape depends on the value of an input; ``DynamicToStatic`` turns them into their static forms."""
from __future__ import annotations

from . import nn
from .algorithm import topk
from .image import resize2d
from .transform import broadcast_to, expand_dims, full, one_hot, ones, reshape, sparse_to_dense, squeeze, strided_slice, tile, zeros

__all__ = ["broadcast_to", "expand_dims", "full", "nn", "one_hot", "ones", "reshape", "resize2d", "sparse_to_dense", "squeeze", "strided_slice",
           "tile", "topk", "zeros"]
