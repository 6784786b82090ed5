"""RNN, GRU and LSTM against ONNX Runtime."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import helper

from .models import assert_same, check, check_many, model, ours, single

pytest.importorskip("onnxruntime")
_rng = np.random.default_rng(3)
GATES = {"RNN": 1, "GRU": 3, "LSTM": 4}
STEPS, BATCH, INPUTS, HIDDEN = 5, 2, 3, 4


def f(*shape: int) -> np.ndarray:
    return _rng.standard_normal(shape).astype(np.float32)


def layer(op: str, directions: int = 1, extra: dict[int, np.ndarray] | None = None, **attributes: Any) -> Any:
    g = GATES[op] * HIDDEN
    inputs: list[Any] = [f(STEPS, BATCH, INPUTS), f(directions, g, INPUTS), f(directions, g, HIDDEN), f(directions, 2 * g)]
    for index in range(4, max(extra or {0: None}) + 1):
        inputs.append((extra or {}).get(index))
    return single(op, inputs, 14, fixed=[1, 2, 3], outputs=3 if op == "LSTM" else 2, hidden_size=HIDDEN, **attributes)


@pytest.mark.parametrize("op", GATES)
@pytest.mark.parametrize("direction", ["forward", "reverse", "bidirectional"])
def test_directions(op: str, direction: str) -> None:
    check(*layer(op, 2 if direction == "bidirectional" else 1, direction=direction))


@pytest.mark.parametrize("op", GATES)
def test_initial_states_and_lengths(op: str) -> None:
    extra = {4: np.array([3, 5], np.int32), 5: f(2, BATCH, HIDDEN)}
    if op == "LSTM":
        extra |= {6: f(2, BATCH, HIDDEN), 7: f(2, 3 * HIDDEN)}
    check(*layer(op, 2, extra, direction="bidirectional"))


@pytest.mark.parametrize("attributes", [
    {"clip": 0.3}, {"activations": ["HardSigmoid", "ScaledTanh"], "activation_alpha": [0.3, 1.2], "activation_beta": [0.4, 0.9]},
    {"linear_before_reset": 1}, {"activations": ["Sigmoid", "LeakyRelu"], "activation_alpha": [0.2]}])
def test_gru_variants(attributes: dict[str, Any]) -> None:
    check(*layer("GRU", **attributes))


def test_lstm_couples_gates() -> None:
    check(*layer("LSTM", input_forget=1))


def test_one_step_without_bias() -> None:
    proto, feed = single("GRU", [f(1, 1, INPUTS), f(1, 12, INPUTS), f(1, 12, HIDDEN)], 14, fixed=[1, 2], outputs=2, hidden_size=HIDDEN)
    check(proto, feed)


def test_batch_first_is_the_same_transposed() -> None:
    proto, feed = layer("GRU")
    node = proto.graph.node[0]
    node.attribute.append(helper.make_attribute("layout", 1))
    swapped = {"x0": feed["x0"].transpose(1, 0, 2)}
    proto.graph.input[0].CopyFrom(helper.make_tensor_value_info("x0", 1, swapped["x0"].shape))
    y, last = ours(proto, swapped)
    del node.attribute[-1]
    proto.graph.input[0].CopyFrom(helper.make_tensor_value_info("x0", 1, feed["x0"].shape))
    want, want_last = ours(proto, feed)
    assert_same([y, last], [want.transpose(2, 0, 1, 3), want_last.transpose(1, 0, 2)])


def test_many_steps_share_their_operators() -> None:
    proto, feed = single("RNN", [f(70, 1, INPUTS), f(1, HIDDEN, INPUTS), f(1, HIDDEN, HIDDEN)], 14, fixed=[1, 2], outputs=2, hidden_size=HIDDEN)
    check(proto, feed)


# ---- over a number of steps that is not known ------------------------------------------------------------------------------

def lasting(op: str, directions: int = 1, batch: Any = BATCH, given: dict[int, Any] | None = None, **attributes: Any) -> Any:
    """A layer over an unknown number of steps; ``given`` holds more inputs by place: constants, or names of the model's inputs."""
    g = GATES[op] * HIDDEN
    constants = {"x1": f(directions, g, INPUTS), "x2": f(directions, g, HIDDEN), "x3": f(directions, 2 * g)}
    names, inputs, shapes = ["x", "x1", "x2", "x3"], {"x": f(STEPS, BATCH, INPUTS)}, {"x": ["steps", batch, INPUTS]}
    for index in range(4, max(given or {0: None}) + 1):
        each = (given or {}).get(index)
        names.append("" if each is None else f"x{index}")
        if isinstance(each, tuple):
            inputs[f"x{index}"], shapes[f"x{index}"] = each
        elif each is not None:
            constants[f"x{index}"] = each
    outputs = ["y", "h", "c"][:3 if op == "LSTM" else 2]
    node = helper.make_node(op, names, outputs, name="layer", hidden_size=HIDDEN, **attributes)
    return model([node], inputs, outputs, 14, constants, shapes)


@pytest.mark.parametrize("op", GATES)
@pytest.mark.parametrize("direction", ["forward", "reverse", "bidirectional"])
def test_unknown_steps(op: str, direction: str) -> None:
    proto = lasting(op, 2 if direction == "bidirectional" else 1, direction=direction)
    check_many(proto, [{"x": f(steps, BATCH, INPUTS)} for steps in (1, 2, 19)])


@pytest.mark.parametrize("op", GATES)
def test_unknown_steps_and_batch(op: str) -> None:
    proto = lasting(op, 2, "batch", direction="bidirectional")
    check_many(proto, [{"x": f(steps, batch, INPUTS)} for steps, batch in ((1, 1), (4, 3), (7, 2))])


@pytest.mark.parametrize("op", GATES)
def test_unknown_steps_with_lengths_and_states(op: str) -> None:
    state = (f(2, BATCH, HIDDEN), [2, "batch", HIDDEN])
    given: dict[int, Any] = {4: (np.array([2, 3], np.int32), ["batch"]), 5: state}
    if op == "LSTM":
        given |= {6: state, 7: f(2, 3 * HIDDEN)}
    proto = lasting(op, 2, "batch", given, direction="bidirectional")
    feeds = []
    for steps, lengths in ((5, [5, 2]), (3, [1, 3, 3])):
        states = {f"x{i}": f(2, len(lengths), HIDDEN) for i in (5, 6)[:len(given) // 2]}
        feeds.append({"x": f(steps, len(lengths), INPUTS), "x4": np.array(lengths, np.int32), **states})
    check_many(proto, feeds)


@pytest.mark.parametrize(("op", "attributes"), [
    ("GRU", {"clip": 0.3}), ("GRU", {"linear_before_reset": 1}), ("LSTM", {"input_forget": 1, "clip": 0.5}),
    ("RNN", {"activations": ["ThresholdedRelu"], "activation_alpha": [0.1]}),
    ("LSTM", {"activations": ["HardSigmoid", "Affine", "ScaledTanh"], "activation_alpha": [0.3, 0.9, 1.2], "activation_beta": [0.4, 0.1, 0.8]}),
    ("GRU", {"activations": ["Sigmoid", "Elu"], "activation_alpha": [0.5]}), ("RNN", {"activations": ["Softsign"]})])
def test_unknown_steps_variants(op: str, attributes: dict[str, Any]) -> None:
    check_many(lasting(op, **attributes), [{"x": f(steps, BATCH, INPUTS)} for steps in (2, 6)])


def test_weights_as_parameters() -> None:
    check_many(lasting("GRU"), [{"x": f(steps, BATCH, INPUTS)} for steps in (2, 6)], machine=False, freeze_params=False)


def test_unknown_steps_batch_first() -> None:
    proto = lasting("LSTM", 2, direction="bidirectional")
    x = f(6, BATCH, INPUTS)
    want = ours(proto, {"x": x})
    proto.graph.node[0].attribute.append(helper.make_attribute("layout", 1))
    proto.graph.input[0].CopyFrom(helper.make_tensor_value_info("x", 1, [BATCH, "steps", INPUTS]))
    y, *last = ours(proto, {"x": x.transpose(1, 0, 2)})
    assert_same([y, *last], [want[0].transpose(2, 0, 1, 3), *(s.transpose(1, 0, 2) for s in want[1:])])


def test_known_steps_over_the_limit_are_looped() -> None:
    from anchorleg.ir.visit import post_order
    from anchorleg.relay.expr import If
    from anchorleg.relay.frontend import from_onnx

    config = {"unroll_limit": STEPS - 1}
    proto, feed = layer("GRU", 2, direction="bidirectional", clip=9.0)
    assert sum(isinstance(e, If) for e in post_order(from_onnx(proto, convert_config=config)[0]["main"], lambda e: e.children())) == 2
    check_many(proto, [feed], convert_config=config)
