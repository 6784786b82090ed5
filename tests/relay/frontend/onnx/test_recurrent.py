"""RNN, GRU and LSTM against ONNX Runtime."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import helper

from anchorleg.relay.frontend import from_onnx
from anchorleg.support.errors import UnsupportedOpError

from .models import check, model, single

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
    from .models import assert_same, ours

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


def test_unknown_number_of_steps_is_refused() -> None:
    x = f(STEPS, BATCH, INPUTS)
    node = helper.make_node("RNN", ["x", "w", "r"], ["y"], name="rnn", hidden_size=HIDDEN)
    proto = model([node], {"x": x}, ["y"], 14, {"w": f(1, HIDDEN, INPUTS), "r": f(1, HIDDEN, HIDDEN)}, {"x": ["steps", BATCH, INPUTS]})
    with pytest.raises(UnsupportedOpError, match="'rnn'.*number of steps must be known"):
        from_onnx(proto)
