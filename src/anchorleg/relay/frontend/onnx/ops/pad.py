"""Padding: constant, edge, reflect, wrap; negative widths cut."""
from __future__ import annotations

from typing import Callable, Sequence

from .....ir.expr import RelayExpr
from .....support.errors import ArgumentError
from ....op.transform.create import arange
from ....op.type_relations import show
from ..context import NodeContext
from ..make import call, cast, const, expand_dims, reshape, slice_axis, where
from ..registry import op
from .index import size_of

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
    axes = None if axes is None else n.axes(axes, rank)
    value = n.like(0, x) if n.input(2) is None else reshape(n.need(2), [])
    pads = n.value(n.need(1))
    if pads is None:
        return _of_unknown_widths(n, x, n.need(1), list(range(rank)) if axes is None else axes, value)
    return pad(n, x, _pairs([int(p) for p in pads.reshape(-1)], rank, axes), value)


def _of_unknown_widths(n: NodeContext, x: RelayExpr, pads: RelayExpr, axes: Sequence[int], value: RelayExpr) -> RelayExpr:
    """``x`` padded by widths (a vector: befores, then afters) that only a running model knows: taken axis by axis from where each element comes from."""
    if n.dims(pads) != (2 * len(axes),):
        raise ArgumentError(f"pads needs {2 * len(axes)} entries, got shape {show(n.dims(pads))}")
    known = n.builder.partial.get(pads)
    (pads,) = n.settled(n.to(pads, "int64"))
    for i, axis in enumerate(axes):
        if known is not None and all(isinstance(w, int) and w == 0 for w in (known[i], known[i + len(axes)])):
            continue
        before, after = (call("take", pads, const(j, "int64"), axis=0, batch_dims=0, mode="clip") for j in (i, i + len(axes)))
        (x,) = n.settled(_padded_axis(n, x, axis, before, after, value))
    return x


def _padded_axis(n: NodeContext, x: RelayExpr, axis: int, before: RelayExpr, after: RelayExpr, value: RelayExpr) -> RelayExpr:
    """``x`` with one axis padded (or, by negative widths, cut)."""
    found, mode = size_of(n, x, axis, "int64"), n.attr("mode", "constant")
    if mode not in _SOURCES:
        raise ArgumentError(f"mode must be one of {', '.join(_SOURCES)}, got {mode!r}")
    size = const(found, "int64") if isinstance(found, int) else found
    steps = arange(call("add", call("add", before, size), after), dtype="int64")
    (places,) = n.settled(call("subtract", steps, before))
    y = call("take", x, _SOURCES[mode](places, size), axis=axis, batch_dims=0, mode="clip")
    if mode != "constant":
        return y
    inside = call("logical_and", call("greater_equal", places, const(0, "int64")), call("less", places, size))
    return where(expand_dims(inside, 1, n.rank(x) - 1 - axis), y, value)


def _reflected(places: RelayExpr, size: RelayExpr) -> RelayExpr:
    """Places counted back from both ends."""
    last = call("subtract", size, const(1, "int64"))
    period = call("maximum", call("add", last, last), const(1, "int64"))
    rest = call("floor_mod", places, period)
    return call("minimum", rest, call("subtract", call("add", last, last), rest))


# Where an element of a padded axis comes from.  Places outside are clipped by "take".
_SOURCES: dict[str, Callable[[RelayExpr, RelayExpr], RelayExpr]] = {
    "constant": lambda places, size: places, "edge": lambda places, size: places, "reflect": _reflected,
    "wrap": lambda places, size: call("floor_mod", places, size)}


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
