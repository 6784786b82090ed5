"""Distinct values of a vector: unique."""
from __future__ import annotations

from typing import Any

import numpy as np

from ....ir.attrs import BOOL, Attrs, Field
from ....ir.expr import RelayExpr
from ....ir.op import Op, OpPattern
from ....ir.type import TensorType, TupleType, Type
from ....support.errors import TypeMismatchError
from ...expr import Call, TupleWrapper
from ..registry import declare
from .common import show, tensor


class UniqueAttrs(Attrs, name="relay.attrs.UniqueAttrs"):
    """Attributes of unique."""

    sorted = Field(BOOL, True, "Whether the values come in ascending order, rather than in that of their first occurrence.")
    return_counts = Field(BOOL, False, "Whether the number of occurrences of each value is a fifth result.")


def _unique_rel(args: tuple[Type, ...], attrs: UniqueAttrs, ctx: Any) -> Type | None:
    data = tensor(args[0], "data")
    if data is None:
        return None
    if len(data.dims) != 1:
        raise TypeMismatchError(f"data must be a vector, got shape {show(data.dims)}")
    index = TensorType(data.dims, "int32")
    fields: list[Type] = [data, index, index, TensorType((1,), "int32")]
    return TupleType(fields + [index] if attrs.return_counts else fields)


def _padded(values: np.ndarray, n: int) -> np.ndarray:
    out = np.zeros(n, values.dtype)
    out[:len(values)] = values
    return out


def _unique_numpy(attrs: UniqueAttrs, args: list[np.ndarray], out_type: Type) -> tuple[np.ndarray, ...]:
    data = args[0]
    values, first, inverse, counts = np.unique(data, return_index=True, return_inverse=True, return_counts=True)
    inverse = inverse.reshape(-1)
    if not attrs.sorted:
        order = np.argsort(first, kind="stable")
        rank = np.empty_like(order)
        rank[order] = np.arange(len(order))
        values, first, counts, inverse = values[order], first[order], counts[order], rank[inverse]
    n = len(data)
    found = (_padded(values, n), _padded(first, n), inverse, np.array([len(values)]))
    return (*found, _padded(counts, n)) if attrs.return_counts else found


declare("unique", attrs=UniqueAttrs, relation=_unique_rel, pattern=OpPattern.OPAQUE, numpy=_unique_numpy, level=3,
        doc="The distinct values of a vector, where they first occur, and which one each element is.")


def unique(data: RelayExpr, is_sorted: bool = True, return_counts: bool = False) -> TupleWrapper:
    """(values, first positions, index of each element's value, number of values[, counts]) of the vector ``data``.

    All but the third and fourth are as long as ``data`` and filled up with zeros; indices are int32.
    """
    call = Call(Op.get("unique"), [data], UniqueAttrs(sorted=is_sorted, return_counts=return_counts))
    return TupleWrapper(call, 5 if return_counts else 4)


__all__ = ["UniqueAttrs", "unique"]
