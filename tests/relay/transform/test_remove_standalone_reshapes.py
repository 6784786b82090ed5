"""Lowered reshapes take the memory of what they reshape."""
from __future__ import annotations

from typing import Any

from anchorleg import relay
from anchorleg.ir.attrs import DictAttrs
from anchorleg.relay.expr import Call, Let
from anchorleg.relay.op.call import CallLoweredAttrs
from anchorleg.relay.transform import RemoveStandaloneReshapes

_TEXT = """#[version = "0.0.5"]
def @k(%x: Tensor[(4, 4), float32]) -> Tensor[(4, 4), float32] { %x }
def @reshape(%x: Tensor[(4, 4), float32]) -> Tensor[(4, 4), float32] { %x }
def @main(%a: Tensor[(4, 4), float32]) {
  let %x = call_lowered(@FIRST, (%a,));
  let %y = call_lowered(@reshape, (%x,));
  %y
}"""


def _module(first: str, marked: bool) -> Any:
    mod = relay.parse(_TEXT.replace("FIRST", first))
    main = mod["main"]
    inner: Let = main.body.body
    attrs = CallLoweredAttrs(metadata={"relay_attrs": DictAttrs({"relay.reshape_only": 1})}) if marked else inner.value.attrs
    inner = Let(inner.var, Call(inner.value.op, inner.value.args, attrs), inner.body)
    mod["main"] = main.replace(body=Let(main.body.var, main.body.value, inner))
    return mod


def test_a_reshape_of_a_call_is_that_call() -> None:
    before = _module("k", True)
    after = RemoveStandaloneReshapes()(before)
    body = after["main"].body
    assert body.body.value is body.value
    assert [g.name_hint for g in after.functions] == ["k", "main"] and "reshape" in before


def test_what_is_no_reshape_or_reshapes_an_input_stays() -> None:
    mod = _module("k", False)
    assert RemoveStandaloneReshapes()(mod) is mod
    text = _TEXT.replace("  let %x = call_lowered(@FIRST, (%a,));\n", "").replace("(%x,)", "(%a,)")
    only_input = relay.parse(text)
    assert RemoveStandaloneReshapes()(only_input) is only_input
