"""Operators' computes and schedules over tensor expressions; names are upstream's ``tvm.topi``."""
from __future__ import annotations

import importlib as _importlib
from typing import Any as _Any

from . import tag, utils
from .broadcast import *  # noqa: F401,F403
from .elemwise import *  # noqa: F401,F403
from .math import *  # noqa: F401,F403
from .reduction import *  # noqa: F401,F403
from .utils import InvalidShapeError
from .argwhere import argwhere, unique
from .einsum import einsum
from .scan import cumprod, cumsum
from .scatter import scatter_elements, scatter_nd
from .signal import dft, stft
from .sort import argsort, searchsorted, sort, topk
from .transform import *  # noqa: F401,F403
from .transpose_schedule import schedule_transpose

_LAZY = ("generic", "nn", "image", "vision", "testing", "cpp")
# schedules by device: one room of schedules serves all, choosing by the current target
_BY_DEVICE = ("x86", "arm_cpu", "cpu", "cuda", "gpu", "mali", "bifrost", "intel_graphics", "rocm", "hls", "hexagon", "adreno")


def __getattr__(name: str) -> _Any:
    if name in _LAZY:
        return _importlib.import_module(f"{__name__}.{name}")
    if name in _BY_DEVICE:
        return _importlib.import_module(f"{__name__}.generic")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
