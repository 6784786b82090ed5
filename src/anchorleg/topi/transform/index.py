"""take, gather, gather_nd, adv_index, one_hot, unravel_index."""
from __future__ import annotations

from typing import Any, Sequence

from ... import te
from ... import tir
from ...support.errors import ArgumentError
from ...te.tensor import Tensor
from ..broadcast import broadcast_indices, broadcast_shape
from ..tag import INJECTIVE
from ..utils import get_const_int, prod, unravel_index as unravel


def as_index(value: Any) -> Any:
    """An element of an index tensor in the type of indices."""
    return tir.op.cast(value, "int64")


def from_end(index: Any, size: Any) -> Any:
    """An index that, when negative, counts from the end."""
    index = as_index(index)
    return tir.op.select(tir.op.less(index, 0), index + size, index)


def bounded(index: Any, size: Any, mode: str) -> Any:
    """An index made to lie in ``[0, size)``: "clip" takes the nearest, "wrap" counts around; "fast" trusts it."""
    index = as_index(index)
    if mode == "clip":
        return tir.op.maximum(tir.op.minimum(index, size - 1), 0)
    if mode == "wrap":
        return tir.floormod(index, size)
    if mode == "fast":
        return index
    raise ArgumentError(f"take: mode must be clip, wrap or fast, got {mode!r}")


def take(a: Tensor, indices: Tensor, axis: int | None = None, batch_dims: int = 0, mode: str = "clip") -> Tensor:
    """Elements (``axis`` None: of the flattened ``a``) or slices of ``a`` along ``axis``, by ``indices``."""
    if axis is None:
        size = prod(a.shape)
        return te.compute(indices.shape, lambda *i: a(*unravel(bounded(indices(*i), size, mode), a.shape)), name="T_take", tag=INJECTIVE)
    at = int(axis) % a.ndim
    batch = int(batch_dims) + (indices.ndim if batch_dims < 0 else 0)
    shape = [*a.shape[:at], *indices.shape[batch:], *a.shape[at + 1:]]
    picked = indices.ndim - batch

    def element(*i: Any) -> Any:
        index = bounded(indices(*i[:batch], *i[at:at + picked]), a.shape[at], mode)
        return a(*i[:at], index, *i[at + picked:])

    return te.compute(shape, element, name="T_take", tag=INJECTIVE)


def gather(data: Tensor, axis: int, indices: Tensor) -> Tensor:
    """``out[i, j, k] = data[i, indices[i, j, k], k]`` for ``axis`` 1; a negative index counts from the end."""
    at = int(axis) % data.ndim

    def element(*i: Any) -> Any:
        return data(*i[:at], from_end(indices(*i), data.shape[at]), *i[at + 1:])

    return te.compute(indices.shape, element, name="T_gather", tag=INJECTIVE)


def gather_nd(a: Tensor, indices: Tensor, batch_dims: int = 0) -> Tensor:
    """``out[y…, x…] = a[indices[0, y…], …, indices[M-1, y…], x…]`` after ``batch_dims`` dimensions that go together."""
    depth, outer = get_const_int(indices.shape[0]), indices.ndim - 1
    shape = [*indices.shape[1:], *a.shape[batch_dims + depth:]]

    def element(*i: Any) -> Any:
        where = [from_end(indices(k, *i[:outer]), a.shape[batch_dims + k]) for k in range(depth)]
        return a(*i[:batch_dims], *where, *i[outer:])

    return te.compute(shape, element, name="T_gather_nd", tag=INJECTIVE)


def adv_index(data: Tensor, indices: Sequence[Tensor]) -> Tensor:
    """``data[i0, i1, …]`` with index tensors that are broadcast together."""
    shape: list[Any] = []
    for t in indices:
        shape = broadcast_shape(shape, t.shape)
    n = len(shape)

    def element(*i: Any) -> Any:
        where = [from_end(t(*broadcast_indices(i[:n], shape, t.shape)), data.shape[k]) for k, t in enumerate(indices)]
        return data(*where, *i[n:])

    return te.compute([*shape, *data.shape[len(indices):]], element, name="advanced_index", tag=INJECTIVE)


def one_hot(indices: Tensor, on_value: Any, off_value: Any, depth: int, axis: int, dtype: str) -> Tensor:
    """``on_value`` where the new axis of size ``depth`` equals the index, else ``off_value`` (scalar expressions or tensors)."""
    at = int(axis) % (indices.ndim + 1)
    on, off = (tir.op.cast(v() if isinstance(v, Tensor) else v, dtype) for v in (on_value, off_value))
    shape = [*indices.shape[:at], int(depth), *indices.shape[at:]]

    def element(*i: Any) -> Any:
        return tir.op.select(tir.op.equal(as_index(indices(*i[:at], *i[at + 1:])), i[at]), on, off)

    return te.compute(shape, element, name="T_one_hot", tag=INJECTIVE)


def unravel_index(indices: Tensor, shape: Tensor) -> Tensor:
    """Flat indices as index tuples, along a new first axis, of a tensor whose shape is the vector ``shape``."""
    rank = get_const_int(shape.shape[0])

    def element(*i: Any) -> Any:
        rest, value = as_index(indices(*i[1:])), tir.const(0, "int64")
        for k in range(rank - 1, -1, -1):
            size = tir.op.maximum(as_index(shape(k)), 1)
            value = tir.op.select(tir.op.equal(i[0], k), tir.floormod(rest, size) if k else rest, value)
            rest = tir.floordiv(rest, size)
        return tir.op.cast(value, indices.dtype)

    return te.compute([rank, *indices.shape], element, name="T_unravel", tag=INJECTIVE)


__all__ = ["take", "gather", "gather_nd", "adv_index", "one_hot", "unravel_index", "as_index", "from_end", "bounded"]
