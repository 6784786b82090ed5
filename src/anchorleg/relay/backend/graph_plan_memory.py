"""Static memory planning: which tensors of a graph share storage.

Nodes run in order, so a tensor lives from its node to its last reader.  Storage that has come free is taken again by
the tensor of the same device and memory scope that fits it best; among equals the one freed last is taken, whose bytes are most likely still cached.
"""
from __future__ import annotations

from typing import NamedTuple, Sequence

import numpy as np

from ...runtime.dtype import DataType
from .graph_nodes import Entry, GraphNode, TensorInfo

ALIGNMENT = 64
GROWTH_LIMIT = 16  # a free storage may grow to, or be taken by a tensor smaller by, at most this factor


class MemoryPlan(NamedTuple):
    """Storage ids per node output, bytes per storage id, and the peak of all storage in bytes.

    ``planned_bytes`` counts what the planner placed; inputs and constants bring their own memory.
    """

    storage: list[list[int]]
    sizes: list[int]
    planned_bytes: int


def tensor_bytes(info: TensorInfo) -> int:
    """The bytes of a tensor, at least 1, rounded up to the alignment."""
    dtype = DataType(info.dtype)
    bits = 8 if info.dtype == "bool" else dtype.bits
    size = (int(np.prod(info.shape, dtype=np.int64)) * bits * dtype.lanes + 7) // 8
    return max(ALIGNMENT, (size + ALIGNMENT - 1) // ALIGNMENT * ALIGNMENT)


def alias_roots(nodes: Sequence[GraphNode]) -> dict[Entry, Entry]:
    """For each output of an aliasing node, the output whose memory it shares."""
    roots: dict[Entry, Entry] = {}
    for n, node in enumerate(nodes):
        if node.is_alias:
            source = node.inputs[0]
            roots[Entry(n, 0)] = roots.get(source, source)
    return roots


def _place(node: GraphNode) -> tuple[tuple[int, int], str]:
    """The memory that a node's outputs are in; scope ``global`` is where they are without any."""
    return node.device, "" if node.scope == "global" else node.scope


class _Planner:
    def __init__(self, nodes: Sequence[GraphNode], heads: Sequence[Entry]) -> None:
        self.nodes = nodes
        self.roots = alias_roots(nodes)
        self.storage: list[list[int]] = []
        self.sizes: list[int] = []
        self.places: list[tuple[tuple[int, int], str]] = []
        self.fixed: set[int] = set()
        self.free: list[int] = []
        self.last_use = self._last_uses(heads)

    def _root(self, entry: Entry) -> Entry:
        return self.roots.get(entry, entry)

    def _last_uses(self, heads: Sequence[Entry]) -> dict[Entry, int]:
        last: dict[Entry, int] = {}
        for n, node in enumerate(self.nodes):
            for i in range(len(node.outputs)):
                last.setdefault(self._root(Entry(n, i)), n)
            for entry in node.inputs:
                last[self._root(entry)] = n
        for entry in heads:
            last[self._root(entry)] = len(self.nodes)
        return last

    def run(self) -> MemoryPlan:
        ending: dict[int, list[Entry]] = {}
        for entry, n in self.last_use.items():
            ending.setdefault(n, []).append(entry)
        for n, node in enumerate(self.nodes):
            self.storage.append([self._place(n, i, node) for i in range(len(node.outputs))])
            for entry in ending.get(n, ()):
                self._release(entry)
        planned = sum(size for i, size in enumerate(self.sizes) if i not in self.fixed)
        return MemoryPlan(self.storage, self.sizes, planned)

    def _place(self, n: int, i: int, node: GraphNode) -> int:
        root = self._root(Entry(n, i))
        if root != (n, i):
            return self.storage[root.node][root.index]
        need = tensor_bytes(node.outputs[i])
        if node.is_input:
            at = self._new(need, _place(node))
            self.fixed.add(at)
            return at
        return self._take(need, _place(node))

    def _new(self, size: int, place: tuple[tuple[int, int], str]) -> int:
        self.sizes.append(size)
        self.places.append(place)
        return len(self.sizes) - 1

    def _take(self, need: int, place: tuple[tuple[int, int], str]) -> int:
        free = [s for s in self.free if self.places[s] == place]
        fitting = [s for s in free if need <= self.sizes[s] <= need * GROWTH_LIMIT]
        if fitting:
            chosen = min(reversed(fitting), key=lambda s: self.sizes[s])
        else:
            smaller = [s for s in free if self.sizes[s] < need <= self.sizes[s] * GROWTH_LIMIT]
            if not smaller:
                return self._new(need, place)
            chosen = max(smaller, key=lambda s: self.sizes[s])
            self.sizes[chosen] = need
        self.free.remove(chosen)
        return chosen

    def _release(self, entry: Entry) -> None:
        at = self.storage[entry.node][entry.index]
        if at not in self.fixed:
            self.free.append(at)


def plan_memory(nodes: Sequence[GraphNode], heads: Sequence[Entry]) -> MemoryPlan:
    """The storage of every node output.

    Results (``heads``), and inputs and constants, are never shared with later tensors.
    """
    return _Planner(nodes, heads).run()
