"""Memory scopes of a function's tensors, read and set."""
from __future__ import annotations

import pytest

from anchorleg.ir.type import FuncType, TensorType, TupleType
from anchorleg.script import tir as T
from anchorleg.support.errors import ArgumentError
from anchorleg.tir.analysis import apply_prim_func_arg_and_result_memory_constraints as apply
from anchorleg.tir.analysis import get_prim_func_arg_and_result_memory_constraints as get

_TENSOR = TensorType((8,), "float32")
_TYPE = FuncType([TupleType([_TENSOR, _TENSOR]), _TENSOR], _TENSOR)


@T.prim_func
def add(a: T.handle, b: T.handle, n: T.int32, c: T.handle, d: T.handle):
    A = T.match_buffer(a, (8,), scope="near")
    B = T.match_buffer(b, (8,), scope="near")
    C = T.match_buffer(c, (8,), scope="far")
    D = T.match_buffer(d, (8,))
    V = T.Buffer((4, 2), data=D.data)
    p: T.handle("float32", "global") = D.data
    P = T.Buffer((8,), data=p)
    for i in range(8):
        with T.block():
            vi = T.axis.spatial(8, i)
            D[vi] = A[vi] + B[vi] * C[vi]
    V[0, 0] = P[1]


def test_scopes_by_argument_and_result() -> None:
    assert get(add, _TYPE) == ["near", "far", "global"]


def test_set_scopes_reach_every_view_of_the_memory() -> None:
    new = apply(add, _TYPE, ["", "middle", "out"])
    assert get(new, _TYPE) == ["near", "middle", "out"]
    let = new.body.block.body if hasattr(new.body, "block") else new.body
    assert let.var.type_annotation.storage_scope == "out" and let.value is new.buffers[4].data
    view, pointer = let.body.seq[1].buffer, let.body.seq[1].value.buffer
    assert view.scope() == "out" and view.data is new.buffers[4].data
    assert pointer.scope() == "out" and pointer.data is let.var
    block = let.body.seq[0].body.block
    assert block.writes[0].buffer is new.buffers[4] and block.body.buffer is new.buffers[4]


def test_nothing_to_set_gives_the_same_function() -> None:
    assert apply(add, _TYPE, ["near", "", "global"]) is add


def test_what_does_not_fit_is_refused() -> None:
    with pytest.raises(ArgumentError, match="2 tensors"):
        get(add, FuncType([_TENSOR], _TENSOR))
    with pytest.raises(ArgumentError, match="each of 3"):
        apply(add, _TYPE, ["x"])
    mixed = apply(add, FuncType([_TENSOR] * 3, _TENSOR), ["one", "two", "", ""])
    with pytest.raises(ArgumentError, match="one memory scope"):
        get(mixed, _TYPE)
