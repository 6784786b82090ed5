"""Names of an ONNX graph and what they stand for; a graph inside another one sees the names around it."""
from __future__ import annotations

from collections import Counter
from typing import Any, Callable, Iterable, Sequence

from ....ir.expr import RelayExpr
from ....support.errors import ParseError

Lazy = Callable[[], RelayExpr]


class Scope:
    """Values by name, the operator sets in force, and (inside a function) the attributes it was called with."""

    def __init__(self, parent: Scope | None = None, opsets: dict[str, int] | None = None, prefix: str = "",
                 attributes: dict[str, Any] | None = None) -> None:
        self.parent, self.prefix = parent, prefix
        self.opsets = opsets if opsets is not None else (parent.opsets if parent else {})
        self.attributes = attributes if attributes is not None else (parent.attributes if parent else {})
        self.values: dict[str, RelayExpr] = {}
        self.lazy: dict[str, Lazy] = {}  # initializers, read when first used
        self.uses: Counter[str] | None = None  # how often each name is still to be used, where that is counted

    def define(self, name: str, value: RelayExpr) -> None:
        """Binds a name."""
        self.values[name] = value

    def holds(self, name: str) -> bool:
        """Whether the name is bound here or around."""
        scope: Scope | None = self
        while scope is not None:
            if name in scope.values or name in scope.lazy:
                return True
            scope = scope.parent
        return False

    def find(self, name: str) -> RelayExpr | None:
        """What the name stands for, or None."""
        scope: Scope | None = self
        while scope is not None:
            if name in scope.values:
                return scope.values[name]
            if name in scope.lazy:
                scope.values[name] = scope.lazy.pop(name)()
                return scope.values[name]
            scope = scope.parent
        return None

    def release(self, names: Iterable[str]) -> None:
        """Says that a node has used these names; those not used again are forgotten, so that weights can be freed."""
        if self.uses is None:
            return
        for name in names:
            self.uses[name] -= 1
            if self.uses[name] == 0:
                self.values.pop(name, None)

    def version(self, domain: str) -> int:
        """The version of an operator set in force here."""
        return self.opsets.get(domain, 1)


def subgraphs(node: Any) -> list[Any]:
    """The graphs held by a node's attributes."""
    return [g for a in node.attribute for g in ([a.g] if a.HasField("g") else list(a.graphs))]


def inner_names(node: Any) -> list[str]:
    """The names from around it that graphs inside the node use."""
    found: list[str] = []
    pending = [(g, frozenset()) for g in subgraphs(node)]
    while pending:
        graph, around = pending.pop()
        own = {i.name for i in graph.input} | {t.name for t in graph.initializer} | {o for n in graph.node for o in n.output}
        bound = around | own
        used = [o.name for o in graph.output] + [i for n in graph.node for i in n.input if i]
        found.extend(name for name in used if name not in bound)
        pending.extend((g, bound) for n in graph.node for g in subgraphs(n))
    return found


def count_uses(nodes: Sequence[Any], outputs: Iterable[str]) -> Counter[str]:
    """How often each name is used by the nodes (and graphs inside them) or is a result."""
    uses: Counter[str] = Counter(outputs)
    for node in nodes:
        uses.update(node.input)
        uses.update(inner_names(node))
    return uses


def needed_names(node: Any) -> list[str]:
    """The names a node uses, those of graphs inside it included."""
    return [n for n in node.input if n] + inner_names(node)


def ordered(nodes: Sequence[Any], scope: Scope) -> list[Any]:
    """The nodes such that each comes after those it depends on: as they are when they are so already.

    ParseError when they form a cycle.
    """
    made_by = {name: i for i, node in enumerate(nodes) for name in node.output if name}
    before = [{made_by[n] for n in needed_names(node) if n in made_by} for node in nodes]
    if all(max(b, default=-1) < i for i, b in enumerate(before)):
        return list(nodes)
    after: list[list[int]] = [[] for _ in nodes]
    for i, needed in enumerate(before):
        for j in needed:
            after[j].append(i)
    missing = [len(b) for b in before]
    ready = [i for i, m in enumerate(missing) if m == 0][::-1]
    order: list[int] = []
    while ready:
        i = ready.pop()
        order.append(i)
        for j in after[i]:
            missing[j] -= 1
            if missing[j] == 0:
                ready.append(j)
    if len(order) != len(nodes):
        stuck = next(nodes[i] for i, m in enumerate(missing) if m)
        raise ParseError(f"the graph has a cycle through node {stuck.name or stuck.op_type!r}: it is damaged")
    return [nodes[i] for i in order]


def name_nodes(nodes: Sequence[Any]) -> list[str]:
    """A name for each node: its own, or one made of its operator and a number that no other node has."""
    taken = {n.name for n in nodes if n.name}
    counts: Counter[str] = Counter()
    names = []
    for node in nodes:
        name = node.name
        while not name:
            candidate = f"{node.op_type}_{counts[node.op_type]}"
            counts[node.op_type] += 1
            name = candidate if candidate not in taken else ""
        names.append(name)
    return names
