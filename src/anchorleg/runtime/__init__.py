"""The rooms a deployed model needs: tensors, devices, packed functions, libraries and executors.

Imports only `anchorleg.support`, numpy and ml_dtypes; LLVM is loaded when native code is.
"""

from __future__ import annotations

from .container import ADT, ShapeTuple, String, tuple_object
from .device import Device, cpu, cuda, device, ext_dev, metal, mps, opencl, rocm, vulkan, webgpu
from .dtype import DataType, DataTypeCode
from .ndarray import NDArray, array, empty, from_dlpack, numpyasarray
from .object import Object
from .packed_func import PackedFunc, convert
from .params import (
    load_param_dict,
    load_param_dict_from_file,
    save_param_dict,
    save_param_dict_to_file,
)
from .profiling import BenchmarkResult
from .registry import get_global_func, list_global_func_names, register_func, register_library, remove_global_func
from .module import Module, enabled, load_module, num_threads, system_lib
from . import ndarray


def _load_module_makers() -> None:
    """Registers the makers of modules, ``runtime.CSourceModuleCreate`` and its like; run when a global name is not found."""
    from . import const_loader, source_module  # noqa: F401


register_library(_load_module_makers)


def __getattr__(name: str) -> object:
    if name == "executor":  # the wrappers of executors, loaded for those who use them
        import importlib

        return importlib.import_module(f"{__name__}.executor")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


__all__ = [
    "ADT", "BenchmarkResult", "DataType", "DataTypeCode", "Device", "Module", "NDArray", "Object", "PackedFunc",
    "ShapeTuple", "String", "array", "convert", "cpu", "cuda", "device", "empty", "enabled", "ext_dev",
    "from_dlpack", "get_global_func", "list_global_func_names", "load_module", "load_param_dict",
    "load_param_dict_from_file", "metal", "mps", "ndarray", "num_threads", "numpyasarray", "opencl",
    "register_func", "remove_global_func", "rocm", "save_param_dict", "save_param_dict_to_file", "system_lib",
    "tuple_object", "vulkan", "webgpu",
]
