"""Einstein's sum as one loop nest."""
from __future__ import annotations

import functools
import operator
from typing import Any

from .. import te, tir
from ..ir.expr import IntImm
from ..support.einsum import checked_equation, label_sizes
from ..te.tensor import Tensor
from .tag import INJECTIVE


def _extent(sizes: list[Any]) -> Any:
    """The size that several axes of one label make together: those of size 1 are repeated."""
    unknown = [s for s in sizes if not isinstance(s, int)]
    wide = next((s for s in sizes if isinstance(s, int) and s != 1), None)
    return wide if wide is not None else functools.reduce(tir.op.maximum, unknown) if unknown else 1


def einsum(subscripts: str, *operand: Tensor) -> Tensor:
    """Products of the operands' elements, summed over the labels that the result lacks; ``subscripts`` as for numpy.einsum.

    Half-precision numbers are summed in single precision.
    """
    terms, result = checked_equation(subscripts, [t.ndim for t in operand])
    shapes = [[d.value if isinstance(d, IntImm) else d for d in t.shape] for t in operand]
    extents = {c: _extent(sizes) for c, sizes in label_sizes(terms, shapes).items()}
    dtype = operand[0].dtype
    wide = "float32" if dtype == "float16" else dtype
    summed = {c: te.reduce_axis((0, extents[c]), f"k{n}") for n, c in enumerate(extents) if c not in result}

    def index(size: Any, label: str, at: dict[str, Any]) -> Any:
        if isinstance(size, int):
            return at[label] if size != 1 else 0
        return at[label] if extents[label] is size else tir.if_then_else(tir.op.equal(size, 1), 0, at[label])

    def element(*i: Any) -> Any:
        at = {**dict(zip(result, i)), **summed}
        factors = [t(*(index(s, c, at) for s, c in zip(shape, term))) for t, shape, term in zip(operand, shapes, terms)]
        value = functools.reduce(operator.mul, [f if wide == dtype else tir.Cast(wide, f) for f in factors])
        return te.sum(value, axis=list(summed.values())) if summed else value

    total = te.compute(tuple(extents[c] for c in result), element, name="T_einsum")
    return total if wide == dtype else te.compute(total.shape, lambda *i: tir.Cast(dtype, total(*i)), name="T_einsum_narrow", tag=INJECTIVE)
