"""CanonicalizeOps and CanonicalizeCast."""
from __future__ import annotations

import pytest

from anchorleg import relay

from .passes import apply, check, count, of, same_values, unchanged


@pytest.mark.parametrize("axis", [1, -1, 0, 3, -3])
def test_bias_add_is_a_broadcast_sum(axis: int) -> None:
    x, b = relay.var("x", shape=(2, 3, 4, 5)), relay.var("b", shape=((2, 3, 4, 5)[axis],))
    mod = same_values("CanonicalizeOps", of(relay.Function([x, b], relay.nn.bias_add(x, b, axis=axis))))
    assert count(mod, "nn.bias_add") == 0 and count(mod, "add") == 1


def test_the_bias_is_expanded_behind_its_axis() -> None:
    check("CanonicalizeOps", "def @main(%x: Tensor[(1, 8, 4, 4), float32], %b: Tensor[(8), float32]) { nn.bias_add(%x, %b) }",
          "def @main(%x: Tensor[(1, 8, 4, 4), float32], %b: Tensor[(8), float32]) { add(%x, expand_dims(%b, axis=1, num_newaxis=2)) }")


def test_sums_are_let_alone() -> None:
    unchanged("CanonicalizeOps", "def @main(%x: Tensor[(1, 8), float32], %b: Tensor[(8), float32]) { add(%x, %b) }")


def test_each_reader_of_a_widening_cast_gets_its_own() -> None:
    head = "def @main(%x: Tensor[(4), int8], %y: Tensor[(4), int32]) "
    check("CanonicalizeCast", head + '{ %0 = cast(%x, dtype="int32"); (add(%0, %y), multiply(%0, %y)) }',
          head + '{ %0 = cast(%x, dtype="int32"); %1 = cast(%x, dtype="int32"); (add(%0, %y), multiply(%1, %y)) }')


@pytest.mark.parametrize("body", [
    '{ add(cast(%x, dtype="int32"), %y) }',  # one reader
    '{ %0 = cast(%y, dtype="int8"); (add(%0, %x), multiply(%0, %x)) }',  # narrowing
    '{ %0 = cast(%x, dtype="int32"); (sum(%0), max(%0)) }',  # readers that are no element-wise operators
])
def test_casts_that_stay_shared(body: str) -> None:
    unchanged("CanonicalizeCast", "def @main(%x: Tensor[(4), int8], %y: Tensor[(4), int32]) " + body)


def test_a_second_run_changes_nothing() -> None:
    x, y = relay.var("x", shape=(4,), dtype="int8"), relay.var("y", shape=(4,), dtype="int32")
    wide = relay.cast(x, "int32")
    once = apply("CanonicalizeCast", of(relay.Tuple([relay.add(wide, y), relay.multiply(wide, y), relay.subtract(wide, wide)])))
    assert apply("CanonicalizeCast", once) is once
