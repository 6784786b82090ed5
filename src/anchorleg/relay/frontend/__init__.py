"""Importers of other frameworks' models; each is loaded on first use."""
from __future__ import annotations

from typing import Any

_LAZY = {"from_onnx": ("onnx", "from_onnx")}


def __getattr__(name: str) -> Any:
    import importlib

    if name not in _LAZY:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module, inner = _LAZY[name]
    return getattr(importlib.import_module(f"{__name__}.{module}"), inner)


def __dir__() -> list[str]:
    return sorted({*globals(), *_LAZY})
