"""How data types look in LLVM IR: in registers, in memory, and as constants."""
from __future__ import annotations

import math
import struct

from ....support.errors import UnsupportedOpError
from ....tir.dtypes import DTypeInfo, info

_FLOAT = {("float", 16): "half", ("float", 32): "float", ("float", 64): "double"}
_REGISTER: dict[str, str] = {}
_MEMORY: dict[str, str] = {}


def scalar_type(t: DTypeInfo) -> str:
    """The register type of one lane; bfloat16 and 8-bit floats travel as their bits."""
    if t.kind == "handle":
        return "ptr"
    if t.kind == "bool":
        return "i1"
    found = _FLOAT.get((t.kind, t.bits))
    return found or f"i{t.bits}"


def vector_of(scalar: str, lanes: int) -> str:
    """The type of ``lanes`` lanes of ``scalar``."""
    return scalar if lanes == 1 else f"<{lanes} x {scalar}>"


def llvm_type(dtype: str) -> str:
    """The type of a value of ``dtype`` in registers."""
    found = _REGISTER.get(dtype)
    if found is None:
        t = info(dtype)
        if dtype == "void":
            return "void"
        found = _REGISTER[dtype] = vector_of(scalar_type(t), t.lanes)
    return found


def memory_scalar(t: DTypeInfo) -> str:
    """The type of one element in memory: sub-byte elements take a byte each."""
    return "i8" if t.kind != "handle" and t.bits < 8 else scalar_type(t)


def memory_type(dtype: str) -> str:
    """The type that a value of ``dtype`` has in memory."""
    found = _MEMORY.get(dtype)
    if found is None:
        t = info(dtype)
        found = _MEMORY[dtype] = vector_of(memory_scalar(t), t.lanes)
    return found


def item_bytes(dtype: str) -> int:
    """Bytes one element (one lane) takes in memory."""
    t = info(dtype)
    return 8 if t.kind == "handle" else max(1, t.bits // 8)


def splat_text(scalar: str, text: str, lanes: int) -> str:
    """A constant operand with every lane ``text``."""
    if lanes == 1:
        return text
    if text in ("0", "0x0000000000000000", "0xH0000", "false"):
        return "zeroinitializer"
    return f"splat ({scalar} {text})"


def float_bits_text(value: float, scalar: str) -> str:
    """A floating constant, exactly, in LLVM's hexadecimal form."""
    if scalar == "half":
        return f"0xH{_half_bits(value):04X}"
    if scalar == "float":
        value = _as_float32(value)
    return f"0x{struct.unpack('<Q', struct.pack('<d', value))[0]:016X}"


def _as_float32(value: float) -> float:
    try:
        return struct.unpack("<f", struct.pack("<f", value))[0]
    except OverflowError:
        return math.copysign(math.inf, value)


def _half_bits(value: float) -> int:
    try:
        return struct.unpack("<H", struct.pack("<e", value))[0]
    except OverflowError:
        return 0xFC00 if value < 0 else 0x7C00


def packed_bits(value: float, dtype: str) -> int:
    """The bits of ``value`` in a type that travels as its bits (bfloat16, 8-bit floats)."""
    import numpy as np

    from ....runtime.dtype import numpy_dtype

    as_type = np.array(value, np.float64).astype(numpy_dtype(dtype))
    return int(as_type.view(np.uint16 if as_type.dtype.itemsize == 2 else np.uint8))


def constant_text(value: float | int, dtype: str) -> str:
    """A constant of ``dtype`` (all lanes alike) as an operand."""
    t = info(dtype)
    scalar = scalar_type(t)
    if t.kind == "handle":
        if value:
            raise UnsupportedOpError(f"a constant address {value} cannot be compiled: only the null pointer can")
        return "null"
    if t.kind == "bool":
        text = "true" if value else "false"
    elif t.is_integer:
        text = str(signed_text(int(value), t.bits))
    elif t.kind == "float":
        text = float_bits_text(float(value), scalar)
    else:
        text = str(packed_bits(float(value), t.scalar))
    return splat_text(scalar, text, t.lanes)


def signed_text(value: int, bits: int) -> int:
    """The integer with the same low ``bits`` bits that is in signed range."""
    value &= (1 << bits) - 1
    return value - (1 << bits) if value >> (bits - 1) else value
