"""Random convolutional graphs: one seed is one graph, with the neighbours that layouts have trouble with."""
from __future__ import annotations

from typing import Any

import numpy as np

from anchorleg import relay
from anchorleg.ir import IRModule
from anchorleg.ir.transform import get_pass

CHANNELS = (1, 3, 4, 6, 8, 12, 16, 24, 32)


class Network:
    """A growing graph of values of rank 4 (``NCHW``), with weights as constants or as inputs."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        self.inputs: list[relay.Var] = []
        size = int(self.pick((4, 5, 7)))
        self.values: list[relay.Expr] = [self.input((1, int(self.pick(CHANNELS)), size, size))]
        self.results: list[relay.Expr] = []

    def pick(self, options: Any) -> Any:
        return options[int(self.rng.integers(len(options)))]

    def input(self, shape: tuple[int, ...]) -> relay.Var:
        var = relay.var(f"x{len(self.inputs)}", shape=shape)
        self.inputs.append(var)
        return var

    def tensor(self, *shape: int) -> relay.Expr:
        if self.rng.random() < 0.2:
            return self.input(shape)
        return relay.const((self.rng.standard_normal(shape) / max(1, np.prod(shape[1:])) ** 0.5).astype("float32"))

    def shape(self, x: relay.Expr) -> tuple[int, ...]:
        return get_pass("InferType")(IRModule.from_expr(relay.Function(relay.analysis.free_vars(x), x)))["main"].body.checked_type.concrete_shape

    def step(self) -> None:
        kind = self.pick(STEPS)
        result = kind(self, self.pick(self.values[-3:]))
        if result is not None:
            self.values.append(result)

    def function(self, steps: int) -> relay.Function:
        """The graph after so many steps; its results are the last values, some in a tuple of their own."""
        for _ in range(steps):
            self.step()
        last = self.values[-2:] + self.results
        body = self.pick([last[0], relay.Tuple(last), relay.Tuple([last[-1], relay.Tuple([last[0], last[0]])])])
        return relay.Function([*self.inputs], body)


def conv(n: Network, x: relay.Expr) -> relay.Expr:
    c = n.shape(x)[1]
    out, k = int(n.pick(CHANNELS)), int(n.pick((1, 3)))
    y = relay.nn.conv2d(x, n.tensor(out, c, k, k), padding=(k // 2, k // 2), channels=out, kernel_size=(k, k))
    return n.pick((lambda v: v, relay.nn.relu, lambda v: relay.nn.bias_add(v, n.tensor(out))))(y)


def depthwise(n: Network, x: relay.Expr) -> relay.Expr:
    c = n.shape(x)[1]
    return relay.nn.conv2d(x, n.tensor(c, 1, 3, 3), padding=(1, 1), groups=c, channels=c, kernel_size=(3, 3))


def broadcast(n: Network, x: relay.Expr) -> relay.Expr:
    shape = n.shape(x)
    kept = tuple(d if n.rng.random() < 0.5 else 1 for d in shape[int(n.rng.integers(5)):])
    op = n.pick((relay.add, relay.multiply, relay.maximum, relay.subtract))
    args = (x, n.tensor(*kept) if kept else relay.const(0.5))
    return op(*args) if n.rng.random() < 0.5 else op(*reversed(args))


def residual(n: Network, x: relay.Expr) -> relay.Expr | None:
    others = [v for v in n.values[-5:] if n.shape(v) == n.shape(x)]
    return n.pick((relay.add, relay.multiply))(x, n.pick(others))


def concat(n: Network, x: relay.Expr) -> relay.Expr:
    shape = n.shape(x)
    others = [v for v in n.values[-5:] if n.shape(v)[2:] == shape[2:] and n.shape(v)[0] == shape[0]]
    return relay.concatenate([x, n.pick(others)], axis=1)


def split(n: Network, x: relay.Expr) -> relay.Expr | None:
    c = n.shape(x)[1]
    if c < 2:
        return None
    cut = int(n.pick([i for i in (1, c // 2, 4, 8) if 0 < i < c]))
    parts = relay.split(x, [cut], axis=1)
    n.results.append(parts[0])
    return parts[1]


def cut(n: Network, x: relay.Expr) -> relay.Expr:
    c = n.shape(x)[1]
    lo = int(n.rng.integers(c))
    return n.pick((
        lambda: relay.strided_slice(x, [lo], [c], [int(n.pick((1, 2, 3)))], axes=[1]),
        lambda: relay.strided_slice(x, [0, lo, 0, 0], [-1, c - lo, -1, -1], slice_mode="size"),
        lambda: relay.strided_slice(x, [0, 0, 1, 1], [1, c, 4, 4], [1, 1, 1, 1]),
        lambda: relay.strided_slice(x, [-1], [-c - 1], [-1], axes=[1])))()


def pad(n: Network, x: relay.Expr) -> relay.Expr:
    widths = n.pick((((0, 0), (0, 0), (1, 1), (0, 1)), ((0, 0), (1, 2), (0, 0), (0, 0))))
    mode = n.pick(("constant", "reflect"))
    return relay.nn.pad(x, widths if mode == "constant" else ((0, 0), (0, 0), (1, 1), (1, 1)), pad_value=0.25, pad_mode=mode)


def pool(n: Network, x: relay.Expr) -> relay.Expr:
    kind = n.pick((relay.nn.max_pool2d, relay.nn.avg_pool2d))
    return kind(x, pool_size=(3, 3), strides=(1, 1), padding=(1, 1))


def aside(n: Network, x: relay.Expr) -> None:
    """A result that leaves the four axes behind."""
    n.results.append(n.pick((
        lambda: relay.sum(x, axis=[2, 3]), lambda: relay.mean(x, axis=[1], keepdims=True), lambda: relay.argmax(x, axis=[1]),
        lambda: relay.argmin(x, axis=[2, 3]), lambda: relay.max(x, axis=[0], exclude=True), lambda: relay.nn.batch_flatten(x),
        lambda: relay.nn.global_avg_pool2d(x), lambda: relay.transpose(x, [0, 2, 3, 1]), lambda: relay.reshape(x, (-1,)),
        lambda: relay.nn.adaptive_avg_pool2d(x, (2, 3)), lambda: relay.squeeze(x, axis=[0]), lambda: relay.sum(x),
        lambda: relay.image.resize2d(x, (8, 9), method="nearest_neighbor", coordinate_transformation_mode="asymmetric"),
        lambda: relay.nn.upsampling(x, 2, 2)))())


def along(n: Network, x: relay.Expr) -> relay.Expr:
    c = n.shape(x)[1]
    return n.pick((
        lambda: relay.nn.softmax(x, axis=int(n.pick((1, 2, -1)))), lambda: relay.nn.lrn(x), lambda: relay.nn.prelu(x, n.tensor(c)),
        lambda: relay.nn.leaky_relu(x, 0.1), lambda: relay.clip(x, -1.0, 1.0), lambda: relay.cast(relay.cast(x, "float64"), "float32"),
        lambda: relay.tanh(x), lambda: relay.Tuple([relay.exp(relay.negative(relay.abs(x)))])))()


def whole(n: Network, x: relay.Expr) -> relay.Expr:
    y = along(n, x)
    return relay.TupleGetItem(y, 0) if isinstance(y, relay.Tuple) else y


STEPS = (conv, conv, conv, depthwise, broadcast, broadcast, residual, concat, split, cut, pad, pool, aside, whole)


def network(seed: int, steps: int = 8) -> IRModule:
    """The typed module of one seed."""
    return get_pass("InferType")(IRModule.from_expr(Network(seed).function(steps)))
