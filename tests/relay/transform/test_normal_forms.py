"""ToANormalForm, ToGraphNormalForm and ToBasicBlockNormalForm."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from anchorleg import relay
from anchorleg.ir import IRModule
from anchorleg.ir.structural import structural_equal
from anchorleg.relay.analysis import check_basic_block_normal_form, well_formed
from anchorleg.relay.analysis.variables import exprs
from anchorleg.relay.transform.device_scopes import recover_virtual_device_map
from anchorleg.runtime import cpu
from anchorleg.support.errors import AnchorlegError

from .passes import apply, check, count, module, of, same_values, unchanged, values

HEAD = "def @main(%x: Tensor[(2), float32]) "
FORMS = ("ToANormalForm", "ToGraphNormalForm", "ToBasicBlockNormalForm")


def test_every_step_gets_a_name() -> None:
    check("ToANormalForm", HEAD + "{ add(multiply(%x, %x), %x) }",
          HEAD + "{ let %a: Tensor[(2), float32] = multiply(%x, %x); let %b: Tensor[(2), float32] = add(%a, %x); %b }")


def test_names_go_again() -> None:
    check("ToGraphNormalForm", HEAD + "{ let %a = multiply(%x, %x); let %b = add(%a, %x); (%b, %a) }",
          HEAD + "{ %0 = multiply(%x, %x); (add(%0, %x), %0) }")


def test_there_and_back() -> None:
    x = relay.var("x", shape=(2,))
    y = relay.exp(x)
    mod = of(relay.Function([x], relay.Tuple([relay.add(y, y), relay.tanh(y)])))
    assert structural_equal(apply("ToGraphNormalForm", apply("ToANormalForm", mod)), mod)


def test_branches_keep_their_steps() -> None:
    mod = module("def @main(%c: bool, %x: float32) { if (%c) { exp(negative(%x)) } else { tanh(%x) } }")
    after = apply("ToANormalForm", mod)
    (branch,) = [n for n in exprs(after["main"]) if isinstance(n, relay.If)]
    assert isinstance(branch.true_branch, relay.Let) and isinstance(branch.false_branch, relay.Let)
    for c in (True, False):
        np.testing.assert_array_equal(values(after, np.bool_(c), np.float32(1)), values(mod, np.bool_(c), np.float32(1)))


@pytest.mark.parametrize("form", FORMS)
def test_a_binding_used_twice(form: str) -> None:
    var = relay.var("v", shape=(), dtype="int32")
    bound = relay.Let(var, relay.add(relay.const(1), relay.const(1)), var)
    mod = apply(form, of(relay.Function([], relay.multiply(bound, bound))))
    assert well_formed(mod["main"]) and int(values(mod)[0]) == 4


def test_what_two_blocks_share_is_bound_around_them() -> None:
    x, c = relay.var("x", shape=(2,)), relay.var("c", shape=(), dtype="bool")
    y = relay.add(x, x)
    mod = of(relay.Function([c, x], relay.If(c, relay.multiply(y, y), relay.negative(y))))
    with pytest.raises(AnchorlegError, match="several scopes"):
        check_basic_block_normal_form(mod["main"])
    after = apply("ToBasicBlockNormalForm", mod)
    assert check_basic_block_normal_form(after["main"]) and isinstance(after["main"].body, relay.Let) and count(after, "add") == 1
    for flag in (True, False):
        a = np.array([1, 2], "float32")
        np.testing.assert_array_equal(values(after, np.bool_(flag), a), values(mod, np.bool_(flag), a))


def test_what_one_branch_shares_with_its_own_branches_is_bound_in_it() -> None:
    x, c, d = relay.var("x", shape=(2,)), relay.var("c", shape=(), dtype="bool"), relay.var("d", shape=(), dtype="bool")
    y = relay.add(x, x)
    inner = relay.If(d, relay.multiply(y, y), y)
    after = apply("ToBasicBlockNormalForm", of(relay.Function([c, d, x], relay.If(c, inner, x))))
    body = after["main"].body
    assert isinstance(body, relay.If) and isinstance(body.true_branch, relay.Let)


def test_without_control_flow_blocks_are_as_they_were() -> None:
    unchanged("ToBasicBlockNormalForm", HEAD + "{ %0 = exp(%x); add(%0, %0) }")


@pytest.mark.parametrize("form", FORMS)
def test_recursive_functions(form: str) -> None:
    mod = apply(form, module("""
def @sum(%n: int32) -> int32 { if (equal(%n, 0)) { %n } else { add(@sum(subtract(%n, 1)), %n) } }
def @main(%n: int32) -> int32 { @sum(%n) }"""))
    assert int(values(mod, np.int32(10))[0]) == 55


@pytest.mark.parametrize("form", FORMS)
def test_local_recursion(form: str) -> None:
    mod = apply(form, module("""
def @main(%n: int32) -> int32 {
  let %f: fn (int32) -> int32 = fn (%i: int32) -> int32 { if (less(%i, 1)) { 0 } else { add(%i, %f(subtract(%i, 1))) } };
  %f(%n)
}"""))
    assert int(values(mod, np.int32(4))[0]) == 10


def test_effects_keep_their_order() -> None:
    mod = module("def @main(%x: int32) { let %r = ref(%x); let %u = ref_write(%r, add(%x, 1)); ref_read(%r) }")
    assert int(values(apply("ToANormalForm", mod), np.int32(3))[0]) == 4


def test_shared_values_in_a_nest_of_bindings() -> None:
    """Each of many nested scopes uses one value: its scope is found without walking from each to the root."""
    x = relay.var("x", shape=())
    shared, body, names = relay.exp(x), x, [relay.var(f"v{i}") for i in range(4000)]
    for var in names:
        body = relay.Let(var, relay.negative(shared), body)
    for form in FORMS[::2]:
        assert count(apply(form, IRModule.from_expr(relay.Function([x], body))), "exp") == 1


def test_diamonds() -> None:
    x: Any = relay.var("x", shape=())
    y = x
    for _ in range(30):
        y = relay.add(y, y)
    mod = same_values("ToANormalForm", of(relay.Function([x], y)))
    assert count(mod, "add") == 30


def test_marks_of_devices_go_with_every_step() -> None:
    x = relay.var("x", shape=(2,))

    def there(e: relay.Expr) -> relay.Expr:
        return relay.annotation.on_device(e, cpu(1), constrain_result=True)

    func = relay.Function([x], relay.exp(relay.op.device_copy(there(relay.tanh(relay.negative(x))), cpu(1), cpu(0))))
    mod = apply("ToANormalForm", of(func))
    lets, body = [], mod["main"].body
    while isinstance(body, relay.Let):
        lets.append(body)
        body = body.body
    marks = [let.value.args[0].op.name for let in lets if let.value.op.name == "on_device"]
    assert marks == ["negative", "tanh"] and [let.value.op.name for let in lets if let.value.op.name != "on_device"] == ["device_copy", "exp"]
    found = recover_virtual_device_map(mod, mod["main"])
    assert [found[let.var].virtual_device_id for let in lets] == [1, 1, -1, -1]
