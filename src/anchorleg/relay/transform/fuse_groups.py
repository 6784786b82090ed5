"""Which expressions may share a kernel: the graph, its post-dominators, and the grouping rules of FuseOps."""
from __future__ import annotations

from typing import Any, Callable

from ...ir.op import OpPattern

Condition = Callable[[int, bool], bool]


class ForwardGraph:
    """Expressions in post-order with their users; an edge's pattern says how the user reads it."""

    def __init__(self) -> None:
        self.index: dict[int, int] = {}
        self.nodes: list[Any] = []
        self.patterns: list[int] = []
        self.outputs: list[list[tuple[int, int]]] = []
        self.external: list[bool] = []

    def add(self, node: Any, pattern: int) -> None:
        """Appends a node."""
        self.index[id(node)] = len(self.nodes)
        self.nodes.append(node)
        self.patterns.append(int(pattern))
        self.outputs.append([])
        self.external.append(False)

    def connect(self, source: Any, user: Any, pattern: int) -> None:
        """Records that ``user`` reads ``source``."""
        self.outputs[self.index[id(source)]].append((self.index[id(user)], int(pattern)))

    def mark_external(self, node: Any) -> None:
        """Records that the node's value is wanted outside of operators: it can't vanish into a group."""
        at = self.index.get(id(node))
        if at is not None:
            self.external[at] = True


class PostDominators:
    """For each node the nearest node that all its uses lead to, and the strongest pattern on the way."""

    def __init__(self, graph: ForwardGraph) -> None:
        size = len(graph.nodes)
        self.parent: list[int] = [-1] * size
        self.depth: list[int] = [1] * size
        self.pattern: list[int] = [int(OpPattern.OPAQUE)] * size
        for i in range(size - 1, -1, -1):
            if not graph.external[i] and graph.outputs[i]:
                self._place(graph, i)

    def _place(self, graph: ForwardGraph, i: int) -> None:
        (meet, strongest), *rest = graph.outputs[i]
        for user, pattern in rest:
            strongest = max(strongest, pattern)
            meet, strongest = self._common(meet, user, strongest)
            if meet < 0:
                break
        self.parent[i] = meet
        self.depth[i] = self.depth[meet] + 1 if meet >= 0 else 1
        self.pattern[i] = strongest

    def _common(self, a: int, b: int, strongest: int) -> tuple[int, int]:
        while a != b:
            if a < 0 or b < 0:
                return -1, strongest
            if self.depth[a] < self.depth[b]:
                a, b = b, a
            strongest = max(strongest, self.pattern[a])
            if self.depth[a] == self.depth[b]:
                strongest = max(strongest, self.pattern[b])
                b = self.parent[b]
            a = self.parent[a]
        return a, strongest


class Groups:
    """A union-find of nodes; a group's root is its last node, whose value is the kernel's result."""

    def __init__(self, graph: ForwardGraph) -> None:
        self.graph = graph
        self.parent = list(range(len(graph.nodes)))
        self.pattern = list(graph.patterns)
        self.size = [1] * len(graph.nodes)
        self.has_anchor = [p == OpPattern.OUT_ELEMWISE_FUSABLE for p in graph.patterns]

    def find(self, i: int) -> int:
        """The root of node ``i``'s group."""
        root = i
        while self.parent[root] != root:
            root = self.parent[root]
        while self.parent[i] != root:
            self.parent[i], i = root, self.parent[i]
        return root

    def root(self, node: Any) -> int:
        """The root of an expression's group; a number of its own for an expression outside the graph."""
        at = self.graph.index.get(id(node))
        return self.find(at) if at is not None else -id(node)

    def is_root(self, node: Any) -> bool:
        """Whether the expression is the result of its group."""
        at = self.graph.index[id(node)]
        return self.find(at) == at

    def is_alone(self, root: int) -> bool:
        """Whether the group has one member."""
        return self.size[root] == 1

    def merge(self, child: int, parent: int) -> None:
        """Joins ``child``'s group to ``parent``'s."""
        child, parent = self.find(child), self.find(parent)
        if child == parent:
            return
        self.parent[child] = parent
        self.size[parent] += self.size[child]
        if self.has_anchor[child]:
            self.has_anchor[parent] = True
            self.pattern[parent] = max(self.pattern[child], self.pattern[parent])


class _Partitioner:
    def __init__(self, graph: ForwardGraph, max_depth: int) -> None:
        self.graph, self.max_depth = graph, max_depth
        self.doms, self.groups = PostDominators(graph), Groups(graph)

    def run(self) -> Groups:
        for phase in (0, 1, 2):
            for i in range(len(self.graph.nodes)):
                self._consider(i, phase)
        return self.groups

    def _consider(self, i: int, phase: int) -> None:
        groups, sink = self.groups, self.doms.parent[i]
        pattern = groups.pattern[i]
        if sink < 0 or pattern == OpPattern.OPAQUE:
            return
        if phase == 2:
            self._into_tuple_of_injective(i, sink, pattern)
            return
        if groups.find(i) == groups.find(sink) or groups.pattern[sink] == OpPattern.TUPLE:
            return
        allowed = _rule(pattern, self.doms.pattern[i], phase)
        if allowed is not None:
            self._try(i, sink, allowed)

    def _into_tuple_of_injective(self, i: int, sink: int, pattern: int) -> None:
        groups = self.groups
        root_pattern = groups.pattern[groups.find(sink)]
        if pattern > OpPattern.INJECTIVE or root_pattern == OpPattern.TUPLE:
            return
        if self.graph.patterns[sink] == OpPattern.TUPLE and root_pattern <= OpPattern.INJECTIVE:
            self._try(i, sink, _injective)

    def _try(self, i: int, sink: int, allowed: Condition) -> None:
        path = self._path(i, sink, allowed)
        if path is None:
            return
        roots = {self.groups.find(n) for n in (*path, i, sink)}
        if sum(self.groups.size[r] for r in roots) > self.max_depth:
            return
        if sum(self.groups.has_anchor[r] for r in roots) > 1:
            return
        for n in (i, *path):
            self.groups.merge(n, sink)

    def _path(self, source: int, sink: int, allowed: Condition) -> list[int] | None:
        """The nodes between ``source`` and ``sink``, or None when one of them is not allowed."""
        seen: set[int] = set()
        stack = [user for user, _ in self.graph.outputs[source]]
        while stack:
            n = stack.pop()
            if n in seen:
                continue
            seen.add(n)
            if len(seen) > self.max_depth:  # a group of them all would be too large: don't walk on
                return None
            if not allowed(self.groups.pattern[self.groups.find(n)], n == sink):
                return None
            if n != sink:
                stack.extend(user for user, _ in self.graph.outputs[n])
        return [n for n in seen if n != sink]


def _injective(kind: int, is_sink: bool) -> bool:
    return kind <= OpPattern.INJECTIVE


def _after_anchor(kind: int, is_sink: bool) -> bool:
    return kind <= OpPattern.BROADCAST


def _before_or_beside(kind: int, is_sink: bool) -> bool:
    if not is_sink:
        return kind <= OpPattern.INJECTIVE
    return kind in (OpPattern.COMM_REDUCE, OpPattern.OUT_ELEMWISE_FUSABLE) or kind <= OpPattern.INJECTIVE


def _rule(pattern: int, dom_pattern: int, phase: int) -> Condition | None:
    """What may lie between a node of ``pattern`` and its post-dominator in this phase; None: do not fuse."""
    if pattern == OpPattern.OUT_ELEMWISE_FUSABLE:
        return _after_anchor if phase == 0 and dom_pattern == OpPattern.ELEMWISE else None
    if pattern <= OpPattern.BROADCAST:
        ok = dom_pattern <= OpPattern.INJECTIVE or dom_pattern == OpPattern.COMM_REDUCE
        return _before_or_beside if ok else None
    if pattern in (OpPattern.INJECTIVE, OpPattern.TUPLE):
        return _injective if phase == 1 else None
    return None


def partition(graph: ForwardGraph, opt_level: int, max_depth: int) -> Groups:
    """The groups of the graph; at level 0 every node is one of its own."""
    return Groups(graph) if opt_level == 0 else _Partitioner(graph, max_depth).run()
