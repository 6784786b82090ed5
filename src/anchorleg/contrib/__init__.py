"""Addresses kept for users: each module is loaded when first used."""
from __future__ import annotations

import importlib
from typing import Any


def __getattr__(name: str) -> Any:
    if not name.startswith("_"):
        full = f"{__name__}.{name}"
        try:
            return importlib.import_module(full)
        except ModuleNotFoundError as exc:
            if exc.name != full:
                raise
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
