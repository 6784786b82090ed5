"""Correlation, deformable convolution, convolution by Winograd's filtering, products with sparse matrices."""
from __future__ import annotations

from typing import Any, Sequence

import numpy as np

from ... import te
from ...ir.expr import PrimExpr
from ...te import tag
from ...te.tensor import Tensor
from ...tir import op as tir_op
from ...tir.data_layout import BijectiveLayout, Layout
from .common import dims, ints, pads_of, windows
from .pad import pad_axes
from .winograd_util import winograd_transform_arrays


def correlation_nchw(data1: Tensor, data2: Tensor, kernel_size: int, max_displacement: int, stride1: int, stride2: int, padding: Any,
                     is_multiply: bool) -> Tensor:
    """How well each patch of ``data1`` agrees with the displaced patches of ``data2``."""
    pads = pads_of(padding, 2)
    a, b = pad_axes(data1, (2, 3), pads), pad_axes(data2, (2, 3), pads)
    n, c, h, w = dims(a)
    radius = max_displacement // stride2
    side, border = 2 * radius + 1, max_displacement + (kernel_size - 1) // 2
    oh, ow = ((e - 2 * border + stride1 - 1) // stride1 for e in (h, w))
    rc, ry, rx = te.reduce_axis((0, c), "rc"), te.reduce_axis((0, kernel_size), "ry"), te.reduce_axis((0, kernel_size), "rx")

    def element(i: Any, q: Any, y: Any, x: Any) -> PrimExpr:
        y1, x1 = y * stride1 + max_displacement + ry, x * stride1 + max_displacement + rx
        u = a(i, rc, y1, x1)
        v = b(i, rc, y1 + (q // side - radius) * stride2, x1 + (q % side - radius) * stride2)
        return te.sum(u * v if is_multiply else tir_op.abs(u - v), axis=[rc, ry, rx])

    total = te.compute((n, side * side, oh, ow), element, name="correlation_sum", tag="correlation_nchw")
    return te.compute(total.shape, lambda *i: total(*i) / tir_op.const(kernel_size * kernel_size * c, data1.dtype), name="correlation",
                      tag=tag.ELEMWISE)


def deformable_conv2d(data: Tensor, offset: Tensor, kernel: Tensor, strides: Any, padding: Any, dilation: Any, deformable_groups: int,
                      groups: int, data_layout: str = "NCHW", kernel_layout: str = "OIHW", out_layout: str = "",
                      out_dtype: str = "") -> Tensor:
    """A convolution whose taps read, bilinearly, at positions moved by ``offset``."""
    to_data, to_kernel = BijectiveLayout(data_layout, "NCHW"), BijectiveLayout(kernel_layout, "OIHW")
    to_out = BijectiveLayout(out_layout or data_layout, "NCHW")
    n, c, h, w = to_data.forward_shape(dims(data))
    o, per_group, kh, kw = to_kernel.forward_shape(dims(kernel))
    (sh, sw), (dh, dw), pads = ints(strides, 2), ints(dilation, 2), pads_of(padding, 2)
    oh, ow = windows(h, pads[0], kh, dh, sh), windows(w, pads[1], kw, dw, sw)
    part = c // deformable_groups

    def sample(i: Any, ch: Any, p: Any, q: Any, y: Any, x: Any) -> PrimExpr:
        tap = ((ch // part) * (kh * kw) + p * kw + q) * 2
        shift = [offset(*to_data.backward_index([i, tap + d, y, x])) for d in (0, 1)]
        at = [tir_op.cast(base, data.dtype) + s for base, s in ((y * sh - pads[0][0] + p * dh, shift[0]), (x * sw - pads[1][0] + q * dw, shift[1]))]
        return _bilinear(lambda yy, xx: data(*to_data.backward_index([i, ch, yy, xx])), at[0], at[1], h, w, data.dtype)

    cols = te.compute((n, c, kh, kw, oh, ow), sample, name="data_deform")
    rc, ry, rx = te.reduce_axis((0, per_group), "rc"), te.reduce_axis((0, kh), "ry"), te.reduce_axis((0, kw), "rx")
    acc = out_dtype or data.dtype

    def element(*index: Any) -> PrimExpr:
        i, oc, y, x = to_out.forward_index(index)
        ch = rc if groups == 1 else oc // (o // groups) * per_group + rc
        return te.sum(cols(i, ch, ry, rx, y, x).astype(acc) * kernel(*to_kernel.backward_index([oc, rc, ry, rx])).astype(acc),
                      axis=[rc, ry, rx])

    return te.compute(to_out.backward_shape([n, o, oh, ow]), element, name="deformable_conv2d", tag="deformable_conv2d")


def _bilinear(load: Any, y: Any, x: Any, h: Any, w: Any, dtype: str) -> PrimExpr:
    y0, x0 = tir_op.floor(y), tir_op.floor(x)
    fy, fx = y - y0, x - x0
    iy, ix = tir_op.cast(y0, "int64"), tir_op.cast(x0, "int64")
    one, zero, total = tir_op.const(1, dtype), tir_op.const(0, dtype), None
    for dy, wy in ((0, one - fy), (1, fy)):
        for dx, wx in ((0, one - fx), (1, fx)):
            yy, xx = iy + dy, ix + dx
            term = tir_op.if_then_else(tir_op.all(yy >= 0, yy < h, xx >= 0, xx < w), load(yy, xx), zero) * (wy * wx)
            total = term if total is None else total + term
    return total


def _matrix(values: np.ndarray, name: str, dtype: str) -> Any:
    """A small constant matrix as a function of its indices: a chain of selections that folds when they are constants."""
    from ...tir.expr import Select

    rows, columns = values.shape

    def element(i: Any, j: Any) -> PrimExpr:
        total = tir_op.const(0, dtype)
        for r in range(rows):
            for c in range(columns):
                total = Select(tir_op.all(tir_op.equal(i % rows, r), tir_op.equal(j % columns, c)), tir_op.const(float(values[r, c]), dtype), total)
        return total

    return te.compute((rows, columns), element, name=name, tag="const_matrix")


def conv2d_winograd_weight_transform(kernel: Tensor, tile_size: int) -> Tensor:
    """A weight (O, I, kh, kw) as (tile + kh - 1, tile + kw - 1, O, I)."""
    o, i, kh, kw = dims(kernel)
    gh = _matrix(winograd_transform_arrays(tile_size, kh)[2], "G", kernel.dtype)
    gw = _matrix(winograd_transform_arrays(tile_size, kw)[2], "G", kernel.dtype) if kw != kh else gh
    ry, rx = te.reduce_axis((0, kh), "ry"), te.reduce_axis((0, kw), "rx")
    return te.compute((tile_size + kh - 1, tile_size + kw - 1, o, i), lambda a, b, oc, ic: te.sum(
        kernel(oc, ic, ry, rx) * (gh(a, ry) * gw(b, rx)), axis=[ry, rx]), name="transform_weight", tag="winograd_weight_transform")


def conv2d_winograd_without_weight_transform(data: Tensor, weight: Tensor, tile_size: int, kernel_size: Sequence[int], padding: Any,
                                             data_layout: str = "NCHW", out_layout: str = "", out_dtype: str = "") -> Tensor:
    """A convolution of stride 1 with a transformed weight (α, α, O, I), tile by tile."""
    to_data, to_out = BijectiveLayout(data_layout, "NCHW"), BijectiveLayout(out_layout or data_layout, "NCHW")
    n, c, h, w = to_data.forward_shape(dims(data))
    (kh, kw), pads, m = ints(kernel_size, 2), pads_of(padding, 2), tile_size
    ah, aw, o, _ = dims(weight)
    oh, ow = windows(h, pads[0], kh, 1, 1), windows(w, pads[1], kw, 1, 1)
    th, tw = (oh + m - 1) // m, (ow + m - 1) // m
    reach = [(p[0], (t - 1) * m + a - p[0] - e) for p, t, a, e in zip(pads, (th, tw), (ah, aw), (h, w))]
    padded = pad_axes(data, [Layout(data_layout).index_of(a) for a in "HW"], reach)
    at_h, bh, _ = (_matrix(v, nm, data.dtype) for v, nm in zip(winograd_transform_arrays(m, kh), ("A", "B", "G")))
    at_w, bw, _ = (_matrix(v, nm, data.dtype) for v, nm in zip(winograd_transform_arrays(m, kw), ("A", "B", "G")))
    ry, rx = te.reduce_axis((0, ah), "ry"), te.reduce_axis((0, aw), "rx")
    v = te.compute((ah, aw, c, n * th * tw), lambda a, b, ch, p: te.sum(padded(*to_data.backward_index(
        [p // (th * tw), ch, p // tw % th * m + ry, p % tw * m + rx])) * (bh(ry, a) * bw(rx, b)), axis=[ry, rx]), name="data_pack")
    rc = te.reduce_axis((0, c), "rc")
    product = te.compute((ah, aw, o, n * th * tw), lambda a, b, oc, p: te.sum(weight(a, b, oc, rc) * v(a, b, rc, p), axis=rc), name="bgemm")
    sy, sx = te.reduce_axis((0, ah), "sy"), te.reduce_axis((0, aw), "sx")
    acc = out_dtype or data.dtype

    def element(*index: Any) -> PrimExpr:
        i, oc, y, x = to_out.forward_index(index)
        p = (i * th + y // m) * tw + x // m
        return te.sum((product(sy, sx, oc, p) * (at_h(y % m, sy) * at_w(x % m, sx))).astype(acc), axis=[sy, sx])

    return te.compute(to_out.backward_shape([n, o, oh, ow]), element, name="conv2d_winograd", tag="conv2d_winograd")


def sparse_dense(dense_data: Tensor, sparse_data: Tensor, sparse_indices: Tensor, sparse_indptr: Tensor, sparse_lhs: bool = False) -> Tensor:
    """A dense matrix times the transpose of a CSR or BSR one (or, with ``sparse_lhs``, the sparse one times the dense's transpose)."""
    m, _ = dims(dense_data)
    blocks = dims(sparse_indptr)[0] - 1
    bs_r, bs_c = dims(sparse_data)[1:] if sparse_data.ndim == 3 else (1, 1)

    def value(row: Any, sample: Any) -> PrimExpr:
        block, r = row // bs_r if bs_r != 1 else row, row % bs_r
        start = tir_op.cast(sparse_indptr(block), "int64")
        stop = tir_op.cast(sparse_indptr(block + 1), "int64")
        at, column = start + k // bs_c, k % bs_c
        w = sparse_data(at, r, column) if sparse_data.ndim == 3 else sparse_data(at)
        x = dense_data(sample, tir_op.cast(sparse_indices(at), "int64") * bs_c + column)
        return te.sum(tir_op.if_then_else(at < stop, w * x, tir_op.const(0, dense_data.dtype)), axis=k)

    k = te.reduce_axis((0, dims(sparse_data)[0] * bs_c), name="k")
    if sparse_lhs:
        return te.compute((blocks * bs_r, m), lambda i, j: value(i, j), name="sparse_dense", tag="sparse_dense")
    return te.compute((m, blocks * bs_r), lambda i, j: value(j, i), name="sparse_dense", tag="sparse_dense")


def sparse_add(dense_data: Tensor, sparse_data: Tensor, sparse_indices: Tensor, sparse_indptr: Tensor) -> Tensor:
    """A dense matrix plus a CSR one."""
    k = te.reduce_axis((0, dims(sparse_data)[0]), name="k")

    def element(i: Any, j: Any) -> PrimExpr:
        inside = tir_op.all(tir_op.cast(sparse_indptr(i), "int64") <= k, k < tir_op.cast(sparse_indptr(i + 1), "int64"),
                            tir_op.equal(tir_op.cast(sparse_indices(k), "int64"), j))
        return te.sum(tir_op.if_then_else(inside, sparse_data(k), tir_op.const(0, dense_data.dtype)), axis=k)

    total = te.compute(dense_data.shape, element, name="sparse_sum", tag=tag.COMM_REDUCE)
    return te.compute(dense_data.shape, lambda *i: dense_data(*i) + total(*i), name="sparse_add", tag=tag.ELEMWISE)


def sparse_transpose(sparse_data: Tensor, sparse_indices: Tensor, sparse_indptr: Tensor) -> list[Tensor]:
    """[data, indices, indptr] of the transpose of a square CSR matrix: a stable sort by column, by counting."""
    count, rows = dims(sparse_data)[0], dims(sparse_indptr)[0] - 1
    i, r = te.reduce_axis((0, count), name="i"), te.reduce_axis((0, rows), name="r")
    column, start = sparse_indices, sparse_indptr

    def before(j: Any) -> PrimExpr:
        earlier = tir_op.logical_or(column(i) < column(j), tir_op.logical_and(tir_op.equal(column(i), column(j)), tir_op.less(i.var, j)))
        return te.sum(tir_op.cast(earlier, "int64"), axis=i)

    place = te.compute((count,), before, name="place")
    row = te.compute((count,), lambda j: te.sum(tir_op.cast(tir_op.cast(start(r.var + 1), "int64") <= j, "int64"), axis=r), name="row")

    def gather(value: Any, dtype: str, name: str) -> Tensor:
        k = te.reduce_axis((0, count), name="k")
        return te.compute((count,), lambda p: te.sum(tir_op.if_then_else(tir_op.equal(place(k), p), value(k), tir_op.const(0, dtype)), axis=k),
                          name=name)

    m = te.reduce_axis((0, count), name="m")
    starts = te.compute((rows + 1,), lambda c: te.sum(tir_op.cast(tir_op.cast(column(m), "int64") < c, start.dtype), axis=m), name="starts")
    return [gather(lambda k: sparse_data(k), sparse_data.dtype, "data"),
            gather(lambda k: tir_op.cast(row(k), column.dtype), column.dtype, "indices"), starts]
