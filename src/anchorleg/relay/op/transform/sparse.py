"""Operators on sparse tensors in coordinate form, and sums over segments."""
from __future__ import annotations

from typing import Any

import numpy as np

from ....ir.attrs import INTS, Attrs, Field
from ....ir.expr import Any as AnyDim, RelayExpr
from ....ir.op import Op, OpPattern
from ....ir.type import TensorType, TupleType, Type
from ....support.errors import TypeMismatchError
from ...expr import Call, Tuple, TupleWrapper, const
from ..attrs_common import CastAttrs
from ..registry import declare
from .common import as_int_list, is_dynamic, known, require_integer, same_dim, show, tensors
from .broadcast import tile
from .query import shape_of
from .reshape import reshape
from .scatter import scatter_elements
from .slice import strided_slice
from .transpose import transpose
from .flip import reverse
from .join import concatenate


class SparseToDenseAttrs(Attrs, name="relay.attrs.SparseToDenseAttrs"):
    """Attributes of sparse_to_dense."""

    output_shape = Field(INTS, doc="The shape of the dense tensor.")


# ---- sparse_to_dense -------------------------------------------------------------------------------------------------

def check_sparse(indices: TensorType, values: TensorType, default: TensorType, rank: int | None) -> None:
    """TypeMismatchError unless the ranks of coordinates, values and default fit a dense tensor of ``rank``."""
    require_integer("sparse_indices", indices)
    if len(indices.dims) > 2 or len(values.dims) > 1 or default.dims:
        raise TypeMismatchError("expects indices of rank 0 to 2, values of rank 0 or 1 and a scalar default, got shapes "
                                f"{show(indices.dims)}, {show(values.dims)} and {show(default.dims)}")
    want = indices.dims[1] if len(indices.dims) == 2 else 1
    if rank is not None and known(want) and want != rank:
        raise TypeMismatchError(f"indices of {want} coordinates do not fit a tensor of rank {rank}")
    if values.dims and indices.dims:
        same_dim("the number of values", indices.dims[0], values.dims[0])


def _sparse_to_dense_rel(args: tuple[Type, ...], attrs: SparseToDenseAttrs, ctx: Any) -> Type | None:
    types = tensors(args, ("sparse_indices", "sparse_values", "default_value"))
    if types is None:
        return None
    check_sparse(*types, len(attrs.output_shape))
    return TensorType(attrs.output_shape, types[1].dtype)


def fill_sparse(shape: tuple[int, ...], indices: np.ndarray, values: np.ndarray, default: np.ndarray) -> np.ndarray:
    """The dense tensor of ``shape`` that is ``default`` except for ``values`` at ``indices``."""
    out = np.full(shape, default, values.dtype)
    rows = indices.reshape(-1, len(shape)) if shape else indices.reshape(-1, 0)
    for row, value in zip(rows, np.broadcast_to(values, len(rows))):
        out[tuple(row)] = value
    return out


def _sparse_to_dense_numpy(attrs: SparseToDenseAttrs, args: list[np.ndarray], out_type: Type) -> np.ndarray:
    return fill_sparse(attrs.get_int_tuple("output_shape"), *args)


# ---- sparse_fill_empty_rows, sparse_reshape --------------------------------------------------------------------------

def _fill_empty_rows_rel(args: tuple[Type, ...], attrs: Any, ctx: Any) -> Type | None:
    types = tensors(args, ("sparse_indices", "sparse_values", "dense_shape", "default_value"))
    if types is None:
        return None
    if len(types[0].dims) != 2:
        raise TypeMismatchError(f"sparse_indices must be a matrix, got shape {show(types[0].dims)}")
    return TupleType([TensorType((AnyDim(), types[0].dims[1]), "int64"), TensorType((AnyDim(),), "int64"), TensorType((AnyDim(),), "int64")])


def _fill_empty_rows_numpy(attrs: Any, args: list[np.ndarray], out_type: Type) -> tuple[np.ndarray, ...]:
    indices, values, shape, default = args
    rows = int(shape[0])
    empty = np.ones(rows, np.int64)
    empty[indices[:, 0]] = 0
    missing = np.nonzero(empty)[0]
    extra = np.zeros((len(missing), indices.shape[1]), np.int64)
    extra[:, :1] = missing[:, None]
    every = np.concatenate([indices.astype(np.int64), extra])
    order = np.argsort(every[:, 0], kind="stable")
    filled = np.concatenate([values.astype(np.int64), np.full(len(missing), default.reshape(()), np.int64)])
    return every[order], filled[order], empty


def _sparse_reshape_rel(args: tuple[Type, ...], attrs: Any, ctx: Any) -> Type | None:
    types = tensors(args, ("sparse_indices", "prev_shape", "new_shape"))
    if types is None:
        return None
    indices, old, new = types
    for what, t in zip(("sparse_indices", "prev_shape", "new_shape"), types):
        require_integer(what, t)
    if len(indices.dims) != 2 or len(old.dims) != 1 or len(new.dims) != 1:
        raise TypeMismatchError("expects a matrix of indices and two vectors of sizes, got shapes "
                                f"{show(indices.dims)}, {show(old.dims)} and {show(new.dims)}")
    same_dim("the length of prev_shape", indices.dims[1], old.dims[0])
    return TupleType([TensorType((indices.dims[0], new.dims[0]), indices.dtype), TensorType(new.dims, new.dtype)])


def _sparse_reshape_numpy(attrs: Any, args: list[np.ndarray], out_type: Type) -> tuple[np.ndarray, ...]:
    indices, old, new = args
    total = int(np.prod(old, dtype=np.int64))
    given = int(np.prod(new[new != -1], dtype=np.int64))
    sizes = np.where(new == -1, total // given if given else 0, new)
    flat = np.zeros(len(indices), np.int64)
    for column, size in zip(indices.T, old):
        flat = flat * int(size) + column
    columns = []
    for size in sizes[::-1].tolist():
        columns.append(flat % size if size else flat)
        flat = flat // size if size else flat
    return np.stack(columns[::-1], axis=1) if columns else np.zeros((len(indices), 0), indices.dtype), sizes


declare("sparse_to_dense", inputs=("sparse_indices", "sparse_values", "default_value"), attrs=SparseToDenseAttrs,
        relation=_sparse_to_dense_rel, pattern=OpPattern.OPAQUE, numpy=_sparse_to_dense_numpy, level=3,
        doc="A dense tensor with the given values at the given coordinates.")
declare("sparse_fill_empty_rows", inputs=("sparse_indices", "sparse_values", "dense_shape", "default_value"),
        relation=_fill_empty_rows_rel, pattern=OpPattern.OPAQUE, numpy=_fill_empty_rows_numpy, level=3,
        doc="Gives each row of a sparse tensor that has no value a default one.")
declare("sparse_reshape", inputs=("sparse_indices", "prev_shape", "new_shape"), relation=_sparse_reshape_rel,
        pattern=OpPattern.OPAQUE, numpy=_sparse_reshape_numpy, level=3, doc="The coordinates of a sparse tensor after a reshape.")


def _cast_like(data: RelayExpr, like: RelayExpr) -> Call:
    return Call(Op.get("cast_like"), [data, like])


def sparse_to_dense(sparse_indices: RelayExpr, output_shape: Any, sparse_values: RelayExpr, default_value: Any = 0) -> Call:
    """The tensor of ``output_shape`` that holds ``sparse_values`` at ``sparse_indices`` and ``default_value`` elsewhere.

    Indices: a scalar, a vector (into a vector), or one coordinate tuple a row.
    """
    if not isinstance(default_value, RelayExpr):
        default_value = const(default_value)
    if is_dynamic(output_shape):
        from ..dyn.transform import sparse_to_dense as dyn_sparse_to_dense

        return dyn_sparse_to_dense(sparse_indices, output_shape, sparse_values, default_value)
    attrs = SparseToDenseAttrs(output_shape=as_int_list("sparse_to_dense", "output_shape", output_shape))
    return Call(Op.get("sparse_to_dense"), [sparse_indices, sparse_values, default_value], attrs)


def sparse_fill_empty_rows(sparse_indices: RelayExpr, sparse_values: RelayExpr, dense_shape: RelayExpr, default_value: RelayExpr) -> Tuple:
    """(coordinates, values, whether each row was empty) after every empty row has got ``default_value`` in its first column."""
    found = TupleWrapper(Call(Op.get("sparse_fill_empty_rows"), [sparse_indices, sparse_values, dense_shape, default_value]), 3)
    empty = Call(Op.get("cast"), [found[2]], CastAttrs(dtype="bool"))
    return Tuple([_cast_like(found[0], sparse_indices), _cast_like(found[1], sparse_values), empty])


def sparse_reshape(sparse_indices: RelayExpr, prev_shape: RelayExpr, new_shape: RelayExpr) -> TupleWrapper:
    """(coordinates, shape) of a sparse tensor of ``prev_shape`` in ``new_shape``, of which one size may be -1."""
    return TupleWrapper(Call(Op.get("sparse_reshape"), [sparse_indices, prev_shape, new_shape]), 2)


def segment_sum(data: RelayExpr, segment_ids: RelayExpr, num_segments: Any = None) -> Call:
    """``out[i]`` is the sum of the rows of ``data`` whose entry in the vector ``segment_ids`` is ``i``.

    ``num_segments`` (int or expression; default: the largest id + 1, known at run time) is the number of rows of the result.
    """
    from ..dyn.transform import zeros as dyn_zeros

    one = _cast_like(const([1]), segment_ids)
    if num_segments is None:
        largest = Call(Op.get("max"), [segment_ids], None)
        count = Call(Op.get("add"), [reshape(largest, [-1]), one])
    else:
        count = _cast_like(const([num_segments]) if isinstance(num_segments, int) else num_segments, segment_ids)
    row = _cast_like(strided_slice(shape_of(data, "int32"), [1], [-1], slice_mode="size"), count)
    ids = transpose(tile(segment_ids, concatenate([reverse(row, 0), one], 0)))
    start = _cast_like(dyn_zeros(concatenate([count, row], 0), "float64"), data)
    return scatter_elements(start, ids, data, 0, "add")


__all__ = ["SparseToDenseAttrs", "sparse_to_dense", "sparse_fill_empty_rows", "sparse_reshape", "segment_sum"]
