"""Strategies: which computes and schedules exist for each operator, by family.  Loaded by the compiler, not with the operators."""
from __future__ import annotations

import importlib
import pkgutil
import threading

_LOADED = False
_LOCK = threading.Lock()


def load_all() -> None:
    """Registers the strategies of every family; cheap after the first time."""
    global _LOADED
    with _LOCK:
        if not _LOADED:
            for found in pkgutil.iter_modules(__path__):
                importlib.import_module(f"{__name__}.{found.name}")
            _LOADED = True
