"""Fourier transforms, as products with matrices of cosines and sines."""
from __future__ import annotations

import numpy as np

from .....ir.expr import RelayExpr
from .....support.errors import ArgumentError, UnsupportedOpError
from ..context import NodeContext
from ..make import call, const, expand_dims, reshape, slice_axis, squeeze, stack, transpose
from ..registry import op
from .linear import matmul

_LARGEST = 1 << 25  # elements of a matrix


def _matrices(n: NodeContext, size: int, taken: int, bins: int, inverse: bool) -> tuple[np.ndarray, np.ndarray]:
    """(cosines, sines) of shape (taken, bins): the transform of ``size`` points of which only ``taken`` are not zero."""
    if taken * bins > _LARGEST:
        raise UnsupportedOpError(f"a Fourier transform of {size} points is too large")
    turns = np.outer(np.arange(taken), np.arange(bins)) % size / size
    angle = (2 if inverse else -2) * np.pi * turns
    factor = 1 / size if inverse else 1
    return np.cos(angle) * factor, np.sin(angle) * factor


def transform(n: NodeContext, x: RelayExpr, size: int, onesided: bool, inverse: bool) -> RelayExpr:
    """The transform along the last axis but one; the last axis holds real parts, and imaginary parts if there are any.

    The result's last axis holds both, or real parts only for an inverse one-sided transform.
    """
    *_, length, parts = n.static_dims(x)
    x = slice_axis(x, n.rank(x) - 2, 0, size) if size < length else x
    if inverse and onesided:
        return _inverse_onesided(n, x, size, min(length, size))
    bins = size // 2 + 1 if onesided else size
    cos, sin = _matrices(n, size, min(length, size), bins, inverse)
    last = n.rank(x) - 1
    real = squeeze(slice_axis(x, last, 0, 1), [last])
    re, im = (matmul(n, real, n.like(m, x)) for m in (cos, sin))
    if parts == 2:
        imaginary = squeeze(slice_axis(x, last, 1, 2), [last])
        re = call("subtract", re, matmul(n, imaginary, n.like(sin, x)))
        im = call("add", im, matmul(n, imaginary, n.like(cos, x)))
    return stack([re, im], last)


def _inverse_onesided(n: NodeContext, x: RelayExpr, size: int, bins: int) -> RelayExpr:
    cos, sin = _matrices(n, size, bins, size, True)
    twice = np.array([1 if k == 0 or 2 * k == size else 2 for k in range(bins)])[:, None]
    last = n.rank(x) - 1
    re, im = (squeeze(slice_axis(x, last, i, i + 1), [last]) for i in (0, 1))
    y = call("subtract", matmul(n, re, n.like(cos * twice, x)), matmul(n, im, n.like(sin * twice, x)))
    return expand_dims(y, last)


@op("DFT", since=17)
def dft(n: NodeContext) -> RelayExpr:
    """The discrete Fourier transform along an axis."""
    x = n.need(0)
    rank = n.rank(x)
    axis = n.attr("axis", 1) if n.version < 20 else int(n.scalar(2, -2, "axis"))
    axis = n.axis(axis, rank)
    if axis == rank - 1:
        raise ArgumentError("the axis must not be the last one, which holds real and imaginary parts")
    onesided, inverse = bool(n.attr("onesided", 0)), bool(n.attr("inverse", 0))
    length = n.static_dims(x)[axis]
    size = int(n.scalar(1, 2 * (length - 1) if onesided and inverse else length, "dft_length"))
    order = [i for i in range(rank) if i not in (axis, rank - 1)] + [axis, rank - 1]
    y = transform(n, transpose(x, order), size, onesided, inverse)
    return transpose(y, list(np.argsort(order)))


@op("STFT", since=17)
def stft(n: NodeContext) -> RelayExpr:
    """The Fourier transforms of overlapping windows."""
    signal, window = n.need(0), n.input(2)
    batch, total, *rest = n.static_dims(signal)
    hop = int(n.scalar(1, 1, "frame_step"))
    size = int(n.scalar(3, n.static_dims(window)[0] if window is not None else 0, "frame_length"))
    if size <= 0 or hop <= 0:
        raise ArgumentError(f"frame_length and frame_step must be positive, got {size} and {hop}")
    parts = rest[0] if rest else 1
    frames = (total - size) // hop + 1
    places = np.arange(frames)[:, None] * hop + np.arange(size)
    taken = call("take", reshape(signal, [batch, total, parts]), const(places, "int64"), axis=1, batch_dims=0, mode="fast")
    if window is not None:
        taken = call("multiply", taken, reshape(window, [size, 1]))
    return transform(n, taken, size, bool(n.attr("onesided", 1)), False)


__all__ = ["transform"]
