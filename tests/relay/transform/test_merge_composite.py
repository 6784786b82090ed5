"""MergeComposite."""
from __future__ import annotations

from typing import Any

import pytest

from anchorleg import relay
from anchorleg.relay.dataflow_pattern import is_constant, is_op, wildcard
from anchorleg.relay.op.contrib import get_pattern_table, register_pattern_table
from anchorleg.relay.transform import MergeComposite
from anchorleg.support.errors import ArgumentError

from .graphs import chain
from .passes import apply, check, module, same_values, unchanged

ADD_RELU = ("test.add_relu", is_op("nn.relu")(is_op("add")(wildcard(), wildcard())))
RELU = ("test.relu", is_op("nn.relu")(wildcard()))
BEFORE = "def @main(%a: Tensor[(4), float32], %b: Tensor[(4), float32]) { nn.relu(add(%a, %b)) }"
AFTER = """def @main(%a: Tensor[(4), float32], %b: Tensor[(4), float32]) {
  %0 = fn (%x: Tensor[(4), float32], %y: Tensor[(4), float32], PartitionedFromPattern="add_nn.relu_", Composite="test.add_relu") { nn.relu(add(%x, %y)) };
  %0(%a, %b) }"""


def test_what_fits_becomes_a_function() -> None:
    check(MergeComposite([ADD_RELU]), BEFORE, AFTER)


def test_what_does_not_fit_stays() -> None:
    unchanged(MergeComposite([("test.dense", is_op("nn.dense")(wildcard(), wildcard()))]), BEFORE)


def test_the_first_pattern_takes_what_the_next_would() -> None:
    check(MergeComposite([ADD_RELU, RELU]), BEFORE, AFTER)


def test_a_check_may_say_no_and_sees_types() -> None:
    seen: list[str] = []

    def no(expr: Any) -> bool:
        seen.append(expr.checked_type.dtype)
        return False

    unchanged(MergeComposite([(*ADD_RELU, no)]), BEFORE)
    assert seen == ["float32"]


def test_constants_that_the_pattern_asks_for_are_inside() -> None:
    x = relay.var("x", shape=(2,))
    mod = relay.transform.InferType()(relay.transform.InferType()(type(module(BEFORE)).from_expr(relay.add(x, relay.const([1.0, 2.0])))))
    after = apply(MergeComposite([("test.add", is_op("add")(wildcard(), is_constant()))]), mod)
    call = after["main"].body
    assert len(call.args) == 1 and call.op.get_attr("Composite") == "test.add"


def test_values_stay() -> None:
    same_values(MergeComposite([RELU, ("test.add", is_op("add")(wildcard(), wildcard()))]), module(BEFORE))


@pytest.mark.parametrize("entry", ["name", ("name",), (1, RELU[1]), ("name", "pattern"), ("name", RELU[1], True)])
def test_a_table_that_is_none_is_named(entry: Any) -> None:
    with pytest.raises(ArgumentError, match=r"entry 1 of the pattern table is expected to be \(name, pattern\)"):
        MergeComposite([RELU, entry])


def test_a_long_program() -> None:
    after = apply(MergeComposite([("test.tanh", is_op("tanh")(wildcard()))]), chain(2000))
    assert after["main"] is not None


def test_pattern_tables_are_known_by_their_compiler() -> None:
    @register_pattern_table("test_merge_composite")
    def table() -> list[Any]:
        return [ADD_RELU]

    assert get_pattern_table("test_merge_composite") == table() and get_pattern_table("nobody") is None
    register_pattern_table("test_merge_composite", lambda: [RELU])
    assert get_pattern_table("test_merge_composite") == [RELU]
    with pytest.raises(ArgumentError, match="a function that returns the table"):
        register_pattern_table("test_merge_composite", [RELU])  # type: ignore[arg-type]
