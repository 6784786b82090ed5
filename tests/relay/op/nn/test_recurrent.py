"""Recurrent layers in one kernel, against their numpy rule and a plain loop, for every kind of cell."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from anchorleg import IRModule, relay, transform
from anchorleg.relay.transform import InferType
from anchorleg.runtime.device import cpu
from anchorleg.runtime.vm import VirtualMachine
from anchorleg.support.errors import TypeMismatchError

RNG = np.random.default_rng(11)
GATES = {"lstm": 4, "gru": 3, "gru_reset_first": 3, "rnn": 1}


def weights(kind: str, units: int, rows: int) -> list[np.ndarray]:
    """The recurrent weight, the vectors beside it, and the states."""
    weight = RNG.standard_normal((GATES[kind], units, units)) / np.sqrt(units)
    extra = [RNG.standard_normal(units)] if kind.startswith("gru") else []
    states = [RNG.standard_normal((rows, units)) for _ in range(2 if kind == "lstm" else 1)]
    return [a.astype("float32") for a in (weight, *extra, *states)]


def layer(kind: str, x: Any, given: list[Any], backward: bool = False) -> relay.Expr:
    if kind == "lstm":
        return relay.op.nn.contrib_lstm(x, *given, backward=backward)
    if kind == "rnn":
        return relay.op.nn.contrib_rnn(x, *given, backward=backward)
    return relay.op.nn.contrib_gru(x, *given, backward=backward, linear_before_reset=kind == "gru")


def sigmoid(x: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-x))


def by_hand(kind: str, x: np.ndarray, weight: np.ndarray, *rest: np.ndarray) -> tuple[np.ndarray, ...]:
    """One step after the other, in float64."""
    x, weight, *rest = (a.astype("float64") for a in (x, weight, *rest))
    units, ys = weight.shape[-1], []
    h = rest[-1] if kind != "lstm" else rest[0]
    h = np.broadcast_to(h, (x.shape[1], units))
    c = rest[-1]
    for row in x:
        given = [row[:, g * units:(g + 1) * units] for g in range(GATES[kind])]
        sums = [h @ w.T for w in weight]
        if kind == "lstm":
            c = sigmoid(given[2] + sums[2]) * c + sigmoid(given[0] + sums[0]) * np.tanh(given[3] + sums[3])
            h = sigmoid(given[1] + sums[1]) * np.tanh(c)
        elif kind == "rnn":
            h = np.tanh(given[0] + sums[0])
        else:
            z, r = sigmoid(given[0] + sums[0]), sigmoid(given[1] + sums[1])
            inner = r * (sums[2] + rest[0]) if kind == "gru" else (r * h) @ weight[2].T + rest[0]
            h = (1 - z) * np.tanh(given[2] + inner) + z * h
        ys.append(h)
    states = (h, np.broadcast_to(c, h.shape)) if kind == "lstm" else (h,)
    return (np.array(ys).reshape(x.shape[0], x.shape[1], units), *states)


def machine(func: relay.Function, level: int = 3) -> VirtualMachine:
    with transform.PassContext(opt_level=level):
        return VirtualMachine(relay.vm.compile(IRModule.from_expr(func), "llvm"), cpu())


def check(found: Any, want: Any) -> None:
    for a, b in zip(found, want, strict=True):
        np.testing.assert_allclose(a.numpy(), b, rtol=2e-5, atol=2e-5)


@pytest.mark.parametrize("units", [1, 5, 16, 40, 64])
@pytest.mark.parametrize("kind", GATES)
def test_steps_and_batches_that_are_not_known(kind: str, units: int) -> None:
    given = weights(kind, units, 1)
    x = relay.var("x", shape=(relay.Any(), relay.Any(), GATES[kind] * units))
    made = machine(relay.Function([x], layer(kind, x, [relay.const(g) for g in given])))
    assert [e.name for e in made._exec.packed if e.kind == "host"] == []
    for steps, batch in [(1, 1), (3, 1), (2, 2), (2, 7), (0, 2), (2, 0)]:
        data = RNG.standard_normal((steps, batch, GATES[kind] * units)).astype("float32")
        check(made.run(data), by_hand(kind, data, *given))


@pytest.mark.parametrize("batch", [1, 4, 9])
@pytest.mark.parametrize("kind", GATES)
def test_states_that_are_inputs_and_steps_taken_backward(kind: str, batch: int) -> None:
    given = weights(kind, 24, batch)
    x = relay.var("x", shape=(3, batch, GATES[kind] * 24))
    states = [relay.var(f"s{i}", shape=(batch, 24)) for i in range(2 if kind == "lstm" else 1)]
    fixed = [relay.const(g) for g in given[:len(given) - len(states)]]
    func = relay.Function([x, *states], layer(kind, x, [*fixed, *states], True))
    data = RNG.standard_normal((3, batch, GATES[kind] * 24)).astype("float32")
    want = by_hand(kind, data[::-1], *given)
    want = (want[0][::-1], *want[1:])
    check(machine(func).run(data, *given[-len(states):]), want)
    check(relay.create_executor("debug", mod=IRModule.from_expr(func)).evaluate()(data, *given[-len(states):]), want)


@pytest.mark.parametrize("kind", GATES)
def test_weights_that_are_inputs_stay_as_they_are(kind: str) -> None:
    given = weights(kind, 20, 2)
    x = relay.var("x", shape=(4, 2, GATES[kind] * 20))
    params = [relay.var(f"p{i}", shape=g.shape) for i, g in enumerate(given)]
    data = RNG.standard_normal((4, 2, GATES[kind] * 20)).astype("float32")
    for level in (0, 3):
        check(machine(relay.Function([x, *params], layer(kind, x, params)), level).run(data, *given), by_hand(kind, data, *given))


@pytest.mark.parametrize("kind", GATES)
def test_states_of_unknown_sizes(kind: str) -> None:
    given = weights(kind, 16, 2)
    x = relay.var("x", shape=(relay.Any(), relay.Any(), GATES[kind] * 16))
    states = [relay.var(f"s{i}", shape=(relay.Any(), relay.Any())) for i in range(2 if kind == "lstm" else 1)]
    fixed = [relay.const(g) for g in given[:len(given) - len(states)]]
    made = machine(relay.Function([x, *states], layer(kind, x, [*fixed, *states])))
    assert [e.name for e in made._exec.packed if e.kind == "host"] == []
    data = RNG.standard_normal((3, 2, GATES[kind] * 16)).astype("float32")
    check(made.run(data, *given[-len(states):]), by_hand(kind, data, *given))
    with pytest.raises(ValueError, match="hidden units|rows as the batch"):
        made.run(data, *[np.zeros((2, 15), "float32")] * len(states))
    with pytest.raises(ValueError, match="hidden units|rows as the batch"):
        made.run(data, *[np.zeros((3, 16), "float32")] * len(states))


def test_many_units_in_two_threads() -> None:
    given = weights("lstm", 384, 1)
    x = relay.var("x", shape=(3, 1, 4 * 384))
    data = RNG.standard_normal((3, 1, 4 * 384)).astype("float32")
    check(machine(relay.Function([x], layer("lstm", x, [relay.const(g) for g in given]))).run(data), by_hand("lstm", data, *given))


@pytest.mark.parametrize("shapes, said", [
    ([(2, 16), (4, 4, 4), (1, 4), (1, 4)], "expected data"), ([(2, 1, 15), (4, 4, 4), (1, 4), (1, 4)], "does not fit 4 gates"),
    ([(2, 1, 16), (3, 4, 4), (1, 4), (1, 4)], "4 gates, got 3"), ([(2, 1, 16), (4, 4, 4), (1, 5), (1, 4)], "of 4 units")])
def test_shapes_that_do_not_fit(shapes: list[tuple[int, ...]], said: str) -> None:
    with pytest.raises(TypeMismatchError, match=said):
        InferType()(IRModule.from_expr(relay.op.nn.contrib_lstm(*(relay.var(f"a{i}", shape=s) for i, s in enumerate(shapes)))))
