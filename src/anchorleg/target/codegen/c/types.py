"""How C spells types, constants and names."""
from __future__ import annotations

import math
import re

import numpy as np

from ....support.errors import UnsupportedOpError
from ....tir.dtypes import info, scalar_of

NARROW_FLOATS = {"float16": ("uint16_t", "f16"), "bfloat16": ("uint16_t", "bf16")}  # stored as bits, computed as float
_SPELLING = {"float32": "float", "float64": "double", "bool": "uint8_t", "handle": "void*",
             **{f"{u}int{b}": f"{u}int{b}_t" for u in ("", "u") for b in (8, 16, 32, 64)}}
_KEYWORDS = frozenset(
    "auto break case char const continue default do double else enum extern float for goto if inline int long register restrict return "
    "short signed sizeof static struct switch typedef union unsigned void volatile while bool true false main asm workspace NAN INFINITY "
    "exp log sqrt tanh pow floor ceil round trunc erf sin cos tan abs fabs fmod index y0 y1 yn j0 j1 jn gamma signal".split())


def storage_type(dtype: str) -> str:
    """The C type of an element of ``dtype`` in memory."""
    scalar = scalar_of(dtype)
    if scalar in NARROW_FLOATS:
        return NARROW_FLOATS[scalar][0]
    found = _SPELLING.get(scalar)
    if found is None:
        raise UnsupportedOpError(f"{dtype} has no C99 type: C code can hold {', '.join([*_SPELLING, *NARROW_FLOATS])}")
    return found


def value_type(dtype: str) -> str:
    """The C type that holds a value of ``dtype`` in an expression."""
    return "float" if scalar_of(dtype) in NARROW_FLOATS else storage_type(dtype)


def computed_dtype(dtype: str) -> str:
    """The dtype in which arithmetic on ``dtype`` is done."""
    scalar = scalar_of(dtype)
    return "float32" if scalar in NARROW_FLOATS else scalar


def identifier(name: str) -> str:
    """``name`` as a C identifier (one that C and its library do not use)."""
    text = re.sub(r"\W", "_", name, flags=re.A) or "v"
    if text[0].isdigit() or text.startswith("_"):
        text = "v" + text
    return text + "_" if text in _KEYWORDS else text


def float_text(value: float, dtype: str) -> str:
    """A floating-point constant, exact."""
    double = dtype == "float64"
    if math.isnan(value):
        return "NAN"
    if math.isinf(value):
        return "INFINITY" if value > 0 else "(-INFINITY)"
    text = repr(float(value)) if double else np.format_float_scientific(np.float32(value), unique=True) if value and not 1e-4 <= abs(value) < 1e7 \
        else np.format_float_positional(np.float32(value), unique=True, trim="0")
    text = text if any(c in text for c in ".en") else text + ".0"
    text = text.replace(".e", ".0e")
    text = text if double else text + "f"
    return f"({text})" if text.startswith("-") else text


def int_text(value: int, dtype: str) -> str:
    """An integer constant of C type ``dtype``."""
    scalar = scalar_of(dtype)
    if scalar == "bool":
        return "1" if value else "0"
    if scalar == "int64":
        return "INT64_MIN" if value == -(1 << 63) else _signed(f"INT64_C({abs(value)})", value)
    if scalar == "uint64":
        return f"UINT64_C({value})"
    if scalar == "uint32":
        return f"{value}U"
    return "INT32_MIN" if value == -(1 << 31) else _signed(str(abs(value)), value)


def _signed(text: str, value: int) -> str:
    return f"(-{text})" if value < 0 else text


def needs_math(text: str) -> bool:
    """Whether a constant's text is a macro of ``<math.h>``."""
    return "NAN" in text or "INFINITY" in text


def item_size(dtype: str) -> int:
    """Bytes of an element in memory."""
    t = info(dtype)
    return 1 if t.kind == "bool" else 8 if t.kind == "handle" else max(1, t.bits // 8)
