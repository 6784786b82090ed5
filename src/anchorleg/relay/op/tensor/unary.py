"""Element-wise operators of one input.

Each row of the table is an operator: name, numpy function, data types it is defined on, meaning.  float16 and bfloat16
are computed in float32 and rounded once.
"""
from __future__ import annotations

import math
from typing import Any

import numpy as np

from ....ir.op import OpPattern
from ..registry import declare
from ..type_relations import identity_bool_rel, identity_rel
from .common import ANYTHING, BITS, FLOATS, NUMBERS, accepting, elementwise, unary

_erf_object = np.frompyfunc(math.erf, 1, 1)


def erf_numpy(x: np.ndarray) -> np.ndarray:
    """The error function of an array, in its dtype."""
    return np.asarray(_erf_object(x.astype(np.float64))).astype(x.dtype)


def sigmoid_numpy(x: np.ndarray) -> np.ndarray:
    """1 / (1 + exp(-x)), exact at both ends."""
    small = np.exp(-np.abs(x))
    return np.where(x >= 0, 1 / (1 + small), small / (1 + small))


def round_numpy(x: np.ndarray) -> np.ndarray:
    """The nearest integer, halves away from zero."""
    if x.dtype.kind != "f":
        return x
    whole = np.floor(np.abs(x))
    return np.copysign(whole + (np.abs(x) - whole >= 0.5), x)


def sign_numpy(x: np.ndarray) -> np.ndarray:
    """-1, 0 or 1; NaN stays NaN."""
    return np.sign(x)


def _on_floats(fn: Any) -> Any:
    return lambda x: fn(x) if x.dtype.kind == "f" else x


def _if_float(fn: Any, otherwise: bool) -> Any:
    return lambda x: fn(x) if x.dtype.kind == "f" else np.full(x.shape, otherwise)


def _invert(x: np.ndarray) -> np.ndarray:
    return np.invert(x)


# name, numpy function, accepted types, meaning, level
_TABLE: list[tuple[str, Any, Any, str, int]] = [
    ("log", np.log, FLOATS, "The natural logarithm.", 1),
    ("log2", np.log2, FLOATS, "The logarithm to base 2.", 1),
    ("log10", np.log10, FLOATS, "The logarithm to base 10.", 1),
    ("tan", np.tan, FLOATS, "The tangent.", 1),
    ("cos", np.cos, FLOATS, "The cosine.", 1),
    ("cosh", np.cosh, FLOATS, "The hyperbolic cosine.", 1),
    ("sin", np.sin, FLOATS, "The sine.", 1),
    ("sinh", np.sinh, FLOATS, "The hyperbolic sine.", 1),
    ("acos", np.arccos, FLOATS, "The arc cosine.", 1),
    ("acosh", np.arccosh, FLOATS, "The inverse hyperbolic cosine.", 1),
    ("asin", np.arcsin, FLOATS, "The arc sine.", 1),
    ("asinh", np.arcsinh, FLOATS, "The inverse hyperbolic sine.", 1),
    ("atan", np.arctan, FLOATS, "The arc tangent.", 1),
    ("atanh", np.arctanh, FLOATS, "The inverse hyperbolic tangent.", 1),
    ("exp", np.exp, FLOATS, "e to the power of the input.", 1),
    ("fast_exp", np.exp, FLOATS, "exp by a shorter polynomial, with a larger error.", 1),
    ("erf", erf_numpy, FLOATS, "The error function.", 1),
    ("fast_erf", erf_numpy, FLOATS, "erf by a shorter polynomial, with a larger error.", 1),
    ("sqrt", np.sqrt, FLOATS, "The square root.", 1),
    ("rsqrt", lambda x: 1 / np.sqrt(x), FLOATS, "1 / sqrt(input).", 1),
    ("sigmoid", sigmoid_numpy, FLOATS, "1 / (1 + exp(-input)).", 1),
    ("tanh", np.tanh, FLOATS, "The hyperbolic tangent.", 1),
    ("fast_tanh", np.tanh, FLOATS, "tanh by a shorter polynomial, with a larger error.", 1),
    ("floor", _on_floats(np.floor), ANYTHING, "The greatest integer not above the input.", 3),
    ("ceil", _on_floats(np.ceil), ANYTHING, "The least integer not below the input.", 3),
    ("trunc", _on_floats(np.trunc), ANYTHING, "The input without its fraction.", 3),
    ("round", round_numpy, ANYTHING, "The nearest integer, halves away from zero.", 3),
    ("rint", _on_floats(np.rint), ANYTHING, "The nearest integer, halves to the even one.", 3),
    ("sign", sign_numpy, NUMBERS, "-1, 0 or 1 by the sign of the input; NaN stays NaN.", 3),
    ("abs", np.abs, ANYTHING, "The absolute value.", 3),
    ("negative", np.negative, NUMBERS, "The input with its sign turned; unsigned integers wrap around.", 3),
    ("logical_not", np.logical_not, ANYTHING, "Whether the input is zero, in the input's data type.", 4),
    ("bitwise_not", _invert, BITS, "All bits turned.", 4),
    ("copy", lambda x: x, ANYTHING, "The input, in memory of its own.", 3),
]

# predicates: as above, with a bool result
_PREDICATES: list[tuple[str, Any, str]] = [
    ("isnan", _if_float(np.isnan, False), "Whether the input is not a number."),
    ("isfinite", _if_float(np.isfinite, True), "Whether the input is neither infinite nor NaN."),
    ("isinf", _if_float(np.isinf, False), "Whether the input is infinite."),
]

for _name, _fn, _accept, _doc, _level in _TABLE:
    declare(_name, relation=accepting(identity_rel, _accept), pattern=OpPattern.ELEMWISE, numpy=elementwise(_fn), doc=_doc, level=_level)
for _name, _fn, _doc in _PREDICATES:
    declare(_name, relation=identity_bool_rel, pattern=OpPattern.ELEMWISE, numpy=elementwise(_fn), doc=_doc, level=3)

_DOCS = {n: d for n, _, _, d, _ in _TABLE} | {n: d for n, _, d in _PREDICATES}
_made = {n: unary(n, d) for n, d in _DOCS.items()}

log, log2, log10, exp = _made["log"], _made["log2"], _made["log10"], _made["exp"]
tan, cos, cosh, sin, sinh, tanh = (_made[n] for n in ("tan", "cos", "cosh", "sin", "sinh", "tanh"))
acos, acosh, asin, asinh, atan, atanh = (_made[n] for n in ("acos", "acosh", "asin", "asinh", "atan", "atanh"))
fast_exp, fast_erf, fast_tanh, erf = _made["fast_exp"], _made["fast_erf"], _made["fast_tanh"], _made["erf"]
sqrt, rsqrt, sigmoid = _made["sqrt"], _made["rsqrt"], _made["sigmoid"]
floor, ceil, trunc, round, rint, sign, abs = (_made[n] for n in ("floor", "ceil", "trunc", "round", "rint", "sign", "abs"))
negative, logical_not, bitwise_not, copy = (_made[n] for n in ("negative", "logical_not", "bitwise_not", "copy"))
isnan, isfinite, isinf = _made["isnan"], _made["isfinite"], _made["isinf"]

__all__ = list(_made)
