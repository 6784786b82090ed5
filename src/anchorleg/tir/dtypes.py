"""Facts about data types by their text, remembered: kind, width, lanes, value range.

The compiler asks these questions of every node it builds, so they are answered from one table by plain strings instead
of through :class:`anchorleg.runtime.dtype.DataType` objects.
"""
from __future__ import annotations

import math
import struct
from typing import NamedTuple

from ..runtime.dtype import DataType, DataTypeCode
from ..support.errors import ArgumentError


class DTypeInfo(NamedTuple):
    """``kind`` is one of int, uint, bool, float, bfloat, fp8, handle; ``scalar`` the type of one lane."""

    kind: str
    bits: int
    lanes: int
    scalar: str

    @property
    def is_integer(self) -> bool:
        """Whether arithmetic on it is that of integers (bool included)."""
        return self.kind in ("int", "uint", "bool")

    @property
    def is_float(self) -> bool:
        """Whether it is any floating-point type."""
        return self.kind in ("float", "bfloat", "fp8")


_KINDS = {DataTypeCode.INT: "int", DataTypeCode.UINT: "uint", DataTypeCode.FLOAT: "float", DataTypeCode.HANDLE: "handle",
          DataTypeCode.BFLOAT: "bfloat", DataTypeCode.E4M3Float: "fp8", DataTypeCode.E5M2Float: "fp8"}
_TABLE: dict[str, DTypeInfo] = {}


def info(dtype: str) -> DTypeInfo:
    """What there is to know about ``dtype``; ArgumentError when it names no type."""
    found = _TABLE.get(dtype)
    if found is None:
        t = DataType(dtype)
        kind = "bool" if t.is_bool else _KINDS[DataTypeCode(t.type_code)]
        found = _TABLE[dtype] = DTypeInfo(kind, t.bits, t.lanes, str(t.with_lanes(1)))
    return found


def lanes_of(dtype: str) -> int:
    """Vector lanes (1 for a scalar)."""
    return info(dtype).lanes if "x" in dtype else 1


def scalar_of(dtype: str) -> str:
    """The type of one lane."""
    return info(dtype).scalar if "x" in dtype else dtype


def with_lanes(dtype: str, lanes: int) -> str:
    """The vector (or scalar) type with that many lanes."""
    base = scalar_of(dtype)
    return base if lanes == 1 else f"{base}x{lanes}"


def is_integer(dtype: str) -> bool:
    """Whether ``dtype`` is an integer type (bool included)."""
    return info(dtype).is_integer


def is_float(dtype: str) -> bool:
    """Whether ``dtype`` is a floating-point type of any width."""
    return info(dtype).is_float


def is_bool(dtype: str) -> bool:
    """Whether ``dtype`` is bool (or a vector of it)."""
    return dtype == "bool" or info(dtype).kind == "bool"


_RANGES: dict[str, tuple[int, int]] = {}


def int_range(dtype: str) -> tuple[int, int]:
    """The least and the greatest value of an integer type."""
    found = _RANGES.get(dtype)
    if found is None:
        kind, bits, _, _ = info(dtype)
        if kind not in ("int", "uint", "bool"):
            raise ArgumentError(f"expected an integer type, got {dtype!r}")
        found = _RANGES[dtype] = (-(1 << bits - 1), (1 << bits - 1) - 1) if kind == "int" else (0, (1 << bits) - 1)
    return found


def wrap(value: int, dtype: str) -> int:
    """``value`` reduced to the width of ``dtype``, as the machine does."""
    low, high = int_range(dtype)
    if low <= value <= high:
        return value
    return (value - low) % (high - low + 1) + low


_PACK = {"float32": "f", "float16": "e"}


def round_float(value: float, dtype: str) -> float:
    """``value`` rounded to the precision of the floating-point type ``dtype``."""
    scalar = scalar_of(dtype)
    if scalar == "float64" or math.isnan(value) or math.isinf(value):
        return value
    code = _PACK.get(scalar)
    if code is None:
        from ..runtime.dtype import numpy_dtype

        return float(numpy_dtype(scalar).type(value))
    try:
        return struct.unpack(code, struct.pack(code, value))[0]
    except OverflowError:
        return math.copysign(math.inf, value)


_FLOAT_MAX = {"float16": 65504.0, "float32": 3.4028234663852886e38, "float64": 1.7976931348623157e308,
              "bfloat16": 3.3895313892515355e38, "e4m3_float8": 448.0, "e5m2_float8": 57344.0}


def float_max(dtype: str) -> float:
    """The greatest finite value of a floating-point type."""
    return _FLOAT_MAX[scalar_of(dtype)]
