"""Padding: constant, edge, reflect, wrap; negative widths cut."""
from __future__ import annotations

from typing import Sequence

from .....ir.expr import RelayExpr
from .....support.errors import ArgumentError
from ..context import NodeContext
from ..make import call, cast, const, reshape, slice_axis
from ..registry import op

Widths = Sequence[tuple[int, int]]


@op("Pad")
def pad_v1(n: NodeContext) -> RelayExpr:
    """Widths are attributes."""
    rank = n.rank(n.need(0))
    return pad(n, n.need(0), _pairs(n.attr("pads" if n.version >= 2 else "paddings"), rank, None), n.like(n.attr("value", 0.0), n.need(0)))


@op("Pad", since=11)
def pad_v11(n: NodeContext) -> RelayExpr:
    """Widths are an input, and so may be the axes they are for."""
    x, rank = n.need(0), n.rank(n.need(0))
    axes = n.known_ints(3, "axes")
    widths = _pairs(n.known_ints(1, "pads") or [], rank, None if axes is None else n.axes(axes, rank))
    value = n.input(2)
    return pad(n, x, widths, n.like(0, x) if value is None else reshape(value, []))


def _pairs(pads: Sequence[int], rank: int, axes: Sequence[int] | None) -> Widths:
    axes = list(range(rank)) if axes is None else axes
    if len(pads) != 2 * len(axes):
        raise ArgumentError(f"pads needs {2 * len(axes)} entries, got {list(pads)}")
    widths = [(0, 0)] * rank
    for i, axis in enumerate(axes):
        widths[axis] = (int(pads[i]), int(pads[i + len(axes)]))
    return widths


def pad(n: NodeContext, x: RelayExpr, widths: Widths, value: RelayExpr) -> RelayExpr:
    """``x`` padded in the node's mode."""
    mode = n.attr("mode", "constant")
    if mode not in ("constant", "edge", "reflect", "wrap"):
        raise ArgumentError(f"mode must be constant, edge, reflect or wrap, got {mode!r}")
    x = _cut(n, x, widths)
    widths = [(max(b, 0), max(a, 0)) for b, a in widths]
    if not any(b or a for b, a in widths):
        return x
    if mode == "wrap":
        return _wrap(n, x, widths)
    if n.dtype(x) == "bool":
        return cast(call("nn.pad", cast(x, "uint8"), cast(value, "uint8"), pad_width=widths, pad_mode=mode), "bool")
    return call("nn.pad", x, value, pad_width=tuple(widths), pad_mode=mode)


def _cut(n: NodeContext, x: RelayExpr, widths: Widths) -> RelayExpr:
    """``x`` with the parts that negative widths take away removed."""
    for axis, (before, after) in enumerate(widths):
        if before < 0 or after < 0:
            x = slice_axis(x, axis, max(-before, 0), after if after < 0 else 2**63 - 1)
    return x


def _wrap(n: NodeContext, x: RelayExpr, widths: Widths) -> RelayExpr:
    for axis, (before, after) in enumerate(widths):
        size = n.static_dims(x)[axis]
        if before or after:
            places = [i % size for i in range(-before, size + after)]
            x = call("take", x, const(places, "int64"), axis=axis, batch_dims=0, mode="fast")
    return x


__all__ = ["pad"]
