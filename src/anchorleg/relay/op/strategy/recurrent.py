"""Strategies of recurrent layers, and how a processor wants their weights packed."""
from __future__ import annotations

from typing import Any, Callable, Sequence

from ....ir.op import Op
from ....target.target import Target
from ....topi.nn.common import dims
from ....topi.nn.recurrent import GRU, GRU_RESET_FIRST, LSTM, RNN, Cell, recurrent
from ....topi.nn.schedule import lanes_of
from ....topi.vector import power_of_two_at_most
from ...expr import Call, Constant
from ..nn.recurrent import KINDS, PLAIN
from ..op import register_alter_op_layout, register_strategy
from .alter_layout import for_processor
from .generic import naive_schedule, simple_strategy

IN_FLIGHT = 6  # sums that keep up with the second-level cache, from which the weight comes


def _cell(op: str, attrs: Any) -> Cell:
    if op == "nn.contrib_gru":
        return GRU if attrs.linear_before_reset else GRU_RESET_FIRST
    return LSTM if op == "nn.contrib_lstm" else RNN


def _compute(op: str) -> Callable[..., Any]:
    extra = KINDS[op].extra

    def compute(attrs: Any, inputs: Sequence[Any], out_type: Any) -> list[Any]:
        data, weight, *rest = inputs
        lanes = lanes_of(Target.current(allow_none=True), data.dtype)
        return recurrent(_cell(op, attrs), data, weight, rest[0] if extra else None, rest[extra:], attrs.backward, attrs.weight_layout, lanes)

    return compute


def unit_block(gates: int, units: int, lanes: int) -> int:
    """Hidden units in a block of a packed weight: so many that one row of the batch has sums enough in flight."""
    block = lanes * power_of_two_at_most(IN_FLIGHT // gates)
    while block > units:
        block //= 2
    return block


def _alter(op: str) -> Callable[..., Any]:
    gates = KINDS[op].gates

    def alter(attrs: Any, inputs: Sequence[Any], tinfos: Sequence[Any], out_type: Any) -> Any:
        """The layer with its constant weight packed; None where it is left alone."""
        target = for_processor()
        if not isinstance(dims(tinfos[1])[1], int):
            return None
        if target is None or attrs.weight_layout != PLAIN or not isinstance(inputs[1], Constant) or tinfos[0].dtype != "float32":
            return None
        block = unit_block(gates, dims(tinfos[1])[1], lanes_of(target, "float32"))
        return Call(Op.get(op), inputs, attrs.replace(weight_layout=f"OIG{block}o")) if block > 1 else None

    alter.takes_unknown_sizes = True  # type: ignore[attr-defined]  # of sequences and batches
    return alter


for _name in KINDS:
    register_strategy(_name, simple_strategy(_compute(_name), naive_schedule, f"{_name}.generic"))
    register_alter_op_layout(_name, _alter(_name))
