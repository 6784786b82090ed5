"""sparse_to_dense, sparse_reshape."""
from __future__ import annotations

from typing import Any, Sequence

from ... import tir
from ...te.tensor import Tensor
from ..kernel import View, extern, loop, seq, vectors, when
from ..utils import get_const_int, prod, ravel_index
from .index import as_index, from_end


def sparse_to_dense(sparse_indices: Tensor, output_shape: Sequence[int], sparse_values: Tensor, default_value: Any = 0) -> Tensor:
    """The dense tensor of ``output_shape`` with ``sparse_values`` at ``sparse_indices`` and ``default_value`` (scalar tensor or number) elsewhere."""
    shape = tuple(int(d) for d in output_shape)
    count = sparse_indices.shape[0] if sparse_indices.ndim else 1
    inputs = [sparse_indices, sparse_values] + ([default_value] if isinstance(default_value, Tensor) else [])

    def body(ins: list[View], outs: list[View]) -> Any:
        out = outs[0]
        default = ins[2][0] if len(ins) == 3 else tir.op.const(default_value, out.dtype)

        def place(k: Any) -> Any:
            width = len(shape) if sparse_indices.ndim == 2 else 1
            where = [from_end(ins[0][k * width + d], n) for d, n in enumerate(shape)]
            inside = [c for w, n in zip(where, shape) for c in (tir.op.greater_equal(w, 0), tir.op.less(w, n))]
            put = out.store(ravel_index(where, shape), ins[1][k if sparse_values.ndim else 0])
            return when(tir.all(*inside), put) if inside else put

        return seq(vectors(prod(shape), lambda i: out.store(i, default)), loop(count, place))

    return extern([shape], inputs, body, [sparse_values.dtype], "T_sparse_to_dense")[0]


def sparse_reshape(sparse_indices: Tensor, prev_shape: Tensor, new_shape: Tensor) -> list[Tensor]:
    """(coordinates, shape) of a sparse tensor of ``prev_shape`` in ``new_shape``, of which one size may be -1."""
    old_rank, new_rank = get_const_int(prev_shape.shape[0]), get_const_int(new_shape.shape[0])

    def body(ins: list[View], outs: list[View]) -> Any:
        indices, old, new = ins
        total = prod([as_index(old[d]) for d in range(old_rank)])
        given = prod([tir.op.select(tir.op.equal(new[d], -1), tir.const(1, "int64"), as_index(new[d])) for d in range(new_rank)])
        rest = tir.floordiv(total, tir.op.maximum(given, 1))
        sizes = [tir.op.select(tir.op.equal(new[d], -1), rest, as_index(new[d])) for d in range(new_rank)]
        write_shape = [outs[1].store(d, sizes[d]) for d in range(new_rank)]

        def convert(row: Any) -> Any:
            flat: Any = tir.const(0, "int64")
            for d in range(old_rank):
                flat = flat * as_index(old[d]) + as_index(indices[row * old_rank + d])
            stores = []
            for d in range(new_rank - 1, -1, -1):
                size = tir.op.maximum(as_index(outs[1][d]), 1)
                stores.append(outs[0].store(row * new_rank + d, tir.floormod(flat, size)))
                flat = tir.floordiv(flat, size)
            return seq(*stores)

        return seq(*write_shape, loop(sparse_indices.shape[0], convert))

    shapes = [(sparse_indices.shape[0], new_rank), (new_rank,)]
    return extern(shapes, [sparse_indices, prev_shape, new_shape], body, [sparse_indices.dtype, new_shape.dtype], "T_sparse_reshape")


__all__ = ["sparse_to_dense", "sparse_reshape"]
