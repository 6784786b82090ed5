"""The memory plan of a fused function by its expressions, as upstream's planner of graphs gives it."""
from __future__ import annotations

import math
from typing import Any, NamedTuple

from ...ir.expr import RelayExpr
from ...runtime.dtype import DataType
from ...target.virtual_device import VirtualDevice
from ..expr import Call, Constant
from ..function import Function
from ..transform.common import is_op
from ..transform.device_scopes import recover_virtual_device_map
from .graph_executor_codegen import Flattener
from .graph_nodes import Entry
from .graph_plan_memory import plan_memory
from .placement import where


class StorageInfo(NamedTuple):
    """Where the tensors of an expression are: storage numbers, devices, and the bytes each storage was made for."""

    storage_ids: list[int]
    virtual_devices: list[VirtualDevice]
    storage_sizes: list[int]

    @property
    def device_types(self) -> list[int]:
        """The devices' types."""
        return [d.device_type_int for d in self.virtual_devices]


class StaticMemoryPlan(NamedTuple):
    """The storage of every expression."""

    expr_to_storage_info: dict[RelayExpr, StorageInfo]


class _Recorder(Flattener):
    """Flattens a function whose devices marks tell."""

    def __init__(self, func: Function) -> None:
        super().__init__(lambda f: "kernel")
        self.devices = recover_virtual_device_map(None, func)
        self.of_node: dict[int, VirtualDevice] = {}

    def placed(self, expr: RelayExpr, entries: list[Entry]) -> list[Entry]:
        """Notes the device of an expression's node."""
        device = self.devices[expr]
        for entry in entries:
            node = self.nodes[entry.node]
            node.device, node.scope = where(device), device.memory_scope
            self.of_node[entry.node] = device
        return entries

    def visit_Call(self, call: Call) -> Any:
        if is_op(call, "on_device"):
            return (yield call.args[0])
        return self.placed(call, (yield from super().visit_Call(call)))

    def visit_Constant(self, constant: Constant) -> list[Entry]:
        return self.placed(constant, super().visit_Constant(constant))


def graph_plan_memory(func: Function) -> StaticMemoryPlan:
    """The storage of every expression of a fused and typed function; its devices are what ``PlanDevices`` has marked."""
    recorder = _Recorder(func)
    for param in func.params:
        recorder.add_parameter(param)
        recorder.placed(param, recorder.memo[id(param)][1])
    plan = plan_memory(recorder.nodes, recorder.visit(func.body))
    sizes: dict[int, int] = {}
    for node, row in zip(recorder.nodes, plan.storage):
        for info, at in zip(node.outputs, row):
            sizes.setdefault(at, math.prod(info.shape) * DataType(info.dtype).itemsize)
    found = {}
    for expr, entries in recorder.memo.values():
        ids = [plan.storage[e.node][e.index] for e in entries]
        found[expr] = StorageInfo(ids, [recorder.of_node[e.node] for e in entries], [sizes[i] for i in ids])
    return StaticMemoryPlan(found)


__all__ = ["StaticMemoryPlan", "StorageInfo", "graph_plan_memory"]
