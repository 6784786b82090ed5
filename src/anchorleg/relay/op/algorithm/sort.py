"""sort and argsort: stable, ascending or descending; NaN counts as larger than every number."""
from __future__ import annotations

from typing import Any

import numpy as np

from ....ir.attrs import BOOL, INT, Attrs, Field
from ....ir.expr import RelayExpr
from ....ir.op import Op, OpPattern
from ....ir.type import TensorType, Type
from ...expr import Call
from ..attrs_common import OPT_DTYPE
from ..registry import declare
from ..type_relations import normalize_axis, tensor


class ArgsortAttrs(Attrs, name="relay.attrs.ArgsortAttrs"):
    """Attributes of sort and argsort."""

    axis = Field(INT, -1, "The axis along which elements are sorted.")
    is_ascend = Field(BOOL, True, "Whether the smallest comes first.")
    dtype = Field(OPT_DTYPE, "", "The data type of indices (argsort).")


def _sort_rel(args: tuple[Type, ...], attrs: ArgsortAttrs, ctx: Any) -> Type | None:
    data = tensor(args[0], "data")
    if data is not None:
        normalize_axis(attrs.axis, len(data.dims))
    return data


def _argsort_rel(args: tuple[Type, ...], attrs: ArgsortAttrs, ctx: Any) -> Type | None:
    data = _sort_rel(args, attrs, ctx)
    return data and TensorType(data.dims, attrs.dtype or "int32")  # type: ignore[attr-defined]


def stable_order(data: np.ndarray, axis: int, ascending: bool) -> np.ndarray:
    """The indices that sort ``data``; equal elements keep their order, NaN is the largest."""
    if ascending:
        return np.argsort(data, axis=axis, kind="stable")
    backwards = np.argsort(np.flip(data, axis), axis=axis, kind="stable")
    return np.flip(data.shape[axis] - 1 - backwards, axis)


def _sort_numpy(attrs: ArgsortAttrs, args: list[np.ndarray], out_type: Type) -> np.ndarray:
    return np.take_along_axis(args[0], stable_order(args[0], attrs.axis, attrs.is_ascend), attrs.axis)


def _argsort_numpy(attrs: ArgsortAttrs, args: list[np.ndarray], out_type: Type) -> np.ndarray:
    return stable_order(args[0], attrs.axis, attrs.is_ascend)


declare("sort", attrs=ArgsortAttrs, relation=_sort_rel, pattern=OpPattern.OPAQUE, numpy=_sort_numpy, level=6,
        doc="The elements in order along an axis.")
declare("argsort", attrs=ArgsortAttrs, relation=_argsort_rel, pattern=OpPattern.OPAQUE, numpy=_argsort_numpy, level=6,
        doc="The indices that put the elements in order along an axis.")


def sort(data: RelayExpr, axis: int = -1, is_ascend: bool = True) -> Call:
    """``data`` in order along ``axis``; NaN counts as larger than every number."""
    return Call(Op.get("sort"), [data], ArgsortAttrs(axis=int(axis), is_ascend=is_ascend))


def argsort(data: RelayExpr, axis: int = -1, is_ascend: bool = True, dtype: str = "int32") -> Call:
    """The indices, of type ``dtype``, that put ``data`` in order along ``axis``; equal elements keep their order."""
    return Call(Op.get("argsort"), [data], ArgsortAttrs(axis=int(axis), is_ascend=is_ascend, dtype=dtype))


__all__ = ["ArgsortAttrs", "stable_order", "sort", "argsort"]
