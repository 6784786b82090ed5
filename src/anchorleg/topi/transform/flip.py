"""flip, reverse_sequence, sequence_mask."""
from __future__ import annotations

from typing import Any

from ... import te
from ... import tir
from ...te.tensor import Tensor
from ..tag import INJECTIVE
from .index import as_index


def flip(a: Tensor, axis: int = 0) -> Tensor:
    """``a`` with the order of its elements along ``axis`` reversed."""
    at = int(axis) % a.ndim
    return te.compute(a.shape, lambda *i: a(*i[:at], a.shape[at] - 1 - i[at], *i[at + 1:]), name="T_reverse", tag=INJECTIVE)


def reverse_sequence(a: Tensor, seq_lengths: Tensor, seq_axis: int = 1, batch_axis: int = 0) -> Tensor:
    """The first ``seq_lengths[b]`` elements along ``seq_axis`` reversed, for each ``b`` along ``batch_axis``."""
    seq, batch = int(seq_axis) % a.ndim, int(batch_axis) % a.ndim

    def element(*i: Any) -> Any:
        length = tir.op.minimum(as_index(seq_lengths(i[batch])), a.shape[seq])
        at = tir.op.select(tir.op.less(i[seq], length), tir.op.maximum(length - 1 - i[seq], 0), i[seq])
        return a(*i[:seq], at, *i[seq + 1:])

    return te.compute(a.shape, element, name="T_reverse_sequence", tag=INJECTIVE)


def sequence_mask(data: Tensor, valid_length: Tensor, mask_value: float = 0, axis: int = 0) -> Tensor:
    """``mask_value`` where the step along ``axis`` (0 or 1) is not below ``valid_length`` of the batch entry."""
    def element(*i: Any) -> Any:
        length = valid_length(i[1 - axis])
        step = i[axis] if valid_length.dtype.startswith(("int", "uint")) else tir.op.cast(i[axis], valid_length.dtype)
        past = tir.op.greater_equal(step, as_index(length) if step is i[axis] else length)
        return tir.op.select(past, tir.op.const(mask_value, data.dtype), data(*i))

    return te.compute(data.shape, element, name="T_sequence_mask", tag=INJECTIVE)


__all__ = ["flip", "reverse_sequence", "sequence_mask"]
