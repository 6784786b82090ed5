"""Tensors and operations."""
from __future__ import annotations

import pytest

from anchorleg import te, tir
from anchorleg.support.errors import AnchorlegError, ArgumentError, TypeMismatchError
from anchorleg.tir import ProducerLoad


def test_indexing_builds_loads_with_index_typed_indices() -> None:
    a = te.placeholder((4, 5), name="A")
    load = a[1, te.var("i", "int32")]
    assert isinstance(load, ProducerLoad) and [i.dtype for i in load.indices] == ["int64", "int64"]
    assert a[1][2].indices[1].value == 2


def test_slices_take_part_in_arithmetic() -> None:
    a = te.placeholder((4,), name="A")
    assert isinstance(te.TensorSlice(a, (1,)) + 1.0, tir.Add)
    assert isinstance(2.0 * te.TensorSlice(a, (1,)), tir.Mul)


@pytest.mark.parametrize("index", [1.5, "x", slice(None)])
def test_index_that_is_no_integer_is_refused(index: object) -> None:
    with pytest.raises(TypeMismatchError, match="index|slice"):
        te.placeholder((4,), name="A")[index]


def test_wrong_number_of_indices_is_refused() -> None:
    a = te.placeholder((4, 5), name="A")
    with pytest.raises(ArgumentError, match="2 dimensions"):
        a(1, 2, 3)
    with pytest.raises(ArgumentError, match="2 dimensions"):
        a[1, 2, 3]


def test_tensors_are_equal_by_operation_and_output() -> None:
    b, c = te.compute((4,), lambda i: (i, i + 1), name="two")
    assert b == b.op.output(0) and b != c and len({b, c, b.op.output(1)}) == 2
    assert [t.name for t in (b, c)] == ["two.v0", "two.v1"]


def test_axis_names_come_from_the_function() -> None:
    op = te.compute((2, 3, 4), lambda n, *rest: te.const(0.0, "float32"), name="z").op
    assert [iv.var.name for iv in op.axis] == ["n", "i0", "i1"]


def test_wrong_number_of_axes_is_refused() -> None:
    with pytest.raises(ArgumentError, match="takes 1 indices, the shape has 2 dimensions"):
        te.compute((2, 3), lambda i: i, name="z")


def test_reduction_below_the_top_is_refused() -> None:
    a, k = te.placeholder((4, 5), name="A"), te.reduce_axis((0, 5))
    with pytest.raises(TypeMismatchError, match="only allowed at the top"):
        te.compute((4,), lambda i: te.sum(a[i, k], axis=k) + 1.0)


def test_inputs_are_listed_once_in_order_of_use() -> None:
    a, b = te.placeholder((4,), name="A"), te.placeholder((4,), name="B")
    op = te.compute((4,), lambda i: b[i] + a[i] * b[i]).op
    assert op.input_tensors == (b, a)


def test_tag_scope_marks_operations_and_refuses_a_second_tag() -> None:
    with te.tag_scope("conv"):
        assert te.compute((2,), lambda i: i).op.tag == "conv"
        with pytest.raises(ArgumentError, match="give only one"):
            te.compute((2,), lambda i: i, tag="other")
    assert te.compute((2,), lambda i: i).op.tag == ""


def test_extern_needs_a_dtype_when_inputs_differ() -> None:
    a, b = te.placeholder((4,), "float32"), te.placeholder((4,), "int32")
    with pytest.raises(ArgumentError, match="cannot tell the output's dtype"):
        te.extern((4,), [a, b], lambda ins, outs: tir.Evaluate(0))


@pytest.mark.parametrize("shape", [(-1,), (2.5,)])
def test_bad_shapes_are_refused(shape: tuple) -> None:
    with pytest.raises(AnchorlegError):
        te.placeholder(shape)
