"""A C expression with what is known of it: how tightly it binds, the C type it has, and the bounds of an integer.

Bounds decide three things: indices are 32-bit wherever they fit, arithmetic that can't overflow is written plainly, and
whatever could overflow goes through unsigned types, where C defines the result.
"""
from __future__ import annotations

from typing import NamedTuple

from ....tir.dtypes import info, int_range, scalar_of
from .types import int_text, value_type

PRIMARY, UNARY, PRODUCT, SUM, RELATION, EQUALITY, LAND, LOR, CONDITIONAL = 16, 15, 13, 12, 10, 9, 5, 4, 3
INT32 = (-(1 << 31), (1 << 31) - 1)
_PROMOTED = ("int8", "int16", "int32", "uint8", "uint16", "bool")  # what C computes as int


class Value(NamedTuple):
    """``ctype`` is the dtype whose C type the text has; it may be narrower than the node's when the bounds allow."""

    text: str
    binds: int
    ctype: str
    low: int | None = None
    high: int | None = None

    @property
    def constant(self) -> int | None:
        """The integer, when only one is possible."""
        return self.low if self.low is not None and self.low == self.high else None

    @property
    def is_int(self) -> bool:
        """Whether C computes with it as ``int``."""
        return self.ctype in _PROMOTED

    def at(self, level: int) -> str:
        """The text, in parentheses if it binds less tightly than ``level``."""
        return self.text if self.binds >= level else f"({self.text})"

    def bounds(self, dtype: str) -> tuple[int, int]:
        """The bounds; those of ``dtype`` where none are known."""
        if self.low is not None and self.high is not None:
            return self.low, self.high
        return int_range(scalar_of(dtype))


def integer(value: int, dtype: str) -> Value:
    """A constant; a 64-bit one that fits is written as ``int``."""
    narrow = scalar_of(dtype)
    if narrow == "int64" and INT32[0] <= value <= INT32[1] or narrow in ("int8", "int16", "uint8", "uint16"):
        narrow = "int32"
    return Value(int_text(value, narrow), PRIMARY, narrow, value, value)


def cast_text(value: Value, dtype: str) -> Value:
    """The value converted to the C type of ``dtype``, with a written cast unless it has that type."""
    if value.ctype == dtype:
        return value
    if value.constant is not None and info(dtype).is_integer:
        return Value(int_text(value.constant, dtype), PRIMARY, dtype, value.low, value.high)
    return Value(f"({value_type(dtype)}){value.at(UNARY)}", UNARY, dtype, value.low, value.high)


def fits(low: int, high: int, dtype: str) -> bool:
    """Whether all of low … high is in the range of ``dtype``."""
    least, greatest = int_range(dtype)
    return least <= low and high <= greatest


def interval(name: str, a: tuple[int, int], b: tuple[int, int]) -> tuple[int, int]:
    """The exact bounds of Add, Sub or Mul of anything within ``a`` and ``b``."""
    if name == "Add":
        return a[0] + b[0], a[1] + b[1]
    if name == "Sub":
        return a[0] - b[1], a[1] - b[0]
    products = [x * y for x in a for y in b]
    return min(products), max(products)
