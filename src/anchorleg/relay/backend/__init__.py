"""The backend: from fused Relay to something an executor runs."""
from __future__ import annotations

import importlib
from typing import Any

_MODULES = ("te_compiler", "interpreter", "graph_executor_codegen", "vm", "aot", "executor_factory", "utils", "executor", "runtime",
            "name_transforms")
_NAMES = {"Executor": "executor", "Runtime": "runtime"}


def __getattr__(name: str) -> Any:
    if name in _NAMES:
        return getattr(importlib.import_module(f"{__name__}.{_NAMES[name]}"), name)
    if name in _MODULES:
        return importlib.import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
