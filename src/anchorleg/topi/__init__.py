"""Operators' computes and schedules over tensor expressions; names are upstream's ``tvm.topi``."""
from __future__ import annotations

from . import tag, utils
from .broadcast import *  # noqa: F401,F403
from .elemwise import *  # noqa: F401,F403
from .math import *  # noqa: F401,F403
from .reduction import *  # noqa: F401,F403
from .utils import InvalidShapeError
from .argwhere import argwhere, unique
from .scan import cumprod, cumsum
from .scatter import scatter_elements, scatter_nd
from .signal import dft, stft
from .sort import argsort, searchsorted, sort, topk
from .transform import *  # noqa: F401,F403
from .transpose_schedule import schedule_transpose
