"""Inputs and outputs as allocations."""
from __future__ import annotations

import pytest

from anchorleg import tir
from anchorleg.script import ir as I  # noqa: E741
from anchorleg.script import tir as T
from anchorleg.support.errors import ArgumentError
from anchorleg.tir.usmp.transform import create_allocates_for_io


@I.ir_module
class Program:
    @T.prim_func
    def __tvm_main__(image: T.Buffer((4,), "int8"), mask: T.Buffer((4,), "int8"), scores: T.Buffer((4,), "int16"), handle: T.handle):
        T.evaluate(T.call_extern("int32", "outer", image.data, scores.data))
        scores[0] = T.Cast("int16", mask[0])

    @T.prim_func
    def outer(A: T.Buffer((4,), "int8"), B: T.Buffer((4,), "int16")):
        T.evaluate(T.tvm_call_cpacked("inner", B.data, A.data, T.reinterpret("handle", T.uint64(0))))

    @T.prim_func
    def inner(B: T.Buffer((4,), "int16"), A: T.Buffer((4,), "int8")):
        for i in range(4):
            B[i] = T.Cast("int16", A[i])


def test_what_is_read_is_an_input_and_what_is_written_an_output_through_calls() -> None:
    after = create_allocates_for_io()(Program)["__tvm_main__"]
    found, s = [], after.body
    while isinstance(s, tir.Allocate):
        found.append((s.dtype, [int(e) for e in s.extents], dict(s.annotations)))
        s = s.body
    assert found == [("int16", [4], {"output_tensor": "scores"}), ("int8", [4], {"input_tensor": "mask"}), ("int8", [4], {"input_tensor": "image"})]
    assert [p.name for p in after.params] == ["handle"] and s is Program["__tvm_main__"].body


def test_a_tensor_that_is_both_or_neither_is_refused() -> None:
    @I.ir_module
    class Both:
        @T.prim_func
        def __tvm_main__(A: T.Buffer((4,), "int8")):
            A[0] = A[1]

    @I.ir_module
    class Neither:
        @T.prim_func
        def __tvm_main__(A: T.Buffer((4,), "int8")):
            T.evaluate(0)

    for mod, what in ((Both, "both"), (Neither, "neither")):
        with pytest.raises(ArgumentError, match=f"'A' is expected to be read or written, but it is {what}"):
            create_allocates_for_io()(mod)
