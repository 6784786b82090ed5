"""Operators on the last two axes as matrices, and on permutations: trilu, matrix_set_diag, invert_permutation."""
from __future__ import annotations

from typing import Any

import numpy as np

from ....ir.attrs import BOOL, INT, Attrs, Field
from ....ir.expr import RelayExpr
from ....ir.op import Op, OpPattern
from ....ir.type import TensorType, Type
from ....support.errors import ArgumentError, TypeMismatchError
from ...expr import Call, const
from ..registry import declare
from .common import known, require_integer, same_dim, show, tensor, tensors


class TriluAttrs(Attrs, name="relay.attrs.TriluAttrs"):
    """Attributes of trilu."""

    upper = Field(BOOL, True, "Whether the upper triangle is kept, rather than the lower one.")


class MatrixSetDiagAttrs(Attrs, name="relay.attrs.MatrixSetDiagAttrs"):
    """Attributes of matrix_set_diag."""

    k1 = Field(INT, 0, "The lowest diagonal that is replaced; negative: below the main one.")
    k2 = Field(INT, 0, "The highest diagonal that is replaced.")
    super_diag_right_align = Field(BOOL, True, "Whether diagonals from the main one up are stored aligned to the right.")
    sub_diag_right_align = Field(BOOL, False, "Whether diagonals below the main one are stored aligned to the right.")


def _trilu_rel(args: tuple[Type, ...], attrs: TriluAttrs, ctx: Any) -> Type | None:
    types = tensors(args, ("data", "k"))
    if types is None:
        return None
    data, k = types
    if k.dims:
        raise TypeMismatchError(f"k must be a scalar, got shape {show(k.dims)}")
    if len(data.dims) < 2:
        raise TypeMismatchError(f"data must have at least rank 2, got shape {show(data.dims)}")
    return data


def _trilu_numpy(attrs: TriluAttrs, args: list[np.ndarray], out_type: Type) -> np.ndarray:
    return (np.triu if attrs.upper else np.tril)(args[0], int(args[1]))


def diagonal_length(rows: int, columns: int, k: int) -> int:
    """The number of elements of diagonal ``k`` of a matrix."""
    return min(rows + min(k, 0), columns - max(k, 0))


def _check_diagonals(data: TensorType, diagonal: TensorType, attrs: MatrixSetDiagAttrs) -> None:
    many, rank = attrs.k1 != attrs.k2, len(data.dims)
    if rank < 2 or attrs.k1 > attrs.k2 or len(diagonal.dims) != rank - 1 + many:
        raise TypeMismatchError(f"data of shape {show(data.dims)} with diagonals {attrs.k1} to {attrs.k2} does not take "
                                f"diagonals of shape {show(diagonal.dims)}")
    for i in range(rank - 2):
        same_dim(f"dimension {i} of diagonal", data.dims[i], diagonal.dims[i])
    if many:
        same_dim("the number of diagonals", attrs.k2 - attrs.k1 + 1, diagonal.dims[-2])
    rows, columns = data.dims[-2:]
    if known(rows) and known(columns):
        if not -rows < attrs.k1 or not attrs.k2 < columns:
            raise TypeMismatchError(f"diagonals {attrs.k1} to {attrs.k2} lie outside of a {rows} x {columns} matrix")
        longest = min(rows + min(attrs.k2, 0), columns - max(attrs.k1, 0))
        same_dim("the length of the diagonals", longest, diagonal.dims[-1])


def _matrix_set_diag_rel(args: tuple[Type, ...], attrs: MatrixSetDiagAttrs, ctx: Any) -> Type | None:
    types = tensors(args, ("data", "diagonal"))
    if types is None:
        return None
    _check_diagonals(*types, attrs)
    return types[0]


def _matrix_set_diag_numpy(attrs: MatrixSetDiagAttrs, args: list[np.ndarray], out_type: Type) -> np.ndarray:
    data, diagonal = args
    out, (rows, columns), width = data.copy(), data.shape[-2:], diagonal.shape[-1]
    for k in range(attrs.k1, attrs.k2 + 1):
        n = diagonal_length(rows, columns, k)
        step = np.arange(n)
        right = attrs.super_diag_right_align if k >= 0 else attrs.sub_diag_right_align
        offset = width - n if right and attrs.k1 != attrs.k2 else 0
        source = diagonal if attrs.k1 == attrs.k2 else diagonal[..., attrs.k2 - k, :]
        out[..., step - min(k, 0), step + max(k, 0)] = source[..., offset:offset + n]
    return out


def _invert_permutation_rel(args: tuple[Type, ...], attrs: Any, ctx: Any) -> Type | None:
    data = tensor(args[0], "data")
    if data is not None:
        require_integer("data", data)
        if len(data.dims) != 1:
            raise TypeMismatchError(f"data must be a vector, got shape {show(data.dims)}")
    return data


def _invert_permutation_numpy(attrs: Any, args: list[np.ndarray], out_type: Type) -> np.ndarray:
    out = np.zeros_like(args[0])
    out[args[0]] = np.arange(len(args[0]), dtype=args[0].dtype)
    return out


declare("trilu", inputs=("data", "k"), attrs=TriluAttrs, relation=_trilu_rel, pattern=OpPattern.ELEMWISE, numpy=_trilu_numpy,
        level=3, doc="The upper or lower triangle of matrices; the rest is 0.")
declare("matrix_set_diag", inputs=("data", "diagonal"), attrs=MatrixSetDiagAttrs, relation=_matrix_set_diag_rel,
        pattern=OpPattern.INJECTIVE, numpy=_matrix_set_diag_numpy, level=10, doc="Matrices with some of their diagonals replaced.")
declare("invert_permutation", relation=_invert_permutation_rel, pattern=OpPattern.OPAQUE, numpy=_invert_permutation_numpy,
        level=1, doc="The permutation that undoes a permutation.")


def trilu(data: RelayExpr, k: Any, upper: bool = True) -> Call:
    """The upper (else lower) triangle, from (up to) diagonal ``k``, of the matrices in the last two axes of ``data``."""
    return Call(Op.get("trilu"), [data, k if isinstance(k, RelayExpr) else const(int(k), "int32")], TriluAttrs(upper=upper))


def matrix_set_diag(data: RelayExpr, diagonal: RelayExpr, k: Any = 0, align: str = "RIGHT_LEFT") -> Call:
    """The matrices in the last two axes of ``data`` with diagonal ``k``, or diagonals ``k[0]`` to ``k[1]``, replaced.

    ``align`` says how diagonals shorter than the longest are stored in ``diagonal``: first those from the main one up, then
    those below it.
    """
    low, high = (k, k) if isinstance(k, (int, np.integer)) else (k[0], k[-1])
    if align not in ("RIGHT_LEFT", "LEFT_RIGHT", "LEFT_LEFT", "RIGHT_RIGHT"):
        raise ArgumentError(f"matrix_set_diag: align must be RIGHT_LEFT, LEFT_RIGHT, LEFT_LEFT or RIGHT_RIGHT, got {align!r}")
    above, below = align.split("_")
    attrs = MatrixSetDiagAttrs(k1=low, k2=high, super_diag_right_align=above == "RIGHT", sub_diag_right_align=below == "RIGHT")
    return Call(Op.get("matrix_set_diag"), [data, diagonal], attrs)


def invert_permutation(data: RelayExpr) -> Call:
    """The vector ``out`` with ``out[data[i]] = i``."""
    return Call(Op.get("invert_permutation"), [data])


__all__ = ["TriluAttrs", "MatrixSetDiagAttrs", "trilu", "matrix_set_diag", "invert_permutation"]
