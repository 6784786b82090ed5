"""Vectorised numpy kernels behind the numpy rules: products, padding, windows."""
from __future__ import annotations

import itertools
import math
from typing import Any, Iterator, Sequence

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from .common import is_float, np_dtype

_EXACT = 2.0 ** 53  # integers below this are exact in float64


def product(a: np.ndarray, b: np.ndarray, out_dtype: str) -> np.ndarray:
    """``a @ b`` with the arithmetic of ``out_dtype``: narrow floats accumulate in float32, integers wrap around."""
    target = np_dtype(out_dtype)
    if is_float(out_dtype):
        work = np.promote_types(target, np.float32) if target.itemsize < 4 else target
        return np.matmul(a.astype(work, copy=False), b.astype(work, copy=False)).astype(target, copy=False)
    if _fits_float64(a, b):
        return _wrap(np.matmul(a.astype(np.float64), b.astype(np.float64)).astype(np.int64), target)
    return _wrap(np.matmul(a.astype(np.int64), b.astype(np.int64)), target)


def _fits_float64(a: np.ndarray, b: np.ndarray) -> bool:
    if a.size == 0 or b.size == 0:
        return True
    top = [float(max(abs(int(x.max())), abs(int(x.min())))) for x in (a, b)]
    return top[0] * top[1] * a.shape[-1] < _EXACT


def _wrap(value: np.ndarray, target: np.dtype) -> np.ndarray:
    with np.errstate(over="ignore"):
        return value.astype(target)


def pad(x: np.ndarray, widths: Sequence[tuple[int, int]], value: Any = 0) -> np.ndarray:
    """``x`` with a border of ``value``; negative widths cut."""
    if not any(b or a for b, a in widths):
        return x
    cut = tuple(slice(max(0, -b), n - max(0, -a)) for (b, a), n in zip(widths, x.shape))
    x = x[cut]
    grow = [(max(0, b), max(0, a)) for b, a in widths]
    out = np.full([n + b + a for n, (b, a) in zip(x.shape, grow)], value, dtype=x.dtype)
    out[tuple(slice(b, b + n) for n, (b, _) in zip(x.shape, grow))] = x
    return out


def windows(x: np.ndarray, axes: Sequence[int], size: Sequence[int], strides: Sequence[int], dilation: Sequence[int]) -> np.ndarray:
    """All windows over ``axes``: the shape of ``x`` with window counts in place, then the window's own axes at the end."""
    reach = [(k - 1) * d + 1 for k, d in zip(size, dilation)]
    view = sliding_window_view(x, reach, axis=tuple(axes))
    pick: list[slice] = [slice(None)] * view.ndim
    for axis, s in zip(axes, strides):
        pick[axis] = slice(None, None, s)
    for i, d in enumerate(dilation):
        pick[x.ndim + i] = slice(None, None, d)
    return view[tuple(pick)]


def convolve(x: np.ndarray, w: np.ndarray, strides: Sequence[int], pads: Sequence[tuple[int, int]], dilation: Sequence[int],
             groups: int, out_dtype: str) -> np.ndarray:
    """Convolution of ``x`` (N, C, spatial…) with ``w`` (O, C / groups, kernel…): im2col and one product per group."""
    x = pad(x, [(0, 0), (0, 0), *pads])
    n, c = x.shape[:2]
    o, per_group = w.shape[:2]
    rank = x.ndim - 2
    view = windows(x, range(2, x.ndim), w.shape[2:], strides, dilation)
    out_space = view.shape[2:2 + rank]
    if per_group == 1 and groups > 1:
        return _depthwise(view, w, rank, groups, out_dtype)
    cols = view.reshape(n, groups, per_group, *view.shape[2:])
    taps = range(3 + rank, cols.ndim)
    cols = cols.transpose(0, 1, 2, *taps, *range(3, 3 + rank)).reshape(
        n, groups, per_group * math.prod(w.shape[2:]), math.prod(out_space))
    return product(w.reshape(groups, o // groups, cols.shape[2]), cols, out_dtype).reshape(n, o, *out_space)


def _depthwise(view: np.ndarray, w: np.ndarray, rank: int, groups: int, out_dtype: str) -> np.ndarray:
    work = np.dtype("float32") if is_float(out_dtype) and np_dtype(out_dtype).itemsize < 4 else np_dtype(out_dtype)
    multiplier = w.shape[0] // groups
    n = view.shape[0]
    space = view.shape[2:2 + rank]
    out = np.zeros((n, groups, multiplier, *space), work)
    taps = w.reshape(groups, multiplier, *w.shape[2:]).astype(work)
    lead = (slice(None),) * (2 + rank)
    for tap in itertools.product(*map(range, w.shape[2:])):
        weight = taps[(slice(None), slice(None), *tap)].reshape(groups, multiplier, *(1,) * rank)
        out += view[(*lead, *tap)][:, :, None].astype(work) * weight
    return out.reshape(n, w.shape[0], *space).astype(np_dtype(out_dtype), copy=False)


def convolve_transposed(x: np.ndarray, w: np.ndarray, strides: Sequence[int], pads: Sequence[tuple[int, int]], dilation: Sequence[int],
                        output_padding: Sequence[int], groups: int, out_dtype: str) -> np.ndarray:
    """The transpose of a convolution: ``x`` (N, C, spatial…), ``w`` (C, O / groups, kernel…)."""
    n, c = x.shape[:2]
    per_group, kernel, space = w.shape[1], w.shape[2:], x.shape[2:]
    work = "float32" if is_float(out_dtype) and np_dtype(out_dtype).itemsize < 4 else out_dtype
    full = [s * (i - 1) + d * (k - 1) + 1 + p for s, i, d, k, p in zip(strides, space, dilation, kernel, output_padding)]
    out = np.zeros((n, groups, per_group, *full), np_dtype(work))
    cols = x.reshape(n, groups, c // groups, math.prod(space))
    taps = w.reshape(groups, c // groups, per_group, *kernel)
    for tap in itertools.product(*map(range, kernel)):
        weight = taps[(slice(None), slice(None), slice(None), *tap)].transpose(0, 2, 1)
        part = product(weight, cols, work).reshape(n, groups, per_group, *space)
        at = tuple(slice(t * d, t * d + s * (i - 1) + 1, s) for t, d, s, i in zip(tap, dilation, strides, space))
        out[(slice(None), slice(None), slice(None), *at)] += part
    out = out.reshape(n, groups * per_group, *full)
    return pad(out, [(0, 0), (0, 0), *[(-b, -a) for b, a in pads]]).astype(np_dtype(out_dtype), copy=False)


def spans(size: int, parts: int) -> Iterator[tuple[int, int]]:
    """The (start, stop) of each of ``parts`` windows that cover ``size`` entries, as adaptive pooling cuts them."""
    for i in range(parts):
        yield i * size // parts, -(-(i + 1) * size // parts)
