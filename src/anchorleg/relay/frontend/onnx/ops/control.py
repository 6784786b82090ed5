"""Branches, loops and scans.

A branch on a known condition is taken at import.  Loops whose number of turns is known are unrolled; others stay loops.
"""
from __future__ import annotations

from typing import Any, Callable, Sequence

from .....ir.expr import RelayExpr
from .....ir.type import TupleType, Type
from .....support.errors import UnsupportedOpError
from ....expr import Tuple
from ..branches import Fork, Outcome, merged
from ..collect import collector, no_rows, row_count
from ..context import NodeContext
from ..make import call, const, reshape, slice_axis, squeeze, stack, stack_many, transpose
from ..registry import op
from ..scope import Scope
from ..while_loop import while_loop
from .sequence import elements

_LARGEST = 100_000  # nodes that a loop may become


@op("If")
def if_(n: NodeContext) -> Outcome:
    """One of two graphs."""
    condition, short = n.need(0), n.name.rsplit("/", 1)[-1]
    value = n.value(condition)
    if value is not None:
        taken = "then_branch" if bool(value.reshape(-1)[0]) else "else_branch"
        return n.importer.import_graph(n.attr(taken), n.scope, short)
    yes, no = (n.importer.import_graph(n.attr(b), n.scope, f"{short}/{b}") for b in ("then_branch", "else_branch"))
    return merged(_scalar(n, condition), yes, no, n.builder)


def _scalar(n: NodeContext, x: RelayExpr) -> RelayExpr:
    return n.settled(x if n.rank(x) == 0 else reshape(x, []))[0]


def _turn(n: NodeContext, graph: Any, values: Sequence[RelayExpr], name: str) -> list[RelayExpr]:
    """The results of a body for given inputs."""
    scope = Scope(n.scope, prefix=f"{n.name}/{name}/")
    for formal, value in zip(graph.input, values):
        scope.define(formal.name, value)
    n.importer.initializers(graph, scope)
    n.importer.check_supported(graph.node, scope)
    found = n.importer.run_graph(graph, scope)
    if isinstance(found, Fork):
        raise UnsupportedOpError("a turn of the loop makes values of different numbers of dimensions, depending on which way its branches go")
    return found


def _unrolls(n: NodeContext, turns: int) -> bool:
    """Whether a loop of so many turns is written out."""
    return turns == 0 or turns <= n.importer.config["unroll_limit"] and turns * len(n.attr("body").node) <= _LARGEST


def _is_true(n: NodeContext, condition: RelayExpr | None) -> bool | None:
    value = n.value(condition)
    return True if condition is None else None if value is None else bool(value.reshape(-1)[0])


# ---- Loop ----------------------------------------------------------------------------------------------------------------

@op("Loop")
def loop(n: NodeContext) -> list[RelayExpr]:
    """A body run a number of times, or while a condition holds."""
    limit, going = n.value(n.input(0)), _is_true(n, n.input(1))
    turns = None if limit is None else int(limit.reshape(-1)[0])
    if going is False:
        turns = 0
    if turns is None or going is None or not _unrolls(n, turns):
        return _lasting_loop(n)
    return _unrolled_loop(n, turns) or _lasting_loop(n)


def _unrolled_loop(n: NodeContext, turns: int) -> list[RelayExpr] | None:
    """The turns one after the other; None when only a running model knows whether there is a next one."""
    graph, carried, scans = n.attr("body"), n.present_from(2), []
    count = len(carried)
    for turn in range(turns):
        results = _turn(n, graph, [const(turn, "int64"), const(True, "bool"), *carried], str(turn))
        going, carried = _is_true(n, results[0]), results[1:count + 1]
        scans.append(results[count + 1:])
        if going is None and turn + 1 < turns:
            return None
        if not going:
            break
    return [*carried, *_stacked(n, scans, graph, count)]


def _stacked(n: NodeContext, scans: list[list[RelayExpr]], graph: Any, carried: int) -> list[RelayExpr]:
    count = len(graph.output) - 1 - carried
    if count and not scans:
        return [no_rows(n, t) for t in _probe(n, graph, [const(0, "int64"), const(True, "bool"), *n.present_from(2)])[1 + carried:]]
    return [stack_many([each[i] for each in scans]) for i in range(count)]


def _probe(n: NodeContext, graph: Any, values: Sequence[RelayExpr]) -> list[Type]:
    """The types of a body's results."""
    return [n.builder.type_of(e) for e in n.settled(*_turn(n, graph, values, "body"))]


def _lasting_loop(n: NodeContext) -> list[RelayExpr]:
    """A loop that ends when a number of turns is reached, or a condition fails, that only a running model knows."""
    graph, carried = n.attr("body"), n.present_from(2)
    limit = None if n.input(0) is None else _scalar(n, n.to(n.need(0), "int64"))
    count, start = len(carried), const(True, "bool") if n.input(1) is None else _scalar(n, n.need(1))
    probed = n.settled(*_turn(n, graph, [n.alike(const(0, "int64")), const(True, "bool"), *(n.alike(c) for c in carried)], "body"))
    always = _is_true(n, start) is True and _is_true(n, probed[0]) is True
    rows = [collector(n, n.builder.type_of(e), limit if always else None) for e in probed[1 + count:]]

    def going(vs: Sequence[RelayExpr]) -> RelayExpr:
        tests = [call("less", vs[0], limit)] if limit is not None else []
        tests += [] if always else [vs[1]]
        return const(True, "bool") if not tests else tests[0] if len(tests) == 1 else call("logical_and", *tests)

    def turn(vs: Sequence[RelayExpr]) -> list[RelayExpr]:
        again, *results = _turn(n, graph, [vs[0], const(True, "bool"), *vs[2:2 + count]], "body")
        kept = [c.put(buffer, vs[0], e) for c, buffer, e in zip(rows, vs[2 + count:], results[count:])]
        return [call("add", vs[0], const(1, "int64")), _scalar(n, again), *results[:count], *kept]

    found = _carry(n, going, turn, [const(0, "int64"), start, *carried, *(c.empty() for c in rows)], count)
    return [*found[2:2 + count], *(c.rows(buffer, found[0]) for c, buffer in zip(rows, found[2 + count:]))]


def _carry(n: NodeContext, going: Callable[..., RelayExpr], turn: Callable[..., list[RelayExpr]], first: Sequence[RelayExpr],
           carried: int) -> list[RelayExpr]:
    names = ["turn", "going", *(f"carried_{i}" for i in range(carried)), *(f"rows_{i}" for i in range(len(first) - 2 - carried))]
    return while_loop(n, going, turn, first, names)


# ---- Scan ----------------------------------------------------------------------------------------------------------------

@op("Scan", since=9)
def scan(n: NodeContext) -> list[RelayExpr]:
    """A body run once for each slice of its inputs."""
    graph, count = n.attr("body"), n.attr("num_scan_inputs")
    inputs = n.present()
    states, sequences = inputs[:len(inputs) - count], inputs[len(inputs) - count:]
    axes = [n.axis(a, n.rank(s)) for a, s in zip(n.attr("scan_input_axes", [0] * count), sequences)]
    backward = n.attr("scan_input_directions", [0] * count)
    known = [d for s, a in zip(sequences, axes) if isinstance(d := n.dims(s)[a], int)]
    if not known or not _unrolls(n, known[0]):
        return _lasting_scan(n, states, sequences, axes, backward)
    if known[0] == 0:
        return [*states, *_no_steps(n, states, sequences, axes)]
    scans = []
    for turn in range(known[0]):
        parts = [_slice(s, a, known[0] - 1 - turn if b else turn) for s, a, b in zip(sequences, axes, backward)]
        results = _turn(n, graph, [*states, *parts], str(turn))
        states, made = results[:len(states)], results[len(states):]
        scans.append(made)
    return [*states, *_scan_outputs(n, scans, len(graph.output) - len(states))]


def _slice(x: RelayExpr, axis: int, at: int) -> RelayExpr:
    return squeeze(slice_axis(x, axis, at, at + 1), [axis])


def _scan_outputs(n: NodeContext, scans: list[list[RelayExpr]], count: int) -> list[RelayExpr]:
    axes, backward = n.attr("scan_output_axes", [0] * count), n.attr("scan_output_directions", [0] * count)
    found = []
    for i in range(count):
        each = [made[i] for made in scans]
        found.append(stack(each[::-1] if backward[i] else each, n.axis(axes[i], n.rank(each[0]) + 1)))
    return found


def _no_steps(n: NodeContext, states: list[RelayExpr], sequences: list[RelayExpr], axes: list[int]) -> list[RelayExpr]:
    parts = [n.alike(s, without=a) for s, a in zip(sequences, axes)]
    types = _probe(n, n.attr("body"), [*states, *parts])[len(states):]
    where = n.attr("scan_output_axes", [0] * len(types))
    return [_first_to(n, no_rows(n, t), a) for t, a in zip(types, where)]


def _lasting_scan(n: NodeContext, states: list[RelayExpr], sequences: list[RelayExpr], axes: list[int],
                  backward: Sequence[int]) -> list[RelayExpr]:
    """A scan over a number of steps that only a running model knows."""
    graph, held = n.attr("body"), len(states)
    count = len(graph.output) - held
    sequences = n.settled(*(_to_first(n, s, a) for s, a in zip(sequences, axes)))
    (steps,) = n.settled(row_count(sequences[0]))
    types = _probe(n, graph, [*(n.alike(s) for s in states), *(n.alike(s, without=0) for s in sequences)])[held:]
    rows = [collector(n, t, steps) for t in types]

    def turn(vs: Sequence[RelayExpr]) -> list[RelayExpr]:
        (opposite,) = n.settled(call("subtract", call("subtract", steps, const(1, "int64")), vs[0]))
        parts = [call("take", s, opposite if b else vs[0], axis=0, batch_dims=0, mode="fast") for s, b in zip(sequences, backward)]
        results = _turn(n, graph, [*vs[2:2 + held], *parts], "body")
        kept = [c.put(buffer, vs[0], e) for c, buffer, e in zip(rows, vs[2 + held:], results[held:])]
        return [call("add", vs[0], const(1, "int64")), vs[1], *results[:held], *kept]

    first = [const(0, "int64"), const(True, "bool"), *states, *(c.empty() for c in rows)]
    found = _carry(n, lambda vs: call("less", vs[0], steps), turn, first, held)
    made = [c.rows(buffer, found[0]) for c, buffer in zip(rows, found[2 + held:])]
    turned = n.attr("scan_output_directions", [0] * count)
    made = [call("reverse", y, axis=0) if b else y for y, b in zip(made, turned)]
    return [*found[2:2 + held], *(_first_to(n, y, a) for y, a in zip(made, n.attr("scan_output_axes", [0] * count)))]


def _to_first(n: NodeContext, x: RelayExpr, axis: int) -> RelayExpr:
    """``x`` with an axis moved to the front."""
    return transpose(x, [axis, *(i for i in range(n.rank(x)) if i != axis)])


def _first_to(n: NodeContext, x: RelayExpr, axis: int) -> RelayExpr:
    """``x`` with its first axis moved."""
    order = list(range(1, n.rank(x)))
    order.insert(n.axis(axis, n.rank(x)), 0)
    return transpose(x, order)


# ---- SequenceMap ---------------------------------------------------------------------------------------------------------

@op("SequenceMap")
def sequence_map(n: NodeContext) -> list[RelayExpr]:
    """A body run once for each element of a sequence (and of more sequences, or with the same tensors each time)."""
    graph, inputs = n.attr("body"), [elements(n, x) if isinstance(n.builder.type_of(x), TupleType) else x for x in n.present()]
    made = []
    for i in range(len(elements(n, n.need(0)))):
        values = [x[i] if isinstance(x, list) else x for x in inputs]
        made.append(_turn(n, graph, values, str(i)))
    return [Tuple([each[k] for each in made]) for k in range(len(graph.output))]
