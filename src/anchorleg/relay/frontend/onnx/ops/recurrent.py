"""RNN, GRU and LSTM.

The products with the input are taken for all steps at once.  Layers with the usual activations become one operator
(``nn.contrib_lstm`` and its like); of others the recurrent part is unrolled where the number of steps is known (and not large),
else it is a loop.
"""
from __future__ import annotations

from typing import Any, Callable, NamedTuple, Sequence

import numpy as np

from .....ir.expr import RelayExpr
from .....support.errors import ArgumentError, UnsupportedOpError
from ....expr import TupleGetItem
from ..context import NodeContext
from ..while_loop import while_loop
from ..make import call, cast, concat, const, expand_dims, reshape, slice_axis, split, squeeze, stack, stack_many, transpose, where
from ..registry import op
from .activation import elu_of, hard_sigmoid_of, softplus_of

Activation = Callable[[RelayExpr], RelayExpr]


def _affine(n: NodeContext, x: RelayExpr, a: float, b: float) -> RelayExpr:
    return call("add", call("multiply", x, n.like(a, x)), n.like(b, x))


# name: (function, default alpha, default beta); None where it has none
_ACTIVATIONS: dict[str, tuple[Callable[..., RelayExpr], float | None, float | None]] = {
    "relu": (lambda n, x, a, b: call("nn.relu", x), None, None),
    "tanh": (lambda n, x, a, b: call("tanh", x), None, None),
    "sigmoid": (lambda n, x, a, b: call("sigmoid", x), None, None),
    "affine": (_affine, 1.0, 0.0),
    "leakyrelu": (lambda n, x, a, b: call("nn.leaky_relu", x, alpha=a), 0.01, None),
    "thresholdedrelu": (lambda n, x, a, b: where(call("greater", x, n.like(a, x)), x, n.like(0, x)), 1.0, None),
    "scaledtanh": (lambda n, x, a, b: call("multiply", call("tanh", call("multiply", x, n.like(b, x))), n.like(a, x)), 1.0, 1.0),
    "hardsigmoid": (hard_sigmoid_of, 0.2, 0.5),
    "elu": (lambda n, x, a, b: elu_of(n, x, a), 1.0, None),
    "softsign": (lambda n, x, a, b: call("divide", x, call("add", call("abs", x), n.like(1, x))), None, None),
    "softplus": (lambda n, x, a, b: softplus_of(n, x), None, None),
}


def _activations(n: NodeContext, defaults: Sequence[str], directions: int) -> list[list[Activation]]:
    """The activation functions of each direction; alphas and betas go to those that take them, in order."""
    names = [str(f) for f in n.attr("activations", None) or list(defaults) * directions]
    if len(names) != len(defaults) * directions:
        raise ArgumentError(f"{len(defaults) * directions} activations are expected, got {names}")
    alphas, betas = list(n.attr("activation_alpha", [])), list(n.attr("activation_beta", []))
    made = []
    for name in names:
        if name.lower() not in _ACTIVATIONS:
            raise UnsupportedOpError(f"activation {name!r} is not known; known: {', '.join(sorted(_ACTIVATIONS))}")
        fn, alpha, beta = _ACTIVATIONS[name.lower()]
        alpha = alphas.pop(0) if alpha is not None and alphas else alpha
        beta = betas.pop(0) if beta is not None and betas else beta
        made.append(lambda x, fn=fn, a=alpha, b=beta: fn(n, x, a, b))
    per = len(defaults)
    return [made[i * per:(i + 1) * per] for i in range(directions)]


class Direction(NamedTuple):
    """The weights of one direction: input (G H, I), recurrent (G H, H), biases of both (G H,), peepholes, activations."""

    w: RelayExpr
    r: RelayExpr
    wb: RelayExpr | None
    rb: RelayExpr | None
    p: RelayExpr | None
    activations: list[Activation]
    backward: bool


class Cell:
    """What differs between kinds of cells: how many gates, and one step."""

    gates = 1
    defaults: tuple[str, ...] = ("Tanh",)
    states = 1
    whole = "nn.contrib_rnn"  # the operator of a layer with the default activations

    def __init__(self, n: NodeContext, hidden: int) -> None:
        self.n, self.hidden, self.clip = n, hidden, n.attr("clip", None)

    def plain(self) -> bool:
        """Whether the layer is what its operator computes."""
        names = [str(f) for f in self.n.attr("activations", None) or self.defaults]
        usual = all(a.lower() == b.lower() for a, b in zip(names, list(self.defaults) * 2))
        return usual and self.clip is None and self.n.input(7) is None and not self.n.attr("input_forget", 0)

    def beside(self, d: Direction) -> list[RelayExpr]:
        """What the operator takes between the weight and the states."""
        return []

    def options(self) -> dict[str, Any]:
        """The operator's attributes, but for the order of the steps."""
        return {}

    def clipped(self, x: RelayExpr) -> RelayExpr:
        """``x`` within the clip bounds, where there are any."""
        return x if self.clip is None else call("clip", x, a_min=-self.clip, a_max=self.clip)

    def recurrent(self, h: RelayExpr, r: RelayExpr, units: int) -> RelayExpr:
        """The product of the state with recurrent weights."""
        return call("nn.dense", h, r, units=units, out_dtype="")

    def input_bias(self, d: Direction) -> RelayExpr | None:
        """What is added to the input's product: both biases, where the recurrent one needs no other place."""
        if d.wb is None or d.rb is None:
            return d.wb
        return call("add", d.wb, d.rb)

    def step(self, x: RelayExpr, states: list[RelayExpr], d: Direction) -> list[RelayExpr]:
        """The states after one step; ``x`` is the input's product."""
        raise NotImplementedError


class _Rnn(Cell):
    def step(self, x: RelayExpr, states: list[RelayExpr], d: Direction) -> list[RelayExpr]:
        return [d.activations[0](self.clipped(call("add", x, self.recurrent(states[0], d.r, self.hidden))))]


class _Gru(Cell):
    gates = 3
    defaults = ("Sigmoid", "Tanh")
    whole = "nn.contrib_gru"

    def __init__(self, n: NodeContext, hidden: int) -> None:
        super().__init__(n, hidden)
        self.parts: dict[tuple[int, int, int], RelayExpr] = {}
        self.reset_after = bool(n.attr("linear_before_reset", 0))

    def input_bias(self, d: Direction) -> RelayExpr | None:
        if d.wb is None or d.rb is None or not self.reset_after:
            return super().input_bias(d)
        update_reset = slice_axis(d.rb, 0, 0, 2 * self.hidden)
        return call("add", d.wb, concat([update_reset, const(np.zeros(self.hidden), self.n.dtype(d.rb))], 0))

    def beside(self, d: Direction) -> list[RelayExpr]:
        separate = d.wb is not None and d.rb is not None and self.reset_after
        return [self.rows(d.rb, 2, 3) if separate else const(np.zeros(self.hidden), self.n.dtype(d.r))]

    def options(self) -> dict[str, Any]:
        return {"linear_before_reset": self.reset_after}

    def rows(self, weights: RelayExpr, first: int, last: int) -> RelayExpr:
        """The weights of some of the gates; made once, used in every step."""
        key = (id(weights), first, last)
        if key not in self.parts:
            self.parts[key] = self.n.settled(slice_axis(weights, 0, first * self.hidden, last * self.hidden))[0]
        return self.parts[key]

    def step(self, x: RelayExpr, states: list[RelayExpr], d: Direction) -> list[RelayExpr]:
        h, size = states[0], self.hidden
        f, g = d.activations
        xz, xr, xh = _gates(x, 3, size)
        if self.reset_after:
            hz, hr, hh = _gates(self.recurrent(h, d.r, 3 * size), 3, size)
            hh = hh if d.rb is None else call("add", hh, self.rows(d.rb, 2, 3))
        else:
            hz, hr = _gates(self.recurrent(h, self.rows(d.r, 0, 2), 2 * size), 2, size)
        z, r = f(self.clipped(call("add", xz, hz))), f(self.clipped(call("add", xr, hr)))
        if self.reset_after:
            candidate = call("multiply", r, hh)
        else:
            candidate = self.recurrent(call("multiply", r, h), self.rows(d.r, 2, 3), size)
        new = g(self.clipped(call("add", xh, candidate)))
        return [call("add", call("multiply", call("subtract", self.n.like(1, z), z), new), call("multiply", z, h))]


class _Lstm(Cell):
    gates = 4
    defaults = ("Sigmoid", "Tanh", "Tanh")
    states = 2
    whole = "nn.contrib_lstm"

    def step(self, x: RelayExpr, states: list[RelayExpr], d: Direction) -> list[RelayExpr]:
        h, c = states
        f, g, out = d.activations
        i, o, forget, new = _gates(call("add", x, self.recurrent(h, d.r, 4 * self.hidden)), 4, self.hidden)
        pi, po, pf = split(d.p, 3, 0) if d.p is not None else (None, None, None)
        i = f(self.clipped(_peep(i, pi, c)))
        forget = call("subtract", self.n.like(1, i), i) if self.n.attr("input_forget", 0) else f(self.clipped(_peep(forget, pf, c)))
        c = call("add", call("multiply", forget, c), call("multiply", i, g(self.clipped(new))))
        return [call("multiply", f(self.clipped(_peep(o, po, c))), out(c)), c]


def _peep(gate: RelayExpr, weights: RelayExpr | None, cell: RelayExpr) -> RelayExpr:
    return gate if weights is None else call("add", gate, call("multiply", weights, cell))


def _unroll(n: NodeContext, x: RelayExpr, lengths: RelayExpr | None, states: list[RelayExpr], cell: Cell,
            d: Direction) -> tuple[list[RelayExpr], list[RelayExpr]]:
    """(the output of each step, the last states) of one direction; x is (steps, batch, inputs)."""
    steps, _, inputs = n.dims(x)
    if lengths is not None and d.backward:
        x = call("reverse_sequence", x, lengths, seq_axis=0, batch_axis=1)
    products = call("nn.dense", reshape(x, [-1, inputs]), d.w, units=cell.gates * cell.hidden, out_dtype="")
    bias = cell.input_bias(d)
    products = products if bias is None else call("add", products, bias)
    each = _per_step(products, steps, cell)
    outputs: list[Any] = [None] * steps
    for t in range(steps) if lengths is not None or not d.backward else reversed(range(steps)):
        new = n.settled(*cell.step(each[t], states, d))
        if lengths is None:
            states, outputs[t] = new, new[0]
        else:
            alive = expand_dims(call("less", const(t, n.dtype(lengths)), lengths), 1)
            outputs[t] = where(alive, new[0], n.like(0, new[0]))
            states = n.settled(*(where(alive, a, b) for a, b in zip(new, states)))
    return outputs, states


def _whole(n: NodeContext, x: RelayExpr, states: list[RelayExpr], cell: Cell, d: Direction) -> tuple[RelayExpr, list[RelayExpr]]:
    """(outputs of all steps, the last states) of one direction, by the layer's operator; x is (steps, batch, inputs)."""
    weight = n.settled(reshape(d.r, [cell.gates, cell.hidden, cell.hidden]))[0]
    made = call(cell.whole, _products(n, x, cell, d), weight, *cell.beside(d), *states, backward=d.backward, **cell.options())
    outputs, *last = n.settled(*(TupleGetItem(made, i) for i in range(1 + cell.states)))
    return outputs, last


def _products(n: NodeContext, x: RelayExpr, cell: Cell, d: Direction) -> RelayExpr:
    """The inputs' products and the biases: (steps, batch, gates x hidden)."""
    steps, batch, inputs = n.dims(x)
    width = cell.gates * cell.hidden
    products, bias = call("nn.dense", reshape(x, [-1, inputs]), d.w, units=width, out_dtype=""), cell.input_bias(d)
    products = products if bias is None else call("add", products, bias)
    if isinstance(batch, int):
        products = reshape(products, [steps if isinstance(steps, int) else -1, batch, width])
    else:
        products = call("reshape_like", products, x, lhs_begin=0, lhs_end=1, rhs_begin=0, rhs_end=2)
    return n.settled(products)[0]


def _per_step(products: RelayExpr, steps: int, cell: Cell) -> list[RelayExpr]:
    """The rows of each step.  The step is an index tensor, not an attribute, so that all steps share their kernels."""
    if steps == 1:
        return [products]
    whole = cell.n.settled(reshape(products, [steps, -1, cell.gates * cell.hidden]))[0]
    return [squeeze(call("take", whole, const([t], "int64"), axis=0, batch_dims=0, mode="fast"), [0]) for t in range(steps)]


def _gates(x: RelayExpr, count: int, size: int) -> list[RelayExpr]:
    """The columns of each gate."""
    return [slice_axis(x, 1, i * size, (i + 1) * size) for i in range(count)]


def _lengths(n: NodeContext, steps: int) -> RelayExpr | None:
    """The lengths of the sequences, when they are not all whole."""
    lengths = n.input(4)
    value = n.value(lengths)
    return None if lengths is None or value is not None and (value == steps).all() else lengths


def _directions(n: NodeContext, cell: Cell, count: int) -> list[Direction]:
    activations = _activations(n, cell.defaults, count)
    direction = n.attr("direction", "forward")
    size = cell.gates * cell.hidden

    def part(index: int, i: int) -> RelayExpr | None:
        whole = n.input(index)
        return None if whole is None else n.settled(squeeze(slice_axis(whole, 0, i, i + 1), [0]))[0]

    found = []
    for i in range(count):
        b = part(3, i)
        wb, rb = (None, None) if b is None else n.settled(slice_axis(b, 0, 0, size), slice_axis(b, 0, size, 2 * size))
        peepholes = part(7, i) if cell.states == 2 else None
        backward = direction == "reverse" or i == 1
        found.append(Direction(part(1, i), part(2, i), wb, rb, peepholes, activations[i], backward))  # type: ignore[arg-type]
    return found


def _recurrent(n: NodeContext, make: type[Cell]) -> list[RelayExpr]:
    x = n.need(0)
    count = {"forward": 1, "reverse": 1, "bidirectional": 2}.get(n.attr("direction", "forward"))
    if count is None:
        raise ArgumentError(f"direction must be forward, reverse or bidirectional, got {n.attr('direction')!r}")
    batch_first = bool(n.attr("layout", 0))
    x = transpose(x, [1, 0, 2]) if batch_first else x
    steps, batch, inputs = n.dims(x)
    if not isinstance(inputs, int):
        raise UnsupportedOpError("the number of inputs of a step must be known: give the sizes of the model's inputs with shape={name: (…)}")
    cell = make(n, n.attr("hidden_size", None) or n.static_dims(n.need(2), "the recurrent weight")[-1])
    lengths = _lengths(n, steps)
    outputs, last = [], []
    for i, d in enumerate(_directions(n, cell, count)):
        plain = lengths is None and batch != 0 and n.dtype(x) in ("float32", "float64") and cell.plain()
        states = [_initial(n, x, 5 + s, i, 1 if plain else batch, cell, batch_first) for s in range(cell.states)]
        if plain:
            y, finals = _whole(n, x, states, cell, d)
        elif isinstance(steps, int) and steps <= n.importer.config["unroll_limit"]:
            ys, finals = _unroll(n, x, lengths, states, cell, d)
            y = stack_many(ys)
        else:
            y, finals = _looped(n, x, lengths, states, cell, d)
        outputs.append(call("reverse_sequence", y, lengths, seq_axis=0, batch_axis=1) if lengths is not None and d.backward else y)
        last.append(finals)
    axis = 2 if batch_first else 1
    whole = stack([transpose(y, [1, 0, 2]) for y in outputs] if batch_first else outputs, axis)
    return [whole, *(stack([f[s] for f in last], 1 if batch_first else 0) for s in range(cell.states))]


def _looped(n: NodeContext, x: RelayExpr, lengths: RelayExpr | None, states: list[RelayExpr], cell: Cell,
            d: Direction) -> tuple[RelayExpr, list[RelayExpr]]:
    """(outputs of all steps, the last states) of one direction, by a loop over the steps of x (steps, batch, inputs)."""
    if lengths is not None and d.backward:
        x = call("reverse_sequence", x, lengths, seq_axis=0, batch_axis=1)
    products = _products(n, x, cell, d)
    steps = n.settled(call("take", call("shape_of", x, dtype="int64"), const(0, "int64"), axis=0, batch_dims=0, mode="fast"))[0]
    backward = lengths is None and d.backward
    room = call("zeros_like", slice_axis(products, 2, 0, cell.hidden))
    count = len(states)

    def going(vs: list[Any]) -> RelayExpr:
        return call("greater_equal", vs[0], const(0, "int64")) if backward else call("less", vs[0], steps)

    def turn(vs: list[Any]) -> list[RelayExpr]:
        t, old, ys = vs[0], vs[1:1 + count], vs[-1]
        row = call("take", products, t, axis=0, batch_dims=0, mode="fast")
        new = n.settled(*cell.step(row, old, d))
        out = new[0]
        if lengths is not None:
            alive = expand_dims(call("less", cast(t, n.dtype(lengths), "int64"), lengths), 1)
            out = where(alive, new[0], n.like(0, new[0]))
            new = [where(alive, a, b) for a, b in zip(new, old)]
        following = call("subtract" if backward else "add", t, const(1, "int64"))
        return [following, *new, call("vm.put_row", ys, t, out)]

    first = call("subtract", steps, const(1, "int64")) if backward else const(0, "int64")
    names = ["t", *("h", "c")[:count], "ys"]
    _, *finals, ys = while_loop(n, going, turn, [first, *states, room], names)
    return ys, finals


def _initial(n: NodeContext, x: RelayExpr, index: int, direction: int, batch: Any, cell: Cell, batch_first: bool) -> RelayExpr:
    given = n.input(index)
    if given is None:
        if not isinstance(batch, int):
            return _zeros(n, x, cell)
        return const(np.zeros((batch, cell.hidden)), n.dtype(x))
    axis = 1 if batch_first else 0
    return squeeze(slice_axis(given, axis, direction, direction + 1), [axis])


def _zeros(n: NodeContext, x: RelayExpr, cell: Cell) -> RelayExpr:
    """A state of zeros for a batch whose size is not known; x is (steps, batch, inputs)."""
    size = slice_axis(call("shape_of", x, dtype="int64"), 0, 1, 2)
    return call("dyn.zeros", concat([size, const([cell.hidden], "int64")], 0), dtype=n.dtype(x))


op("RNN")(lambda n: _recurrent(n, _Rnn))
op("GRU")(lambda n: _recurrent(n, _Gru))
op("LSTM")(lambda n: _recurrent(n, _Lstm))
