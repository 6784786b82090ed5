"""softmax, log_softmax and fast_softmax."""
from __future__ import annotations

from typing import Any

import numpy as np

from ....ir.attrs import INT, Attrs, Field
from ....ir.expr import RelayExpr
from ....ir.op import Op, OpPattern
from ....ir.type import Type
from ...expr import Call
from ..registry import declare
from .common import check_axis, tensor, wide


class SoftmaxAttrs(Attrs, name="relay.attrs.SoftmaxAttrs"):
    """Attributes of the softmax family."""

    __slots__ = ()
    axis = Field(INT, -1, "The axis that is normalised.")


def _relation(op: str) -> Any:
    def relation(args: tuple[Type, ...], attrs: Any, ctx: Any) -> Type | None:
        data = tensor(args[0], f"{op}, data")
        if data is not None:
            check_axis(op, attrs.axis, len(data.dims))
        return data

    return relation


def _shifted(attrs: Any, x: np.ndarray) -> np.ndarray:
    x = x.astype(wide(str(x.dtype)), copy=False)
    return x - x.max(axis=attrs.axis, keepdims=True) if x.size else x


def _softmax_numpy(attrs: Any, args: list[np.ndarray], out_type: Any) -> np.ndarray:
    with np.errstate(invalid="ignore"):
        e = np.exp(_shifted(attrs, args[0]))
        return (e / e.sum(axis=attrs.axis, keepdims=True)).astype(args[0].dtype)


def _log_softmax_numpy(attrs: Any, args: list[np.ndarray], out_type: Any) -> np.ndarray:
    with np.errstate(invalid="ignore"):
        s = _shifted(attrs, args[0])
        return (s - np.log(np.exp(s).sum(axis=attrs.axis, keepdims=True))).astype(args[0].dtype)


for _name, _rule, _doc in (("nn.softmax", _softmax_numpy, "exp(x) / sum(exp(x)) along an axis."),
                           ("nn.fast_softmax", _softmax_numpy, "softmax with a faster, less exact exponential."),
                           ("nn.log_softmax", _log_softmax_numpy, "The logarithm of softmax along an axis.")):
    declare(_name, inputs=("data",), attrs=SoftmaxAttrs, relation=_relation(_name), pattern=OpPattern.OUT_ELEMWISE_FUSABLE,
            numpy=_rule, doc=_doc, level=1)


def softmax(data: RelayExpr, axis: int = -1) -> Call:
    """exp(data) / sum(exp(data)) along ``axis``."""
    return Call(Op.get("nn.softmax"), [data], SoftmaxAttrs(axis=axis))


def fast_softmax(data: RelayExpr, axis: int = -1) -> Call:
    """:func:`softmax` with a faster, less exact exponential."""
    return Call(Op.get("nn.fast_softmax"), [data], SoftmaxAttrs(axis=axis))


def log_softmax(data: RelayExpr, axis: int = -1) -> Call:
    """The logarithm of :func:`softmax` along ``axis``."""
    return Call(Op.get("nn.log_softmax"), [data], SoftmaxAttrs(axis=axis))
