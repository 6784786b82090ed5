"""Vectors of elements, pointers into buffers, positions in flat memory."""
from __future__ import annotations

import numpy as np
import pytest

from anchorleg import tir
from anchorleg.ir import assert_structural_equal
from anchorleg.support.errors import ArgumentError, TypeMismatchError
from anchorleg.tir import stmt as ts

A = tir.decl_buffer((4, 8), "float32", name="A")
S = tir.decl_buffer((4, 8), "float32", name="S", strides=(16, 2), elem_offset=3)
I, J = tir.Var("i"), tir.Var("j")


def test_vectors_are_ramps_along_the_last_dimension() -> None:
    load = A.vload([I, J], "float32x4")
    assert load.dtype == "float32x4" and isinstance(load.indices[1], tir.Ramp) and load.indices[0] is I
    assert A.vload([I, J]).dtype == "float32"
    out = np.zeros((4, 8), "float32")
    store = ts.For(I, 0, 4, ts.ForKind.SERIAL, A.vstore((I, 4), tir.Broadcast(tir.const(2.0, "float32"), 4)))
    tir.run_primfunc(tir.PrimFunc([A], store), out)
    np.testing.assert_array_equal(out, np.repeat([[0, 2]], 4, 0).repeat(4, 1))


def test_positions_in_flat_memory() -> None:
    for b, at in ((A, lambda i, j: i * 8 + j), (S, lambda i, j: 3 + i * 16 + j * 2)):
        for i, j in ((0, 0), (1, 5), (3, 7)):
            (found,) = b.offset_of([i, j])
            assert int(found) == at(i, j)
    assert int(A.get_flattened_buffer().shape[0]) == 32 and int(S.get_flattened_buffer().shape[0]) == 64
    flat = tir.decl_buffer((32,), "float32")
    assert flat.get_flattened_buffer() is flat


def test_pointers() -> None:
    plain = A.access_ptr("rw", offset=8)
    assert [int(x) for x in plain.args[2:]] == [8, 24, 3] and plain.args[1] is A.data
    vector = A.access_ptr(tir.Buffer.READ, content_lanes=4, extent=2)
    assert vector.args[0].dtype == "float32x4" and [int(x) for x in vector.args[2:]] == [0, 2, 1]
    assert [int(x) for x in S.access_ptr("w").args[2:]] == [3, 64, 2]
    assert_structural_equal(A.access_ptr("r"), A.access_ptr(1), True)


def test_what_does_not_fit_is_refused() -> None:
    with pytest.raises(ArgumentError, match="2 dimensions"):
        A.vload([I])
    with pytest.raises(TypeMismatchError, match="holds float32"):
        A.vload([I, J], "int8x4")
    with pytest.raises(ArgumentError, match="r and w"):
        A.access_ptr("x")
