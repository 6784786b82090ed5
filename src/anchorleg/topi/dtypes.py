"""Element types as computes see them: which type arithmetic is done in."""
from __future__ import annotations

from typing import Any, Callable

from .. import tir
from ..tir.dtypes import is_float


def compute_dtype(dtype: str) -> str:
    """The type in which arithmetic on ``dtype`` is done: float32 for narrower floats, else the type itself."""
    return "float32" if is_float(dtype) and dtype not in ("float32", "float64") else dtype


def in_compute_dtype(fn: Callable[..., Any], *args: Any) -> Any:
    """``fn`` of scalar expressions of one dtype, narrow floats being widened before and rounded once after."""
    dtype = args[0].dtype
    wide = compute_dtype(dtype)
    if wide == dtype:
        return fn(*args)
    result = fn(*[tir.op.cast(a, wide) for a in args])
    return tir.op.cast(result, dtype) if result.dtype == wide else result
