"""Element-wise operators of neural networks: relu, leaky_relu, prelu, bias_add, scale_shift."""
from __future__ import annotations

from typing import Any

from ... import te
from ...te import tag
from ...te.tensor import Tensor
from ...tir import op as tir_op


def relu(x: Tensor) -> Tensor:
    """max(x, 0); NaN stays NaN."""
    return te.compute(x.shape, lambda *i: tir_op.maximum(x(*i), tir_op.const(0, x.dtype)), name="T_relu", tag=tag.ELEMWISE)


def leaky_relu(x: Tensor, alpha: float) -> Tensor:
    """x where positive, else alpha * x."""
    zero = tir_op.const(0, x.dtype)
    return te.compute(x.shape, lambda *i: te_select(x(*i) > zero, x(*i), x(*i) * tir_op.const(alpha, x.dtype)), name="T_leaky_relu",
                      tag=tag.ELEMWISE)


def te_select(condition: Any, a: Any, b: Any) -> Any:
    """Both sides are evaluated; cheaper than a branch where neither can fault."""
    from ...tir.expr import Select

    return Select(condition, a, b)


def prelu(x: Tensor, slope: Tensor, axis: int = 1) -> Tensor:
    """x where positive, else slope * x with one slope per entry of ``axis``."""
    axis, zero = axis % x.ndim, tir_op.const(0, x.dtype)
    return te.compute(x.shape, lambda *i: te_select(x(*i) > zero, x(*i), x(*i) * slope(i[axis])), name="T_prelu", tag=tag.BROADCAST)


def bias_add(data: Tensor, bias: Tensor, axis: int = 1) -> Tensor:
    """Adds a vector along ``axis``."""
    axis = axis % data.ndim
    return te.compute(data.shape, lambda *i: data(*i) + bias(i[axis]), name="T_bias_add", tag=tag.BROADCAST)


def scale_shift_nchw(Input: Tensor, Scale: Tensor, Shift: Tensor) -> Tensor:
    """Input * Scale + Shift with one scale and shift per channel (axis 1)."""
    return te.compute(Input.shape, lambda b, c, i, j: Input(b, c, i, j) * Scale(c) + Shift(c), name="ScaleShift", tag=tag.BROADCAST)
