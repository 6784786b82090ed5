"""Matrix products."""
from __future__ import annotations

from typing import Any

from ... import te
from ...ir.expr import PrimExpr
from ...te.tensor import Tensor
from ..broadcast import broadcast_dim, broadcast_indices
from .common import dims


def matmul(tensor_a: Tensor, tensor_b: Tensor, bias: Tensor | None = None, out_dtype: str | None = None, transpose_a: bool = False,
           transpose_b: bool = False, name: str = "T_matmul", tag: str = "matmul") -> Tensor:
    """``tensor_a`` (…, m, k) times the matrix ``tensor_b`` (k, n), each transposed on request; ``bias`` (n,) is added."""
    *lead, last = dims(tensor_a)
    if transpose_a:
        lead[-1], last = last, lead[-1]
    units = dims(tensor_b)[0 if transpose_b else 1]
    acc = out_dtype or tensor_a.dtype
    k = te.reduce_axis((0, last), name="k")

    def element(*index: Any) -> PrimExpr:
        *rows, j = index
        at = [*rows[:-1], k, rows[-1]] if transpose_a else [*rows, k]
        x, w = tensor_a(*at), tensor_b(*((j, k) if transpose_b else (k, j)))
        return te.sum(x.astype(acc) * w.astype(acc), axis=k)

    out = te.compute((*lead, units), element, name=name, tag=tag)
    if bias is None:
        return out
    return te.compute(out.shape, lambda *i: out(*i) + bias(i[-1]).astype(acc), tag="broadcast")


def dense(data: Tensor, weight: Tensor, bias: Tensor | None = None, out_dtype: str | None = None) -> Tensor:
    """``data`` (…, in) times the transpose of ``weight`` (units, in); ``bias`` (units,) is added."""
    return matmul(data, weight, bias, out_dtype, False, True, "T_dense", "dense")


def dense_pack(data: Tensor, weight: Tensor, out_dtype: str | None = None, units: int | None = None) -> Tensor:
    """``data`` (…, in) times a weight packed as (ceil(units / n), in, n): (…, units).

    ``units`` defaults to all the weight holds; with fewer, what fills up the last block is left out.
    """
    *lead, inner = dims(data)
    chunks, _, block = dims(weight)
    acc = out_dtype or data.dtype
    k = te.reduce_axis((0, inner), name="k")
    return te.compute((*lead, chunks * block if units is None else units), lambda *i: te.sum(
        data(*i[:-1], k).astype(acc) * weight(i[-1] // block, k, i[-1] % block).astype(acc), axis=k), name="T_dense_pack", tag="dense_pack")


def dense_pack4(data: Tensor, weight: Tensor, out_dtype: str | None = None, units: int | None = None) -> Tensor:
    """:func:`dense_pack` for weights packed twice: (units / n, in / c, n, c)."""
    *lead, inner = dims(data)
    chunks, _, block, step = dims(weight)
    acc = out_dtype or data.dtype
    k = te.reduce_axis((0, inner), name="k")
    return te.compute((*lead, chunks * block if units is None else units), lambda *i: te.sum(
        data(*i[:-1], k).astype(acc) * weight(i[-1] // block, k // step, i[-1] % block, k % step).astype(acc), axis=k),
        name="T_dense_pack", tag="dense_pack4")


def batch_matmul(tensor_a: Tensor, tensor_b: Tensor, oshape: Any = None, out_dtype: str | None = None, transpose_a: bool = False,
                 transpose_b: bool = True) -> Tensor:
    """The product of each pair of matrices; a batch of 1 is repeated."""
    (xb, xi, xk), (yb, _, yj) = _operand(tensor_a, transpose_a), _operand(tensor_b, transpose_b)
    batch = broadcast_dim(xb, yb)
    acc = out_dtype or tensor_a.dtype
    k = te.reduce_axis((0, xk), name="k")

    def element(b: Any, i: Any, j: Any) -> PrimExpr:
        (ab,), (bb,) = (broadcast_indices([b], [batch], [d]) for d in (xb, yb))
        x = tensor_a(*((ab, k, i) if transpose_a else (ab, i, k)))
        y = tensor_b(*((bb, j, k) if transpose_b else (bb, k, j)))
        return te.sum(x.astype(acc) * y.astype(acc), axis=k)

    return te.compute(tuple(oshape) if oshape is not None else (batch, xi, yj), element, name="T_batch_matmul", tag="batch_matmul")


def _operand(t: Tensor, transposed: bool) -> tuple[Any, Any, Any]:
    b, r, c = dims(t)
    return (b, c, r) if transposed else (b, r, c)
