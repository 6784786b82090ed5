"""Recurrent layers: all steps in one kernel.

A step takes the hidden units in blocks.  For a block, the products of the state with the weights of all gates are summed in
registers; then the gates are applied, and nothing but the new states goes to memory.  A weight that is packed (blocks of units,
units of the state before, gates, units of the block) is read from beginning to end once in a step.
"""
from __future__ import annotations

from typing import Any, Callable, NamedTuple, Sequence

from ...te.tensor import Tensor
from ...tir import op as T
from ...tir.data_layout import Layout
from ...tir.expr import Var
from ...tir.stmt import For, ForKind, Stmt
from ..kernel import View, extern, loop, scratch, seq
from ..utils import static_int
from ..vector import power_of_two_at_most

SHARED_WORK = 1 << 19  # multiply-adds in a step from which several threads share it
MOST_SUMS = 24  # vectors that are summed at once
STREAMS = 16  # loads of weights in one turn of the loop over the terms: processors follow about as many at once


class Phase(NamedTuple):
    """Part of a step: which gates are summed over which array, and what becomes of the sums."""

    gates: tuple[int, ...]
    source: int  # 0: the hidden state; k > 0: the k-th of the layer's work arrays
    finish: Callable[[Unit], Stmt]


class Cell(NamedTuple):
    """A kind of cell: how many gates, states and work arrays, and the phases of a step."""

    gates: int
    states: int
    work: int
    phases: tuple[Phase, ...]


class Layer(NamedTuple):
    """One layer: its sizes, its arrays, and how its weight lies."""

    cell: Cell
    steps: Any
    batch: Any
    units: int
    weight_layout: str
    lanes: int
    data: View
    weight: View
    bias: View | None
    outs: Sequence[View]  # the hidden states of all steps, then the states
    work: Sequence[View] = ()

    @property
    def block(self) -> int:
        """Hidden units in a block of the weight; 1 where it is not packed."""
        return max(1, Layout(self.weight_layout).factor_of("O"))

    def source(self, index: int) -> View:
        """The array that a phase sums over."""
        return self.outs[1] if index == 0 else self.work[index - 1]


class Unit:
    """One hidden unit, or a vector of them, of one row of the batch in one step."""

    def __init__(self, layer: Layer, t: Any, row: Any, at: Any, sums: dict[int, Any]) -> None:
        self.layer, self.t, self.row, self.at, self.sums = layer, t, row, at, sums

    def given(self, g: int) -> Any:
        """The input of a gate."""
        layer = self.layer
        return layer.data[((self.t * layer.batch + self.row) * layer.cell.gates + g) * layer.units + self.at]

    def gate(self, g: int) -> Any:
        """The input and the sum of a gate."""
        return self.given(g) + self.sums[g]

    def bias(self) -> Any:
        """The unit's entry of the vector that is given beside the weight."""
        return self.layer.bias[self.at]  # type: ignore[index]

    def state(self, k: int) -> Any:
        """A state; the hidden one (0) is that of the step before."""
        return self.layer.outs[1 + k][self._place()]

    def work(self, k: int) -> Any:
        """An entry of a work array."""
        return self.layer.work[k][self._place()]

    def put(self, value: Any) -> Stmt:
        """Stores the new hidden state."""
        layer = self.layer
        return layer.outs[0].store((self.t * layer.batch + self.row) * layer.units + self.at, value)

    def put_state(self, k: int, value: Any) -> Stmt:
        """Stores another state."""
        return self.layer.outs[1 + k].store(self._place(), value)

    def put_work(self, k: int, value: Any) -> Stmt:
        """Stores an entry of a work array."""
        return self.layer.work[k].store(self._place(), value)

    def _place(self) -> Any:
        return self.row * self.layer.units + self.at


def _lstm(u: Unit) -> Stmt:
    cell = u.put_state(1, T.sigmoid(u.gate(2)) * u.state(1) + T.sigmoid(u.gate(0)) * T.tanh(u.gate(3)))
    return seq(cell, u.put(T.sigmoid(u.gate(1)) * T.tanh(u.state(1))))


def _mixed(u: Unit, update: Any, new: Any) -> Stmt:
    """The new hidden state of a GRU: between ``new`` and the old one."""
    return u.put(new + update * (u.state(0) - new))


def _gru(u: Unit) -> Stmt:
    return _mixed(u, T.sigmoid(u.gate(0)), T.tanh(u.given(2) + T.sigmoid(u.gate(1)) * (u.sums[2] + u.bias())))


def _gru_reset(u: Unit) -> Stmt:
    return seq(u.put_work(0, T.sigmoid(u.gate(1)) * u.state(0)), u.put_work(1, T.sigmoid(u.gate(0))))


LSTM = Cell(4, 2, 0, (Phase((0, 1, 2, 3), 0, _lstm),))
GRU = Cell(3, 1, 0, (Phase((0, 1, 2), 0, _gru),))
GRU_RESET_FIRST = Cell(3, 1, 2, (Phase((0, 1), 0, _gru_reset), Phase((2,), 1, lambda u: _mixed(u, u.work(1), T.tanh(u.gate(2) + u.bias())))))
RNN = Cell(1, 1, 0, (Phase((0,), 0, lambda u: u.put(T.tanh(u.gate(0)))),))


def recurrent(cell: Cell, data: Tensor, weight: Tensor, bias: Tensor | None, states: Sequence[Tensor], backward: bool, weight_layout: str,
              lanes: int) -> list[Tensor]:
    """The hidden states of all steps and the last states of a layer.

    ``data`` (steps, batch, gates * hidden) holds the inputs' products with the biases; ``states`` are (batch or 1, hidden).
    """
    steps, batch, _ = data.shape
    units = static_int(weight.shape[weight_layout.index("I")])
    given = [data, weight, *([bias] if bias is not None else []), *states]
    first = len(given) - cell.states

    def body(ins: list[View], outs: list[View]) -> Stmt:
        layer = Layer(cell, steps, batch, units, weight_layout, lanes, ins[0], ins[1], ins[2] if bias is not None else None, outs)
        starts = [_start(layer, s, ins[first + k], static_int(states[k].shape[0])) for k, s in enumerate(outs[1:])]
        return seq(*starts, _with_work(layer, lambda it: loop(steps, lambda t: _step(it, steps - 1 - t if backward else t), "step")))

    shapes = [(steps, batch, units), *([(batch, units)] * cell.states)]
    return extern(shapes, given, body, [data.dtype] * len(shapes), "recurrent", "recurrent")


def _with_work(layer: Layer, body: Callable[[Layer], Stmt]) -> Stmt:
    """``body`` of the layer with its work arrays."""
    if len(layer.work) == layer.cell.work:
        return body(layer)
    return scratch(layer.batch * layer.units, layer.data.dtype, lambda w: _with_work(layer._replace(work=(*layer.work, w)), body), "work")


def _start(layer: Layer, state: View, given: View, rows: int | None) -> Stmt:
    """Copies the states before the first step to where they are kept."""
    def row(b: Any) -> Stmt:
        source = 0 if rows == 1 else b * layer.units
        return _units(layer, lambda j: state.store(b * layer.units + j, given[source + j]))

    return loop(layer.batch, row, "row")


def _units(layer: Layer, fn: Callable[[Any], Stmt]) -> Stmt:
    """``fn`` of every hidden unit, in vectors."""
    whole = layer.units // layer.lanes
    parts = [loop(whole, lambda v: _vector(layer.lanes, lambda i: fn(v * layer.lanes + i)), "vector")]
    rest = layer.units - whole * layer.lanes
    return seq(*parts, _vector(rest, lambda i: fn(whole * layer.lanes + i))) if rest else parts[0]


def _vector(lanes: int, fn: Callable[[Any], Stmt]) -> Stmt:
    """``fn`` of neighbouring lanes, at once."""
    if lanes == 1:
        return fn(0)
    lane = Var("lane", "int64")
    return For(lane, 0, lanes, ForKind.VECTORIZED, fn(lane))


def _step(layer: Layer, t: Any) -> Stmt:
    """One step, from the states before; then the new hidden state takes the place of the old one."""
    size, batch = layer.units, layer.batch
    kept = loop(batch, lambda b: _units(layer, lambda j: layer.outs[1].store(b * size + j, layer.outs[0][(t * batch + b) * size + j])), "row")
    return seq(*[_phase(layer, phase, t) for phase in layer.cell.phases], kept)


def _phase(layer: Layer, phase: Phase, t: Any) -> Stmt:
    """A phase for all hidden units, block by block."""
    whole = layer.units // layer.block
    work = (static_int(layer.batch) or 1) * len(phase.gates) * layer.units * layer.units
    blocks = loop(whole, lambda b: _rows(layer, phase, t, _to_and_fro(t, b, whole), layer.block), "block", parallel=work >= SHARED_WORK)
    rest = layer.units - whole * layer.block
    return seq(blocks, _rows(layer, phase, t, whole, rest)) if rest else blocks


def _to_and_fro(t: Any, block: Any, count: int) -> Any:
    """The blocks in one order in even steps, in the other in odd ones: what a step used last is still in the cache when the next begins."""
    if count == 1:
        return block
    return T.select(T.equal(T.floormod(t, 2), 0), block, count - 1 - block)


def _rows(layer: Layer, phase: Phase, t: Any, block: Any, width: int) -> Stmt:
    """A block of units of all rows of the batch, several rows at a time."""
    most = max(1, MOST_SUMS // (-(-width // layer.lanes) * len(phase.gates)))
    known = static_int(layer.batch)

    def tiles(first: Any, turns: Any, count: int) -> Stmt:
        return loop(turns, lambda r: _tile(layer, phase, t, block, width, first + r * count, count), "rows")

    if known is not None:
        count = max(1, -(-known // max(1, -(-known // most))))
        rest = known % count
        return seq(tiles(0, known // count, count), *([tiles(known - rest, 1, rest)] if rest else []))
    done, parts, count = 0, [], power_of_two_at_most(most)
    while count:  # a batch of unknown size: fewer and fewer rows at a time
        turns = T.floordiv(layer.batch - done, count)
        parts.append(tiles(done, turns, count))
        done, count = done + turns * count, count - 1
    return seq(*parts)


def _tile(layer: Layer, phase: Phase, t: Any, block: Any, width: int, row: Any, rows: int) -> Stmt:
    """Sums of a block of units of a few rows, and what becomes of them."""
    pieces = [(at, min(layer.lanes, width - at)) for at in range(0, width, layer.lanes)]
    places = {(r, g, at): (r * len(phase.gates) + k) * width + at for r in range(rows) for k, g in enumerate(phase.gates) for at, _ in pieces}

    def each(fn: Callable[[int, int, int, Any], Stmt]) -> Stmt:
        return seq(*[_vector(n, lambda i, g=g, at=at, r=r: fn(r, g, at, i)) for g in phase.gates for at, n in pieces for r in range(rows)])

    def body(sums: View) -> Stmt:
        zero = each(lambda r, g, at, i: sums.store(places[r, g, at] + i, T.const(0, layer.data.dtype)))

        def term(k: Any) -> Stmt:
            source = layer.source(phase.source)
            return each(lambda r, g, at, i: sums.store(places[r, g, at] + i, sums[places[r, g, at] + i] + source[(row + r) * layer.units + k]
                                                       * layer.weight[_weight_at(layer, block, k, g, at + i)]))

        def finish(r: int, at: int, n: int) -> Stmt:
            return _vector(n, lambda i: phase.finish(Unit(layer, t, row + r, block * layer.block + at + i,
                                                          {g: sums[places[r, g, at] + i] for g in phase.gates})))

        turns = max(1, STREAMS // (len(pieces) * len(phase.gates)))
        return seq(zero, _unrolled(layer.units, turns, term), *[finish(r, at, n) for r in range(rows) for at, n in pieces])

    return scratch(rows * len(phase.gates) * width, layer.data.dtype, body, "sums", "local")


def _unrolled(extent: int, count: int, body: Callable[[Any], Stmt]) -> Stmt:
    """``body(k)`` in order, ``count`` of them in one turn of the loop."""
    whole = extent // count
    turns = loop(whole, lambda k: seq(*[body(k * count + j) for j in range(count)]), "term")
    return seq(turns, *[body(k) for k in range(whole * count, extent)])


def _weight_at(layer: Layer, block: Any, k: Any, gate: int, unit: Any) -> Any:
    """Where the weight of a gate and a unit of a block for unit ``k`` of the state lies."""
    if layer.block == 1:
        return (gate * layer.units + block * layer.block + unit) * layer.units + k
    return ((block * layer.units + k) * layer.cell.gates + gate) * layer.block + unit


__all__ = ["GRU", "GRU_RESET_FIRST", "LSTM", "RNN", "Cell", "recurrent"]
