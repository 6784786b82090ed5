"""trilu, matrix_set_diag, invert_permutation."""
from __future__ import annotations

from typing import Any

from ... import te
from ... import tir
from ...te.tensor import Tensor
from ..kernel import View, extern, loop, seq, vectors, when
from ..tag import INJECTIVE
from .index import as_index


def trilu(data: Tensor, k: Tensor, upper: bool) -> Tensor:
    """The upper (else lower) triangle of the matrices in the last two axes, from (up to) diagonal ``k`` (a scalar)."""
    def element(*i: Any) -> Any:
        row, column, diagonal = i[-2], i[-1], as_index(k())
        keep = tir.op.greater_equal(column - row, diagonal) if upper else tir.op.less_equal(column - row, diagonal)
        return tir.op.select(keep, data(*i), tir.const(0, data.dtype))

    return te.compute(data.shape, element, name="T_trilu", tag=INJECTIVE)


def matrix_set_diag(data: Tensor, diagonal: Tensor, k1: int = 0, k2: int = 0, super_diag_right_align: bool = True,
                    sub_diag_right_align: bool = False) -> Tensor:
    """The matrices in the last two axes with diagonals ``k1`` to ``k2`` replaced; see the Relay operator for alignment."""
    rows, columns, width = data.shape[-2], data.shape[-1], diagonal.shape[-1]

    def replaced(*i: Any) -> Any:
        row, column = i[-2], i[-1]
        k = column - row
        along = tir.op.minimum(row, column)
        if k1 == k2:
            return diagonal(*i[:-2], along)
        length = tir.op.minimum(rows + tir.op.minimum(k, 0), columns - tir.op.maximum(k, 0))
        above = width - length if super_diag_right_align else 0
        below = width - length if sub_diag_right_align else 0
        return diagonal(*i[:-2], k2 - k, along + tir.op.select(tir.op.greater_equal(k, 0), above, below))

    def element(*i: Any) -> Any:
        k = i[-1] - i[-2]
        hit = tir.all(tir.op.greater_equal(k, k1), tir.op.less_equal(k, k2))
        return tir.if_then_else(hit, replaced(*i), data(*i))

    return te.compute(data.shape, element, name="T_matrix_set_diag", tag=INJECTIVE)


def invert_permutation(data: Tensor) -> Tensor:
    """The vector ``out`` with ``out[data[i]] = i``; entries out of range are left out."""
    n = data.shape[0]

    def body(ins: list[View], outs: list[View]) -> Any:
        (p,), (out,) = ins, outs

        def place(i: Any) -> Any:
            to = as_index(p[i])
            return when(tir.all(tir.op.greater_equal(to, 0), tir.op.less(to, n)), out.store(to, i))

        return seq(vectors(n, lambda i: out.store(i, tir.const(0, data.dtype))), loop(n, place))

    return extern([data.shape], [data], body, [data.dtype], "T_invert_permutation")[0]


__all__ = ["trilu", "matrix_set_diag", "invert_permutation"]
