"""scatter_elements and scatter_nd: copies of a tensor with updates written or combined into them.

Rows that cannot touch each other run in parallel; within one, updates apply in order.  A negative index counts from the
end; one that lies outside is left out.
"""
from __future__ import annotations

from typing import Any, Callable, Sequence

from .. import tir
from ..te.tensor import Tensor
from .dtypes import in_compute_dtype
from .kernel import View, extern, let, loop, rows, scratch, seq, vectors, when
from .transform.index import from_end
from .utils import get_const_int, prod, ravel_index, static_int, unravel_index

Combine = Callable[[Any, Any], Any]

_COMBINE: dict[str, Combine] = {
    "update": lambda old, new: new,
    "add": lambda old, new: in_compute_dtype(lambda a, b: a + b, old, new),
    "mul": lambda old, new: in_compute_dtype(lambda a, b: a * b, old, new),
    "mean": lambda old, new: in_compute_dtype(lambda a, b: a + b, old, new),
    "min": tir.op.minimum,
    "max": tir.op.maximum,
}


def _copy(data: View, out: View) -> Any:
    return vectors(data.size, lambda i: out.store(i, data[i]), "copy")


def _inside(index: Any, size: Any) -> Any:
    return tir.all(tir.op.greater_equal(index, 0), tir.op.less(index, size))


def scatter_elements(data: Tensor, indices: Tensor, updates: Tensor, axis: int = 0, reduction: str = "update") -> Tensor:
    """``out[i, indices[i, j, k], k] ∘= updates[i, j, k]`` (for ``axis`` 1) on a copy of ``data``."""
    at = int(axis) % data.ndim
    others = [d for k, d in enumerate(indices.shape) if k != at]
    combine = _COMBINE[reduction]

    def body(ins: list[View], outs: list[View]) -> Any:
        source, index, update = ins
        out = outs[0]

        def apply(row: Any, counts: View | None) -> Any:
            place = unravel_index(row, others) if others else []

            def one(k: Any) -> Any:
                where = [*place[:at], k, *place[at:]]
                flat = ravel_index(where, indices.shape)

                def write(to: Any) -> Any:
                    target = ravel_index([*place[:at], to, *place[at:]], data.shape)
                    stores = [out.store(target, combine(out[target], update[flat]))]
                    if counts is not None:
                        stores.append(counts.store(to, counts[to] + 1))
                    return when(_inside(to, data.shape[at]), seq(*stores))

                return let(from_end(index[flat], data.shape[at]), write, "to")

            return seq(loop(indices.shape[at], one, "k"), _divide(out, counts, place, data, at))

        def row_body(row: Any) -> Any:
            if reduction != "mean":
                return apply(row, None)
            size = data.shape[at]
            return scratch(size, "int64", lambda c: seq(loop(size, lambda i: c.store(i, 1)), apply(row, c)), "counts")

        return seq(_copy(source, out), rows(prod(others), row_body))

    return extern([data.shape], [data, indices, updates], body, [data.dtype], "scatter_elements", "scatter_elements")[0]


def _divide(out: View, counts: View | None, place: Sequence[Any], data: Tensor, at: int) -> Any:
    """Turns sums into means along one row."""
    if counts is None:
        return None

    def one(i: Any) -> Any:
        target = ravel_index([*place[:at], i, *place[at:]], data.shape)
        return when(tir.op.greater(counts[i], 1), out.store(target, _quotient(out[target], counts[i])))

    return loop(data.shape[at], one, "m")


def _quotient(total: Any, count: Any) -> Any:
    if total.dtype.startswith(("int", "uint")):
        return tir.floordiv(total, tir.op.cast(count, total.dtype))
    return in_compute_dtype(lambda a, b: a / b, total, tir.op.cast(count, total.dtype))


def scatter_nd(data: Tensor, indices: Tensor, updates: Tensor, mode: str = "update") -> Tensor:
    """``out[indices[0, y…], …, indices[M-1, y…], x…] ∘= updates[y…, x…]`` on a copy of ``data``."""
    depth = get_const_int(indices.shape[0])
    count, inner = prod(indices.shape[1:]), prod(data.shape[depth:])
    combine = _COMBINE[mode]

    def body(ins: list[View], outs: list[View]) -> Any:
        source, index, update = ins
        out = outs[0]

        def one(k: Any) -> Any:
            where = [from_end(index[d * count + k], data.shape[d]) for d in range(depth)]
            inside = tir.all(*[_inside(w, data.shape[d]) for d, w in enumerate(where)]) if where else tir.const(True, "bool")

            def write(base: Any) -> Any:
                def element(x: Any) -> Any:
                    return out.store(base + x, combine(out[base + x], update[k * inner + x]))

                return element(0) if static_int(inner) == 1 else vectors(inner, element, "x")

            base = ravel_index(where, data.shape[:depth]) * inner if where else 0
            return when(inside, let(base, write, "base"))

        return seq(_copy(source, out), loop(count, one, "k"))

    return extern([data.shape], [data, indices, updates], body, [data.dtype], "scatter_nd", "scatter_nd")[0]


__all__ = ["scatter_elements", "scatter_nd"]
