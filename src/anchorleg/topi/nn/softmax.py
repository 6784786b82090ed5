"""softmax and log_softmax."""
from __future__ import annotations

from typing import Any

from ... import te
from ...te.tensor import Tensor
from ...tir import op as tir_op
from .common import dims


def _rows(x: Tensor, axis: int) -> tuple[list[Any], Any]:
    shape = list(dims(x))
    return shape[:axis] + shape[axis + 1:], shape[axis]


def _put(index: Any, axis: int, k: Any) -> list[Any]:
    return [*index[:axis], k, *index[axis:]]


def _drop(index: Any, axis: int) -> list[Any]:
    return [*index[:axis], *index[axis + 1:]]


def _widen(dtype: str) -> str:
    return "float32" if dtype in ("float16", "bfloat16") else dtype


def _maxima(x: Tensor, axis: int) -> Tensor:
    rest, extent = _rows(x, axis)
    k = te.reduce_axis((0, extent), name="k")
    wide = _widen(x.dtype)
    return te.compute(rest, lambda *i: te.max(x(*_put(i, axis, k)).astype(wide), axis=k), name="T_softmax_maxelem")


def softmax(x: Tensor, axis: int = -1, exp: Any = tir_op.exp) -> Tensor:
    """exp(x - max) / sum(exp(x - max)) along ``axis``."""
    axis = axis % x.ndim
    rest, extent = _rows(x, axis)
    wide = _widen(x.dtype)
    top = _maxima(x, axis)
    e = te.compute(x.shape, lambda *i: exp(x(*i).astype(wide) - top(*_drop(i, axis))), name="T_softmax_exp")
    k = te.reduce_axis((0, extent), name="k")
    total = te.compute(rest, lambda *i: te.sum(e(*_put(i, axis, k)), axis=k), name="T_softmax_expsum")
    return te.compute(x.shape, lambda *i: (e(*i) / total(*_drop(i, axis))).astype(x.dtype), name="T_softmax_norm",
                      tag="softmax_output", attrs={"axis": axis})


def fast_softmax(x: Tensor, axis: int = -1) -> Tensor:
    """:func:`softmax`; exponentials are vectorised polynomials in either."""
    return softmax(x, axis)


def log_softmax(x: Tensor, axis: int = -1) -> Tensor:
    """x - max - log(sum(exp(x - max))) along ``axis``."""
    axis = axis % x.ndim
    rest, extent = _rows(x, axis)
    wide = _widen(x.dtype)
    top = _maxima(x, axis)
    k = te.reduce_axis((0, extent), name="k")
    total = te.compute(rest, lambda *i: te.sum(tir_op.exp(x(*_put(i, axis, k)).astype(wide) - top(*i)), axis=k), name="T_softmax_expsum")
    return te.compute(x.shape, lambda *i: (x(*i).astype(wide) - top(*_drop(i, axis)) - tir_op.log(total(*_drop(i, axis)))).astype(x.dtype),
                      name="T_log_softmax_norm", tag="log_softmax_output", attrs={"axis": axis})
