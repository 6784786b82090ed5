"""Functions that upstream's users find by global name."""
from __future__ import annotations

import importlib
from typing import Any

from ...runtime.registry import get_global_func, register_func


def _lower_te(module_name: str, config: Any) -> Any:
    from ...relay.backend.lower_te import LowerTE

    return LowerTE(module_name, config)


def _pass(name: str) -> Any:
    def make(*args: Any) -> Any:
        from ...relay import transform

        return getattr(transform, name)(*args)

    return make


def _lower_call(*args: Any) -> Any:
    from ...relay.backend.te_compiler import lower_call

    return lower_call(*args)


def _lower_to_primfunc(*args: Any) -> Any:
    from ...relay.backend.te_compiler import lower_to_primfunc

    return lower_to_primfunc(*args)


def _recover_devices(*args: Any) -> Any:
    from ...relay.transform.device_scopes import recover_virtual_device_map

    return recover_virtual_device_map(*args)


def _build(*args: Any) -> Any:
    from ...relay.build_module import build

    return build(*args)


def _usmp(module: str, name: str) -> Any:
    def call(*args: Any) -> Any:
        return getattr(importlib.import_module(f"...tir.usmp.{module}", __package__), name)(*args)

    return call


FUNCTIONS = {
    **{f"tir.usmp.algo.{name}": _usmp("algo", name) for name in ("greedy_by_size", "greedy_by_conflicts", "hill_climb")},
    "tir.usmp.CreateArrayBufferInfo": _usmp("utils", "create_array_buffer_info"),
    "tir.usmp.AssignStmtPoolAllocations": _usmp("utils", "assign_stmt_pool_allocations"),
    "tir.usmp.transform.ConvertPoolAllocationsToOffsets": _usmp("transform", "convert_pool_allocations_to_offsets"),
    "tir.transform.UnifiedStaticMemoryPlanner": _usmp("planner", "UnifiedStaticMemoryPlanner"),
    "tir.usmp.transform.CreateAllocatesForIO": _usmp("io_allocates", "create_allocates_for_io"),
    "tir.usmp.transform.AssignPoolInfo": _usmp("transform", "assign_pool_info"),
    "tir.usmp.analysis.extract_buffer_info": _usmp("analysis", "extract_buffer_info"),
    "relay.tec.LowerTE": _lower_te,
    "relay.backend.lower_call": _lower_call,
    "relay.backend.LowerToPrimFunc": _lower_to_primfunc,
    "relay.backend.build": _build,
    "relay.transform.RecoverVirtualDeviceMap": _recover_devices,
    "relay._transform.RemoveStandaloneReshapes": _pass("RemoveStandaloneReshapes"),
}

for _name, _function in FUNCTIONS.items():
    if get_global_func(_name, allow_missing=True) is None:
        register_func(_name, _function)
