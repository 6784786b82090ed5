"""External compilers that come with the package."""
from __future__ import annotations

import importlib

_COMPILERS = ("ccompiler",)


def load_compilers() -> None:
    """Makes the external compilers of this package known."""
    for name in _COMPILERS:
        importlib.import_module(f"{__name__}.{name}")
