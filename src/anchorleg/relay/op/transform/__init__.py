"""Operators that move, pick, repeat or rearrange elements, one file per family."""
from __future__ import annotations

from .broadcast import broadcast_to, broadcast_to_like, collapse_sum_like, collapse_sum_to, repeat, tile, where
from .create import arange, meshgrid
from .einsum import einsum
from .flip import reverse, reverse_sequence, sequence_mask
from .fourier import dft, stft
from .index import adv_index, gather, gather_nd, one_hot, take, unravel_index
from .join import concatenate, split, stack
from .matrix import invert_permutation, matrix_set_diag, trilu
from .query import argwhere, ndarray_size, shape_of
from .reshape import expand_dims, reshape, reshape_like, reverse_reshape, squeeze
from .scan import cumprod, cumsum
from .scatter import scatter, scatter_add, scatter_elements, scatter_nd
from .slice import slice_like, strided_set, strided_slice
from .sparse import segment_sum, sparse_fill_empty_rows, sparse_reshape, sparse_to_dense
from .transpose import layout_transform, transpose
from .unique import unique
from .window import sliding_window

__all__ = ["adv_index", "arange", "argwhere", "broadcast_to", "broadcast_to_like", "collapse_sum_like", "collapse_sum_to", "concatenate",
           "cumprod", "cumsum", "dft", "einsum", "expand_dims", "gather", "gather_nd", "invert_permutation", "layout_transform", "matrix_set_diag",
           "meshgrid", "ndarray_size", "one_hot", "repeat", "reshape", "reshape_like", "reverse", "reverse_reshape", "reverse_sequence",
           "scatter", "scatter_add", "scatter_elements", "scatter_nd", "segment_sum", "sequence_mask", "shape_of", "slice_like",
           "sliding_window", "sparse_fill_empty_rows", "sparse_reshape", "sparse_to_dense", "split", "squeeze", "stack", "stft",
           "strided_set", "strided_slice", "take", "tile", "transpose", "trilu", "unique", "unravel_index", "where"]
