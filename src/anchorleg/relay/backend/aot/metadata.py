"""What is known of a compiled model: its functions with their sizes, and the facts an executor needs."""
from __future__ import annotations

from typing import Any, Mapping, Sequence

from ....ir.module import NodeMap
from ...function import Function


class FunctionInfo:
    """Sizes of one function, per target: workspace, inputs and outputs, constants, in bytes; and what it was made from."""

    def __init__(self, workspace_sizes: Mapping[Any, int], io_sizes: Mapping[Any, int], constant_sizes: Mapping[Any, int],
                 tir_primfuncs: Mapping[Any, Any] | None = None, relay_primfuncs: Mapping[Any, Function] | None = None) -> None:
        self.workspace_sizes, self.io_sizes, self.constant_sizes = NodeMap(workspace_sizes), NodeMap(io_sizes), NodeMap(constant_sizes)
        self.tir_primfuncs, self.relay_primfuncs = NodeMap(tir_primfuncs or {}), NodeMap(relay_primfuncs or {})

    def __repr__(self) -> str:
        return f"FunctionInfo(workspace={list(self.workspace_sizes.values())}, io={list(self.io_sizes.values())}, constants={list(self.constant_sizes.values())})"


class ExecutorCodegenMetadata:
    """The border of a model: inputs, outputs, pools and devices by name, and how it is called."""

    def __init__(self, inputs: Sequence[Any], input_tensor_types: Sequence[Any], outputs: Sequence[str], output_tensor_types: Sequence[Any],
                 pools: Sequence[Any], devices: Sequence[str], executor: str, mod_name: str, interface_api: str, unpacked_api: bool,
                 workspace_alignment: int, constant_alignment: int, pool_inputs: Mapping[Any, Any] | None = None,
                 io_pool_allocations: Mapping[str, Any] | None = None) -> None:
        self.inputs, self.input_tensor_types = list(inputs), list(input_tensor_types)
        self.outputs, self.output_tensor_types = list(outputs), list(output_tensor_types)
        self.pools, self.devices, self.executor, self.mod_name = list(pools), list(devices), executor, mod_name
        self.interface_api, self.unpacked_api = interface_api, unpacked_api
        self.workspace_alignment, self.constant_alignment = workspace_alignment, constant_alignment
        self.pool_inputs, self.io_pool_allocations = dict(pool_inputs or {}), dict(io_pool_allocations or {})
