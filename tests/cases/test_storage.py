"""Kinds of fault in memory planning and in the executor's results: nested tuples, values that share memory, results that are inputs."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from anchorleg import relay
from anchorleg.contrib.graph_executor import GraphModule
from anchorleg.relay import nn
from anchorleg.runtime import ndarray

from .run import everywhere, graph, module

X = np.arange(6, dtype="float32").reshape(2, 3)


def _vars(n: int) -> list[Any]:
    return [relay.var(f"x{i}", shape=(2, 3), dtype="float32") for i in range(n)]


def test_nested_results() -> None:
    x, y, z, w = _vars(4)
    mod = module([x, y, z, w], relay.Tuple([x, relay.Tuple([y, relay.Tuple([z, w])])]))
    args = [X + i for i in range(4)]
    found = graph(mod, *args)
    assert len(found) == 4 and all(np.array_equal(f, a) for f, a in zip(found, args))
    nested = relay.create_executor("graph", mod=mod, target="llvm").evaluate()(*args)
    assert len(nested) == 2 and len(nested[1]) == 2 and len(nested[1][1]) == 2
    np.testing.assert_array_equal(nested[1][1][0].numpy(), args[2])


def test_nested_results_that_are_computed() -> None:
    (x,) = _vars(1)
    plus = [relay.add(x, relay.const(np.float32(i))) for i in range(1, 5)]
    mod = module([x], relay.Tuple([plus[0], relay.Tuple([relay.Tuple(plus[1:3]), plus[3]])]))
    everywhere(mod, X, want=[X + i for i in range(1, 5)])


def test_a_result_given_twice_and_an_input_given_back() -> None:
    (x,) = _vars(1)
    y = relay.tanh(x)
    everywhere(module([x], relay.Tuple([y, x, y, relay.reshape(y, (3, 2))])), X, want=[np.tanh(X), X, np.tanh(X), np.tanh(X).reshape(3, 2)])


def test_reshaped_values_share_memory_safely() -> None:
    """A result that is a reshape of another value, and an input whose reshape is read, with pointers given by the caller."""
    a, b = relay.var("a", shape=(56, 224), dtype="float32"), relay.var("b", shape=(112, 112), dtype="float32")
    mod = module([a, b], relay.reshape(nn.matmul(relay.reshape(a, (112, 112)), b), (-1,)))
    rng = np.random.default_rng(0)
    x, y = rng.standard_normal((56, 224)).astype("float32"), rng.standard_normal((112, 112)).astype("float32")
    (copied,) = graph(mod, x, y)
    runner = GraphModule(relay.build(mod, "llvm")["default"]())
    out = ndarray.empty((12544,), "float32")
    runner.set_input_zero_copy("a", ndarray.array(x))
    runner.set_input_zero_copy("b", ndarray.array(y))
    runner.set_output_zero_copy(0, out)
    runner.run()
    np.testing.assert_array_equal(out.numpy(), copied)
    np.testing.assert_allclose(copied, (x.reshape(112, 112) @ y).reshape(-1), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("seed", range(6))
def test_values_live_until_their_last_reader(seed: int) -> None:
    """A graph in which values of many sizes are read late: planned memory must not be given away early."""
    rng = np.random.default_rng(seed)
    x = relay.var("x", shape=(2, 3), dtype="float32")
    values, wanted = [x], [X]
    for _ in range(30):
        i, j = (int(k) for k in rng.integers(len(values), size=2))
        kind = int(rng.integers(4))
        if kind == 0:
            values.append(relay.copy(relay.tanh(values[i]))), wanted.append(np.tanh(wanted[i]))
        elif kind == 1:
            values.append(relay.reverse(relay.repeat(values[i], 2, axis=0), 0)), wanted.append(np.repeat(wanted[i], 2, 0)[::-1])
        elif kind == 2 and wanted[i].shape == wanted[j].shape:
            values.append(relay.subtract(values[i], values[j])), wanted.append(wanted[i] - wanted[j])
        else:
            values.append(relay.cumsum(relay.strided_slice(values[i], [0, 0], [2, 3]), axis=1)), wanted.append(np.cumsum(wanted[i][:2], 1))
        if wanted[-1].size > 100:
            values.pop(), wanted.pop()
    take = sorted(set(rng.integers(1, len(values), size=8).tolist()))
    everywhere(module([x], relay.Tuple([values[k] for k in take])), X, want=[wanted[k] for k in take], levels=(0, 2, 3))
