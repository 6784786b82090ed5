"""arange, meshgrid, shape, ndarray_size."""
from __future__ import annotations

from typing import Any, Sequence

from ... import te
from ... import tir
from ...te.tensor import Tensor
from ..tag import INJECTIVE
from ..utils import prod


def arange(start: Any, stop: Any = None, step: Any = 1, dtype: str = "float32", size: Any = None) -> Tensor:
    """The values ``start + i·step`` below ``stop``.  ``size`` gives their number, which scalar tensors as bounds leave open."""
    if stop is None:
        start, stop = 0, start
    first, last, width = (v() if isinstance(v, Tensor) else tir.convert(v) for v in (start, stop, step))
    if size is None:
        size = te.size_var("num_elem") if any(isinstance(v, Tensor) for v in (start, stop, step)) else _count(first, last, width)
    first, width = tir.op.cast(first, dtype), tir.op.cast(width, dtype)
    return te.compute((size,), lambda i: first + tir.op.cast(i, dtype) * width, name="T_arange", tag=INJECTIVE)


def _count(first: Any, last: Any, width: Any) -> Any:
    span = tir.op.cast(last, "float64") - tir.op.cast(first, "float64")
    return tir.op.maximum(tir.op.cast(tir.ceil(span / tir.op.cast(width, "float64")), "int64"), 0)


def meshgrid(a_tuple: Sequence[Tensor], indexing: str = "ij") -> list[Tensor]:
    """One grid for each vector (or scalar), whose values vary along that vector's axis; "xy" swaps the first two axes."""
    axes = list(range(len(a_tuple)))
    if indexing == "xy" and len(axes) >= 2:
        axes[:2] = 1, 0
    sizes: list[Any] = [1] * len(axes)
    for t, axis in zip(a_tuple, axes):
        sizes[axis] = t.shape[0] if t.ndim else 1
    return [_grid(t, axis, sizes) for t, axis in zip(a_tuple, axes)]


def _grid(t: Tensor, axis: int, sizes: Sequence[Any]) -> Tensor:
    return te.compute(sizes, lambda *i: t(i[axis]) if t.ndim else t(), name="T_meshgrid", tag=INJECTIVE)


def shape(array: Tensor, dtype: str = "int32") -> Tensor:
    """The shape of ``array`` as a vector."""
    def element(i: Any) -> Any:
        value = tir.const(0, "int64")
        for k, d in enumerate(array.shape):
            value = tir.op.select(tir.op.equal(i, k), d, value)
        return tir.op.cast(value, dtype)

    return te.compute((array.ndim,), element, name="T_shape", tag=INJECTIVE)


def ndarray_size(array: Tensor, dtype: str = "int32") -> Tensor:
    """The number of elements of ``array`` as a scalar."""
    return te.compute((), lambda *_: tir.op.cast(tir.convert(prod(array.shape)), dtype), name="ndarray_size", tag=INJECTIVE)


__all__ = ["arange", "meshgrid", "shape", "ndarray_size"]
