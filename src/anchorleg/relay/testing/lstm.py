"""An LSTM, one cell per step, its weights shared by all steps or one set for each."""
from __future__ import annotations

from typing import Any

from ...ir.expr import RelayExpr
from ...ir.module import IRModule
from ...ir.type import TensorType
from .. import op
from ..analysis import free_vars
from ..expr import Call, Tuple, TupleGetItem, var, const
from ..function import Function
from ..scope_builder import ScopeBuilder
from .init import create_workload


def lstm_cell(num_hidden: int, batch_size: int = 1, dtype: str = "float32", name: str = "") -> Function:
    """One step: a function of the input, the states (hidden, cell) and the weights; gives (hidden, (hidden, cell))."""
    size = (batch_size, num_hidden)
    state = TensorType(size, dtype)
    data = var(f"{name}data", shape=size, dtype=dtype)
    hidden, memory = var(f"{name}hidden", state), var(f"{name}memory", state)
    wide = 4 * num_hidden
    i2h_w, h2h_w = var(f"{name}i2h_weight", shape=(wide, num_hidden), dtype=dtype), var(f"{name}h2h_weight", shape=(wide, num_hidden), dtype=dtype)
    i2h_b, h2h_b = var(f"{name}i2h_bias", shape=(wide,), dtype=dtype), var(f"{name}h2h_bias", shape=(wide,), dtype=dtype)
    scope = ScopeBuilder()
    of_input = scope.let("i2h", op.nn.bias_add(op.nn.dense(data, i2h_w, wide), i2h_b, axis=-1))
    of_state = scope.let("h2h", op.nn.bias_add(op.nn.dense(hidden, h2h_w, wide), h2h_b, axis=-1))
    gates = op.split(scope.let("gates", op.add(of_input, of_state)), indices_or_sections=4, axis=1).astuple()
    parts = scope.let("parts", gates)
    take, forget, write, give = (TupleGetItem(parts, i) for i in range(4))
    kept = scope.let("kept", op.sigmoid(forget) * memory + op.sigmoid(take) * op.tanh(write))
    out = scope.let("out", op.sigmoid(give) * op.tanh(kept))
    scope.ret(Tuple([out, Tuple([out, kept])]))
    return Function([data, hidden, memory, i2h_w, i2h_b, h2h_w, h2h_b], scope.get())


def get_net(iterations: int, num_hidden: int, batch_size: int = 1, dtype: str = "float32") -> Function:
    """As many steps over one input, starting from zero; the result is the last step's output."""
    cell = lstm_cell(num_hidden, batch_size, dtype)
    scope = ScopeBuilder()
    zero = op.zeros((batch_size, num_hidden), dtype)
    hidden, memory = scope.let("hidden", zero), scope.let("memory", zero)
    data = var("data", shape=(batch_size, num_hidden), dtype=dtype)
    step = scope.let("cell", cell)
    wide = 4 * num_hidden
    weights = [var("i2h_weight", shape=(wide, num_hidden), dtype=dtype), var("i2h_bias", shape=(wide,), dtype=dtype),
               var("h2h_weight", shape=(wide, num_hidden), dtype=dtype), var("h2h_bias", shape=(wide,), dtype=dtype)]
    out: RelayExpr = const(0.0)
    for index in range(iterations):
        result = scope.let(f"step_{index}", Call(step, [data, hidden, memory, *weights]))
        out, states = TupleGetItem(result, 0), TupleGetItem(result, 1)
        hidden, memory = TupleGetItem(states, 0), TupleGetItem(states, 1)
    scope.ret(out)
    body = scope.get()
    return Function(free_vars(body), body)


def get_workload(iterations: int, num_hidden: int, batch_size: int = 1, dtype: str = "float32") -> tuple[IRModule, dict[str, Any]]:
    """The network as a module, and values for its parameters."""
    return create_workload(get_net(iterations, num_hidden, batch_size, dtype))
