"""Losses: cross_entropy, cross_entropy_with_logits, nll_loss."""
from __future__ import annotations

from typing import Any

import numpy as np

from ....ir.attrs import INT, STR, Attrs, Field
from ....ir.expr import RelayExpr
from ....ir.op import Op, OpPattern
from ....ir.type import TensorType, Type
from ....support.errors import TypeMismatchError
from ...expr import Call
from ..registry import declare
from .common import check_rank, expect, is_float, known, shown, tensor


class NLLLossAttrs(Attrs, name="relay.attrs.NLLLossAttrs"):
    """Attributes of nn.nll_loss."""

    reduction = Field(STR, "mean", "none, mean or sum.")
    ignore_index = Field(INT, doc="The target that does not count.")


def _entropy_relation(op: str) -> Any:
    def relation(args: tuple[Type, ...], attrs: Any, ctx: Any) -> Type | None:
        x, y = tensor(args[0], f"{op}, predictions"), tensor(args[1], f"{op}, targets")
        if x is None or y is None:
            return None
        check_rank(op, x, 2, "predictions")
        expect(ctx, op, "targets", y, x.dims, x.dtype)
        return TensorType((), x.dtype)

    return relation


def _entropy_numpy(attrs: Any, args: list[np.ndarray], out_type: Any) -> np.ndarray:
    return -(np.log(args[0]) * args[1]).sum() / args[0].dtype.type(args[0].shape[0])


def _logits_numpy(attrs: Any, args: list[np.ndarray], out_type: Any) -> np.ndarray:
    return -(args[0] * args[1]).sum() / args[0].dtype.type(args[0].shape[0])


def _nll_relation(args: tuple[Type, ...], attrs: Any, ctx: Any) -> Type | None:
    op = "nn.nll_loss"
    found = [tensor(t, f"{op}, {n}") for t, n in zip(args, ("predictions", "targets", "weights"))]
    if any(t is None for t in found):
        return None
    predictions, targets, weights = found
    if len(predictions.dims) != len(targets.dims) + 1:
        raise TypeMismatchError(f"{op}: predictions {shown(predictions.dims)} must have one axis (classes) more than targets {shown(targets.dims)}")
    if not is_float(predictions.dtype) or not targets.dtype.startswith("int"):
        raise TypeMismatchError(f"{op}: expected float predictions and int targets, got {predictions.dtype} and {targets.dtype}")
    classes = predictions.dims[1] if len(targets.dims) else predictions.dims[0]
    expect(ctx, op, "weights", weights, (classes,), predictions.dtype)
    rest = (predictions.dims[0], *predictions.dims[2:]) if len(targets.dims) else ()
    if any(a != b for a, b in zip(rest, targets.dims) if known(a, b)):
        raise TypeMismatchError(f"{op}: predictions {shown(predictions.dims)} and targets {shown(targets.dims)} do not fit")
    if attrs.reduction not in ("none", "mean", "sum"):
        raise TypeMismatchError(f"{op}: reduction must be none, mean or sum, got {attrs.reduction!r}")
    return TensorType(targets.dims if attrs.reduction == "none" else (), predictions.dtype)


def _nll_numpy(attrs: Any, args: list[np.ndarray], out_type: Any) -> np.ndarray:
    predictions, targets, weights = args
    counted = targets != attrs.ignore_index
    index = np.where(counted, targets, 0)
    axis = 1 if targets.ndim else 0
    picked = np.take_along_axis(predictions, np.expand_dims(index, axis), axis=axis).squeeze(axis)
    weight = np.where(counted, weights[index], 0).astype(predictions.dtype)
    loss = -picked * weight
    if attrs.reduction == "none":
        return loss
    return loss.sum() / weight.sum() if attrs.reduction == "mean" else loss.sum()


declare("nn.cross_entropy", inputs=("x", "y"), relation=_entropy_relation("nn.cross_entropy"), numpy=_entropy_numpy, level=10,
        doc="-sum(log(x) * y) / batch.")
declare("nn.cross_entropy_with_logits", inputs=("x", "y"), relation=_entropy_relation("nn.cross_entropy_with_logits"),
        numpy=_logits_numpy, level=10, doc="-sum(x * y) / batch, for x that is a logarithm already.")
declare("nn.nll_loss", inputs=("predictions", "targets", "weights"), attrs=NLLLossAttrs, relation=_nll_relation,
        pattern=OpPattern.OUT_ELEMWISE_FUSABLE, numpy=_nll_numpy, level=10,
        doc="The negative log likelihood of the target classes, weighted by class.")


def cross_entropy(predictions: RelayExpr, targets: RelayExpr) -> Call:
    """-sum(log(predictions) * targets) / batch: a scalar."""
    return Call(Op.get("nn.cross_entropy"), [predictions, targets])


def cross_entropy_with_logits(predictions: RelayExpr, targets: RelayExpr) -> Call:
    """-sum(predictions * targets) / batch: a scalar."""
    return Call(Op.get("nn.cross_entropy_with_logits"), [predictions, targets])


def nll_loss(predictions: RelayExpr, targets: RelayExpr, weights: RelayExpr, reduction: str = "mean", ignore_index: int = -100) -> Call:
    """The negative log likelihood: predictions (N, classes, …), int targets (N, …), one weight per class."""
    return Call(Op.get("nn.nll_loss"), [predictions, targets, weights], NLLLossAttrs(reduction=reduction, ignore_index=ignore_index))
