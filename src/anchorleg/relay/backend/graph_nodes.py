"""The graph executor's node list: what a fused ``main`` is flattened into, and its JSON form."""
from __future__ import annotations

import json
from typing import Any, NamedTuple, Sequence

NOP, COPY = "__nop", "__copy"


class Entry(NamedTuple):
    """Output ``index`` of node ``node``."""

    node: int
    index: int = 0


class TensorInfo(NamedTuple):
    """A tensor's shape and dtype."""

    shape: tuple[int, ...]
    dtype: str


class GraphNode:
    """An input (``func_name`` None), a kernel call, a copy between devices (``__copy``), or a reshape that shares its input's memory (``__nop``).

    ``device`` is the type and number of the device that holds its outputs, ``scope`` the memory scope there.
    """

    __slots__ = ("name", "func_name", "inputs", "outputs", "attrs", "origin", "device", "scope")

    def __init__(self, name: str, func_name: str | None, inputs: Sequence[Entry], outputs: Sequence[TensorInfo],
                 attrs: dict[str, str] | None = None, origin: Any = None, device: tuple[int, int] = (1, 0), scope: str = "") -> None:
        self.name, self.func_name = name, func_name
        self.inputs, self.outputs = tuple(inputs), tuple(outputs)
        self.attrs, self.origin, self.device, self.scope = dict(attrs or {}), origin, device, scope

    @property
    def is_input(self) -> bool:
        """Whether the node is an input or a constant rather than a call."""
        return self.func_name is None

    @property
    def is_alias(self) -> bool:
        """Whether the node's output lies in its input's memory."""
        return self.func_name == NOP

    def to_json(self) -> dict[str, Any]:
        """The node in upstream's format."""
        rows = [[e.node, e.index, 0] for e in self.inputs]
        if self.is_input:
            return {"op": "null", "name": self.name, "inputs": rows}
        attrs = {"num_outputs": str(len(self.outputs)), "num_inputs": str(len(rows)), "flatten_data": "0",
                 "func_name": self.func_name, **self.attrs}
        return {"op": "tvm_op", "name": self.name, "attrs": attrs, "inputs": rows}


def graph_json(nodes: Sequence[GraphNode], heads: Sequence[Entry], storage: Sequence[Sequence[int]], offsets: Sequence[int] = ()) -> str:
    """The whole graph in upstream's JSON format; ``storage[n][i]`` is the storage id of output i of node n.

    ``offsets``, a place in one arena for each output, go to ``storage_offset``, which upstream does not know.

    ``device_index`` has the device types; the devices' numbers, of which upstream keeps none, are in ``device_id`` where one is not 0.
    """
    infos = [info for node in nodes for info in node.outputs]
    row_ptr = [0]
    for node in nodes:
        row_ptr.append(row_ptr[-1] + len(node.outputs))
    attrs: dict[str, Any] = {
        "dltype": ["list_str", [i.dtype for i in infos]],
        "storage_id": ["list_int", [s for row in storage for s in row]],
        "shape": ["list_shape", [list(i.shape) for i in infos]],
        **({"storage_offset": ["list_int", list(offsets)]} if offsets else {}),
    }
    devices = [node.device for node in nodes for _ in node.outputs]
    attrs["device_index"] = ["list_int", [kind for kind, _ in devices]]
    if any(number for _, number in devices):
        attrs["device_id"] = ["list_int", [number for _, number in devices]]
    scopes = [node.scope or "global" for node in nodes for _ in node.outputs]
    if any(scope != "global" for scope in scopes):
        attrs["storage_scope"] = ["list_str", scopes]
    document = {
        "nodes": [n.to_json() for n in nodes],
        "arg_nodes": [i for i, n in enumerate(nodes) if n.is_input],
        "heads": [[e.node, e.index, 0] for e in heads],
        "attrs": attrs,
        "node_row_ptr": row_ptr,
    }
    return json.dumps(document, indent=2)
