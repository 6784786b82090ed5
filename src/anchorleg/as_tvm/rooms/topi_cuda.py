"""``tvm.topi.cuda``: what schedules for CUDA decide by shape alone; the rest serves all devices."""
from __future__ import annotations

import sys
from typing import Any

from ...topi import generic

conv3d_winograd = sys.modules[__name__]


def _infer_tile_size(data: Any, kernel: Any) -> int:
    """The output tile of a three-dimensional minimal-filtering convolution: 4 where the depth is a multiple of 8, else 2."""
    return 4 if int(data.shape[2]) % 8 == 0 else 2


def __getattr__(name: str) -> Any:
    return getattr(generic, name)
