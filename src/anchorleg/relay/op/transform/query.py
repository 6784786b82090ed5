"""Operators whose result tells about a tensor: its shape, its size, where it is not zero."""
from __future__ import annotations

from typing import Any

import numpy as np

from ....ir.attrs import Attrs, Field
from ....ir.expr import Any as AnyDim, RelayExpr
from ....ir.op import Op, OpPattern
from ....ir.type import TensorType, Type
from ...expr import Call
from ..attrs_common import OPT_DTYPE, ShapeOfAttrs
from ..registry import declare
from .common import tensor


class NdarraySizeAttrs(Attrs, name="relay.attrs.NdarraySizeAttrs"):
    """Attributes of ndarray_size."""

    dtype = Field(OPT_DTYPE, "int32", "The result's data type.")


def _shape_of_rel(args: tuple[Type, ...], attrs: ShapeOfAttrs, ctx: Any) -> Type | None:
    data = tensor(args[0], "data")
    return data and TensorType((len(data.dims),), attrs.dtype or "int32")


def _shape_of_numpy(attrs: ShapeOfAttrs, args: list[np.ndarray], out_type: Type) -> np.ndarray:
    return np.array(args[0].shape, np.int64)


def _ndarray_size_rel(args: tuple[Type, ...], attrs: NdarraySizeAttrs, ctx: Any) -> Type | None:
    data = tensor(args[0], "data")
    return data and TensorType((), attrs.dtype or "int32")


def _ndarray_size_numpy(attrs: NdarraySizeAttrs, args: list[np.ndarray], out_type: Type) -> np.ndarray:
    return np.array(args[0].size, np.int64)


def _argwhere_rel(args: tuple[Type, ...], attrs: Any, ctx: Any) -> Type | None:
    data = tensor(args[0], "condition")
    return data and TensorType((AnyDim(), len(data.dims)), "int32")


def _argwhere_numpy(attrs: Any, args: list[np.ndarray], out_type: Type) -> np.ndarray:
    return np.argwhere(args[0])


declare("shape_of", attrs=ShapeOfAttrs, relation=_shape_of_rel, pattern=OpPattern.INJECTIVE, numpy=_shape_of_numpy, level=10,
        doc="The shape of a tensor, as a vector.")
declare("ndarray_size", attrs=NdarraySizeAttrs, relation=_ndarray_size_rel, pattern=OpPattern.INJECTIVE,
        numpy=_ndarray_size_numpy, level=10, doc="The number of elements of a tensor, as a scalar.")
declare("argwhere", inputs=("condition",), relation=_argwhere_rel, pattern=OpPattern.OPAQUE, numpy=_argwhere_numpy, level=10,
        doc="The index tuples of the elements that are not 0, in row-major order.")


def shape_of(data: RelayExpr, dtype: str = "int32") -> Call:
    """The shape of ``data`` as a vector of ``dtype``."""
    return Call(Op.get("shape_of"), [data], ShapeOfAttrs(dtype=dtype))


def ndarray_size(data: RelayExpr, dtype: str = "int32") -> Call:
    """The number of elements of ``data`` as a scalar of ``dtype``."""
    return Call(Op.get("ndarray_size"), [data], NdarraySizeAttrs(dtype=dtype))


def argwhere(condition: RelayExpr) -> Call:
    """The index tuples, one a row (int32), of the elements of ``condition`` that are not 0."""
    return Call(Op.get("argwhere"), [condition])


__all__ = ["NdarraySizeAttrs", "shape_of", "ndarray_size", "argwhere"]
