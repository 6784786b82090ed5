"""FoldConstant."""
from __future__ import annotations

import numpy as np

from anchorleg import relay
from anchorleg.relay.transform import FoldConstant

from .passes import apply, check, count, of, unchanged, values


def test_operators_of_constants_are_evaluated() -> None:
    check("FoldConstant", "def @main(%x: Tensor[(2), float32]) { add(%x, multiply(2f, 3f)) }",
          "def @main(%x: Tensor[(2), float32]) { add(%x, 6f) }")


def test_what_depends_on_inputs_stays() -> None:
    unchanged("FoldConstant", "def @main(%x: Tensor[(2), float32]) { add(multiply(%x, 2f), 3f) }")


def test_shape_of_a_known_shape_needs_no_value() -> None:
    mod = apply("FoldConstant", of(relay.shape_of(relay.var("x", shape=(2, 3)))))
    assert list(mod["main"].body.data.numpy()) == [2, 3]


def test_a_tuple_field_is_taken_out() -> None:
    check("FoldConstant", "def @main(%x: Tensor[(2), float32]) { (%x, 1f).1 }", "def @main(%x: Tensor[(2), float32]) { 1f }")


def test_a_constant_condition_chooses_its_branch() -> None:
    check("FoldConstant", "def @main(%x: Tensor[(2), float32]) { if (True) { %x } else { tanh(%x) } }",
          "def @main(%x: Tensor[(2), float32]) { %x }")


def test_a_large_tensor_is_not_made_of_nothing() -> None:
    big = relay.broadcast_to(relay.const(1.0), (2048, 2048))
    assert count(apply("FoldConstant", of(relay.add(relay.var("x", shape=(2048, 2048)), big))), "broadcast_to") == 1


def test_nan_folds_to_nan() -> None:
    mod = apply(FoldConstant(), of(relay.tanh(relay.const(np.float32("nan")))))
    assert np.isnan(values(mod)[0])


def test_multiple_results_fold_to_a_tuple() -> None:
    parts = relay.split(relay.const(np.arange(4, dtype="float32")), 2)
    mod = apply("FoldConstant", of(relay.add(parts[0], parts[1])))
    assert isinstance(mod["main"].body, relay.Constant)
    np.testing.assert_array_equal(values(mod)[0], [2, 4])


def test_bindings_and_branches_fold_in_one_run() -> None:
    head = "def @main(%x: float32) "
    check("FoldConstant", head + "{ let %a = 1f; let %b = add(%a, %a); let %c = add(%b, %x); (%c, if (less(%b, 3f)) { %b } else { %x }) }",
          head + "{ let %c: float32 = add(2f, %x); (%c, 2f) }")


def test_a_long_row_of_constant_bindings() -> None:
    names = [relay.var(f"v{i}") for i in range(4000)]
    body: relay.Expr = names[-1]
    for before, var in reversed(list(zip(names, names[1:]))):
        body = relay.Let(var, relay.negative(before), body)
    mod = apply("FoldConstant", of(relay.Function([], relay.Let(names[0], relay.const(1.0), body))))
    assert isinstance(mod["main"].body, relay.Constant)


def test_quantised_operators_wait_until_asked_for() -> None:
    quantised = relay.qnn.op.quantize(relay.const(np.array([1, 2], "float32")), relay.const(0.5), relay.const(0), out_dtype="int8")
    mod = of(relay.Function([], quantised))
    assert FoldConstant()(mod) is mod
    np.testing.assert_array_equal(values(apply(FoldConstant(fold_qnn=True), mod))[0], [2, 4])


def test_marks_of_devices_are_looked_through_and_go_with_constants() -> None:
    x, a, b = relay.var("x", shape=(2,)), relay.var("a"), relay.var("b")

    def here(e: relay.Expr) -> relay.Expr:
        return relay.annotation.on_device(e, "cpu", constrain_result=True)

    before = relay.Let(a, here(relay.const(2.0)), relay.Let(b, here(relay.multiply(a, a)), relay.add(x, b)))
    body = apply("FoldConstant", of(relay.Function([x], before)))["main"].body
    assert body.args[0].name_hint == "x" and body.args[1].op.name == "on_device" and float(body.args[1].args[0].data.numpy()) == 4.0
    loose = relay.multiply(relay.annotation.on_device(relay.const(2.0), "cpu"), relay.const(3.0))  # there may be a copy between them
    assert count(apply("FoldConstant", of(relay.add(x, loose))), "multiply") == 1
