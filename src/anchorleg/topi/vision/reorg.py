"""Darknet's reorg layer."""
from __future__ import annotations

from typing import Any

from ... import te
from ... import tir
from ...te.tensor import Tensor
from ..tag import INJECTIVE
from ..utils import get_const_int, ravel_index, unravel_index


def reorg(data: Tensor, stride: int = 1) -> Tensor:
    """``data`` (n, c, h, w) as (n, c·s², h / s, w / s), in darknet's order."""
    n, c, h, w = (get_const_int(d) for d in data.shape)
    s, groups = int(stride), c // (stride * stride)
    shape = (n, c * s * s, h // s, w // s)

    def element(*i: Any) -> Any:
        b, k, y, x = unravel_index(ravel_index(i, shape), (n, c, h, w))
        block, plane = tir.floordiv(k, groups), tir.floormod(k, groups)
        row, column = y * s + tir.floordiv(block, s), x * s + tir.floormod(block, s)
        return data(*unravel_index(ravel_index((b, plane, row, column), (n, groups, h * s, w * s)), data.shape))

    return te.compute(shape, element, name="reorg", tag=INJECTIVE)


__all__ = ["reorg"]
