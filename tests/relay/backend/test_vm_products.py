"""Matrix products whose rows, columns and batches only the inputs tell: around the tiles of 6 rows and 32 columns."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from anchorleg import IRModule, relay
from anchorleg.runtime.device import cpu
from anchorleg.runtime.vm import VirtualMachine

RNG = np.random.default_rng(8)
LENGTHS = (0, 1, 2, 5, 6, 7, 15, 16, 17, 31, 32, 33, 70)


def machine(func: relay.Function) -> VirtualMachine:
    made = VirtualMachine(relay.vm.compile(IRModule.from_expr(func), "llvm"), cpu())
    assert [e.name for e in made._exec.packed if e.kind == "host"] == []
    return made


def f(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape).astype("float32")


@pytest.mark.parametrize("units", [5, 40, 64])
def test_dense_layers_over_any_number_of_rows(units: int) -> None:
    x, weight, bias = relay.var("x", shape=(relay.Any(), 24)), f(units, 24), f(units)
    y = relay.add(relay.nn.dense(x, relay.const(weight)), relay.const(bias))
    made = machine(relay.Function([x], relay.multiply(y, relay.sigmoid(y))))
    for n in LENGTHS:
        data = f(n, 24)
        want = data @ weight.T + bias
        np.testing.assert_allclose(made.run(data).numpy(), want / (1 + np.exp(-want)), rtol=1e-4, atol=1e-5)


def test_products_with_a_transposed_operand_of_any_length() -> None:
    n, m = relay.Any(), relay.Any()
    a, b = relay.var("a", shape=(3, n, 20)), relay.var("b", shape=(3, m, 20))
    made = machine(relay.Function([a, b], relay.divide(relay.nn.batch_matmul(a, b), relay.const(4.0))))
    for k, rows in enumerate(LENGTHS):
        x, y = f(3, rows, 20), f(3, LENGTHS[-1 - k], 20)
        np.testing.assert_allclose(made.run(x, y).numpy(), x @ y.transpose(0, 2, 1) / 4, rtol=1e-4, atol=1e-5)


def attention(q: Any, k: Any, v: Any) -> Any:
    scores = relay.nn.softmax(relay.divide(relay.nn.batch_matmul(q, k), relay.const(4.0)), -1)
    return relay.nn.batch_matmul(scores, v, transpose_b=False)


def test_attention_over_any_batch_and_length() -> None:
    shape = (relay.Any(), relay.Any(), 16)
    params = [relay.var(n, shape=shape) for n in "qkv"]
    made = machine(relay.Function(params, attention(*params)))
    for length in LENGTHS[1:]:
        q, k, v = (f(1 + length % 3, length, 16) for _ in range(3))
        scores = np.exp(q.astype("float64") @ k.transpose(0, 2, 1) / 4)
        want = scores / scores.sum(-1, keepdims=True) @ v
        np.testing.assert_allclose(made.run(q, k, v).numpy(), want, rtol=1e-4, atol=1e-5)
