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


def __getattr__(name: str) -> object:
    """What users write strategies with: ``wrap_compute_*``, ``wrap_topi_schedule``, ``naive_schedule``, ``<operator>_strategy``."""
    if name.startswith("wrap_compute_"):
        module: object = importlib.import_module(f"{__name__}.wrappers")
    else:
        module = importlib.import_module(f"{__name__}.generic")
    if hasattr(module, name):
        return getattr(module, name)
    if name.endswith("_strategy"):
        load_all()
        from ....target.generic_func import is_registered, native_generic

        if is_registered(name):
            return native_generic(name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
