"""Tuning: which configuration of an implementation is best for a workload, and the contexts that compilation asks.

Tasks, dispatch contexts and records are here; loaded when first used.
"""
from __future__ import annotations

import importlib
from typing import Any

_MODULES = ("task", "env", "measure", "record", "database", "tuner", "utils", "feature", "tophub", "graph_tuner")
_NAMES = {
    "GLOBAL_SCOPE": ("env", "GLOBAL_SCOPE"),
    **{name: ("measure", name) for name in ("MeasureInput", "MeasureResult", "MeasureErrorNo", "measure_option", "LocalBuilder", "LocalRunner",
                                            "RPCRunner")},
    **{name: ("task", name) for name in ("get_config", "create", "ConfigSpace", "ConfigEntity", "register_topi_compute",
                                         "register_topi_schedule", "template", "DispatchContext", "FallbackContext")},
    "apply_history_best": ("task", "ApplyHistoryBest"), "apply_fixed_config": ("task", "ApplyFixedConfig"),
    "apply_graph_best": ("task", "ApplyGraphBest"), "callback": ("tuner.callback", None),
}


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return importlib.import_module(f"{__name__}.{name}")
    if name not in _NAMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module, inner = _NAMES[name]
    found = importlib.import_module(f"{__name__}.{module}")
    return found if inner is None else getattr(found, inner)
