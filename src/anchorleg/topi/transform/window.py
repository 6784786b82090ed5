"""sliding_window: all windows of a given shape at given distances."""
from __future__ import annotations

from typing import Any, Sequence

from ... import te
from ... import tir
from ...te.tensor import Tensor
from ..tag import INJECTIVE


def sliding_window(x: Tensor, axis: int, window_shape: Sequence[int], strides: Sequence[int]) -> Tensor:
    """The windows that slide over the axes of ``x`` from ``axis`` on."""
    at = int(axis) % x.ndim
    window, steps = [int(w) for w in window_shape], [int(s) for s in strides]
    counts = [tir.op.maximum(tir.floordiv(d - w + s, s), 0) for d, w, s in zip(x.shape[at:], window, steps)]
    n = len(window)

    def element(*i: Any) -> Any:
        where = [b * s + o for b, s, o in zip(i[at:at + n], steps, i[at + n:])]
        return x(*i[:at], *where)

    return te.compute([*x.shape[:at], *counts, *window], element, name="T_sliding_window", tag=INJECTIVE)


__all__ = ["sliding_window"]
