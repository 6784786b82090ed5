"""concatenate, stack, split."""
from __future__ import annotations

from typing import Any, Sequence

from ... import te
from ... import tir
from ...support.errors import TypeMismatchError
from ...te.tensor import Tensor
from ..tag import INJECTIVE
from ..utils import get_const_int


def _pick(index: Any, bounds: Sequence[Any], values: Sequence[Any]) -> Any:
    """``values[k]`` for the ``k`` with ``bounds[k] <= index < bounds[k + 1]``, by halving, so that no element asks many times."""
    if len(values) == 1:
        return values[0]
    half = len(values) // 2
    lower = _pick(index, bounds[:half + 1], values[:half])
    upper = _pick(index, bounds[half:], values[half:])
    return tir.if_then_else(tir.op.less(index, bounds[half]), lower, upper)


def concatenate(a_tuple: Sequence[Tensor], axis: int = 0) -> Tensor:
    """The tensors joined along ``axis``."""
    tensors = list(a_tuple)
    at = int(axis) % tensors[0].ndim
    bounds: list[Any] = [0]
    for t in tensors:
        bounds.append(bounds[-1] + t.shape[at])
    first = tensors[0].shape
    shape = [*first[:at], bounds[-1], *first[at + 1:]]
    present = [(t, b) for t, b in zip(tensors, bounds) if not _empty(t.shape[at])] or [(tensors[0], 0)]
    starts = [b for _, b in present] + [bounds[-1]]

    def element(*i: Any) -> Any:
        values = [t(*i[:at], i[at] - b, *i[at + 1:]) for t, b in present]
        return _pick(i[at], starts, values)

    return te.compute(shape, element, name="T_concat", tag=INJECTIVE, attrs={"concat_axis": at})


def _empty(dim: Any) -> bool:
    return isinstance(dim, tir.IntImm) and dim.value == 0


def stack(tensors: Any, axis: int = 0) -> Tensor:
    """The tensors, all of one shape, joined along a new axis."""
    many = [tensors] if isinstance(tensors, Tensor) else list(tensors)
    n = many[0].ndim
    at = int(axis) % (n + 1)
    shape = [*many[0].shape[:at], len(many), *many[0].shape[at:]]

    def element(*i: Any) -> Any:
        rest = (*i[:at], *i[at + 1:])
        return _pick(i[at], list(range(len(many) + 1)), [t(*rest) for t in many])

    return te.compute(shape, element, name="T_stack", tag=INJECTIVE)


def split(ary: Tensor, indices_or_sections: Any, axis: int = 0) -> list[Tensor]:
    """``ary`` cut along ``axis``: into that many equal parts, or at the ascending positions."""
    if isinstance(indices_or_sections, (int, tir.IntImm)):
        return split_sections(ary, int(indices_or_sections), axis)
    at = int(axis) % ary.ndim
    cuts = [0, *(int(v) for v in indices_or_sections), ary.shape[at]]
    return [_part(ary, at, begin, end - begin) for begin, end in zip(cuts, cuts[1:])]


def split_sections(ary: Tensor, num_sections: int, axis: int = 0) -> list[Tensor]:
    """``ary`` cut along ``axis`` into equal parts."""
    at = int(axis) % ary.ndim
    size = get_const_int(ary.shape[at])
    if size % num_sections:
        raise TypeMismatchError(f"split: an axis of size {size} does not divide into {num_sections} equal parts")
    each = size // num_sections
    return [_part(ary, at, k * each, each) for k in range(num_sections)]


def _part(ary: Tensor, at: int, begin: Any, size: Any) -> Tensor:
    shape = [*ary.shape[:at], size, *ary.shape[at + 1:]]
    return te.compute(shape, lambda *i: ary(*i[:at], i[at] + begin, *i[at + 1:]), name="T_split", tag=INJECTIVE)


__all__ = ["concatenate", "stack", "split", "split_sections"]
