"""Random graphs of small tensors for tests of passes: shared values, several results, tuples, constants; and large shapes of graphs."""
from __future__ import annotations

from typing import Any

import numpy as np

from anchorleg import relay
from anchorleg.ir import IRModule

from .passes import of

SHAPE = (2, 4)


class _Builder:
    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        self.params = [relay.var("a", shape=SHAPE), relay.var("b", shape=SHAPE)]
        self.values: list[relay.Expr] = list(self.params)

    def pick(self, options: Any) -> Any:
        return options[int(self.rng.integers(len(options)))]

    def value(self) -> relay.Expr:
        """An earlier value, most often a late one, or a constant."""
        if self.rng.random() < 0.2:
            shape = self.pick(((), (1,), (4,), SHAPE))
            return relay.const(np.asarray(self.pick((0.0, 1.0, 2.0, 0.5)) * np.ones(shape), "float32"))
        return self.pick(self.values[-4:])

    def step(self) -> relay.Expr:
        x = self.pick(self.values[-4:])
        return self.pick((
            lambda: relay.add(x, self.value()), lambda: relay.multiply(x, self.value()), lambda: relay.subtract(x, self.value()),
            lambda: relay.maximum(self.value(), x), lambda: relay.tanh(x), lambda: relay.nn.relu(x), lambda: relay.negative(x),
            lambda: relay.reshape(relay.reshape(x, (4, 2)), SHAPE), lambda: relay.transpose(relay.transpose(x, (1, 0)), (1, 0)),
            lambda: relay.nn.dense(x, relay.const(self.rng.standard_normal((4, 4)).astype("float32") / 4)),
            lambda: relay.nn.bias_add(x, relay.const(self.rng.standard_normal(4).astype("float32"))),
            lambda: relay.nn.softmax(x), lambda: relay.add(x, relay.sum(x, axis=1, keepdims=True)),
            lambda: relay.TupleGetItem(relay.Tuple([x, self.value()]), 0), lambda: relay.concatenate(
                list(relay.split(x, 2, axis=1)), axis=1),
            lambda: relay.cast(relay.cast(x, "float64"), "float32"), lambda: relay.strided_slice(relay.concatenate([x, x], 0), [0, 0], [2, 4]),
            lambda: relay.nn.dropout(x, 0.5), lambda: relay.nn.layer_norm(x, relay.const(np.ones(4, "float32")), relay.const(np.ones(4, "float32"))),
            lambda: relay.multiply(x, relay.add(relay.const(1.0), relay.const(2.0)))))()


def random_graph(seed: int, steps: int = 14) -> IRModule:
    """The typed module of one seed."""
    builder = _Builder(seed)
    for _ in range(steps):
        builder.values.append(builder.step())
    last = builder.values[-3:]
    return of(relay.Function(builder.params, builder.pick((last[-1], relay.Tuple(last), relay.Tuple([last[0], last[0]])))))


def chain(n: int) -> IRModule:
    """``n`` element-wise operators in a row."""
    x = y = relay.var("x", shape=(2,))
    for _ in range(n):
        y = relay.negative(y)
    return of(relay.Function([x], y))


def lets(n: int) -> IRModule:
    """``n`` bindings in a row, each of the one before."""
    names = [relay.var("x", shape=(2,)), *(relay.var(f"v{i}") for i in range(n))]
    body: relay.Expr = names[-1]
    for before, var in reversed(list(zip(names, names[1:]))):
        body = relay.Let(var, relay.negative(before), body)
    return of(relay.Function([names[0]], body))


def fan(n: int) -> IRModule:
    """One value with ``n`` readers, gathered again."""
    x = relay.var("x", shape=(2,))
    y = relay.exp(x)
    return of(relay.Function([x], relay.concatenate([relay.negative(y) for _ in range(n)], axis=0)))


def diamonds(n: int) -> IRModule:
    """``n`` values each read twice by the next: 2 ** n ways through ``n`` nodes."""
    x = y = relay.var("x", shape=())
    for _ in range(n):
        y = relay.add(y, y)
    return of(relay.Function([x], y))
