"""dilation2d: the maximum over a window of data + weight."""
from __future__ import annotations

from typing import Any, Sequence

from ... import te
from ... import tir
from ...te.tensor import Tensor
from ...tir.data_layout import Layout
from ..elemwise import scalar_cast


def dilation2d(data: Tensor, weight: Tensor, strides: Sequence[int], padding: Sequence[int], dilations: Sequence[int],
               data_layout: str, kernel_layout: str, out_shape: Sequence[Any], out_dtype: str) -> Tensor:
    """``out[…y, x] = max over (i, j) of data[…y·s + i·d, x·s + j·d] + weight[c, i, j]``; ``padding`` (top, left, bottom, right) is zeros."""
    places = {a: Layout(data_layout).index_of(a) for a in "NCHW"}
    kernel = {a: Layout(kernel_layout).index_of(a) for a in "IHW"}
    top, left = int(padding[0]), int(padding[1])
    h, w = places["H"], places["W"]
    ki = te.reduce_axis((0, weight.shape[kernel["H"]]), "ki")
    kj = te.reduce_axis((0, weight.shape[kernel["W"]]), "kj")

    def padded(*i: Any) -> Any:
        row, column = i[h] - top, i[w] - left
        inside = tir.all(tir.op.greater_equal(row, 0), tir.op.less(row, data.shape[h]), tir.op.greater_equal(column, 0), tir.op.less(column, data.shape[w]))
        where = list(i)
        where[h], where[w] = row, column
        return tir.if_then_else(inside, data(*where), tir.const(0, data.dtype))

    shape = list(data.shape)
    shape[h], shape[w] = shape[h] + top + int(padding[2]), shape[w] + left + int(padding[3])
    source = te.compute(shape, padded, name="dilation_pad") if any(int(p) for p in padding) else data

    def element(*i: Any) -> Any:
        where, at = list(i), [None, None, None]
        where[h], where[w] = i[h] * int(strides[0]) + ki.var * int(dilations[0]), i[w] * int(strides[1]) + kj.var * int(dilations[1])
        at[kernel["I"]], at[kernel["H"]], at[kernel["W"]] = i[places["C"]], ki.var, kj.var  # type: ignore[call-overload]
        return te.max(source(*where) + scalar_cast(weight(*at), data.dtype), axis=[ki, kj])

    out = te.compute(out_shape, element, name="dilation2d", tag=f"dilation2d_{data_layout.lower()}")
    return out if out_dtype == data.dtype else te.compute(out_shape, lambda *i: scalar_cast(out(*i), out_dtype), name="T_cast", tag="elemwise")


__all__ = ["dilation2d"]
