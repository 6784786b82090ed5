"""Where the tensors of a graph lie in one arena: closer than storage numbers say, since a freed block may be shared by several.

The storage numbers of ``graph_plan_memory`` stay in the graph for runtimes that know nothing else; the arena's offsets are beside them.
"""
from __future__ import annotations

from typing import Sequence

from .graph_nodes import Entry, GraphNode
from .graph_plan_memory import alias_roots, tensor_bytes
from .memory import BufferInfo, plan_offsets

ALIGNMENT = 128  # two cache lines, as the runtime's memory has


def arena_offsets(nodes: Sequence[GraphNode], heads: Sequence[Entry]) -> list[int]:
    """The byte offset of every output of every node, in order; -1 for inputs and constants, which bring their own memory."""
    roots, lives = alias_roots(nodes), _lives(nodes, heads)
    buffers = [BufferInfo(nodes[e.node].name, tensor_bytes(nodes[e.node].outputs[e.index]), first, last) for e, (first, last) in lives.items()]
    places = dict(zip(lives, plan_offsets(buffers, ALIGNMENT, "hill_climb", quick=True)))
    entries = [Entry(n, i) for n, node in enumerate(nodes) for i in range(len(node.outputs))]
    return [places.get(roots.get(e, e), -1) for e in entries]


def arena_bytes(nodes: Sequence[GraphNode], heads: Sequence[Entry]) -> int:
    """The bytes of the arena."""
    infos = [info for node in nodes for info in node.outputs]
    return max((offset + tensor_bytes(info) for offset, info in zip(arena_offsets(nodes, heads), infos) if offset >= 0), default=0)


def _lives(nodes: Sequence[GraphNode], heads: Sequence[Entry]) -> dict[Entry, list[int]]:
    """First and last node that needs each tensor that the arena holds; results are needed for ever."""
    roots = alias_roots(nodes)
    lives = {Entry(n, i): [n, n] for n, node in enumerate(nodes) if not node.is_input for i in range(len(node.outputs)) if Entry(n, i) not in roots}
    for n, node in enumerate(nodes):
        for entry in node.inputs:
            root = roots.get(entry, entry)
            if root in lives:
                lives[root][1] = n
    for head in heads:
        root = roots.get(head, head)
        if root in lives:
            lives[root][1] = len(nodes)
    return lives
