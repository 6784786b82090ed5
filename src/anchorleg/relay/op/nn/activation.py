"""Element-wise activations: relu, leaky_relu, prelu."""
from __future__ import annotations

from typing import Any

import numpy as np

from ....ir.attrs import FLOAT, INT, Attrs, Field
from ....ir.expr import RelayExpr
from ....ir.op import Op, OpPattern
from ....ir.type import Type
from ...expr import Call
from ..registry import declare
from .bias_add import along
from .common import check_axis, expect, identity_relation, tensor


class LeakyReluAttrs(Attrs, name="relay.attrs.LeakyReluAttrs"):
    """Attributes of nn.leaky_relu."""

    __slots__ = ()
    alpha = Field(FLOAT, 0.25, "Slope for negative values.")


class PReluAttrs(Attrs, name="relay.attrs.PReluAttrs"):
    """Attributes of nn.prelu."""

    __slots__ = ()
    axis = Field(INT, 1, "The axis along which the slopes run.")


def _relu_numpy(attrs: Any, args: list[np.ndarray], out_type: Any) -> np.ndarray:
    return np.maximum(args[0], args[0].dtype.type(0))


def _leaky_numpy(attrs: Any, args: list[np.ndarray], out_type: Any) -> np.ndarray:
    x = args[0]
    return np.where(x > 0, x, (x * x.dtype.type(attrs.alpha)).astype(x.dtype))


def _prelu_relation(args: tuple[Type, ...], attrs: Any, ctx: Any) -> Type | None:
    data = tensor(args[0], "nn.prelu, data")
    if data is None:
        return None
    axis = check_axis("nn.prelu", attrs.axis, len(data.dims))
    expect(ctx, "nn.prelu", "alpha", args[1], (data.dims[axis],), data.dtype)
    return data


def _prelu_numpy(attrs: Any, args: list[np.ndarray], out_type: Any) -> np.ndarray:
    x = args[0]
    return np.where(x > 0, x, x * along(args[1], x.ndim, attrs.axis))


declare("nn.relu", inputs=("data",), relation=identity_relation, pattern=OpPattern.ELEMWISE, numpy=_relu_numpy, level=1,
        doc="max(data, 0); NaN stays NaN.")
declare("nn.leaky_relu", inputs=("data",), attrs=LeakyReluAttrs, relation=identity_relation, pattern=OpPattern.ELEMWISE,
        numpy=_leaky_numpy, level=3, doc="data where positive, else alpha * data.")
declare("nn.prelu", inputs=("data", "alpha"), attrs=PReluAttrs, relation=_prelu_relation, pattern=OpPattern.BROADCAST,
        numpy=_prelu_numpy, level=3, doc="data where positive, else alpha * data with one alpha per entry of an axis.")


def relu(data: RelayExpr) -> Call:
    """max(data, 0)."""
    return Call(Op.get("nn.relu"), [data])


def leaky_relu(data: RelayExpr, alpha: float = 0.01) -> Call:
    """``data`` where positive, else ``alpha * data``."""
    return Call(Op.get("nn.leaky_relu"), [data], LeakyReluAttrs(alpha=alpha))


def prelu(data: RelayExpr, alpha: RelayExpr, axis: int = 1) -> Call:
    """``data`` where positive, else ``alpha * data``, with the vector ``alpha`` along ``axis``."""
    return Call(Op.get("nn.prelu"), [data, alpha], PReluAttrs(axis=axis))
