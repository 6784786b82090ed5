"""What this build of the compiler can do, by the names upstream's build options have."""
from __future__ import annotations

import importlib.util

_ON = ("USE_LLVM", "USE_GRAPH_EXECUTOR", "USE_THREADS", "USE_SORT", "USE_RANDOM", "USE_RELAY_DEBUG")
_OFF = ("USE_CUDA", "USE_CUDNN", "USE_CUBLAS", "USE_NCCL", "USE_OPENCL", "USE_ROCM", "USE_METAL", "USE_VULKAN", "USE_CLML", "USE_MICRO",
        "USE_CUTLASS", "USE_ETHOSN", "USE_ETHOSU", "USE_LIBTORCH", "USE_MRVL", "USE_HEXAGON", "USE_CMSISNN", "USE_VITIS_AI", "USE_BLAS",
        "USE_MKL", "USE_DNNL", "USE_ARM_COMPUTE_LIB", "USE_TENSORRT_CODEGEN", "USE_UMA", "USE_THRUST", "USE_ANTLR")
_ROOMS = {"USE_RPC": "rpc", "USE_AOT_EXECUTOR": "relay.backend.aot", "USE_PROFILER": "runtime.profiling"}


def libinfo() -> dict[str, str]:
    """Build options with ``"ON"`` or ``"OFF"``.

    >>> libinfo()["USE_LLVM"]
    'ON'
    """
    package = __name__.split(".")[0]
    info = {**dict.fromkeys(_ON, "ON"), **dict.fromkeys(_OFF, "OFF")}
    for flag, room in _ROOMS.items():
        info[flag] = "ON" if importlib.util.find_spec(f"{package}.{room}") is not None else "OFF"
    return info
