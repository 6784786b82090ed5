"""``tvm.meta_schedule`` and ``tvm.auto_scheduler``: other tuners, which are not part of this package; importable, so that programs that only may use them run."""
from __future__ import annotations

from typing import Any

from ...support.errors import UnsupportedOpError


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(name)
    raise UnsupportedOpError(f"{name!r} belongs to a tuner (meta_schedule or auto_scheduler) that is not part of this package: "
                             "expected programs that are compiled untuned or tuned by autotvm")
