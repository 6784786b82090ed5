"""Calls that must not type-check, and what the message says; and types with unknown dimensions."""
from __future__ import annotations

from typing import Any, Callable

import numpy as np
import pytest

from anchorleg import relay
from anchorleg.ir import IRModule, TensorType, TupleType
from anchorleg.relay import op
from anchorleg.support.errors import ArgumentError, TypeMismatchError


def infer(build: Callable[..., Any], *types: Any) -> Any:
    """The result type of a call on parameters given as (shape, dtype) or as a shape of float32."""
    params = []
    for i, t in enumerate(types):
        shape, dtype = t if len(t) == 2 and isinstance(t[1], str) else (t, "float32")
        params.append(relay.var(f"p{i}", shape=shape, dtype=dtype))
    body = build(*params)
    body = body.astuple() if isinstance(body, relay.TupleWrapper) else body
    return relay.transform.InferType()(IRModule.from_expr(relay.Function(params, body)))["main"].body.checked_type


def dims(t: TensorType) -> tuple[Any, ...]:
    """Known dimensions as ints, others as None."""
    return tuple(d if isinstance(d, int) else None for d in t.dims)


Q = relay.Any()
I = "int64"
BAD = [
    ("6 elements.*7", lambda p: op.reshape(p, [7]), [(2, 3)]),
    ("only one dimension", lambda p: op.reshape(p, [-1, -1]), [(2, 3)]),
    ("do not divide", lambda p: op.reshape(p, [4, -1]), [(2, 3)]),
    ("one more input dimension", lambda p: op.reshape(p, [0, 0, 0]), [(2, 3)]),
    ("special values", lambda p: op.reshape(p, [-5]), [(2, 3)]),
    ("two sizes", lambda p: op.reshape(p, [-4, 2]), [(2, 3)]),
    ("elements", lambda p, q: op.reshape_like(p, q), [(2, 3), (7,)]),
    ("does not fit 2 operands", lambda p, q: op.einsum([p, q], "ij"), [(2, 3), (3, 4)]),
    ("'j' has the sizes .3, 4.", lambda p, q: op.einsum([p, q], "ij,jk->ik"), [(2, 3), (4, 4)]),
    ("one operand has the label 'i'", lambda p: op.einsum([p], "ii"), [(1, 3)]),
    ("1 labels to an operand of 2", lambda p: op.einsum([p], "i->i"), [(2, 3)]),
    ("do not all occur", lambda p: op.einsum([p], "ij->ik"), [(2, 3)]),
    ("no '...'", lambda p: op.einsum([p], "...i->i"), [(2, 3)]),
    ("one dtype", lambda p, q: op.einsum([p, q], "i,i"), [(3,), ((3,), I)]),
    ("only axes of size 1", lambda p: op.squeeze(p, 1), [(1, 3)]),
    (r"\[-2, 1\]", lambda p: op.squeeze(p, 2), [(1, 3)]),
    ("give axis", lambda p: op.squeeze(p), [(1, Q)]),
    (r"\[-3, 2\]", lambda p: op.expand_dims(p, 3), [(1, 3)]),
    ("name an axis twice", lambda p: op.transpose(p, [0, 0]), [(1, 3)]),
    ("the tensor has 2", lambda p: op.transpose(p, [0]), [(1, 3)]),
    ("same axes", lambda p: op.layout_transform(p, "NCHW", "NHW"), [(1, 3, 2, 2)]),
    ("dimension 0 of input 1", lambda a, b: op.concatenate([a, b], 1), [(2, 3), (3, 3)]),
    ("one rank", lambda a, b: op.concatenate([a, b], 1), [(2, 3), (3,)]),
    ("one dtype", lambda a, b: op.concatenate([a, b], 0), [(2, 3), ((2, 3), "int8")]),
    ("dimension 1 of input 1", lambda a, b: op.stack([a, b], 0), [(2, 3), (2, 4)]),
    ("does not divide", lambda p: op.split(p, 2, 1), [(2, 3)]),
    ("ascend", lambda p: op.split(p, (2, 1), 1), [(2, 3)]),
    ("past the end", lambda p: op.split(p, (1, 4), 1), [(2, 3)]),
    ("stride of 0", lambda p: op.strided_slice(p, [0], [1], [0]), [(2, 3)]),
    ("one length", lambda p: op.strided_slice(p, [0, 0], [1, 1], axes=[1]), [(2, 3)]),
    ("3 axes", lambda p: op.strided_slice(p, [0, 0, 0], [1, 1, 1]), [(2, 3)]),
    ("fewer than", lambda p, q: op.slice_like(p, q), [(2, 3), (3, 3)]),
    ("integers", lambda p, i: op.take(p, i, 0), [(2, 3), (2,)]),
    ("without elements", lambda p, i: op.take(p, i, 0), [(0, 3), ((2,), I)]),
    ("batch_dims", lambda p, i: op.take(p, i, 0, batch_dims=1), [(2, 3), ((2,), I)]),
    ("rank of data", lambda p, i: op.gather(p, 0, i), [(2, 3), ((2,), I)]),
    ("larger than", lambda p, i: op.gather(p, 0, i), [(2, 3), ((2, 4), I)]),
    ("3 axes into data of rank 2", lambda p, i: op.gather_nd(p, i), [(2, 3), ((3, 4), I)]),
    ("one rank", lambda p, i, u: op.scatter_elements(p, i, u), [(2, 3), ((3,), I), (3,)]),
    ("updates must have shape", lambda p, i, u: op.scatter_nd(p, i, u), [(2, 3), ((1, 4), I), (4,)]),
    ("dimension 1 of updates", lambda p, i, u: op.scatter_nd(p, i, u), [(2, 3), ((1, 4), I), (4, 2)]),
    ("does not broadcast|Invalid broadcast", lambda p: op.broadcast_to(p, (2, 4)), [(2, 3)]),
    ("does not broadcast", lambda p: op.broadcast_to(p, (1, 3)), [(2, 3)]),
    ("one dtype", lambda c, a, b: op.where(c, a, b), [((2,), "bool"), (2,), ((2,), "int32")]),
    ("at least 0", lambda p: op.tile(p, (-1,)), [(2,)]),
    ("vector", lambda p: op.unique(p), [(2, 3)]),
    ("rank 2", lambda p: op.trilu(p, 0), [(3,)]),
    ("outside of", lambda p, d: op.matrix_set_diag(p, d, k=3), [(2, 3), (2,)]),
    ("step must not be 0", lambda: op.arange(relay.const(0.0), relay.const(1.0), relay.const(0.0)), []),
    ("batch axis", lambda p, n: op.reverse_sequence(p, n), [(2, 3), ((3,), I)]),
]


@pytest.mark.parametrize("message, build, types", BAD, ids=[str(i) for i in range(len(BAD))])
def test_rejected(message: str, build: Callable[..., Any], types: list[Any]) -> None:
    with pytest.raises(TypeMismatchError, match=message):
        infer(build, *types)


UNKNOWN = [
    (lambda p: op.reshape(p, [0, -1]), [(Q, 3, 4)], (None, 12)),
    (lambda p: op.reshape(p, [-1, 6]), [(Q, 3, 4)], (None, 6)),
    (lambda p: op.reshape(p, [-3, 0]), [(Q, 3, 4)], (None, 4)),
    (lambda p: op.squeeze(p, [-1]), [(1, Q, 100, 17, 1)], (1, None, 100, 17)),
    (lambda p: op.transpose(p), [(2, Q)], (None, 2)),
    (lambda a, b: op.concatenate([a, b], 0), [(Q, 3), (2, Q)], (None, 3)),
    (lambda p: op.split(p, (8,), 1)[0], [(Q, Q)], (None, 8)),
    (lambda p: op.split(p, (8,), 1)[1], [(Q, Q)], (None, None)),
    (lambda p: op.strided_slice(p, [0], [1], [1], axes=[1]), [(3, Q)], (3, None)),
    (lambda p: op.strided_slice(p, [1], [2]), [(3, Q)], (1, None)),
    (lambda p, i: op.take(p, i, 1), [(Q, 3), ((Q, 2), I)], (None, None, 2)),
    (lambda p, i: op.gather_nd(p, i), [(Q, 3, 4), ((2, Q), I)], (None, 4)),
    (lambda p: op.tile(p, (2, 1)), [(Q, Q)], (None, None)),
    (lambda c, a, b: op.where(c, a, b), [((Q, 1), "bool"), (3,), (2, 1)], (2, 3)),
    (lambda p: op.cumsum(p), [(Q, 3)], (None,)),
    (lambda p: op.argwhere(p), [(2, 3)], (None, 2)),
    (lambda p, s: op.reshape(p, s), [(2, 3), ((4,), I)], (None,) * 4),
    (lambda p, s: op.broadcast_to(p, s), [(3,), ((2,), I)], (None, None)),
    (lambda p, b, e: op.strided_slice(p, b, e), [(2, 3, 4), ((2,), I), ((2,), I)], (None, None, 4)),
    (lambda p, a: op.expand_dims(p, a), [(2, 3), ((), I)], (None,) * 3),
    (lambda p, a: op.squeeze(p, a), [(2, 1), ((1,), I)], (None,)),
    (lambda p, r: op.tile(p, r), [(2, 1), ((3,), I)], (None,) * 3),
]


@pytest.mark.parametrize("build, types, want", UNKNOWN, ids=[str(i) for i in range(len(UNKNOWN))])
def test_unknown_dimensions(build: Callable[..., Any], types: list[Any], want: tuple[Any, ...]) -> None:
    assert dims(infer(build, *types)) == want


def test_scatter_nd_with_more_axes_than_index_dimensions() -> None:
    got = infer(lambda d, i, u: op.scatter_nd(d, i, u), (1, 1, 10), ((2, 1, 1, 1), I), (1, 1, 1, 10))
    assert dims(got) == (1, 1, 10)


def test_split_gives_a_tuple_type() -> None:
    got = infer(lambda p: op.split(p, 3, -1), (2, 6))
    assert isinstance(got, TupleType) and [dims(f) for f in got.fields] == [(2, 2)] * 3


def test_constants_serve_as_shapes() -> None:
    assert dims(infer(lambda p: op.reshape(p, relay.const(np.array([3, 2]))), (2, 3))) == (3, 2)
    assert dims(infer(lambda p: op.strided_slice(p, relay.const(np.array([1])), relay.const(np.array([2]))), (2, 3))) == (1, 3)


@pytest.mark.parametrize("build", [lambda p: op.concatenate([], 0), lambda p: op.reshape(p, "ab"), lambda p: op.take(p, p, mode="bounce"),
                                   lambda p: op.scatter_elements(p, p, p, 0, "xor"), lambda p: op.matrix_set_diag(p, p, align="UP_DOWN")])
def test_bad_arguments(build: Callable[..., Any]) -> None:
    with pytest.raises(ArgumentError):
        build(relay.var("p", shape=(2, 3)))
