"""Products and sums with sparse matrices in CSR (1-D data) and BSR (blocks) form."""
from __future__ import annotations

from typing import Any

import numpy as np

from ....ir.attrs import BOOL, INTS, STR, Attrs, Field
from ....ir.expr import RelayExpr
from ....ir.op import Op, OpPattern
from ....ir.type import TensorType, TupleType, Type
from ....support.errors import TypeMismatchError
from ...expr import Call, TupleWrapper
from ..registry import declare
from .common import add, check_rank, known, mul, shown, tensor
from .numeric import product


class SparseDenseAttrs(Attrs, name="relay.attrs.SparseDenseAttrs"):
    """Attributes of nn.sparse_dense."""

    sparse_lhs = Field(BOOL, False, "Whether the sparse matrix is the left operand.")


class SparseTransposeAttrs(Attrs, name="relay.attrs.SparseTransposeAttrs"):
    """Attributes of nn.sparse_transpose (none)."""


class SparseConv2DAttrs(Attrs, name="relay.attrs.SparseConv2DAttrs"):
    """Attributes of nn.sparse_conv2d."""

    layout = Field(STR, "NHWC", "Layout of the data.")
    kernel_size = Field(INTS, (1, 1), "Extent of the kernel.")


_NAMES = ("dense_data", "sparse_data", "sparse_indices", "sparse_indptr")


def _parts(op: str, args: tuple[Type, ...]) -> list[TensorType] | None:
    found = [tensor(t, f"{op}, {n}") for t, n in zip(args, _NAMES)]
    return None if any(t is None for t in found) else found  # type: ignore[return-value]


def _rows(op: str, data: TensorType, indptr: TensorType) -> Any:
    """The number of rows of a CSR or BSR matrix."""
    check_rank(op, indptr, 1, "sparse_indptr")
    if len(data.dims) not in (1, 3):
        raise TypeMismatchError(f"{op}: sparse_data must be a vector (CSR) or blocks of rank 3 (BSR), got shape {shown(data.dims)}")
    rows = add(indptr.dims[0], -1)
    return rows if len(data.dims) == 1 else mul(rows, data.dims[1])


def _dense_relation(args: tuple[Type, ...], attrs: Any, ctx: Any) -> Type | None:
    op = "nn.sparse_dense"
    parts = _parts(op, args)
    if parts is None:
        return None
    dense, data, _, indptr = parts
    check_rank(op, dense, 2, "dense_data")
    rows = _rows(op, data, indptr)
    return TensorType((rows, dense.dims[0]) if attrs.sparse_lhs else (dense.dims[0], rows), dense.dtype)


def expand(data: np.ndarray, indices: np.ndarray, indptr: np.ndarray, columns: int) -> np.ndarray:
    """The dense matrix of a CSR or BSR one."""
    rows = np.repeat(np.arange(len(indptr) - 1), np.diff(indptr))
    if data.ndim == 1:
        out = np.zeros((len(indptr) - 1, columns), data.dtype)
        np.add.at(out, (rows, indices), data)
        return out
    bs_r, bs_c = data.shape[1:]
    blocks = np.zeros((len(indptr) - 1, columns // bs_c, bs_r, bs_c), data.dtype)
    np.add.at(blocks, (rows, indices), data)
    return blocks.transpose(0, 2, 1, 3).reshape((len(indptr) - 1) * bs_r, columns)


def _dense_numpy(attrs: Any, args: list[np.ndarray], out_type: TensorType) -> np.ndarray:
    sparse = expand(*args[1:], args[0].shape[1])
    return product(sparse, args[0].T, out_type.dtype) if attrs.sparse_lhs else product(args[0], sparse.T, out_type.dtype)


def _transpose_relation(args: tuple[Type, ...], attrs: Any, ctx: Any) -> Type | None:
    found = [tensor(t, f"nn.sparse_transpose, {n}") for t, n in zip(args, _NAMES[1:])]
    if any(t is None for t in found):
        return None
    for name, t in zip(_NAMES[1:], found):
        check_rank("nn.sparse_transpose", t, 1, name)
    return TupleType(found)


def _transpose_numpy(attrs: Any, args: list[np.ndarray], out_type: Any) -> tuple[np.ndarray, ...]:
    data, indices, indptr = args
    rows = np.repeat(np.arange(len(indptr) - 1), np.diff(indptr))
    order = np.argsort(indices, kind="stable")
    starts = np.concatenate([[0], np.cumsum(np.bincount(indices, minlength=len(indptr) - 1))])
    return data[order], rows[order].astype(indices.dtype), starts.astype(indptr.dtype)


def _add_relation(args: tuple[Type, ...], attrs: Any, ctx: Any) -> Type | None:
    op = "nn.sparse_add"
    parts = _parts(op, args)
    if parts is None:
        return None
    dense, data, _, indptr = parts
    check_rank(op, dense, 2, "dense_data")
    check_rank(op, data, 1, "sparse_data")
    rows = _rows(op, data, indptr)
    if dense.dtype != data.dtype or (known(rows, dense.dims[0]) and rows != dense.dims[0]):
        raise TypeMismatchError(f"{op}: dense {shown(dense.dims)} {dense.dtype} and a sparse matrix of {rows} rows {data.dtype} do not fit")
    return dense


def _add_numpy(attrs: Any, args: list[np.ndarray], out_type: Any) -> np.ndarray:
    return args[0] + expand(*args[1:], args[0].shape[1])


declare("nn.sparse_dense", inputs=_NAMES, attrs=SparseDenseAttrs, relation=_dense_relation, pattern=OpPattern.OUT_ELEMWISE_FUSABLE,
        numpy=_dense_numpy, level=1, doc="dense_data times the transpose of a sparse matrix, or the sparse matrix times that of dense_data.")
declare("nn.sparse_transpose", inputs=_NAMES[1:], attrs=SparseTransposeAttrs, relation=_transpose_relation,
        pattern=OpPattern.OUT_ELEMWISE_FUSABLE, numpy=_transpose_numpy, level=1, doc="The transpose of a square CSR matrix, as CSR.")
declare("nn.sparse_add", inputs=_NAMES, relation=_add_relation, numpy=_add_numpy, level=1, doc="A dense plus a CSR matrix.")


def _triple(matrix: Any) -> list[RelayExpr]:
    return [matrix.data, matrix.indices, matrix.indptr] if hasattr(matrix, "indices") else list(matrix)


def sparse_dense(dense_mat: RelayExpr, sparse_mat: Any, sparse_lhs: bool = False) -> Call:
    """``dense_mat`` times the transpose of ``sparse_mat``: (data, indices, indptr) or an object with these attributes."""
    return Call(Op.get("nn.sparse_dense"), [dense_mat, *_triple(sparse_mat)], SparseDenseAttrs(sparse_lhs=sparse_lhs))


def sparse_transpose(x: Any) -> TupleWrapper:
    """The transpose of a square CSR matrix: (data, indices, indptr)."""
    return TupleWrapper(Call(Op.get("nn.sparse_transpose"), _triple(x), SparseTransposeAttrs()), 3)


def sparse_add(dense_mat: RelayExpr, sparse_mat: Any) -> Call:
    """``dense_mat`` plus a CSR matrix."""
    return Call(Op.get("nn.sparse_add"), [dense_mat, *_triple(sparse_mat)])
