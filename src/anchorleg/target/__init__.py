"""Targets: what code is generated for, and functions that differ by target."""
from __future__ import annotations

import importlib
from typing import Any

from .factories import (adreno, arm_cpu, bifrost, create, cuda, hexagon, intel_graphics, mali, micro, rasp, riscv_cpu, rocm, stm32,
                        vta)
from .generic_func import GenericFunc, generic_func, get_native_generic_func, override_native_generic_func
from .kinds import TargetKind
from .tags import list_tags, register_tag
from .target import Target

__all__ = ["GenericFunc", "Target", "TargetKind", "adreno", "arm_cpu", "bifrost", "create", "cuda", "generic_func",
           "get_native_generic_func", "hexagon", "intel_graphics", "list_tags", "mali", "micro", "override_native_generic_func", "rasp",
           "register_tag", "riscv_cpu", "rocm", "stm32", "vta"]


_FILES = {"tag": "tags", "compilation_config": "virtual_device"}


def __getattr__(name: str) -> Any:
    if name in ("VirtualDevice", "CompilationConfig", "make_compilation_config"):
        return getattr(importlib.import_module(f"{__name__}.virtual_device"), name)
    if name in ("build", "codegen", "cpu", "detect", "tag", "virtual_device", "compilation_config"):
        return importlib.import_module(f"{__name__}.{_FILES.get(name, name)}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
