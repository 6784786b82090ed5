"""Operators of the graph language, by family.

Importing this package declares every operator: its inputs, attributes, type relation, fusion pattern and numpy rule.
Compute rules and schedules (strategies) are loaded by the compiler only.
"""
from __future__ import annotations

import importlib as _importlib
from typing import Any as _Any

from .op import (OpImplementation, OpPattern, OpSpecialization, OpStrategy, get, register, register_alter_op_layout,
                 register_broadcast_schedule, register_compute, register_convert_op_layout, register_external_compiler,
                 register_fake_quantization_to_integer, register_gradient, register_infer_correct_layout,
                 register_injective_schedule, register_legalize, register_mixed_precision_conversion,
                 register_optional_fake_quantization_to_integer, register_pattern, register_reduce_schedule,
                 register_schedule, register_shape_func, register_stateful, register_strategy)
from . import annotation
from .annotation import device_copy
from .reduce import *  # noqa: F401,F403
from .tensor import *  # noqa: F401,F403
from .transform import *  # noqa: F401,F403
from .algorithm import *  # noqa: F401,F403
from . import call, dyn, image, memory, vision, vm  # noqa: F401
from . import nn, qnn  # noqa: F401

_LAZY = ("strategy", "op", "op_attrs", "contrib")


def __getattr__(name: str) -> _Any:
    if name == "const":
        return _importlib.import_module("..expr", __name__).const
    if name in _LAZY:
        return _importlib.import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
