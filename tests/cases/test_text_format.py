"""Kinds of faults in the text format."""
from __future__ import annotations

import numpy as np
import pytest

from anchorleg import relay
from anchorleg.ir import IRModule, assert_structural_equal, load_json, save_json
from anchorleg.ir.attrs import DictAttrs
from anchorleg.ir.transform import get_pass
from anchorleg.support.errors import ParseError

HEAD = '#[version = "0.0.5"]\n'


def test_attributes_that_are_left_out_or_none():
    call = relay.nn.dense(relay.var("x", shape=(2, 3)), relay.var("y", shape=(3, 3)))
    mod = get_pass("InferType")(IRModule.from_expr(call))
    assert_structural_equal(relay.parse(mod.astext()), mod)
    parsed = relay.parse(HEAD + "def @main(%x: Tensor[(2, 3), float32], %y: Tensor[(3, 3), float32]) { nn.dense(%x, %y) }")["main"].body
    assert parsed.attrs.units is None and parsed.attrs.out_dtype in ("", None)


def test_an_attribute_without_a_value_prints():
    x = relay.var("x", shape=(1,))
    func = relay.Function([x], x, None, (), DictAttrs({"nothing": None, "some": 1}))
    assert "some=1" in func.astext()


@pytest.mark.parametrize("text, dtype, value", [("-42i16", "int16", -42), ("-42i64", "int64", -42), ("2147483647", "int32", 2147483647),
                                                ("2147483648", "int64", 2147483648), ("9223372036854775807", "int64", 2**63 - 1),
                                                ("3f16", "float16", 3)])
def test_numbers_of_every_width(text, dtype, value):
    constant = relay.parse_expr(text)
    assert constant.data.dtype == dtype and constant.data.numpy()[()] == value


@pytest.mark.parametrize("text", ["2147483648i32", "32768i16"])
def test_numbers_that_do_not_fit(text):
    with pytest.raises(ParseError):
        relay.parse_expr(text)


def test_text_attributes_lose_their_quotes():
    mod = relay.parse(HEAD + 'def @main(%x: Tensor[(1, 32, 32, 3), float32], %y: Tensor[(1, 1, 3, 3), float32]) '
                      '{ nn.conv2d(%x, %y, data_layout="NHWC", kernel_layout="HWIO") }')
    attrs = mod["main"].body.attrs
    assert attrs.data_layout == "NHWC" and attrs.kernel_layout == "HWIO"
    assert mod["main"].checked_type.ret_type.concrete_shape == (1, 32, 32, 3)


def test_shared_parts_print_once_and_return():
    y = relay.var("x", shape=())
    for _ in range(30):
        y = y + y
    mod = get_pass("InferType")(IRModule.from_expr(y))
    text = mod.astext()
    assert text.count("add(") == 30
    assert_structural_equal(relay.parse(text), mod)
    assert_structural_equal(load_json(save_json(mod)), mod)


def test_constants_survive():
    weights = np.array([[1.5, -0.0], [np.inf, np.nan]], "float32")
    mod = get_pass("InferType")(IRModule.from_expr(relay.add(relay.var("x", shape=(2, 2)), relay.const(weights))))
    again = relay.parse(mod.astext())["main"].body.args[1].data.numpy()
    np.testing.assert_array_equal(again.view("int32"), weights.view("int32"))
