"""Element-wise operators of two inputs, broadcast together: arithmetic, comparison, logic, bits.

Both inputs have one data type.  Integers wrap around; dividing an integer by zero gives 0, and shifting by a count
outside of the type's width gives what an unbounded shift would.
"""
from __future__ import annotations

from typing import Any

import numpy as np

from ....ir.op import OpPattern
from ..registry import declare
from ..type_relations import broadcast_bool_rel, broadcast_rel
from .common import ANYTHING, BITS, NUMBERS, accepting, binary, elementwise


def trunc_divide_numpy(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Division cut towards zero; integers divided by zero give 0."""
    if a.dtype.kind == "f":
        return np.trunc(a / b)
    quotient = np.floor_divide(a, b)
    inexact = (b != 0) & (quotient * b != a) & ((a < 0) != (b < 0))
    return quotient + inexact.astype(a.dtype)


def divide_numpy(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """a / b; of integers, cut towards zero."""
    return a / b if a.dtype.kind == "f" else trunc_divide_numpy(a, b)


def floor_divide_numpy(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """The greatest integer not above a / b."""
    return np.floor(a / b) if a.dtype.kind == "f" else np.floor_divide(a, b)


def power_numpy(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """a to the power b; an integer to a negative power is cut towards zero."""
    if a.dtype.kind == "f":
        return np.power(a, b)
    raised = np.power(a, np.maximum(b, 0))
    if b.dtype.kind == "u":
        return raised
    a, b = np.broadcast_arrays(a, b)
    unit = np.where(a == 1, 1, np.where(a == -1, np.where(b % 2 == 0, 1, -1), 0)).astype(a.dtype)
    return np.where(b < 0, unit, raised)


# name, numpy function, accepted types, meaning, level
_ARITHMETIC: list[tuple[str, Any, Any, str, int]] = [
    ("add", np.add, ANYTHING, "lhs + rhs; of bools, or.", 1),
    ("subtract", np.subtract, NUMBERS, "lhs - rhs.", 1),
    ("multiply", np.multiply, ANYTHING, "lhs * rhs; of bools, and.", 1),
    ("divide", divide_numpy, NUMBERS, "lhs / rhs; of integers, cut towards zero.", 1),
    ("floor_divide", floor_divide_numpy, NUMBERS, "The greatest integer not above lhs / rhs.", 1),
    ("trunc_divide", trunc_divide_numpy, NUMBERS, "lhs / rhs cut towards zero.", 1),
    ("mod", np.fmod, NUMBERS, "The remainder of trunc_divide: it has the sign of lhs.", 1),
    ("floor_mod", np.mod, NUMBERS, "The remainder of floor_divide: it has the sign of rhs.", 1),
    ("trunc_mod", np.fmod, NUMBERS, "The remainder of trunc_divide: it has the sign of lhs.", 1),
    ("power", power_numpy, NUMBERS, "lhs to the power rhs.", 4),
    ("maximum", np.maximum, ANYTHING, "The larger of both; NaN if one is NaN.", 4),
    ("minimum", np.minimum, ANYTHING, "The smaller of both; NaN if one is NaN.", 4),
    ("left_shift", np.left_shift, (lambda t: BITS[0](t) and t != "bool", "integers"), "lhs * 2**rhs.", 4),
    ("right_shift", np.right_shift, (lambda t: BITS[0](t) and t != "bool", "integers"), "lhs / 2**rhs, rounded down.", 4),
    ("logical_and", np.logical_and, ANYTHING, "Whether both are non-zero, in the inputs' data type.", 4),
    ("logical_or", np.logical_or, ANYTHING, "Whether one is non-zero, in the inputs' data type.", 4),
    ("logical_xor", np.logical_xor, ANYTHING, "Whether exactly one is non-zero, in the inputs' data type.", 4),
    ("bitwise_and", np.bitwise_and, BITS, "And, bit by bit.", 4),
    ("bitwise_or", np.bitwise_or, BITS, "Or, bit by bit.", 4),
    ("bitwise_xor", np.bitwise_xor, BITS, "Exclusive or, bit by bit.", 4),
]

_COMPARISON: list[tuple[str, Any, str]] = [
    ("equal", np.equal, "lhs == rhs."), ("not_equal", np.not_equal, "lhs != rhs."), ("less", np.less, "lhs < rhs."),
    ("less_equal", np.less_equal, "lhs <= rhs."), ("greater", np.greater, "lhs > rhs."),
    ("greater_equal", np.greater_equal, "lhs >= rhs."),
]

for _name, _fn, _accept, _doc, _level in _ARITHMETIC:
    declare(_name, inputs=("lhs", "rhs"), relation=accepting(broadcast_rel, _accept), pattern=OpPattern.BROADCAST,
            numpy=elementwise(_fn), doc=_doc, level=_level)
for _name, _fn, _doc in _COMPARISON:
    declare(_name, inputs=("lhs", "rhs"), relation=broadcast_bool_rel, pattern=OpPattern.BROADCAST, numpy=elementwise(_fn),
            doc=_doc + "  The result is bool.", level=4)

_DOCS = {n: d for n, _, _, d, _ in _ARITHMETIC} | {n: d for n, _, d in _COMPARISON}
_made = {n: binary(n, f"{d}  Shapes broadcast by numpy's rule; both sides have one data type.") for n, d in _DOCS.items()}

add, subtract, multiply, divide = (_made[n] for n in ("add", "subtract", "multiply", "divide"))
floor_divide, trunc_divide, mod, floor_mod = (_made[n] for n in ("floor_divide", "trunc_divide", "mod", "floor_mod"))
trunc_mod, power, maximum, minimum = (_made[n] for n in ("trunc_mod", "power", "maximum", "minimum"))
left_shift, right_shift = _made["left_shift"], _made["right_shift"]
logical_and, logical_or, logical_xor = (_made[n] for n in ("logical_and", "logical_or", "logical_xor"))
bitwise_and, bitwise_or, bitwise_xor = (_made[n] for n in ("bitwise_and", "bitwise_or", "bitwise_xor"))
equal, not_equal, less, less_equal = (_made[n] for n in ("equal", "not_equal", "less", "less_equal"))
greater, greater_equal = _made["greater"], _made["greater_equal"]

__all__ = list(_made)
