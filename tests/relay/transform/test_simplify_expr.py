"""SimplifyExpr: each rule once where it applies and once where it must not."""
from __future__ import annotations

from typing import Callable

import numpy as np
import pytest

from anchorleg import relay

from .passes import apply, check, count, of, same_values, unchanged

HEAD = "def @main(%x: Tensor[(2, 3, 4), float32]) "


@pytest.mark.parametrize("before, after", [
    ("{ reshape(reshape(%x, newshape=[4, 6]), newshape=[24]) }", "{ reshape(%x, newshape=[24]) }"),
    ("{ reshape(expand_dims(%x, axis=0), newshape=[2, 3, 4]) }", "{ %x }"),
    ("{ transpose(transpose(%x, axes=[2, 0, 1]), axes=[1, 2, 0]) }", "{ %x }"),
    ("{ transpose(transpose(%x, axes=[1, 0, 2]), axes=[2, 1, 0]) }", "{ transpose(%x, axes=[2, 0, 1]) }"),
    ("{ cast(cast(%x, dtype=\"float64\"), dtype=\"float32\") }", "{ %x }"),
    ("{ cast(%x, dtype=\"float32\") }", "{ %x }"),
    ("{ multiply(%x, 1f) }", "{ %x }"),
    ("{ divide(%x, 1f) }", "{ %x }"),
    ("{ subtract(%x, 0f) }", "{ %x }"),
    ("{ power(%x, 2f) }", "{ multiply(%x, %x) }"),
    ("{ concatenate((%x,), axis=1) }", "{ %x }"),
    ("{ broadcast_to(%x, shape=[2, 3, 4]) }", "{ %x }"),
    ("{ layout_transform(layout_transform(reshape(%x, newshape=[1, 24, 1, 1]), src_layout=\"NCHW\", dst_layout=\"NCHW8c\"), "
     "src_layout=\"NCHW8c\", dst_layout=\"NCHW\") }", "{ reshape(%x, newshape=[1, 24, 1, 1]) }"),
])
def test_rules(before: str, after: str) -> None:
    check("SimplifyExpr", HEAD + before, HEAD + after)


@pytest.mark.parametrize("text", [
    "{ cast(cast(%x, dtype=\"float16\"), dtype=\"float32\") }",  # float16 loses digits
    "{ cast(cast(%x, dtype=\"bool\"), dtype=\"int32\") }",  # any non-zero is true
    "{ add(%x, 0f) }",  # -0 + 0 is +0
    "{ divide(1f, %x) }",
    "{ subtract(1f, %x) }",
    "{ power(%x, 3f) }",
])
def test_not_where_a_value_would_change(text: str) -> None:
    unchanged("SimplifyExpr", HEAD + text)


def test_a_cast_through_bool_keeps_its_meaning() -> None:
    x = relay.var("x", shape=(1,), dtype="int64")
    mod = apply("SimplifyExpr", of(relay.cast(relay.cast(x, "bool"), "int32")))
    assert count(mod, "cast") == 2


def test_broadcasting_by_one_is_no_identity() -> None:
    x = relay.var("x", shape=(1, 3))
    mod = apply("SimplifyExpr", of(relay.multiply(x, relay.const(np.ones((2, 3), "float32")))))
    assert count(mod, "multiply") == 1


def test_moving_unit_axes_is_a_reshape() -> None:
    x = relay.var("x", shape=(1, 5, 1, 7))
    mod = same_values("SimplifyExpr", of(relay.transpose(x, [1, 0, 3, 2])))
    assert count(mod, "transpose") == 0 and count(mod, "reshape") == 1


def test_padding_layout_transforms_do_not_cancel() -> None:
    x = relay.var("x", shape=(1, 5, 2, 2))
    inner = relay.layout_transform(x, "NCHW", "NCHW4c")
    mod = apply("SimplifyExpr", of(relay.layout_transform(inner, "NCHW4c", "NCHW")))
    assert mod["main"].checked_type.ret_type.concrete_shape == (1, 8, 2, 2)
    assert count(mod, "layout_transform") == 2


@pytest.mark.parametrize("before, after", [
    ("zeros_like(%x)", 'zeros(shape=[2, 3, 4], dtype="float32")'),
    ("ones_like(%x)", 'ones(shape=[2, 3, 4], dtype="float32")'),
    ("cast_like(%x, 1)", 'cast(%x, dtype="int32")'),
    ("broadcast_to_like(%x, zeros(shape=[5, 2, 3, 4], dtype=\"float32\"))", "broadcast_to(%x, shape=[5, 2, 3, 4])"),
])
def test_likes_need_no_other_tensor(before: str, after: str) -> None:
    check("SimplifyExpr", HEAD + "{ " + before + " }", HEAD + "{ " + after + " }")


@pytest.mark.parametrize("make, left", [
    (lambda x: relay.layout_transform(relay.transpose(x, [0, 3, 1, 2]), "NCHW", "NCHW4c"), "layout_transform"),
    (lambda x: relay.transpose(relay.layout_transform(relay.layout_transform(x, "NHWC", "NCHW4c"), "NCHW4c", "NCHW"), [0, 2, 3, 1]), None),
    (lambda x: relay.layout_transform(relay.layout_transform(x, "NHWC", "NCHW"), "NCHW", "CHWN"), "transpose"),
    (lambda x: relay.transpose(relay.layout_transform(x, "NHWC", "NCHW4c"), [0, 4, 2, 3, 1]), "layout_transform"),
    (lambda x: relay.transpose(relay.layout_transform(x, "NHWC", "NCHW"), [3, 2, 1, 0]), "transpose"),
])
def test_transposes_and_layout_changes_are_one_step(make: Callable[[relay.Expr], relay.Expr], left: str | None) -> None:
    mod = same_values("SimplifyExpr", of(make(relay.var("x", shape=(2, 3, 5, 8)))))
    assert count(mod, "transpose", "layout_transform") == (left is not None) and (left is None or count(mod, left) == 1)


@pytest.mark.parametrize("first, second, folded", [("subtract", "add", "add(%x, 2 "), ("add", "add", "add(%x, 8 "),
                                                   ("subtract", "subtract", "subtract(%x, 8 "), ("add", "subtract", "add(%x, -2 ")])
def test_sums_of_integers_with_constants_become_one(first: str, second: str, folded: str) -> None:
    one, two = getattr(relay, first), getattr(relay, second)
    x = relay.var("x", shape=(1, 4, 2), dtype="int32")
    assert folded in str(apply("FoldConstant", apply("SimplifyExpr", of(two(one(x, relay.const(3)), relay.const(5))))))
    a, b = relay.const(np.array([3, 2**31 - 1], "int32")), relay.const(np.array([[[5, 5]]], "int32"))
    assert isinstance(same_values("SimplifyExpr", of(two(one(x, a), b)))["main"].body.args[0], relay.Var)


def test_other_sums_stay() -> None:
    x = relay.var("x", shape=(1, 4, 2), dtype="int32")
    row, column = relay.const(np.array([1, 2], "int32")), relay.const(np.ones((4, 1), "int32"))
    for body in (relay.add(relay.add(x, row), column), relay.add(relay.subtract(row, x), relay.const(3))):  # more elements together; not x + a
        mod = apply("SimplifyExpr", of(body))
        assert count(mod, "add") + count(mod, "subtract") == 2


def test_sums_of_floats_round_each_time() -> None:
    x = relay.var("x", shape=(2,))
    mod = apply("SimplifyExpr", of(relay.add(relay.add(x, relay.const(1e8)), relay.const(-1e8))))
    assert count(mod, "add") == 2
