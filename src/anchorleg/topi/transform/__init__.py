"""Computes that move, pick and rearrange elements, one file per family as in ``relay.op.transform``."""
from __future__ import annotations

from .broadcast import broadcast_to_like, collapse_sum, repeat, tile, where
from .create import arange, meshgrid, ndarray_size, shape
from .flip import flip, reverse_sequence, sequence_mask
from .index import adv_index, gather, gather_nd, one_hot, take, unravel_index
from .join import concatenate, split, split_sections, stack
from .matrix import invert_permutation, matrix_set_diag, trilu
from .reshape import expand_dims, expand_like, reshape, squeeze
from .slice import slice_like, strided_set, strided_slice
from .sparse import sparse_reshape, sparse_to_dense
from .transpose import layout_transform, transpose
from .window import sliding_window

__all__ = ["adv_index", "arange", "broadcast_to_like", "collapse_sum", "concatenate", "expand_dims", "expand_like", "flip", "gather",
           "gather_nd", "invert_permutation", "layout_transform", "matrix_set_diag", "meshgrid", "ndarray_size", "one_hot", "repeat",
           "reshape", "reverse_sequence", "sequence_mask", "shape", "slice_like", "sliding_window", "sparse_reshape", "sparse_to_dense",
           "split", "split_sections", "squeeze", "stack", "strided_set", "strided_slice", "take", "tile", "transpose", "trilu",
           "unravel_index", "where"]
