"""Evaluating Relay by numpy rules: bindings, branches, closures, depth."""
from __future__ import annotations

import numpy as np
import pytest

import anchorleg.relay.op  # noqa: F401
from anchorleg import relay
from anchorleg.ir.module import IRModule
from anchorleg.ir.op import Op
from anchorleg.relay.backend.numpy_interpreter import evaluate
from anchorleg.relay.transform.infer_type import infer_module
from anchorleg.support.errors import ArgumentError

X = np.array([1.0, -2.0], np.float32)


def call(name: str, *args: relay.Expr) -> relay.Call:
    return relay.Call(Op.get(name), list(args))


def run(params: list[relay.Var], body: relay.Expr, *args: object) -> object:
    return evaluate(infer_module(IRModule.from_expr(relay.Function(params, body))), args)


def test_tuples_and_bindings() -> None:
    x, y = relay.var("x", shape=(2,)), relay.var("y")
    body = relay.Let(y, call("negative", x), relay.Tuple([y, call("add", y, y)]))
    first, second = run([x], body, X)
    np.testing.assert_array_equal(first, -X)
    np.testing.assert_array_equal(second, -2 * X)


@pytest.mark.parametrize("flag", [True, False])
def test_only_the_branch_taken_is_evaluated(flag: bool) -> None:
    c, x = relay.var("c", shape=(), dtype="bool"), relay.var("x", shape=(2,))
    shared = call("abs", x)
    body = relay.If(c, call("negative", shared), shared)
    np.testing.assert_array_equal(run([c, x], call("add", body, shared), np.array(flag), X), 0 * X if flag else 2 * np.abs(X))


def test_closures_keep_their_variables() -> None:
    x, y, z = relay.var("x", shape=(2,)), relay.var("y", shape=(2,)), relay.var("f")
    inner = relay.Function([y], call("add", x, y))
    body = relay.Let(z, inner, relay.Call(z, [relay.Call(z, [x])]))
    np.testing.assert_array_equal(run([x], body, X), 3 * X)


def test_global_functions() -> None:
    x = relay.var("x", shape=(2,))
    mod = IRModule({"twice": relay.Function([x], call("add", x, x))})
    y = relay.var("y", shape=(2,))
    mod["main"] = relay.Function([y], relay.Call(mod.get_global_var("twice"), [y]))
    np.testing.assert_array_equal(evaluate(infer_module(mod), {"y": X}), 2 * X)


def test_a_chain_of_twenty_thousand() -> None:
    x = relay.var("x", shape=(2,))
    body: relay.Expr = x
    for _ in range(20_000):
        body = call("negative", body)
    np.testing.assert_array_equal(run([x], body, X), X)


def test_bindings_nested_twenty_thousand_deep() -> None:
    x = relay.var("x", shape=(2,))
    names = [relay.var(f"v{i}") for i in range(20_000)]
    body: relay.Expr = names[-1]
    for i in reversed(range(len(names))):
        body = relay.Let(names[i], call("negative", names[i - 1] if i else x), body)
    np.testing.assert_array_equal(run([x], body, X), X)


def test_wrong_arguments() -> None:
    x = relay.var("x", shape=(2,))
    with pytest.raises(ArgumentError, match="1 arguments are expected, got 2"):
        run([x], x, X, X)
    mod = infer_module(IRModule.from_expr(relay.Function([x], x)))
    with pytest.raises(ArgumentError, match="parameters are x; got y"):
        evaluate(mod, {"y": X})
