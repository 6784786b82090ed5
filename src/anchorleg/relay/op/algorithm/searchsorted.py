"""searchsorted: where values belong in sorted rows."""
from __future__ import annotations

import math
from typing import Any

import numpy as np

from ....ir.attrs import BOOL, Attrs, Field
from ....ir.expr import RelayExpr
from ....ir.op import Op, OpPattern
from ....ir.type import TensorType, Type
from ....support.errors import TypeMismatchError
from ...expr import Call
from ..attrs_common import OPT_DTYPE
from ..registry import declare
from ..transform.common import same_dim, show
from ..type_relations import same_dtype, tensors


class SearchSortedAttrs(Attrs, name="relay.attrs.SearchSortedAttrs"):
    """Attributes of searchsorted."""

    right = Field(BOOL, False, "Whether a value goes behind equal ones, rather than before them.")
    dtype = Field(OPT_DTYPE, "int32", "The data type of the indices.")


def _searchsorted_rel(args: tuple[Type, ...], attrs: SearchSortedAttrs, ctx: Any) -> Type | None:
    types = tensors(args, ("sorted_sequence", "values"))
    if types is None:
        return None
    rows, values = types
    same_dtype(rows, values, "sorted_sequence and values")
    if not values.dims or not rows.dims:
        raise TypeMismatchError("sorted_sequence and values must have at least rank 1")
    if len(rows.dims) > 1:
        if len(rows.dims) != len(values.dims):
            raise TypeMismatchError(f"sorted_sequence and values must have one rank, got {show(rows.dims)} and {show(values.dims)}")
        for i, (a, b) in enumerate(zip(rows.dims[:-1], values.dims[:-1])):
            same_dim(f"dimension {i} of values", a, b)
    return TensorType(values.dims, attrs.dtype or "int32")


def _searchsorted_numpy(attrs: SearchSortedAttrs, args: list[np.ndarray], out_type: Type) -> np.ndarray:
    rows, values = args
    side = "right" if attrs.right else "left"
    if rows.ndim == 1:
        return np.searchsorted(rows, values, side)
    lead = math.prod(rows.shape[:-1])
    flat = [np.searchsorted(r, v, side) for r, v in zip(rows.reshape(lead, rows.shape[-1]), values.reshape(lead, values.shape[-1]))]
    return np.array(flat, np.int64).reshape(values.shape)


declare("searchsorted", inputs=("sorted_sequence", "values"), attrs=SearchSortedAttrs, relation=_searchsorted_rel,
        pattern=OpPattern.OPAQUE, numpy=_searchsorted_numpy, level=6, doc="The positions at which values keep sorted rows sorted.")


def searchsorted(sorted_sequence: RelayExpr, values: RelayExpr, right: bool = False, dtype: str = "int32") -> Call:
    """For each of ``values`` the position in the (row of the) ascending ``sorted_sequence`` that keeps it sorted.

    ``sorted_sequence`` is a vector, or has the leading dimensions of ``values``.  ``right`` puts a value behind equal ones.
    """
    return Call(Op.get("searchsorted"), [sorted_sequence, values], SearchSortedAttrs(right=right, dtype=dtype))


__all__ = ["SearchSortedAttrs", "searchsorted"]
