"""DeadCodeElimination."""
from __future__ import annotations

import numpy as np
import pytest

from anchorleg import relay
from anchorleg.ir import IRModule
from anchorleg.relay.transform import DeadCodeElimination

from .passes import apply, check, module, unchanged, values

HEAD = "def @main(%x: Tensor[(2), float32]) "


def test_unread_bindings_go() -> None:
    check("DeadCodeElimination", HEAD + "{ let %a = add(%x, %x); let %b = multiply(%x, %x); %b }", HEAD + "{ let %b = multiply(%x, %x); %b }")


def test_what_only_dead_bindings_read_goes_too() -> None:
    check("DeadCodeElimination", HEAD + "{ let %a = add(%x, %x); let %b = multiply(%a, %a); %x }", HEAD + "{ %x }")


def test_read_bindings_stay() -> None:
    unchanged("DeadCodeElimination", HEAD + "{ let %a = add(%x, %x); let %b = multiply(%a, %a); (%a, %b) }")


def test_effects_stay_unless_ignored() -> None:
    text = HEAD + "{ let %r = ref(%x); let %u = ref_write(%r, add(%x, %x)); ref_read(%r) }"
    unchanged("DeadCodeElimination", text)
    check(DeadCodeElimination(ignore_impurity=True), text, HEAD + "{ let %r = ref(%x); ref_read(%r) }")


def test_a_call_of_an_unknown_function_may_have_effects() -> None:
    text = "def @main(%f: fn (Tensor[(2), float32]) -> Tensor[(2), float32], %x: Tensor[(2), float32]) { let %a = %f(%x); %x }"
    unchanged("DeadCodeElimination", text)


def test_values_read_once_move_to_their_reader() -> None:
    check(DeadCodeElimination(inline_once=True), HEAD + "{ let %a = add(%x, %x); let %b = multiply(%a, 2f); add(%b, %b) }",
          HEAD + "{ let %b = multiply(add(%x, %x), 2f); add(%b, %b) }")


def test_inside_branches_and_functions() -> None:
    head = "def @main(%c: bool, %x: Tensor[(2), float32]) "
    check("DeadCodeElimination", head + "{ if (%c) { let %a = add(%x, %x); %x } else { let %f = fn (%y: Tensor[(2), float32]) { let %z = %y; %y }; %f(%x) } }",
          head + "{ if (%c) { %x } else { let %f = fn (%y: Tensor[(2), float32]) { %y }; %f(%x) } }")


def test_a_recursive_local_function_that_is_called_stays() -> None:
    text = """def @main(%n: int32) -> int32 {
  let %f: fn (int32) -> int32 = fn (%i: int32) -> int32 { if (less(%i, 1)) { 0 } else { add(%i, %f(subtract(%i, 1))) } };
  %f(%n)
}"""
    mod = module(text)
    after = apply("DeadCodeElimination", mod)
    assert int(values(after, np.int32(4))[0]) == 10


@pytest.mark.parametrize("inline_once", [False, True])
def test_a_nest_of_dead_bindings_takes_linear_time(inline_once: bool) -> None:
    x = relay.var("x", shape=(2,))
    value: relay.Expr = x
    for i in range(4000):
        value = relay.Let(relay.var(f"v{i}"), value, relay.negative(x))
    mod = apply(DeadCodeElimination(inline_once=inline_once), IRModule.from_expr(relay.Function([x], value)))
    assert isinstance(mod["main"].body, relay.Call)


def test_a_value_read_once_does_not_move_into_a_function() -> None:
    check(DeadCodeElimination(inline_once=True),
          HEAD + "{ let %a = add(%x, %x); let %f = fn (%y) { let %z = add(%y, %y); add(%a, %z) }; (%f(%x), %f(%x)) }",
          HEAD + "{ let %a = add(%x, %x); let %f = fn (%y) { add(%a, add(%y, %y)) }; (%f(%x), %f(%x)) }")
