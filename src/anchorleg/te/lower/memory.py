"""Layout of buffers in memory."""
from __future__ import annotations

from typing import Sequence

from ...ir.expr import INDEX_DTYPE, IntImm, PrimExpr
from ...tir import op as tir_op


def compact_strides(shape: Sequence[PrimExpr]) -> list[PrimExpr]:
    """The strides of a row-major array."""
    strides: list[PrimExpr] = []
    step: PrimExpr = IntImm(INDEX_DTYPE, 1)
    for d in reversed(shape):
        strides.insert(0, step)
        step = tir_op.multiply(step, d)
    return strides
