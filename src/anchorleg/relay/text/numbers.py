"""Numbers of the text format: ``42``, ``42i64``, ``3f``, ``3f16``, ``True`` … and back.

Floats are written with six significant digits where those say it all (upstream's form), else with as many as it takes to read
the same value back.
"""
from __future__ import annotations

from typing import Any

import numpy as np

_SUFFIX = {"int16": "i16", "int32": "", "int64": "i64", "float16": "f16", "float32": "f", "float64": "f64"}
SCALAR_DTYPES = frozenset((*_SUFFIX, "bool"))


def scalar_text(value: Any, dtype: str) -> str:
    """The literal of one number of the given dtype (one of ``SCALAR_DTYPES``)."""
    if dtype == "bool":
        return "True" if value else "False"
    if dtype.startswith("float"):
        return float_text(float(value), dtype) + _SUFFIX[dtype]
    return f"{int(value)}{_SUFFIX[dtype]}"


def float_text(value: float, dtype: str = "float64") -> str:
    """The shortest of ``%.6g`` … ``%.17g`` that reads back as the same value of ``dtype``."""
    if value != value or value in (float("inf"), float("-inf")):
        return str(value)
    scalar = np.dtype(dtype).type
    for digits in range(6, 18):
        text = f"{value:.{digits}g}"
        if scalar(text) == scalar(value):
            break
    return text


_INT_RANGE = {width: (-(2 ** (width - 1)), 2 ** (width - 1) - 1) for width in (8, 16, 32, 64)}
_MAX_FLOAT = {16: 65504.0, 32: 3.4028235e38, 64: float(np.finfo("float64").max)}  # as written with the digits the width needs


def read_int(text: str, suffix: str) -> tuple[int, str]:
    """(value, dtype) of an integer literal; without a suffix int32, or int64 when too big for that.

    ValueError, saying why, when the value does not fit or no integer has that width.
    """
    value = int(text)
    width = int(suffix) if suffix else 32
    if width not in (16, 32, 64):
        raise ValueError(f"an integer literal is 16, 32 or 64 bits wide, not {width}")
    if not suffix and not _fits(value, 32):
        width = 64
    if not _fits(value, width):
        lo, hi = _INT_RANGE[width]
        raise ValueError(f"{value} does not fit int{width} ({lo} to {hi})")
    return value, f"int{width}"


def _fits(value: int, width: int) -> bool:
    lo, hi = _INT_RANGE[width]
    return lo <= value <= hi


def read_float(text: str, suffix: str) -> tuple[float, str]:
    """(value, dtype) of a float literal; ValueError when the value does not fit the width."""
    value = float(text)
    width = int(suffix) if suffix else 32
    if width not in _MAX_FLOAT:
        raise ValueError(f"a float literal is 16, 32 or 64 bits wide, not {width}")
    finite = value == value and abs(value) != float("inf")
    if finite and abs(value) > _MAX_FLOAT[width] or not finite and not text.lstrip("+-").lower().startswith(("inf", "nan")):
        raise ValueError(f"{text} does not fit float{width} (at most {_MAX_FLOAT[width]:g})")
    return value, f"float{width}"
