"""Einstein's sum, as transposes, sums and matrix products.

Operands are combined two at a time from the left.  Of the labels of a pair, those wanted later are batch axes (in both)
or free (in one); the others are summed over.
"""
from __future__ import annotations

import math
from typing import NamedTuple, Sequence

from .....ir.expr import RelayExpr
from .....support.einsum import parse_equation
from .....support.errors import ArgumentError
from ....expr import Tuple
from ..context import NodeContext
from ..make import call, reduce, reshape, slice_axis, transpose
from ..registry import op
from .linear import matmul


class Labelled(NamedTuple):
    """A tensor and a label for each of its axes."""

    expr: RelayExpr
    labels: str


def _diagonals(n: NodeContext, x: Labelled) -> Labelled:
    """Axes with one label become one axis: their diagonal."""
    while len(set(x.labels)) < len(x.labels):
        label = next(c for c in x.labels if x.labels.count(c) > 1)
        i, j = [k for k, c in enumerate(x.labels) if c == label][:2]
        rest = [k for k in range(len(x.labels)) if k not in (i, j)]
        dims = n.static_dims(x.expr)
        size = dims[i]
        flat = reshape(transpose(x.expr, [*rest, i, j]), [*(dims[k] for k in rest), size * size])
        x = Labelled(slice_axis(flat, len(rest), 0, size * size, size + 1), "".join(x.labels[k] for k in rest) + label)
    return x


def _summed(n: NodeContext, x: Labelled, keep: set[str]) -> Labelled:
    axes = [i for i, c in enumerate(x.labels) if c not in keep]
    return Labelled(reduce("sum", x.expr, axes, False), "".join(c for c in x.labels if c in keep)) if axes else x


def _ordered(n: NodeContext, x: Labelled, labels: str) -> RelayExpr:
    return transpose(x.expr, [x.labels.index(c) for c in labels])


def _product(n: NodeContext, a: Labelled, b: Labelled, keep: set[str]) -> Labelled:
    a, b = _summed(n, a, keep | set(b.labels)), _summed(n, b, keep | set(a.labels))
    sizes = dict(zip(a.labels, n.static_dims(a.expr)))
    other = dict(zip(b.labels, n.static_dims(b.expr)))
    shared = [c for c in a.labels if c in other]
    contracted = "".join(c for c in shared if c not in keep)
    if not contracted or any(sizes[c] != other[c] for c in contracted):
        return _summed(n, _outer(n, a, b), keep)
    batch = "".join(c for c in shared if c in keep)
    rows, columns = ("".join(c for c in x.labels if c not in shared) for x in (a, b))
    k = math.prod(sizes[c] for c in contracted)
    left = reshape(_ordered(n, a, batch + rows + contracted), [*(sizes[c] for c in batch), math.prod(sizes[c] for c in rows), k])
    right = reshape(_ordered(n, b, batch + contracted + columns), [*(other[c] for c in batch), k, math.prod(other[c] for c in columns)])
    shape = [*(max(sizes[c], other[c]) for c in batch), *(sizes[c] for c in rows), *(other[c] for c in columns)]
    return Labelled(reshape(matmul(n, left, right), shape), batch + rows + columns)


def _outer(n: NodeContext, a: Labelled, b: Labelled) -> Labelled:
    """The product without sums, over the labels of both."""
    labels = a.labels + "".join(c for c in b.labels if c not in a.labels)

    def spread(x: Labelled) -> RelayExpr:
        sizes = dict(zip(x.labels, n.static_dims(x.expr)))
        return reshape(_ordered(n, x, "".join(c for c in labels if c in sizes)), [sizes.get(c, 1) for c in labels])

    return Labelled(call("multiply", spread(a), spread(b)), labels)


def _of_unknown_sizes(n: NodeContext, operands: Sequence[Labelled], result: str) -> RelayExpr:
    """As a product of matrices where no axes have to be merged for it, and by Relay's operator otherwise."""
    if len(operands) == 2 and all(len(set(x.labels)) == len(x.labels) for x in operands):
        product = _plain_product(n, *operands, result)
        if product is not None:
            return product
    return call("einsum", Tuple([x.expr for x in operands]), equation=n.attr("equation"))


def _plain_product(n: NodeContext, a: Labelled, b: Labelled, result: str) -> RelayExpr | None:
    """The product when one axis is summed over, one is of ``a`` alone, one is of ``b`` alone, and at most two are of both."""
    batch = "".join(c for c in a.labels if c in b.labels and c in result)
    summed = "".join(c for c in a.labels if c in b.labels and c not in result)
    row, column = ("".join(c for c in x.labels if c not in y.labels) for x, y in ((a, b), (b, a)))
    sizes = [d for x in (a, b) for c, d in zip(x.labels, n.dims(x.expr)) if c == summed]
    if any(len(c) != 1 for c in (summed, row, column)) or len(batch) > 2 or sorted(result) != sorted(batch + row + column):
        return None
    if any(isinstance(d, int) and d == 1 for d in sizes):
        return None  # it may be repeated, which products of matrices do not do
    product = matmul(n, _ordered(n, a, batch + row + summed), _ordered(n, b, batch + summed + column))
    return _ordered(n, Labelled(product, batch + row + column), result)


@op("Einsum")
def einsum(n: NodeContext) -> RelayExpr:
    """Products of elements, summed over labels that the result does not have."""
    operands = n.present()
    terms, result = parse_equation(n.attr("equation"), [n.rank(x) for x in operands])
    if not all(isinstance(d, int) for x in operands for d in n.dims(x)):
        return _of_unknown_sizes(n, [Labelled(x, t) for x, t in zip(operands, terms)], result)
    pending = [_diagonals(n, Labelled(x, t)) for x, t in zip(operands, terms)]
    total = pending[0]
    for i, each in enumerate(pending[1:], 2):
        later = set(result).union(*(p.labels for p in pending[i:]))
        total = _product(n, total, each, later)
    total = _summed(n, total, set(result))
    if sorted(total.labels) != sorted(result):
        raise ArgumentError(f"the result's labels in {n.attr('equation')!r} do not all occur in an operand, or occur twice")
    return _ordered(n, total, result)
