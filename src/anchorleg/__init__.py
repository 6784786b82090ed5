"""anchorleg: the Relay backend, anew, in Python over LLVM.

Rooms are loaded when first used, so that ``import anchorleg`` stays quick and loads neither LLVM nor onnx.
"""
from __future__ import annotations

import importlib
from typing import Any

__version__ = "0.1.0"

_ROOMS = ("arith", "autotvm", "contrib", "driver", "instrument", "ir", "nd", "relay", "runtime", "support", "target", "te", "tir",
          "topi", "transform", "error", "testing", "rpc", "micro", "script")
_NAMES = {
    "IRModule": "ir.module", "TVMError": "support.errors", "AnchorlegError": "support.errors",
    **dict.fromkeys(("cpu", "cuda", "gpu", "device", "vulkan", "metal", "mps", "rocm", "ext_dev", "webgpu", "hexagon"), "runtime.device"),
    "WorkspaceMemoryPools": "ir.memory_pools", "ConstantMemoryPools": "ir.memory_pools", "WorkspacePoolInfo": "ir.memory_pools",
    "ConstantPoolInfo": "ir.memory_pools", "PoolInfoProperties": "ir.memory_pools",
    "opencl": "runtime.device", "Device": "runtime.device",
    "register_func": "runtime.registry", "get_global_func": "runtime.registry",
    "build": "driver.build_module", "lower": "driver.build_module",
}


def __getattr__(name: str) -> Any:
    if name in _ROOMS:
        return importlib.import_module(f"{__name__}.{name}")
    if name in _NAMES:
        return getattr(importlib.import_module(f"{__name__}.{_NAMES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *_ROOMS, *_NAMES])
