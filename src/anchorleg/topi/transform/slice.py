"""strided_slice, strided_set, slice_like."""
from __future__ import annotations

from typing import Any, Sequence

from ... import te
from ... import tir
from ...support.errors import TypeMismatchError
from ...te.tensor import Tensor
from ..tag import INJECTIVE
from ..utils import get_const_int, static_int


def axis_slice(size: int, begin: int | None, end: int | None, stride: int, slice_mode: str) -> tuple[int, int, int]:
    """(first element, step, number of elements) of a slice of an axis, by Python's rules; "size" takes ``end`` as a size."""
    if slice_mode == "size":
        first = 0 if begin is None else begin + size if begin < 0 else begin
        begin, end, stride = first, None if end is None or end < 0 else first + end, 1
    start, stop, step = slice(begin, end, stride).indices(size)
    return start, step, max(0, -(-(stop - start) // step))


def strided_slice(a: Tensor, begin: Sequence[Any], end: Sequence[Any], strides: Sequence[Any] | None = None,
                  axes: Sequence[int] | None = None, slice_mode: str = "end") -> Tensor:
    """Every ``strides``-th element from ``begin`` to ``end`` along ``axes`` (None: the first axes)."""
    starts: list[Any] = [0] * a.ndim
    steps, shape = [1] * a.ndim, list(a.shape)
    chosen = list(range(max(len(begin), len(end)))) if axes is None else [int(x) % a.ndim for x in axes]
    for k, axis in enumerate(chosen):
        b, e, s = (None if v is None or k >= len(v) or v[k] is None else int(v[k]) for v in (begin, end, strides))
        if s == 0:
            raise TypeMismatchError("strided_slice: a stride of 0")
        if static_int(shape[axis]) is None:
            raise TypeMismatchError("strided_slice: the size of a sliced axis must be known")
        starts[axis], steps[axis], shape[axis] = axis_slice(get_const_int(a.shape[axis]), b, e, s or 1, slice_mode)
    return te.compute(shape, lambda *i: a(*[_step(v, s, b) for v, s, b in zip(i, steps, starts)]), name="T_strided_slice", tag=INJECTIVE)


def _step(index: Any, stride: int, begin: Any) -> Any:
    scaled = index if stride == 1 else index * stride
    return scaled + begin


def slice_like(a: Tensor, shape_like: Tensor, axes: Sequence[int] | None = None) -> Tensor:
    """The leading part of ``a`` that is as large as ``shape_like`` along ``axes`` (None or empty: all axes both have)."""
    chosen = [int(x) % a.ndim for x in axes] if axes else range(min(a.ndim, shape_like.ndim))
    shape = list(a.shape)
    for x in chosen:
        shape[x] = shape_like.shape[x]
    return te.compute(shape, lambda *i: a(*i), name="T_slice_like", tag=INJECTIVE)


def strided_set(a: Tensor, v: Tensor, begin: Tensor, end: Tensor, strides: Tensor | None = None) -> Tensor:
    """A copy of ``a`` whose elements from ``begin`` to ``end``, by ``strides`` (vectors), are those of ``v``."""
    begins, ends, steps = (_vector(t, a.ndim) for t in (begin, end, strides))
    n = [d for d in a.shape]

    def element(*i: Any) -> Any:
        inside, where = [], []
        for k, index in enumerate(i):
            hit, at = _hit(index, n[k], begins[k], ends[k], steps[k])
            inside += hit
            where.append(tir.op.maximum(tir.op.minimum(at, v.shape[k] - 1), 0) if static_int(v.shape[k]) != 1 else 0)
        return tir.if_then_else(tir.all(*inside), v(*where), a(*i)) if inside else v(*where)

    return te.compute(a.shape, element, name="T_strided_set", tag=INJECTIVE)


def _vector(t: Tensor | None, ndim: int) -> list[Any]:
    """The entries of a vector of bounds as expressions, None for those that are missing."""
    n = 0 if t is None else get_const_int(t.shape[0])
    return [tir.op.cast(t[k], "int64") if t is not None and k < n else None for k in range(ndim)]


def _hit(index: Any, size: Any, begin: Any, end: Any, step: Any) -> tuple[list[Any], Any]:
    """Conditions for an index to lie in a slice, and its place in it."""
    if begin is None and end is None:
        return [], index
    step = tir.const(1, "int64") if step is None else step
    back = tir.op.less(step, 0)
    low, high = tir.op.select(back, -1, 0), tir.op.select(back, size - 1, size)
    first = tir.op.select(back, size - 1, 0) if begin is None else _clip(begin, size, low, high)
    last = tir.op.select(back, -1, size) if end is None else _clip(end, size, low, high)
    away = tir.op.select(back, first - index, index - first)
    width = tir.op.maximum(tir.op.select(back, -step, step), 1)
    room = tir.op.select(back, first - last, last - first)
    hit = [tir.op.greater_equal(away, 0), tir.op.less(away, room), tir.op.equal(tir.floormod(away, width), 0)]
    return hit, tir.floordiv(away, width)


def _clip(position: Any, size: Any, low: Any, high: Any) -> Any:
    front = tir.op.select(tir.op.less(position, 0), position + size, position)
    return tir.op.maximum(tir.op.minimum(front, high), low)


__all__ = ["strided_slice", "strided_set", "slice_like", "axis_slice"]
