"""Reading a graph in upstream's JSON form, with every index checked before it is used.

    {"nodes": [{"op": "null", "name": "x", "inputs": []},
               {"op": "tvm_op", "name": "add", "inputs": [[0, 0, 0]],
                "attrs": {"func_name": "add", "num_inputs": "1", "num_outputs": "1", "flatten_data": "0"}}],
     "arg_nodes": [0], "heads": [[1, 0, 0]], "node_row_ptr": [0, 1, 2],
     "attrs": {"dltype": ["list_str", […]], "shape": ["list_shape", […]], "storage_id": ["list_int", […]], …}}
"""

from __future__ import annotations

import json
from dataclasses import dataclass

from ..support.errors import AnchorlegError, ArtifactError
from .device import Device, kDLCPU
from .dtype import DataType

NOP, COPY = "__nop", "__copy"


@dataclass(frozen=True)
class GraphNode:
    """One node: a placeholder (``function`` is None) or a call; ``inputs`` and ``outputs`` are entry numbers."""

    name: str
    function: str | None
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    attrs: dict


@dataclass(frozen=True)
class Graph:
    """A checked graph.  An *entry* is one output of one node; per-entry lists hold its type, shape and storage.

    ``offsets``, when there are any, are the entries' places in the arena (-1: not there), which storage numbers tell otherwise.
    """

    nodes: tuple[GraphNode, ...]
    arguments: tuple[int, ...]
    heads: tuple[int, ...]
    entry_node: tuple[int, ...]
    dtypes: tuple[DataType, ...]
    shapes: tuple[tuple[int, ...], ...]
    storage: tuple[int, ...]
    devices: tuple[Device, ...]
    offsets: tuple[int, ...] = ()

    def entry_bytes(self, entry: int) -> int:
        """Bytes the entry's tensor takes."""
        count = self.dtypes[entry].itemsize
        for extent in self.shapes[entry]:
            count *= extent
        return count


def parse_graph(text: "str | bytes") -> Graph:
    """The graph in ``text``; `ArtifactError` says what is wrong with a malformed one."""
    try:
        return _build(json.loads(text))
    except AnchorlegError:
        raise
    except (ValueError, KeyError, IndexError, TypeError, AttributeError, RecursionError) as err:
        raise ArtifactError(f"the graph is malformed: {type(err).__name__}: {err}") from err


def _require(condition: bool, why: str) -> None:
    if not condition:
        raise ArtifactError(f"the graph is malformed: {why}")


def _attr(attrs: dict, name: str, count: int, default: object = None) -> list:
    if name not in attrs and default is not None:
        return [default] * count
    _require(name in attrs, f"attribute {name!r} is missing")
    values = attrs[name][1]
    _require(len(values) == count, f"attribute {name!r} has {len(values)} values for {count} entries")
    return values


def _build(data: dict) -> Graph:
    raw, rows = data["nodes"], data["node_row_ptr"]
    _require(len(rows) == len(raw) + 1 and rows[:1] == [0], "node_row_ptr does not match the nodes")
    _require(all(a <= b for a, b in zip(rows, rows[1:])), "node_row_ptr does not increase")
    count = rows[-1]
    attrs = data["attrs"]
    nodes = tuple(_node(node, index, rows) for index, node in enumerate(raw))
    shapes = tuple(tuple(map(int, shape)) for shape in _attr(attrs, "shape", count))
    storage = tuple(map(int, _attr(attrs, "storage_id", count)))
    _require(all(extent >= 0 for shape in shapes for extent in shape), "a shape has a negative extent")
    _require(all(number >= 0 for number in storage), "a storage number is negative")
    offsets = tuple(map(int, _attr(attrs, "storage_offset", count))) if "storage_offset" in attrs else ()
    _require(all(offset >= -1 for offset in offsets), "a storage offset is negative")
    owner = tuple(index for index in range(len(raw)) for _ in range(rows[index], rows[index + 1]))
    arguments = tuple(map(int, data["arg_nodes"]))
    _require(all(0 <= a < len(nodes) and nodes[a].function is None for a in arguments), "arg_nodes names a call")
    return Graph(
        nodes, arguments, tuple(_entry(head, rows, len(raw)) for head in data["heads"]), owner,
        tuple(DataType(text) for text in _attr(attrs, "dltype", count)), shapes, storage,
        tuple(Device(int(kind), int(number)) for kind, number in zip(_attr(attrs, "device_index", count, kDLCPU), _attr(attrs, "device_id", count, 0))),
        offsets,
    )


def _entry(reference: list, rows: list[int], limit: int) -> int:
    node, output = int(reference[0]), int(reference[1])
    _require(0 <= node < limit, f"a reference to node {node}, which is not defined before its use")
    _require(0 <= output < rows[node + 1] - rows[node], f"node {node} has no output {output}")
    return rows[node] + output


def _node(node: dict, index: int, rows: list[int]) -> GraphNode:
    kind, name = node["op"], str(node["name"])
    _require(kind in ("null", "tvm_op"), f"node {name!r} is of unknown kind {kind!r}")
    attrs = node.get("attrs") or node.get("attr") or {}
    outputs = tuple(range(rows[index], rows[index + 1]))
    if kind == "null":
        _require(len(outputs) == 1, f"placeholder {name!r} has {len(outputs)} outputs")
        return GraphNode(name, None, (), outputs, attrs)
    inputs = tuple(_entry(reference, rows, index) for reference in node.get("inputs", []))
    _require(int(attrs.get("num_outputs", len(outputs))) == len(outputs), f"node {name!r} has a wrong num_outputs")
    return GraphNode(name, str(attrs["func_name"]), inputs, outputs, attrs)
