"""Gradients of matrix products and of adding a bias."""
from __future__ import annotations

from typing import Any, Callable

from ....ir.expr import RelayExpr
from ...expr import Call
from ..nn import batch_matmul, dense, matmul
from ..reduce import sum as total
from ..transform import collapse_sum_like, reshape, transpose
from .common import Gradients, register_table

_Product = Callable[..., RelayExpr]


def _factors(product: _Product, a: RelayExpr, b: RelayExpr, grad: RelayExpr, flip_a: bool, flip_b: bool) -> tuple[RelayExpr, RelayExpr]:
    """For y = A B with A = a or its transpose and B likewise: dA = g Bᵀ and dB = Aᵀ g, transposed where the factor was."""
    da = product(b, grad, transpose_a=flip_b, transpose_b=True) if flip_a else product(grad, b, transpose_a=False, transpose_b=not flip_b)
    db = product(grad, a, transpose_a=True, transpose_b=flip_a) if flip_b else product(a, grad, transpose_a=not flip_a, transpose_b=False)
    return da, db


def _from_product(product: _Product) -> Any:
    def rule(call: Call, grad: RelayExpr) -> Gradients:
        a, b = call.args
        found = _factors(product, a, b, grad, bool(call.attrs.transpose_a), bool(call.attrs.transpose_b))
        return [collapse_sum_like(g, x) for g, x in zip(found, (a, b))]

    return rule


def _dense(call: Call, grad: RelayExpr) -> Gradients:
    """y = x Wᵀ over the last axis; leading axes of x are rows."""
    data, weight = call.args
    rows = reshape(grad, (-1, int(weight.checked_type.shape[0])))
    flat = reshape(data, (-1, int(weight.checked_type.shape[1])))
    return [dense(grad, transpose(weight)), dense(transpose(rows), transpose(flat))]


def _bias_add(call: Call, grad: RelayExpr) -> Gradients:
    return [grad, total(grad, call.attrs.axis, keepdims=False, exclude=True)]


register_table({"nn.dense": _dense, "nn.matmul": _from_product(matmul), "nn.batch_matmul": _from_product(batch_matmul), "nn.bias_add": _bias_add})
