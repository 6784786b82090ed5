"""cumsum and cumprod."""
from __future__ import annotations

from typing import Any, Callable

from .. import tir
from ..te.tensor import Tensor
from .dtypes import compute_dtype
from .elemwise import scalar_cast
from .kernel import Rows, View, cell, extern, loop, rows, seq, vectors, when
from .utils import prod, static_int


def _scan(data: Tensor, axis: int | None, dtype: str | None, exclusive: bool | None, combine: Callable[[Any, Any], Any], start: int,
          name: str) -> Tensor:
    dtype = dtype or data.dtype
    shape = (prod(data.shape),) if axis is None else data.shape
    lines = Rows(shape, 0 if axis is None else axis)
    wide = "int32" if dtype == "bool" else compute_dtype(dtype)

    if wide == dtype and static_int(lines.stride) not in (None, 1):
        return _scan_lines(data, lines, shape, dtype, exclusive, combine, start, name)

    def body(ins: list[View], outs: list[View]) -> Any:
        source, out = ins[0], outs[0]

        def row(r: Any) -> Any:
            base = lines.base(r)

            def run(total: Any) -> Any:
                def step(k: Any) -> Any:
                    at = base + k * lines.stride
                    grow = total.set(combine(total.get(), _widen(source[at], dtype, wide)))
                    keep = out.store(at, scalar_cast(total.get(), dtype))
                    return seq(keep, grow) if exclusive else seq(grow, keep)

                return loop(lines.length, step, "k")

            return cell(tir.const(start, wide), run, "total")

        return rows(lines.count, row)

    return extern([shape], [data], body, [dtype], name, name)[0]


def _scan_lines(data: Tensor, lines: Rows, shape: Any, dtype: str, exclusive: bool | None, combine: Callable[[Any, Any], Any], start: int,
                name: str) -> Tensor:
    """A scan along an outer axis: whole lines of neighbouring elements at a time, each from the one before."""
    n, width = lines.length, lines.stride

    def body(ins: list[View], outs: list[View]) -> Any:
        source, out = ins[0], outs[0]

        def block(b: Any) -> Any:
            base = b * (n * width)

            def line(k: Any) -> Any:
                at = base + k * width
                taken = at - width if exclusive else at
                return vectors(width, lambda i: out.store(at + i, combine(out[at - width + i], scalar_cast(source[taken + i], dtype))))

            def first(i: Any) -> Any:
                return out.store(base + i, tir.const(start, dtype) if exclusive else scalar_cast(source[base + i], dtype))

            return when(tir.op.greater(n, 0), seq(vectors(width, first), loop(n - 1, lambda k: line(k + 1), "line")))

        return rows(lines.outer, block, "block")

    return extern([shape], [data], body, [dtype], name, name)[0]


def _widen(value: Any, dtype: str, wide: str) -> Any:
    """A value in the result's type, held in the type in which sums are done."""
    return scalar_cast(scalar_cast(value, dtype), wide)


def cumsum(data: Tensor, axis: int | None = None, dtype: str | None = None, exclusive: bool | None = None) -> Tensor:
    """Running sums along ``axis`` (None: of the flattened data); with ``exclusive`` each leaves out its own element.

    Narrow floats are summed in float32 and rounded once for each result; for bool, "or".
    """
    return _scan(data, axis, dtype, exclusive, lambda a, b: a + b, 0, "T_cumsum")


def cumprod(data: Tensor, axis: int | None = None, dtype: str | None = None, exclusive: bool | None = None) -> Tensor:
    """Running products; see :func:`cumsum`."""
    return _scan(data, axis, dtype, exclusive, lambda a, b: a * b, 1, "T_cumprod")


__all__ = ["cumsum", "cumprod"]
