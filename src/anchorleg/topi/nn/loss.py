"""Losses."""
from __future__ import annotations

from typing import Any

from ... import te
from ...te import tag
from ...te.tensor import Tensor
from ...tir import op as tir_op
from .common import dims


def _negative_mean(x: Tensor, y: Tensor, fn: Any, name: str) -> Tensor:
    rows, columns = dims(x)
    i, j = te.reduce_axis((0, rows), name="i"), te.reduce_axis((0, columns), name="j")
    total = te.compute((), lambda *_: te.sum(fn(x(i, j)) * y(i, j), axis=[i, j]), name=f"{name}_sum", tag=tag.COMM_REDUCE)
    return te.compute((), lambda *_: -total() / tir_op.cast(tir_op.convert(rows), x.dtype), name=name, tag=tag.ELEMWISE)


def cross_entropy(x: Tensor, y: Tensor) -> Tensor:
    """-sum(log(x) * y) / batch."""
    return _negative_mean(x, y, tir_op.log, "cross_entropy")


def cross_entropy_with_logits(x: Tensor, y: Tensor) -> Tensor:
    """-sum(x * y) / batch."""
    return _negative_mean(x, y, lambda v: v, "cross_entropy_with_logits")


def nll_loss(predictions: Tensor, targets: Tensor, weights: Tensor, reduction: str, ignore_index: int) -> Tensor:
    """The negative log likelihood of the targets: predictions (N, C, …) or (C,), targets (N, …) or (), weights (C,)."""
    shape, zero = dims(targets), tir_op.const(0, predictions.dtype)

    def weight(*i: Any) -> Any:
        t = targets(*i)
        return tir_op.if_then_else(tir_op.not_equal(t, tir_op.const(ignore_index, t.dtype)), weights(tir_op.cast(t, "int64")), zero)

    def element(*i: Any) -> Any:
        t = targets(*i)
        picked = predictions(*([i[0], t, *i[1:]] if i else [t]))
        return tir_op.if_then_else(tir_op.not_equal(t, tir_op.const(ignore_index, t.dtype)), -picked * weights(t), zero)

    each = te.compute(shape, element, name="nll_loss", tag=tag.INJECTIVE)
    if reduction == "none":
        return each
    total = _total(each)
    if reduction == "sum":
        return total
    scale = _total(te.compute(shape, weight, name="nll_weights", tag=tag.INJECTIVE))
    return te.compute((), lambda *_: total() / scale(), name="nll_mean", tag=tag.ELEMWISE)


def _total(x: Tensor) -> Tensor:
    if not x.ndim:
        return x
    ks = [te.reduce_axis((0, d), name=f"k{i}") for i, d in enumerate(dims(x))]
    return te.compute((), lambda *_: te.sum(x(*ks), axis=ks), name="total", tag=tag.COMM_REDUCE)
