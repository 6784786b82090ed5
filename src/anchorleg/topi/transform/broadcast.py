"""broadcast_to_like, collapse_sum, tile, repeat, where."""
from __future__ import annotations

from typing import Any, Sequence

from ... import te
from ... import tir
from ...te.tensor import Tensor
from ..broadcast import broadcast_indices, broadcast_shape, broadcast_to
from ..reduction import sum as reduce_sum
from ..tag import BROADCAST, INJECTIVE
from ..utils import static_int
from .reshape import reshape


def broadcast_to_like(data: Tensor, like: Tensor) -> Tensor:
    """``data`` repeated to fill the shape of ``like``."""
    return broadcast_to(data, like.shape)


def collapse_sum(data: Tensor, target_shape: Sequence[Any]) -> Tensor:
    """``data`` summed over the axes along which a tensor of ``target_shape`` would be broadcast to it."""
    lead = data.ndim - len(target_shape)
    axes = list(range(lead)) + [i + lead for i, n in enumerate(target_shape) if static_int(n) == 1 and static_int(data.shape[i + lead]) != 1]
    if not axes:
        return te.compute(data.shape, lambda *i: data(*i), name="T_collapse_sum", tag=INJECTIVE)
    total = reduce_sum(data, axes, keepdims=True)
    return reshape(total, target_shape) if lead else total


def tile(a: Tensor, reps: Sequence[int]) -> Tensor:
    """``a`` repeated ``reps`` times along each axis."""
    counts = [int(r) for r in reps]
    n = max(a.ndim, len(counts))
    sizes, counts = [1] * (n - a.ndim) + list(a.shape), [1] * (n - len(counts)) + counts
    shape = [d * r if r != 1 else d for d, r in zip(sizes, counts)]

    def element(*i: Any) -> Any:
        where = [v if r == 1 else tir.floormod(v, d) for v, d, r in zip(i, sizes, counts)]
        return a(*where[n - a.ndim:])

    return te.compute(shape, element, name="T_tile", tag=BROADCAST)


def repeat(a: Tensor, repeats: int, axis: int) -> Tensor:
    """Each element repeated ``repeats`` times along ``axis``."""
    at = int(axis) % a.ndim
    shape = [*a.shape[:at], a.shape[at] * repeats, *a.shape[at + 1:]]
    return te.compute(shape, lambda *i: a(*i[:at], tir.floordiv(i[at], max(repeats, 1)), *i[at + 1:]), name="T_repeat", tag=BROADCAST)


def where(condition: Tensor, x: Tensor, y: Tensor) -> Tensor:
    """``x`` where ``condition`` is not 0, else ``y``, all broadcast together."""
    shape = broadcast_shape(broadcast_shape(condition.shape, x.shape), y.shape)

    def element(*i: Any) -> Any:
        c, a, b = (t(*broadcast_indices(i, shape, t.shape)) for t in (condition, x, y))
        return tir.op.select(c if condition.dtype == "bool" else tir.op.not_equal(c, tir.const(0, condition.dtype)), a, b)

    return te.compute(shape, element, name="T_where", tag=BROADCAST)


__all__ = ["broadcast_to_like", "collapse_sum", "tile", "repeat", "where"]
