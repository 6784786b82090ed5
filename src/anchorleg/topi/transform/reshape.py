"""reshape, squeeze, expand_dims: the same elements in order, under other indices."""
from __future__ import annotations

from typing import Any, Sequence

from ... import te
from ...support.errors import TypeMismatchError
from ...te.tensor import Tensor
from ..tag import BROADCAST, INJECTIVE
from ..utils import equal_const_int, ravel_index, same_extent, static_int, unravel_index


def reshape_groups(old: Sequence[Any], new: Sequence[Any]) -> list[tuple[int, int, int, int]]:
    """Cuts both shapes into groups with equal numbers of elements: (begin, end) in the old and in the new shape.

    (2, 12, 5) and (2, 3, 4, 5) give 2 ↔ 2, 12 ↔ 3·4, 5 ↔ 5, so that only indices within a group need dividing.
    Dimensions that are not known end up in one group, save those that both shapes begin or end with.
    """
    head = _common(old, new)
    tail = _common(old[head:][::-1], new[head:][::-1])
    groups = [(i, i + 1, i, i + 1) for i in range(head)]
    groups += _middle(old, new, head, len(old) - tail, len(new) - tail)
    return groups + [(len(old) - i, len(old) - i + 1, len(new) - i, len(new) - i + 1) for i in range(tail, 0, -1)]


def _common(a: Sequence[Any], b: Sequence[Any]) -> int:
    n = 0
    while n < min(len(a), len(b)) and same_extent(a[n], b[n]) and not equal_const_int(a[n], 0):
        n += 1
    return n


def _middle(old: Sequence[Any], new: Sequence[Any], begin: int, old_end: int, new_end: int) -> list[tuple[int, int, int, int]]:
    sizes = [static_int(d) for d in (*old[begin:old_end], *new[begin:new_end])]
    if begin == old_end and begin == new_end:
        return []
    if any(s is None or s == 0 for s in sizes):
        return [(begin, old_end, begin, new_end)]
    groups, i, j = [], begin, begin
    while i < old_end and j < new_end:
        a, b, left, right = i + 1, j + 1, static_int(old[i]), static_int(new[j])
        while left != right:
            if left < right:  # type: ignore[operator]
                left, a = left * static_int(old[a]), a + 1  # type: ignore[operator]
            else:
                right, b = right * static_int(new[b]), b + 1  # type: ignore[operator]
        groups.append((i, a, j, b))
        i, j = a, b
    return groups + ([(i, old_end, j, new_end)] if i < old_end or j < new_end else [])


def reshape(a: Tensor, newshape: Sequence[Any], name: str = "T_reshape", tag: str = INJECTIVE) -> Tensor:
    """The elements of ``a`` in order under the shape ``newshape`` (all sizes given)."""
    newshape = tuple(newshape)
    if any(equal_const_int(d, 0) for d in newshape):
        return te.compute(newshape, lambda *i: a(*[0] * a.ndim), name=name, tag=tag)  # no element is ever computed
    groups = reshape_groups(a.shape, newshape)

    def element(*i: Any) -> Any:
        where: list[Any] = []
        for begin, end, first, last in groups:
            where += i[first:last] if last - first == end - begin == 1 else unravel_index(ravel_index(i[first:last], newshape[first:last]), a.shape[begin:end])
        return a(*where)

    return te.compute(newshape, element, name=name, tag=tag)


def squeeze(a: Tensor, axis: Any = None) -> Tensor:
    """``a`` without the axes of size 1 named by ``axis`` (an int or ints; empty: none); None removes all of them."""
    if axis is None:
        gone = {i for i, d in enumerate(a.shape) if equal_const_int(d, 1)}
    else:
        gone = {int(x) % a.ndim for x in ([axis] if isinstance(axis, int) else axis)}
    for x in gone:
        if static_int(a.shape[x]) not in (1, None):
            raise TypeMismatchError(f"squeeze: axis {x} has size {static_int(a.shape[x])}, only axes of size 1 can go")
    kept = [d for i, d in enumerate(a.shape) if i not in gone]

    def element(*i: Any) -> Any:
        rest = iter(i)
        return a(*[0 if k in gone else next(rest) for k in range(a.ndim)])

    return te.compute(kept, element, name="T_squeeze", tag=INJECTIVE)


def expand_dims(a: Tensor, axis: int, num_newaxis: int = 1) -> Tensor:
    """``a`` with ``num_newaxis`` axes of size 1 inserted at ``axis``."""
    at = axis + a.ndim + 1 if axis < 0 else axis
    shape = [*a.shape[:at], *([1] * num_newaxis), *a.shape[at:]]
    return te.compute(shape, lambda *i: a(*i[:at], *i[at + num_newaxis:]), name="T_expand_dims", tag=BROADCAST)


def expand_like(a: Tensor, shape_like: Tensor, axis: Sequence[int]) -> Tensor:
    """``a`` repeated along new axes ``axis`` so that it has the shape of ``shape_like``."""
    new = {int(x) % shape_like.ndim for x in axis}
    if not new:
        return a
    return te.compute(shape_like.shape, lambda *i: a(*[v for k, v in enumerate(i) if k not in new]), name="T_expand_like", tag=BROADCAST)


__all__ = ["reshape", "squeeze", "expand_dims", "expand_like", "reshape_groups"]
