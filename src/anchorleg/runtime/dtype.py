"""`DataType`: the element type of a tensor, with its text form, its C form and its numpy form.

Text forms are upstream's: ``float32``, ``int8x4`` (four lanes), ``bool``, ``handle``, ``bfloat16``, ``e4m3_float8``,
``e5m2_float8``; ``float8_e4m3fn`` and the like are accepted as other spellings.
"""

from __future__ import annotations

import re
from enum import IntEnum
from functools import lru_cache

import numpy as np

from ..support.errors import ArgumentError


class DataTypeCode(IntEnum):
    """Kind of an element, numbered as in the C structures."""

    INT = 0
    UINT = 1
    FLOAT = 2
    HANDLE = 3
    BFLOAT = 4
    E4M3Float = 6
    E5M2Float = 7


_CODE_NAME = {
    DataTypeCode.INT: "int",
    DataTypeCode.UINT: "uint",
    DataTypeCode.FLOAT: "float",
    DataTypeCode.BFLOAT: "bfloat",
    DataTypeCode.E4M3Float: "e4m3_float",
    DataTypeCode.E5M2Float: "e5m2_float",
}
_NAME_CODE = {name: code for code, name in _CODE_NAME.items()}
_DEFAULT_BITS = {"int": 32, "uint": 32, "float": 32, "bfloat": 16, "e4m3_float": 8, "e5m2_float": 8}
_ALLOWED_BITS = {
    "int": frozenset((1, 2, 4, 8, 16, 32, 64)),
    "uint": frozenset((1, 2, 4, 8, 16, 32, 64)),
    "float": frozenset((16, 32, 64)),
    "bfloat": frozenset((16,)),
    "e4m3_float": frozenset((8,)),
    "e5m2_float": frozenset((8,)),
}
_OTHER_SPELLING = {
    "bool": "uint1",
    "float8_e4m3": "e4m3_float8",
    "float8_e4m3fn": "e4m3_float8",
    "float8_e5m2": "e5m2_float8",
    "half": "float16",
    "double": "float64",
}
_PATTERN = re.compile(r"(?P<name>[a-z]\w*?_float|[a-z]+)(?P<bits>\d+)?\Z")
_LANES = re.compile(r"(?P<base>.+?)x(?P<lanes>\d+)\Z")


class DataType:
    """An element type: a kind, a width in bits and a number of vector lanes.

    ``DataType("float32")``; parsed objects are shared, compare equal to their text, and hash alike.

    Raises `ArgumentError` for text that names no type.
    """

    __slots__ = ("type_code", "bits", "lanes", "_text")

    type_code: int
    bits: int
    lanes: int

    def __new__(cls, text: "str | DataType | np.dtype | type") -> "DataType":
        if isinstance(text, DataType):
            return text
        return _parse(text if isinstance(text, str) else dtype_name(text))

    @classmethod
    def of(cls, type_code: int, bits: int, lanes: int = 1) -> "DataType":
        """From the three numbers of the C structure."""
        return _make(int(type_code), int(bits), int(lanes))

    @property
    def itemsize(self) -> int:
        """Bytes an element (all lanes) takes in memory; sub-byte types take a whole byte, as upstream stores them."""
        return (self.bits + 7) // 8 * self.lanes

    @property
    def is_bool(self) -> bool:
        return self.type_code == DataTypeCode.UINT and self.bits == 1

    @property
    def numpy_dtype(self) -> np.dtype:
        """The numpy type of one lane; `ArgumentError` when numpy has none."""
        return _numpy_dtype(self)

    def with_lanes(self, lanes: int) -> "DataType":
        return _make(self.type_code, self.bits, lanes)

    def __str__(self) -> str:
        return self._text

    def __repr__(self) -> str:
        return f'DataType("{self._text}")'

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if isinstance(other, DataType):
            return (self.type_code, self.bits, self.lanes) == (other.type_code, other.bits, other.lanes)
        return self._text == other if isinstance(other, str) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._text)

    def __reduce__(self) -> tuple:
        return DataType, (self._text,)


@lru_cache(maxsize=None)
def _make(code: int, bits: int, lanes: int) -> DataType:
    self = object.__new__(DataType)
    self.type_code, self.bits, self.lanes = code, bits, lanes
    self._text = _text(code, bits, lanes)
    return self


def _text(code: int, bits: int, lanes: int) -> str:
    suffix = f"x{lanes}" if lanes != 1 else ""
    if code == DataTypeCode.UINT and bits == 1:
        return "bool" + suffix
    if code == DataTypeCode.HANDLE:
        return ("handle" if bits else "void") + suffix
    if code not in _CODE_NAME:
        return f"custom[{code}]{bits}{suffix}"
    return f"{_CODE_NAME[DataTypeCode(code)]}{bits}{suffix}"


@lru_cache(maxsize=4096)
def _parse(text: str) -> DataType:
    whole = _parse_scalar(text)
    if whole is not None:
        return whole
    split = _LANES.match(text)
    base = _parse_scalar(split["base"]) if split else None
    if base is None or split is None or int(split["lanes"]) < 1:
        raise ArgumentError(
            f"unknown data type {text!r}: expected for example 'float32', 'int8', 'uint8', 'bool', 'bfloat16', "
            "'e4m3_float8', 'handle' or 'float32x4'"
        )
    return base.with_lanes(int(split["lanes"]))


def _parse_scalar(text: str) -> DataType | None:
    if text in ("handle", "void", ""):
        return _make(DataTypeCode.HANDLE, 64 if text == "handle" else 0, 1)
    text = _OTHER_SPELLING.get(text, text)
    match = _PATTERN.match(text)
    if match is None or match["name"] not in _NAME_CODE:
        return None
    name = match["name"]
    bits = int(match["bits"]) if match["bits"] else _DEFAULT_BITS[name]
    return _make(_NAME_CODE[name], bits, 1) if bits in _ALLOWED_BITS[name] else None


_EXTENSION_NAME = {
    "bfloat16": "bfloat16",
    "float8_e4m3fn": "e4m3_float8",
    "float8_e4m3": "e4m3_float8",
    "float8_e5m2": "e5m2_float8",
    "int4": "int4",
    "uint4": "uint4",
    "bool": "bool",
    "bool_": "bool",
}


@lru_cache(maxsize=256)
def _name_of_numpy(dtype: np.dtype) -> str:
    name = dtype.name
    if name in _EXTENSION_NAME:
        return _EXTENSION_NAME[name]
    if dtype.kind in "iuf" and dtype.itemsize <= 8:
        return name
    raise ArgumentError(f"numpy type {name!r} has no tensor type: expected bool, an integer or a float type")


def dtype_name(dtype: object) -> str:
    """The text form for a numpy dtype or scalar class, a `DataType` or text (which is returned in canonical form)."""
    if isinstance(dtype, str):
        return _parse(dtype)._text
    if isinstance(dtype, DataType):
        return dtype._text
    try:
        return _name_of_numpy(np.dtype(dtype))  # type: ignore[arg-type, call-overload]
    except TypeError:
        raise ArgumentError(f"{dtype!r} is not a data type") from None


@lru_cache(maxsize=256)
def _numpy_dtype(dtype: DataType) -> np.dtype:
    scalar = dtype.with_lanes(1)._text
    if scalar in ("bool", "float16", "float32", "float64") or dtype.type_code <= 1 and dtype.bits >= 8:
        return np.dtype(scalar)
    if scalar == "handle":
        return np.dtype(np.uint64)
    name = {"e4m3_float8": "float8_e4m3fn", "e5m2_float8": "float8_e5m2"}.get(scalar, scalar)
    import ml_dtypes

    if not hasattr(ml_dtypes, name):
        raise ArgumentError(f"data type {scalar!r} has no numpy equivalent")
    return np.dtype(getattr(ml_dtypes, name))


def numpy_dtype(dtype: object) -> np.dtype:
    """The numpy dtype of one lane for anything that names a type."""
    return _numpy_dtype(_parse(dtype_name(dtype)))
