"""Gradients of pooling by windows, one entry of the window after another, and of global averages; any rank and layout."""
from __future__ import annotations

import math
from itertools import product
from typing import Any, NamedTuple

from ....ir.expr import RelayExpr
from ....runtime.dtype import numpy_dtype
from ...expr import Call, const
from ..nn import pad
from ..nn.pooling import PoolSpec, counts, lowest, spatial
from ..nn.utils import pad_pairs
from ..tensor import equal, logical_and, logical_not, logical_or, zeros_like
from ..transform import broadcast_to_like, strided_set, strided_slice, where
from .common import Gradients, number, register_table, static_shape

_AXES = {1: "W", 2: "HW", 3: "DHW"}


class _Cut(NamedTuple):
    """A block of a tensor: the arguments of strided_slice and strided_set."""

    begin: list[int]
    end: list[int]
    strides: list[int]


class _Windows:
    """Where the entries of all windows lie in the padded data."""

    def __init__(self, call: Call, rank: int) -> None:
        attrs, data = call.attrs, call.args[0]
        self.data, self.shape, self.out = data, static_shape(call, data), static_shape(call, call)
        self.axes = spatial(PoolSpec(call.op.name, _AXES[rank]), attrs, len(self.shape))
        self.window = tuple(map(int, attrs.pool_size))
        self.steps = list(zip(map(int, attrs.strides), map(int, attrs.dilation)))
        self.before = [int(b) for b, _ in pad_pairs(attrs.padding, rank)]

    def padded(self, value: float) -> RelayExpr:
        """The data with all that windows reach around it."""
        widths = [(0, 0)] * len(self.shape)
        for axis, before, size, (stride, dilation) in zip(self.axes, self.before, self.window, self.steps):
            reach = (self.out[axis] - 1) * stride + (size - 1) * dilation + 1
            widths[axis] = (before, max(reach - before - self.shape[axis], 0))
        return pad(self.data, widths, number(value, self.data))

    def entries(self) -> list[_Cut]:
        """Of each entry of the window, in row-major order, the block of what all windows have there."""
        return [self._cut(place) for place in product(*map(range, self.window))]

    def _cut(self, place: tuple[int, ...]) -> _Cut:
        cut = _Cut([0] * len(self.out), list(self.out), [1] * len(self.out))
        for axis, at, (stride, dilation) in zip(self.axes, place, self.steps):
            cut.begin[axis], cut.strides[axis] = at * dilation, stride
            cut.end[axis] = cut.begin[axis] + (self.out[axis] - 1) * stride + 1
        return cut

    def inner(self, padded: RelayExpr) -> RelayExpr:
        """What lies inside the padding."""
        begin = [0] * len(self.shape)
        for axis, before in zip(self.axes, self.before):
            begin[axis] = before
        return strided_slice(padded, begin, [b + n for b, n in zip(begin, self.shape)])


def _add_at(total: RelayExpr, cut: _Cut, part: RelayExpr) -> RelayExpr:
    return strided_set(total, strided_slice(total, *cut) + part, *cut)


def _max_pool(rank: int) -> Any:
    def rule(call: Call, grad: RelayExpr) -> Gradients:
        """To the first entry of each window that is its maximum."""
        windows = _Windows(call, rank)
        data = windows.padded(float(lowest(numpy_dtype(call.checked_type.dtype))))
        total, zero, taken = zeros_like(data), zeros_like(grad), None
        for cut in windows.entries():
            here = equal(strided_slice(data, *cut), call)
            first = here if taken is None else logical_and(here, logical_not(taken))
            taken = here if taken is None else logical_or(taken, here)
            total = _add_at(total, cut, where(first, grad, zero))
        return [windows.inner(total)]

    return rule


def _avg_pool(rank: int) -> Any:
    def rule(call: Call, grad: RelayExpr) -> Gradients:
        """To all entries of each window alike."""
        windows = _Windows(call, rank)
        number_averaged = counts(PoolSpec(call.op.name, _AXES[rank]), call.attrs, windows.shape, windows.out)
        share = grad / const(number_averaged.astype(numpy_dtype(call.checked_type.dtype)))
        total = zeros_like(windows.padded(0))
        for cut in windows.entries():
            total = _add_at(total, cut, share)
        return [windows.inner(total)]

    return rule


def _global_avg_pool(rank: int) -> Any:
    def rule(call: Call, grad: RelayExpr) -> Gradients:
        data = call.args[0]
        shape = static_shape(call, data)
        size = math.prod(shape[a] for a in spatial(PoolSpec(call.op.name, _AXES[rank]), call.attrs, len(shape)))
        return [broadcast_to_like(grad * number(1 / size, data), data)]

    return rule


for _kind, _rule in (("max_pool", _max_pool), ("avg_pool", _avg_pool), ("global_avg_pool", _global_avg_pool)):
    register_table({f"nn.{_kind}{n}d": _rule(n) for n in _AXES})
