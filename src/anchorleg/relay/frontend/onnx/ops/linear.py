"""Matrix products."""
from __future__ import annotations

import math
from typing import Any, Sequence

from .....ir.expr import RelayExpr
from .....support.errors import ArgumentError, UnsupportedOpError
from ....op.type_relations import broadcast_shapes
from ..context import NodeContext
from ..make import call, expand_dims, reshape, squeeze, transpose
from ..registry import MICROSOFT, op
from .shape import broadcast_to


@op("MatMul")
def matmul_(n: NodeContext) -> RelayExpr:
    """The product of matrices, by numpy's rules."""
    return matmul(n, *n.needs(2))


def matmul(n: NodeContext, a: RelayExpr, b: RelayExpr, out_dtype: str = "") -> RelayExpr:
    """The product of matrices by numpy's rules: vectors are rows or columns, leading dimensions broadcast."""
    ranks = n.rank(a), n.rank(b)
    if 0 in ranks:
        raise ArgumentError("a matrix product needs tensors of at least one dimension")
    dropped = ([-2] if ranks[0] == 1 else []) + ([-1] if ranks[1] == 1 else [])
    a = expand_dims(a, 0) if ranks[0] == 1 else a
    b = expand_dims(b, 1) if ranks[1] == 1 else b
    product = _at_least_2d(n, a, b, out_dtype)
    return squeeze(product, [d + max(2, *ranks) for d in dropped])


def _at_least_2d(n: NodeContext, a: RelayExpr, b: RelayExpr, out_dtype: str) -> RelayExpr:
    dims, others = n.dims(a), n.dims(b)
    if len(others) > 2 and all(_is_one(d) for d in others[:-2]) and len(dims) >= len(others):
        b, others = squeeze(b, list(range(len(others) - 2))), others[-2:]  # one matrix for all
    if len(others) == 2:
        return _by_one_matrix(n, a, b, out_dtype)
    return _batched(n, a, b, out_dtype)


def _is_one(dim: Any) -> bool:
    return isinstance(dim, int) and dim == 1


def _by_one_matrix(n: NodeContext, a: RelayExpr, b: RelayExpr, out_dtype: str) -> RelayExpr:
    dims, (inner, columns) = n.dims(a), n.dims(b)
    flat = a if len(dims) == 2 else _rows(n, a, dims, inner)
    if n.value(b) is not None or b in n.builder.params:
        product = call("nn.dense", flat, transpose(b, [1, 0]), units=columns, out_dtype=out_dtype)
    else:
        product = call("nn.matmul", flat, b, units=columns if isinstance(columns, int) else None, out_dtype=out_dtype, transpose_a=False,
                       transpose_b=False)
    return product if len(dims) == 2 else restore(n, product, a, dims[:-1], [columns])


def _rows(n: NodeContext, a: RelayExpr, dims: Sequence[Any], inner: Any) -> RelayExpr:
    """``a`` as one matrix; ``inner`` is the size of its last axis as the other factor has it."""
    inner = dims[-1] if isinstance(dims[-1], int) else inner
    if isinstance(inner, int):
        return reshape(a, [-1, inner])
    if all(isinstance(d, int) for d in dims[:-1]):
        return reshape(a, [math.prod(dims[:-1]), -1])
    for _ in dims[2:]:
        a = reshape(a, [-3, -2])  # the first two in one
    return a


def restore(n: NodeContext, y: RelayExpr, like: RelayExpr, lead: Sequence[Any], tail: Sequence[Any]) -> RelayExpr:
    """``y``, whose leading dimensions were merged, with those of ``like`` again."""
    unknown = [i for i, d in enumerate([*lead, *tail]) if not isinstance(d, int)]
    if len(unknown) <= 1:
        return reshape(y, [-1 if i in unknown else d for i, d in enumerate([*lead, *tail])])
    return call("reshape_like", y, like, lhs_begin=0, lhs_end=1, rhs_begin=0, rhs_end=len(lead))


def _batched(n: NodeContext, a: RelayExpr, b: RelayExpr, out_dtype: str) -> RelayExpr:
    dims, others = n.dims(a), n.dims(b)
    batch = broadcast_shapes(dims[:-2], others[:-2])
    rank = len(batch)
    nt = n.importer.config["use_nt_batch_matmul"]
    if nt:  # swapped at full rank, where it may undo a transpose
        b = transpose(b, [*range(len(others) - 2), len(others) - 1, len(others) - 2])
    left, right = _as_batch(n, a, batch), _as_batch(n, b, batch)
    product = call("nn.batch_matmul", left, right, out_dtype=out_dtype, transpose_a=False, transpose_b=nt)
    if rank == 1:
        return product
    like = a if len(dims) == rank + 2 and not any(_is_one(d) for d in dims[:-2]) else b
    return restore(n, product, like, batch, [dims[-2], others[-1]])


def _as_batch(n: NodeContext, x: RelayExpr, batch: Sequence[Any]) -> RelayExpr:
    dims = n.dims(x)
    lead = dims[:-2]
    if len(lead) == 1 and len(batch) == 1:
        return x  # the product broadcasts one batch dimension itself
    if all(_is_one(d) for d in lead):
        return reshape(x, [1, *(_size(d, i - 2, len(dims)) for i, d in enumerate(dims[-2:]))])
    x = broadcast_to(x, dims, [*batch, *dims[-2:]])
    tail = list(dims[-2:])
    if all(isinstance(d, int) for d in tail):
        return reshape(x, [-1, *tail])
    if all(isinstance(d, int) for d in batch):
        whole = math.prod(batch)
        if isinstance(tail[0], int) or isinstance(tail[1], int):
            return reshape(x, [whole, *(d if isinstance(d, int) else -1 for d in tail)])
    return call("reshape", x, newshape=(*([-3] if len(batch) == 2 else _unmergeable(len(batch))), -2), allowzero=False)


def _unmergeable(rank: int) -> list[int]:
    raise UnsupportedOpError(f"a batched product over {rank} batch dimensions of unknown size: give the sizes of the model's inputs")


def _size(dim: Any, at: int, rank: int) -> int:
    if not isinstance(dim, int):
        raise UnsupportedOpError(f"dimension {rank + at} of a matrix must be known: give the sizes of the model's inputs")
    return dim


@op("Gemm")
def gemm(n: NodeContext) -> RelayExpr:
    """alpha A B + beta C, either factor transposed."""
    a, b = n.needs(2)
    return gemm_of(n, a, b, n.input(2))


def gemm_of(n: NodeContext, a: RelayExpr, b: RelayExpr, c: RelayExpr | None) -> RelayExpr:
    """alpha A B + beta C by the node's attributes."""
    if n.version < 7 and n.rank(a) > 2:
        a = call("nn.batch_flatten", a)
    if n.rank(a) != 2 or n.rank(b) != 2:
        raise ArgumentError(f"matrices are expected, got {n.rank(a)} and {n.rank(b)} dimensions")
    a = transpose(a, [1, 0]) if n.attr("transA", 0) else a
    alpha, beta = n.attr("alpha", 1.0), n.attr("beta", 1.0)
    product = _product(n, a, b, bool(n.attr("transB", 0)))
    if alpha != 1.0:
        product = call("multiply", product, n.like(alpha, product))
    if c is None or beta == 0.0:
        return product
    return call("add", product, c if beta == 1.0 else call("multiply", c, n.like(beta, c)))


def _product(n: NodeContext, a: RelayExpr, b: RelayExpr, transposed: bool) -> RelayExpr:
    if transposed or n.value(b) is not None or b in n.builder.params:
        weight = b if transposed else transpose(b, [1, 0])
        units = n.dims(weight)[0]
        return call("nn.dense", a, weight, units=units if isinstance(units, int) else None, out_dtype="")
    return matmul(n, a, b)


@op("FusedMatMul", "TransposeMatMul", domain=MICROSOFT)
def fused_matmul(n: NodeContext) -> RelayExpr:
    """alpha A B, the last two axes of either factor swapped."""
    if n.attr("transBatchA", 0) or n.attr("transBatchB", 0):
        raise UnsupportedOpError("transBatchA and transBatchB are not supported")
    a, b = (_swapped(n, x) if n.attr(f"trans{which}", 0) else x for x, which in zip(n.needs(2), "AB"))
    product, alpha = matmul(n, a, b), n.attr("alpha", 1.0)
    return product if alpha == 1.0 else call("multiply", product, n.like(alpha, product))


def _swapped(n: NodeContext, x: RelayExpr) -> RelayExpr:
    rank = n.rank(x)
    return transpose(x, [*range(rank - 2), rank - 1, rank - 2]) if rank > 1 else x


@op("Det")
def determinant(n: NodeContext) -> RelayExpr:
    """Determinants of small square matrices, by expansion along the first row."""
    x = n.need(0)
    size = n.static_dims(x)[-1]
    if size > 4:
        raise UnsupportedOpError(f"determinants are supported up to 4 x 4, got {size} x {size}")
    rank = n.rank(x)

    def at(i: int, j: int) -> RelayExpr:
        element = call("strided_slice", x, begin=(i, j), end=(i + 1, j + 1), strides=(1, 1), axes=(rank - 2, rank - 1), slice_mode="end")
        return squeeze(element, [rank - 2, rank - 1])

    def expanded(row: int, columns: tuple[int, ...]) -> RelayExpr:
        if row == size - 1:
            return at(row, columns[0])
        total = None
        for k, column in enumerate(columns):
            term = call("multiply", at(row, column), expanded(row + 1, columns[:k] + columns[k + 1:]))
            total = term if total is None else call("subtract" if k % 2 else "add", total, term)
        return total  # type: ignore[return-value]

    return expanded(0, tuple(range(size)))
