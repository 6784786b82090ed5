"""topk: the largest or smallest elements along an axis, in order."""
from __future__ import annotations

from typing import Any

import numpy as np

from ....ir.attrs import BOOL, INT, OPT_INT, Attrs, Field
from ....ir.expr import RelayExpr
from ....ir.op import Op, OpPattern
from ....ir.type import TensorType, TupleType, Type
from ....support.errors import ArgumentError, TypeMismatchError
from ...expr import Call, TupleWrapper
from ..attrs_common import OPT_DTYPE
from ..registry import declare
from ..transform.common import Dim, choice, constant_ints, is_dynamic, known
from ..type_relations import normalize_axis, tensor
from .sort import stable_order


class TopkAttrs(Attrs, name="relay.attrs.TopkAttrs"):
    """Attributes of topk."""

    k = Field(OPT_INT, None, "How many elements; below 1: all.")
    axis = Field(INT, -1, "The axis along which they are taken.")
    ret_type = Field(choice("both", "values", "indices"), "both", "What is returned.")
    is_ascend = Field(BOOL, False, "Whether the smallest are taken, rather than the largest.")
    dtype = Field(OPT_DTYPE, "int32", "The data type of indices.")


def topk_type(data: TensorType, size: Dim, attrs: TopkAttrs) -> Type:
    """The result's type when ``size`` elements are kept."""
    axis = normalize_axis(attrs.axis, len(data.dims))
    dims = [*data.dims[:axis], size, *data.dims[axis + 1:]]
    values, indices = TensorType(dims, data.dtype), TensorType(dims, attrs.dtype or "int32")
    return {"both": TupleType([values, indices]), "values": values, "indices": indices}[attrs.ret_type]


def topk_size(dim: Dim, k: int | None) -> Dim:
    """How many elements are kept of an axis; TypeMismatchError when it has fewer."""
    if k is None or k < 1:
        return dim
    if known(dim) and k > dim:
        raise TypeMismatchError(f"k={k} is more than the {dim} elements of the axis")
    return int(k)


def _topk_rel(args: tuple[Type, ...], attrs: TopkAttrs, ctx: Any) -> Type | None:
    data = tensor(args[0], "data")
    if data is None:
        return None
    axis = normalize_axis(attrs.axis, len(data.dims))
    return topk_type(data, topk_size(data.dims[axis], attrs.k), attrs)


def topk_numpy(data: np.ndarray, k: int | None, attrs: TopkAttrs) -> Any:
    """Values and/or indices of the first ``k`` elements in order."""
    axis = attrs.axis % data.ndim
    size = topk_size(data.shape[axis], k)
    order = np.take(stable_order(data, axis, attrs.is_ascend), np.arange(size), axis=axis)
    values = np.take_along_axis(data, order, axis)
    return {"both": (values, order), "values": values, "indices": order}[attrs.ret_type]


def _topk_numpy(attrs: TopkAttrs, args: list[np.ndarray], out_type: Type) -> Any:
    return topk_numpy(args[0], attrs.k, attrs)


declare("topk", attrs=TopkAttrs, relation=_topk_rel, pattern=OpPattern.OPAQUE, numpy=_topk_numpy, level=6,
        doc="The k largest or smallest elements along an axis, in order.")


def topk(data: RelayExpr, k: Any = 1, axis: int = -1, ret_type: str = "both", is_ascend: bool = False, dtype: str = "int32") -> Any:
    """The ``k`` largest (``is_ascend``: smallest) elements of ``data`` along ``axis``, in order.

    Of equal elements the first come first; NaN counts as larger than every number.  ``k`` below 1 means all; it may be an
    expression.  ``ret_type``: "both" (values and indices), "values" or "indices"; indices have type ``dtype``.
    """
    if is_dynamic(k):
        from ..dyn.algorithm import topk as dyn_topk

        return dyn_topk(data, k, axis, ret_type, is_ascend, dtype)
    k = constant_ints(k)
    k = k[0] if isinstance(k, list) and len(k) == 1 else k
    if not isinstance(k, (int, np.integer)):
        raise ArgumentError(f"topk: k must be one number, got {k!r}")
    call = Call(Op.get("topk"), [data], TopkAttrs(k=int(k), axis=int(axis), ret_type=ret_type, is_ascend=is_ascend, dtype=dtype))
    return TupleWrapper(call, 2) if ret_type == "both" else call


__all__ = ["TopkAttrs", "topk"]
