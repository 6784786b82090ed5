"""Recurrent layers over all steps of a sequence: the recurrent half of LSTM, GRU and plain RNN cells.

The products with the inputs, which need no order, are taken beforehand for all steps at once; ``data`` holds them with the
biases added.  Each operator gives the hidden state of every step, and the last states.
"""
from __future__ import annotations

from typing import Any, Callable, NamedTuple, Sequence

import numpy as np

from ....ir.attrs import BOOL, STR, Attrs, Field
from ....ir.expr import RelayExpr
from ....ir.op import Op, OpPattern
from ....ir.type import TensorType, TupleType, Type
from ....support.errors import TypeMismatchError
from ....tir.data_layout import BijectiveLayout
from ...expr import Call
from ..registry import declare
from ..transform.transpose import convert_layout
from .common import known, shown, tensor

PLAIN = "GOI"  # gates, hidden units, units of the state before


class RecurrentAttrs(Attrs, name="relay.attrs.RecurrentAttrs"):
    """Attributes of nn.contrib_lstm and nn.contrib_rnn."""

    __slots__ = ()
    backward = Field(BOOL, False, "Whether the steps are taken last to first.")
    weight_layout = Field(STR, PLAIN, "Layout of the recurrent weight: GOI, or packed by hidden units, e.g. OIG16o.")


class GRUAttrs(Attrs, name="relay.attrs.GRUAttrs"):
    """Attributes of nn.contrib_gru."""

    __slots__ = ()
    backward = Field(BOOL, False, "Whether the steps are taken last to first.")
    weight_layout = Field(STR, PLAIN, "Layout of the recurrent weight: GOI, or packed by hidden units, e.g. OIG16o.")
    linear_before_reset = Field(BOOL, True, "Whether the reset gate is applied to the state's product (else to the state).")


def _sigmoid(x: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-x.astype("float64"))).astype(x.dtype)


def _lstm_step(x: np.ndarray, weight: np.ndarray, extra: Sequence[np.ndarray], states: list[np.ndarray], attrs: Any) -> list[np.ndarray]:
    h, c = states
    i, o, f, new = (x[:, g] + h @ weight[g].T for g in range(4))
    c = _sigmoid(f) * c + _sigmoid(i) * np.tanh(new)
    return [_sigmoid(o) * np.tanh(c), c]


def _gru_step(x: np.ndarray, weight: np.ndarray, extra: Sequence[np.ndarray], states: list[np.ndarray], attrs: Any) -> list[np.ndarray]:
    (h,), (bias,) = states, extra
    z, r = (_sigmoid(x[:, g] + h @ weight[g].T) for g in range(2))
    inner = r * (h @ weight[2].T + bias) if attrs.linear_before_reset else (r * h) @ weight[2].T + bias
    new = np.tanh(x[:, 2] + inner)
    return [(1 - z) * new + z * h]


def _rnn_step(x: np.ndarray, weight: np.ndarray, extra: Sequence[np.ndarray], states: list[np.ndarray], attrs: Any) -> list[np.ndarray]:
    return [np.tanh(x[:, 0] + states[0] @ weight[0].T)]


class CellKind(NamedTuple):
    """What tells one kind of cell from another."""

    gates: int
    extra: int  # vectors of one entry for each hidden unit, between the weight and the states
    states: int
    step: Callable[..., list[np.ndarray]]


KINDS = {"nn.contrib_lstm": CellKind(4, 0, 2, _lstm_step), "nn.contrib_gru": CellKind(3, 1, 1, _gru_step), "nn.contrib_rnn": CellKind(1, 0, 1, _rnn_step)}


def _relation(op: str, kind: CellKind) -> Any:
    def relation(args: tuple[Type, ...], attrs: Any, ctx: Any) -> Type | None:
        types = [tensor(t, f"{op}, argument {i}") for i, t in enumerate(args)]
        if any(t is None for t in types):
            return None
        data, weight, *rest = types
        if len(data.dims) != 3:
            raise TypeMismatchError(f"{op}: expected data (steps, batch, {kind.gates} x hidden), got shape {shown(data.dims)}")
        gates, _, inner = BijectiveLayout(attrs.weight_layout, PLAIN).forward_shape(weight.dims)
        hidden = _hidden(op, kind, data, inner)
        if known(gates) and gates != kind.gates:
            raise TypeMismatchError(f"{op}: expected a weight of {kind.gates} gates, got {gates}")
        for t, rank in zip(rest, [1] * kind.extra + [2] * kind.states):
            if len(t.dims) != rank or known(t.dims[-1], hidden) and t.dims[-1] != hidden:
                raise TypeMismatchError(f"{op}: expected {'a state (batch, hidden)' if rank == 2 else 'a vector (hidden,)'} of {hidden} units, "
                                        f"got shape {shown(t.dims)}")
        state = TensorType([data.dims[1], hidden], data.dtype)
        return TupleType([TensorType([*data.dims[:2], hidden], data.dtype), *([state] * kind.states)])

    return relation


def _hidden(op: str, kind: CellKind, data: TensorType, inner: Any) -> Any:
    if known(inner, data.dims[2]) and inner * kind.gates != data.dims[2]:
        raise TypeMismatchError(f"{op}: data of {data.dims[2]} columns does not fit {kind.gates} gates of {inner} hidden units")
    return inner


def _numpy(kind: CellKind) -> Any:
    def run(attrs: Any, args: list[np.ndarray], out_type: Any) -> list[np.ndarray]:
        data, weight, *rest = args
        units = rest[-1].shape[-1]
        weight = convert_layout(weight, attrs.weight_layout, PLAIN)[:, :units]
        steps, batch = data.shape[:2]
        extra, states = rest[:kind.extra], [np.broadcast_to(s, (batch, units)) for s in rest[kind.extra:]]
        ys = np.zeros((steps, batch, units), data.dtype)
        for t in reversed(range(steps)) if attrs.backward else range(steps):
            states = kind.step(data[t].reshape(batch, kind.gates, units), weight, extra, states, attrs)
            ys[t] = states[0]
        return [ys, *(np.array(s, data.dtype) for s in states)]

    return run


_STATES = "The states before the first step are (batch, hidden), or (1, hidden) for all of the batch."
declare("nn.contrib_lstm", inputs=("data", "weight", "hidden", "cell"), attrs=RecurrentAttrs, relation=_relation("nn.contrib_lstm", KINDS["nn.contrib_lstm"]),
        pattern=OpPattern.OPAQUE, numpy=_numpy(KINDS["nn.contrib_lstm"]), level=10,
        doc="LSTM cells over data (steps, batch, 4 hidden), gates in the order input, output, forget, cell: "
            f"(hidden states of all steps, last hidden state, last cell state).  {_STATES}")
declare("nn.contrib_gru", inputs=("data", "weight", "bias", "hidden"), attrs=GRUAttrs, relation=_relation("nn.contrib_gru", KINDS["nn.contrib_gru"]),
        pattern=OpPattern.OPAQUE, numpy=_numpy(KINDS["nn.contrib_gru"]), level=10,
        doc="GRU cells over data (steps, batch, 3 hidden), gates in the order update, reset, hidden; bias is that of the state's product for the "
            f"hidden gate: (hidden states of all steps, last hidden state).  {_STATES}")
declare("nn.contrib_rnn", inputs=("data", "weight", "hidden"), attrs=RecurrentAttrs, relation=_relation("nn.contrib_rnn", KINDS["nn.contrib_rnn"]),
        pattern=OpPattern.OPAQUE, numpy=_numpy(KINDS["nn.contrib_rnn"]), level=10,
        doc=f"Plain tanh cells over data (steps, batch, hidden): (hidden states of all steps, last hidden state).  {_STATES}")


def contrib_lstm(data: RelayExpr, weight: RelayExpr, hidden: RelayExpr, cell: RelayExpr, backward: bool = False) -> Call:
    """LSTM cells over ``data`` (steps, batch, 4 hidden) with the recurrent ``weight`` (4, hidden, hidden)."""
    return Call(Op.get("nn.contrib_lstm"), [data, weight, hidden, cell], RecurrentAttrs(backward=backward))


def contrib_gru(data: RelayExpr, weight: RelayExpr, bias: RelayExpr, hidden: RelayExpr, backward: bool = False, linear_before_reset: bool = True) -> Call:
    """GRU cells over ``data`` (steps, batch, 3 hidden) with the recurrent ``weight`` (3, hidden, hidden)."""
    attrs = GRUAttrs(backward=backward, linear_before_reset=linear_before_reset)
    return Call(Op.get("nn.contrib_gru"), [data, weight, bias, hidden], attrs)


def contrib_rnn(data: RelayExpr, weight: RelayExpr, hidden: RelayExpr, backward: bool = False) -> Call:
    """Plain tanh cells over ``data`` (steps, batch, hidden) with the recurrent ``weight`` (1, hidden, hidden)."""
    return Call(Op.get("nn.contrib_rnn"), [data, weight, hidden], RecurrentAttrs(backward=backward))


__all__ = ["GRUAttrs", "KINDS", "RecurrentAttrs", "contrib_gru", "contrib_lstm", "contrib_rnn"]
