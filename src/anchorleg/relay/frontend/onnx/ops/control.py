"""Branches and loops.

A branch on a known condition is taken at import.  Loops whose number of turns is known are unrolled.
"""
from __future__ import annotations

from typing import Any, Sequence

from .....ir.expr import RelayExpr
from .....support.errors import ArgumentError, UnsupportedOpError
from ....expr import If, Tuple
from ..context import NodeContext
from ..make import const, items, reshape, slice_axis, squeeze, stack, stack_many
from ..registry import op
from ..scope import Scope

_LARGEST = 100_000  # nodes that a loop may become


@op("If")
def if_(n: NodeContext) -> list[RelayExpr] | RelayExpr:
    """One of two graphs."""
    condition = n.need(0)
    value = n.value(condition)
    if value is not None:
        taken = "then_branch" if bool(value.reshape(-1)[0]) else "else_branch"
        return n.importer.import_graph(n.attr(taken), n.scope, n.name.rsplit("/", 1)[-1])
    branches = [n.importer.import_graph(n.attr(b), n.scope, f"{n.name.rsplit('/', 1)[-1]}/{b}") for b in ("then_branch", "else_branch")]
    if len(branches[0]) != len(branches[1]):
        raise ArgumentError(f"the branches give {len(branches[0])} and {len(branches[1])} results")
    scalar = condition if n.rank(condition) == 0 else reshape(condition, [])
    if len(branches[0]) == 1:
        return If(scalar, branches[0][0], branches[1][0])
    whole = If(scalar, Tuple(branches[0]), Tuple(branches[1]))
    return items(whole, len(branches[0]))


def _turn(n: NodeContext, graph: Any, values: Sequence[RelayExpr], turn: int) -> list[RelayExpr]:
    """The results of a body for given inputs."""
    scope = Scope(n.scope, prefix=f"{n.name}/{turn}/")
    for formal, value in zip(graph.input, values):
        scope.define(formal.name, value)
    n.importer.initializers(graph, scope)
    n.importer.check_supported(graph.node, scope)
    n.importer.run_nodes(graph.node, scope)
    return n.importer.results(graph, scope)


def _check_size(graph: Any, turns: int) -> None:
    if turns * len(graph.node) > _LARGEST:
        raise UnsupportedOpError(f"a loop of {turns} turns over {len(graph.node)} nodes is too large to be unrolled")


def _is_true(n: NodeContext, condition: RelayExpr | None) -> bool | None:
    value = n.value(condition)
    return True if condition is None else None if value is None else bool(value.reshape(-1)[0])


@op("Loop")
def loop(n: NodeContext) -> list[RelayExpr]:
    """A body run a number of times, or while a condition holds: both must be known."""
    graph, limit = n.attr("body"), n.value(n.input(0))
    going, carried = _is_true(n, n.input(1)), n.inputs[2:]
    turns = None if limit is None else int(limit.reshape(-1)[0])
    if turns is None and n.input(0) is not None or going is None:
        raise UnsupportedOpError("a loop whose number of turns is computed from the model's inputs is not supported yet")
    count, scans, turn = len(carried), [], 0
    while going and (turns is None or turn < turns):
        _check_size(graph, turn + 1)
        results = _turn(n, graph, [const(turn, "int64"), const(True, "bool"), *carried], turn)  # type: ignore[list-item]
        going, carried = _is_true(n, results[0]), results[1:count + 1]  # type: ignore[assignment]
        if going is None:
            raise UnsupportedOpError("a loop that ends by a condition computed from the model's inputs is not supported yet")
        scans.append(results[count + 1:])
        turn += 1
    return [*carried, *_stacked(n, scans, len(graph.output) - 1 - count)]  # type: ignore[list-item]


def _stacked(n: NodeContext, scans: list[list[RelayExpr]], count: int) -> list[RelayExpr]:
    if count and not scans:
        raise UnsupportedOpError("a loop without turns has no element to take the shape of its results from")
    return [stack_many([each[i] for each in scans]) for i in range(count)]


@op("Scan", since=9)
def scan(n: NodeContext) -> list[RelayExpr]:
    """A body run once for each slice of its inputs, the number of which must be known."""
    graph, count = n.attr("body"), n.attr("num_scan_inputs")
    states, sequences = n.present()[:-count], n.present()[-count:]
    axes = [n.axis(a, n.rank(s)) for a, s in zip(n.attr("scan_input_axes", [0] * count), sequences)]
    backward = n.attr("scan_input_directions", [0] * count)
    steps = n.dims(sequences[0])[axes[0]]
    if not isinstance(steps, int):
        raise UnsupportedOpError("a scan over an unknown number of steps is not supported yet: give the sizes of the model's inputs")
    _check_size(graph, steps)
    scans = []
    for turn in range(steps):
        parts = [_slice(s, a, steps - 1 - turn if b else turn) for s, a, b in zip(sequences, axes, backward)]
        results = _turn(n, graph, [*states, *parts], turn)
        states, made = results[:len(states)], results[len(states):]
        scans.append(made)
    return [*states, *_scan_outputs(n, scans, len(graph.output) - len(states))]


def _slice(x: RelayExpr, axis: int, at: int) -> RelayExpr:
    return squeeze(slice_axis(x, axis, at, at + 1), [axis])


def _scan_outputs(n: NodeContext, scans: list[list[RelayExpr]], count: int) -> list[RelayExpr]:
    if count and not scans:
        raise UnsupportedOpError("a scan without steps has no element to take the shape of its results from")
    axes, backward = n.attr("scan_output_axes", [0] * count), n.attr("scan_output_directions", [0] * count)
    found = []
    for i in range(count):
        each = [made[i] for made in scans]
        found.append(stack(each[::-1] if backward[i] else each, n.axis(axes[i], n.rank(each[0]) + 1)))
    return found


