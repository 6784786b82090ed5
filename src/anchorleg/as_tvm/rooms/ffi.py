"""``tvm._ffi``: functions by global name; classes need no registration here."""
from __future__ import annotations

import sys
from typing import Any

from ...runtime.registry import get_global_func, list_global_func_names, register_func, remove_global_func
from . import ffi_base as base
from . import ffi_runtime as runtime_ctypes
from .ffi_base import register_error

registry = sys.modules[__name__]


def register_object(type_key: Any = None) -> Any:
    """A class decorator that changes nothing: classes are known by themselves."""
    return type_key if isinstance(type_key, type) else (lambda cls: cls)


def register_extension(cls: Any, fcreate: Any = None) -> Any:
    """Classes pass through calls as they are."""
    return cls


def _init_api(namespace: str, target_module_name: str | None = None) -> None:
    """Gives a module the global functions of a namespace as attributes."""
    module = sys.modules[target_module_name or namespace]
    prefix = namespace.removeprefix("tvm.") + "."
    for name in list_global_func_names():
        if name.startswith(prefix) and "." not in name[len(prefix):]:
            setattr(module, name[len(prefix):], get_global_func(name))


__all__ = ["base", "get_global_func", "list_global_func_names", "register_error", "register_extension", "register_func", "register_object",
           "registry", "remove_global_func", "runtime_ctypes"]
