"""Converters of ONNX operators, one file per family."""
from __future__ import annotations

import importlib

_FAMILIES = ("activation", "contrib", "control", "conv", "create", "einsum", "elementwise", "index", "linear", "norm", "optional",
             "pad", "pool", "quantize", "recurrent", "reduce", "resize", "search", "sequence", "shape", "signal", "vision")
_loaded: list[str] = []


def load_all() -> None:
    """Loads every family, so that its converters are registered."""
    if not _loaded:
        for family in _FAMILIES:
            importlib.import_module(f"{__name__}.{family}")
        _loaded.extend(_FAMILIES)
