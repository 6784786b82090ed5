"""Quantised neural networks: the operators are in ``relay.qnn.op``."""
from __future__ import annotations

import importlib
from typing import Any

from . import op
from .op import *  # noqa: F401,F403  the operators are here as well


def __getattr__(name: str) -> Any:
    if name == "transform":
        return importlib.import_module(f"{__name__}.transform")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
