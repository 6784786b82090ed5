"""The names of ``anchorleg.testing`` under the address upstream's users import them from."""
from __future__ import annotations

from typing import Any

from . import fixtures, targets


def __getattr__(name: str) -> Any:
    for module in (fixtures, targets):
        if hasattr(module, name):
            return getattr(module, name)
    import importlib

    return getattr(importlib.import_module(__name__.rpartition(".")[0]), name)
