"""Products and convolutions of 8-bit integers, four at a time: weights are packed such that the bytes that meet the same four of
the data, for as many outputs as a vector has lanes, lie side by side.
"""
from __future__ import annotations

from typing import Any, Callable

from ... import te
from ...ir.expr import PrimExpr
from ...support.errors import ArgumentError
from ...te.tensor import Tensor
from ...tir import op as T
from .common import dims, ints, pads_of, windows
from .pad import pad_axes

BYTES = 4  # that one dot product multiplies


def takes_dots(data: Tensor, weight: Tensor, out_dtype: str) -> bool:
    """Whether data and weight are bytes whose products are added up in int32: ``weight`` signed, in fours along its last axis."""
    return data.dtype in ("int8", "uint8") and weight.dtype == "int8" and out_dtype == "int32" and dims(weight)[-1] == BYTES


def _dot(data: Callable[[int], PrimExpr], weight: Callable[[int], PrimExpr], signed: bool) -> PrimExpr:
    left, right = (T.pack4x8(*(part(j) for j in range(BYTES))) for part in (data, weight))
    return T.dot4(left, right, signed)


def dense_pack_dot(data: Tensor, weight: Tensor, units: int | None = None) -> Tensor:
    """``data`` (…, in) times a weight packed as (ceil(units / n), in / 4, n, 4), in int32: (…, units)."""
    *lead, inner = dims(data)
    chunks, words, block, _ = dims(weight)
    if inner != words * BYTES:
        raise ArgumentError(f"dense_pack: data of {inner} and a weight of {words * BYTES} inputs do not fit")
    signed, k = data.dtype == "int8", te.reduce_axis((0, words), name="k")

    def element(*i: Any) -> PrimExpr:
        *rows, unit = i
        return te.sum(_dot(lambda j: data(*rows, k * BYTES + j), lambda j: weight(unit // block, k, unit % block, j), signed), axis=k)

    return te.compute((*lead, chunks * block if units is None else units), element, name="T_dense_pack", tag="dense_pack")


def conv2d_NCHWc_dot(data: Tensor, kernel: Tensor, stride: Any, padding: Any, dilation: Any, groups: int = 1) -> Tensor:
    """Convolution of packed data (n, ic / icb, h, w, icb) with weights (oc / ocb, ic / groups / icb, kh, kw, icb / 4, ocb, 4), in int32.

    The result is (n, oc / ocb, oh, ow, ocb).  Padding is with 0.
    """
    n, chunks, h, w, icb = dims(data)
    oc_chunks, per_group, kh, kw, words, ocb, _ = dims(kernel)
    if words * BYTES != icb:
        raise ArgumentError(f"conv2d_NCHWc: data is packed by {icb} channels, the weight by {words * BYTES}")
    (sh, sw), (dh, dw), pads = ints(stride, 2), ints(dilation, 2), pads_of(padding, 2)
    space = [windows(h, pads[0], kh, dh, sh), windows(w, pads[1], kw, dw, sw)]
    padded, signed, together = pad_axes(data, (2, 3), pads), data.dtype == "int8", oc_chunks // groups
    ko, ry, rx, ki = (te.reduce_axis((0, e), name=a) for e, a in ((per_group, "ic_outer"), (kh, "kh"), (kw, "kw"), (words, "ic_inner")))

    def element(b: Any, oc: Any, y: Any, x: Any, lane: Any) -> PrimExpr:
        block = ko if groups == 1 else oc // together * per_group + ko
        return te.sum(_dot(lambda j: padded(b, block, y * sh + ry * dh, x * sw + rx * dw, ki * BYTES + j),
                           lambda j: kernel(oc, ko, ry, rx, ki, lane, j), signed), axis=[ko, ry, rx, ki])

    return te.compute((n, oc_chunks, *space, ocb), element, name="conv2d_NCHWc", tag="conv2d_NCHWc")


__all__ = ["BYTES", "conv2d_NCHWc_dot", "dense_pack_dot", "takes_dots"]
