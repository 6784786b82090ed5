"""Pooling over windows and over whole planes."""
from __future__ import annotations

import math
from typing import Any, Sequence

import numpy as np

from .....ir.expr import RelayExpr
from .....support.errors import UnsupportedOpError
from ....op.dyn import transform as dyn
from ..context import NodeContext
from ..make import call, concat, const, reduce, reshape, slice_axis, stack
from ..registry import op
from .conv import padded, per_axis, spatial_rank
from .elementwise import dtype_limits, is_float

_LAYOUT = {1: "NCW", 2: "NCHW", 3: "NCDHW"}


class _Window:
    """The window of a pooling node."""

    def __init__(self, n: NodeContext, x: RelayExpr, fill: RelayExpr | None = None) -> None:
        """``data`` is ``x``, padded with ``fill`` (or zeros) where its sizes, which are not known, decide about the padding."""
        self.rank = spatial_rank(n, x)
        self.size = list(n.attr("kernel_shape"))
        self.strides = per_axis(n, "strides", self.rank)
        self.dilation = per_axis(n, "dilations", self.rank)
        self.data, self.pads = padded(n, x, self.size, self.strides, self.dilation, fill)
        self.dims = n.dims(self.data)[2:]
        self.ceil = bool(n.attr("ceil_mode", 0))

    def attrs(self) -> dict[str, Any]:
        """The attributes of a Relay pooling operator."""
        return {"pool_size": self.size, "strides": self.strides, "dilation": self.dilation, "padding": self.pads,
                "layout": _LAYOUT[self.rank], "ceil_mode": self.ceil}

    def out(self) -> list[int]:
        """The extents of the result."""
        if not all(isinstance(d, int) for d in self.dims):
            raise UnsupportedOpError("the size of the data must be known: give the sizes of the model's inputs")
        return [self._extent(i) for i in range(self.rank)]

    def _extent(self, i: int) -> int:
        before, stride = self.pads[i], self.strides[i]
        room = self.dims[i] + before + self.pads[i + self.rank] - ((self.size[i] - 1) * self.dilation[i] + 1)
        count = (-(-room // stride) if self.ceil else room // stride) + 1
        return count - 1 if self.ceil and (count - 1) * stride >= self.dims[i] + before else count

    def covering(self) -> list[tuple[int, int]]:
        """Padding per axis that reaches to the end of the last window."""
        ends = [(o - 1) * s + (k - 1) * e + 1 for o, s, k, e in zip(self.out(), self.strides, self.size, self.dilation)]
        return [(b, max(0, end - d - b)) for b, end, d in zip(self.pads, ends, self.dims)]


def _lowest(dtype: str) -> float | int:
    return -math.inf if is_float(dtype) else dtype_limits(dtype)[0]


@op("MaxPool")
def max_pool(n: NodeContext) -> list[RelayExpr] | RelayExpr:
    """The largest element of each window, and where it is."""
    x = n.need(0)
    window = _Window(n, x, n.like(_lowest(n.dtype(x)), x))
    if n.wants(1):
        return _max_pool_with_places(n, x, window)
    return call(f"nn.max_pool{window.rank}d", window.data, **window.attrs())


def _taps(n: NodeContext, x: RelayExpr, window: _Window) -> list[RelayExpr]:
    """The data padded and shifted to each entry of the window."""
    fill = n.like(_lowest(n.dtype(x)), x)
    wide = call("nn.pad", x, fill, pad_width=((0, 0), (0, 0), *window.covering()), pad_mode="constant")
    out, axes = window.out(), tuple(range(2, 2 + window.rank))
    found = []
    for tap in np.ndindex(*window.size):
        begin = [t * d for t, d in zip(tap, window.dilation)]
        end = [b + (o - 1) * s + 1 for b, o, s in zip(begin, out, window.strides)]
        found.append(call("strided_slice", wide, begin=begin, end=end, strides=window.strides, axes=axes, slice_mode="end"))
    return found


def _max_pool_with_places(n: NodeContext, x: RelayExpr, window: _Window) -> list[RelayExpr]:
    batch, channels, *dims = n.static_dims(x)
    taps = stack(_taps(n, x, window), 0)
    which = n.to(call("argmax", taps, axis=(0,), keepdims=False, exclude=False, select_last_index=False), "int64")
    steps = _steps(dims, bool(n.attr("storage_order", 0)))
    offsets = [sum(t * d * s for t, d, s in zip(tap, window.dilation, steps)) for tap in np.ndindex(*window.size)]
    base = np.arange(batch * channels).reshape(batch, channels, *[1] * window.rank) * math.prod(dims)
    for i, o in enumerate(window.out()):
        first = (np.arange(o) * window.strides[i] - window.pads[i]) * steps[i]
        base = base + first.reshape([-1 if j == i + 2 else 1 for j in range(window.rank + 2)])
    places = call("add", call("take", const(offsets, "int64"), which, axis=0, batch_dims=0, mode="clip"), const(base, "int64"))
    return [reduce("max", taps, [0], False), places]


def _steps(dims: Sequence[int], column_major: bool) -> list[int]:
    if column_major:
        return [math.prod(dims[:i]) for i in range(len(dims))]
    return [math.prod(dims[i + 1:]) for i in range(len(dims))]


@op("AveragePool")
def average_pool(n: NodeContext) -> RelayExpr:
    """The mean of each window."""
    return averages(n, n.need(0))


def averages(n: NodeContext, x: RelayExpr) -> RelayExpr:
    """The mean of each window of ``x`` that the node's attributes describe."""
    window = _Window(n, x)
    whole = bool(n.attr("count_include_pad", 0))
    means = call(f"nn.avg_pool{window.rank}d", window.data, **window.attrs(), count_include_pad=whole)
    if whole or window.data is x:
        return means
    sizes = slice_axis(call("shape_of", x, dtype="int64"), 0, 2, np.iinfo(np.int64).max)
    ones = dyn.broadcast_to(n.like(1, x), concat([const([1, 1], "int64"), sizes], 0))
    covered = call(f"nn.avg_pool{window.rank}d", _Window(n, ones).data, **window.attrs(), count_include_pad=True)  # the part of a window that is data
    return call("divide", means, covered)


@op("LpPool")
def lp_pool(n: NodeContext) -> RelayExpr:
    """The p-norm of each window."""
    x, p = n.need(0), n.attr("p", 2)
    window = _Window(n, x)
    powers = _power(n, window.data, p)
    if any(window.pads) or window.ceil:
        powers = call("nn.pad", powers, n.like(0, x), pad_width=((0, 0), (0, 0), *window.covering()), pad_mode="constant")
    attrs = {**window.attrs(), "padding": [0] * 2 * window.rank, "ceil_mode": False}
    mean = call(f"nn.avg_pool{window.rank}d", powers, **attrs, count_include_pad=True)
    return _root(n, call("multiply", mean, n.like(math.prod(window.size), x)), p)


def _power(n: NodeContext, x: RelayExpr, p: float) -> RelayExpr:
    if p == 2:
        return call("multiply", x, x)
    return call("abs", x) if p == 1 else call("power", call("abs", x), n.like(p, x))


def _root(n: NodeContext, x: RelayExpr, p: float) -> RelayExpr:
    if p == 2:
        return call("sqrt", x)
    return x if p == 1 else call("power", x, n.like(1 / p, x))


def _global(name: str, x: RelayExpr, rank: int) -> RelayExpr:
    if rank in _LAYOUT:
        return call(f"nn.global_{name}_pool{rank}d", x, layout=_LAYOUT[rank])
    return reduce({"avg": "mean", "max": "max"}[name], x, list(range(2, rank + 2)), True)


@op("GlobalAveragePool")
def global_average_pool(n: NodeContext) -> RelayExpr:
    """The mean of each plane."""
    x = n.need(0)
    rank = n.rank(x) - 2
    return _global("avg", x, rank) if rank == 2 else reduce("mean", x, list(range(2, rank + 2)), True)


@op("GlobalMaxPool")
def global_max_pool(n: NodeContext) -> RelayExpr:
    """The largest element of each plane."""
    x = n.need(0)
    rank = n.rank(x) - 2
    return _global("max", x, rank) if rank == 2 else reduce("max", x, list(range(2, rank + 2)), True)


@op("GlobalLpPool")
def global_lp_pool(n: NodeContext) -> RelayExpr:
    """The p-norm of each plane."""
    x, p = n.need(0), n.attr("p", 2)
    return _root(n, reduce("sum", _power(n, x, p), list(range(2, n.rank(x))), True), p)


@op("MaxUnpool")
def max_unpool(n: NodeContext) -> RelayExpr:
    """Elements put back to where a pooling took them from, zeros elsewhere."""
    x, places = n.needs(2)
    dims, rank = n.static_dims(x), n.rank(x) - 2
    strides, size = per_axis(n, "strides", rank), list(n.attr("kernel_shape"))
    pads = n.attr("pads", None) or [0] * 2 * rank
    natural = [(d - 1) * s + k - pads[i] - pads[i + rank] for i, (d, s, k) in enumerate(zip(dims[2:], strides, size))]
    wanted = n.known_ints(2, "output_shape") or [*dims[:2], *natural]
    full, inner = math.prod(wanted), [*dims[:2], *natural]
    if wanted != inner:
        places = _moved(places, inner, wanted)
    flat = call("full", n.like(0, x), shape=(full,), dtype=n.dtype(x))
    filled = call("scatter_elements", flat, reshape(places, [-1]), reshape(x, [-1]), axis=0, reduction="update")
    return reshape(filled, wanted)


def _moved(places: RelayExpr, inner: Sequence[int], wanted: Sequence[int]) -> RelayExpr:
    """Places in a tensor of shape ``inner`` as places in the larger one."""
    total = None
    for i, extent in enumerate(inner):
        step, target = math.prod(inner[i + 1:]), math.prod(wanted[i + 1:])
        at = call("floor_mod", call("floor_divide", places, const(step, "int64")), const(extent, "int64"))
        term = call("multiply", at, const(target, "int64"))
        total = term if total is None else call("add", total, term)
    return total  # type: ignore[return-value]


