"""``tvm.runtime._ffi_api``: makers of modules."""
from __future__ import annotations

from typing import Any


def __getattr__(name: str) -> Any:
    from ...runtime.registry import get_global_func

    found = get_global_func(f"runtime.{name}", allow_missing=True)
    if found is None:
        raise AttributeError(f"there is no function runtime.{name}")
    return found
