"""Adding a vector along one axis."""
from __future__ import annotations

from typing import Any

import numpy as np

from ....ir.attrs import INT, Attrs, Field
from ....ir.expr import RelayExpr
from ....ir.op import Op, OpPattern
from ....ir.type import Type
from ...expr import Call
from ..registry import declare
from .common import check_axis, expect, tensor


class BiasAddAttrs(Attrs, name="relay.attrs.BiasAddAttrs"):
    """Attributes of nn.bias_add."""

    __slots__ = ()
    axis = Field(INT, 1, "The axis along which the bias runs.")


def along(vector: np.ndarray, rank: int, axis: int) -> np.ndarray:
    """A vector shaped to broadcast along one axis of a tensor of that rank."""
    return vector.reshape([-1 if i == axis % rank else 1 for i in range(rank)])


def _relation(args: tuple[Type, ...], attrs: Any, ctx: Any) -> Type | None:
    data = tensor(args[0], "nn.bias_add, data")
    if data is None:
        return None
    axis = check_axis("nn.bias_add", attrs.axis, len(data.dims))
    expect(ctx, "nn.bias_add", "bias", args[1], (data.dims[axis],), data.dtype)
    return data


def _numpy(attrs: Any, args: list[np.ndarray], out_type: Any) -> np.ndarray:
    return args[0] + along(args[1], args[0].ndim, attrs.axis)


declare("nn.bias_add", inputs=("data", "bias"), attrs=BiasAddAttrs, relation=_relation, pattern=OpPattern.BROADCAST, numpy=_numpy,
        level=1, doc="Adds the vector bias to data along an axis.")


def bias_add(data: RelayExpr, bias: RelayExpr, axis: int = 1) -> Call:
    """Adds the vector ``bias`` to ``data`` along ``axis``."""
    return Call(Op.get("nn.bias_add"), [data, bias], BiasAddAttrs(axis=axis))
