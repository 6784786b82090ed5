"""How an operation reads memory, seen through the operations that will be inlined into it.

Schedules ask two things: which loop variables run along memory (unit stride), and which trailing loops may be fused into
one because every input is read in that order, or not at all, along them.
"""
from __future__ import annotations

from typing import Any, Sequence

from ..ir.visit import post_order
from ..te.operation import ComputeOp, PlaceholderOp
from ..tir.buffer import ProducerLoad
from ..tir.expr import Call, Cast, IterVar, Reduce, Var
from .utils import same_extent, static_int

HEAVY = 12  # an intrinsic call (exp, tanh …) counts as that many simple operations


class Access:
    """Reads of a graph of operations.  ``inlined(op)`` tells which operations dissolve into their consumers."""

    def __init__(self, inlined: Any) -> None:
        self.inlined = inlined
        self._loads: dict[int, tuple[Any, list[ProducerLoad], int]] = {}

    def loads(self, op: ComputeOp) -> list[ProducerLoad]:
        """The reads in an operation's body."""
        return self._look(op)[1]

    def _look(self, op: ComputeOp) -> tuple[Any, list[ProducerLoad], int]:
        found = self._loads.get(id(op))
        if found is None:
            nodes = list(post_order(_roots(op)))
            cost = sum(HEAVY if isinstance(n, Call) else 1 for n in nodes)
            found = self._loads[id(op)] = (op, [n for n in nodes if isinstance(n, ProducerLoad)], cost)
        return found

    def _dissolves(self, op: Any) -> bool:
        return isinstance(op, ComputeOp) and self.inlined(op)

    def cost(self, op: ComputeOp) -> int:
        """About how many simple operations one element takes, inlined producers included once each."""
        total, seen, stack = 0, set(), [op]
        while stack:
            each = stack.pop()
            if id(each) in seen:
                continue
            seen.add(id(each))
            total += self._look(each)[2]
            stack.extend(t.op for t in each.input_tensors if self._dissolves(t.op))
        return total

    def sources(self, op: ComputeOp) -> list[Any]:
        """The tensors in memory that an operation reads, directly or through inlined ones."""
        found: dict[Any, None] = {}
        seen, stack = set(), [op]
        while stack:
            each = stack.pop()
            if id(each) in seen:
                continue
            seen.add(id(each))
            for t in each.input_tensors:
                if self._dissolves(t.op):
                    stack.append(t.op)
                else:
                    found[t] = None
        return list(found)

    # -- fusing -----------------------------------------------------------------------------------

    def fusable(self, op: ComputeOp, group: Sequence[IterVar]) -> bool:
        """Whether every input is read along ``group`` in memory order (or not at all), so that one loop can replace them."""
        stack = [(op, tuple(iv.var for iv in group), tuple(iv.dom.extent for iv in group))]
        seen: set[tuple[int, int]] = set()
        while stack:
            each, variables, extents = stack.pop()
            key = (id(each), id(variables[-1]))
            if key in seen:
                continue
            seen.add(key)
            for load in self.loads(each):
                verdict = _along(load, variables, extents)
                if verdict is False:
                    return False
                producer = load.producer.op
                if verdict is True and self._dissolves(producer):
                    axes = producer.axis[len(producer.axis) - len(variables):]
                    stack.append((producer, tuple(a.var for a in axes), extents))
        return True

    def trailing_group(self, op: ComputeOp, axes: Sequence[IterVar]) -> int:
        """How many of the last ``axes`` may be fused into one loop (at least 1 where there are any)."""
        best = min(1, len(axes))
        for k in range(2, len(axes) + 1):
            if not self.fusable(op, axes[len(axes) - k:]):
                break
            best = k
        return best

    def together(self, op: ComputeOp, group: Sequence[IterVar]) -> bool:
        """Whether every input is read along ``group`` by neighbouring indices in their order (or not at all), wherever these stand."""
        extents = [iv.dom.extent for iv in group]
        stack, seen = [(op, [iv.var for iv in group])], set()
        while stack:
            each, variables = stack.pop()
            if (id(each), id(variables[-1])) in seen:
                continue
            seen.add((id(each), id(variables[-1])))
            for load in self.loads(each):
                at = _side_by_side(load, variables, extents)
                if at is None:
                    return False
                if at >= 0 and self._dissolves(load.producer.op):
                    stack.append((load.producer.op, [a.var for a in load.producer.op.axis[at: at + len(variables)]]))
        return True

    # -- unit stride ------------------------------------------------------------------------------

    def unit_stride_vars(self, op: ComputeOp) -> dict[int, int]:
        """For each variable (by id) that moves along memory in some input: the elements of the largest such input."""
        found: dict[int, int] = {}
        for load in self.loads(op):
            for index, size in self._inner_indices(load):
                for v in _variables(index):
                    found[id(v)] = max(found.get(id(v), 0), size)
        return found

    def _inner_indices(self, load: ProducerLoad) -> list[tuple[Any, int]]:
        producer = load.producer.op
        if not self._dissolves(producer):
            last = _last_real_dim(load.producer.shape)
            return [] if last is None else [(load.indices[last], _elements(load.producer.shape))]
        inner = self.unit_stride_vars(producer)
        return [(load.indices[i], inner[id(a.var)]) for i, a in enumerate(producer.axis) if id(a.var) in inner]


def _roots(op: ComputeOp) -> list[Any]:
    return [e for b in op.body for e in ((*b.source, b.condition) if isinstance(b, Reduce) else (b,))]


def _variables(index: Any) -> list[Var]:
    return [n for n in post_order(index) if isinstance(n, Var)]


def _along(load: ProducerLoad, variables: Sequence[Var], extents: Sequence[Any]) -> bool | None:
    """True: read along the variables in order; None: does not depend on them; False: anything else."""
    ids = {id(v) for v in variables}
    uses = [any(id(v) in ids for v in _variables(i)) for i in load.indices]
    if not any(uses):
        return None
    n = len(variables)
    if len(uses) < n or any(uses[:-n]) or not all(_plain(i) is v for i, v in zip(load.indices[-n:], variables)):
        return False
    return all(same_extent(a, b) for a, b in zip(load.producer.shape[-n:], extents))


def _side_by_side(load: ProducerLoad, variables: Sequence[Var], extents: Sequence[Any]) -> int | None:
    """Where a read has the variables as indices of their own, one after the other, along axes of these extents; -1: nowhere; None: otherwise."""
    ids = {id(v) for v in variables}
    uses = [k for k, i in enumerate(load.indices) if any(id(v) in ids for v in _variables(i))]
    if not uses:
        return -1
    at, count = uses[0], len(variables)
    if uses != list(range(at, at + count)) or not all(_plain(i) is v for i, v in zip(load.indices[at: at + count], variables)):
        return None
    return at if all(same_extent(a, b) for a, b in zip(load.producer.shape[at: at + count], extents)) else None


def _plain(index: Any) -> Any:
    while isinstance(index, Cast):
        index = index.value
    return index


def _last_real_dim(shape: Sequence[Any]) -> int | None:
    return next((i for i in reversed(range(len(shape))) if static_int(shape[i]) != 1), None)


def _elements(shape: Sequence[Any]) -> int:
    total = 1
    for d in shape:
        total *= static_int(d) or 1
    return total


def is_computed(op: Any) -> bool:
    """Whether an operation computes something (it is no input)."""
    return not isinstance(op, PlaceholderOp)
