"""Element-wise mathematics of one input; float16 and bfloat16 are computed in float32."""
from __future__ import annotations

from typing import Any, Callable

from .. import te
from ..te.tensor import Tensor
from ..tir import op as T
from ..tir.dtypes import info, is_bool, is_float
from .dtypes import in_compute_dtype
from .tag import ELEMWISE

Scalar = Callable[[Any], Any]


def elementwise(x: Tensor, fn: Scalar, name: str) -> Tensor:
    """``fn`` of each element."""
    return te.compute(x.shape, lambda *i: in_compute_dtype(fn, x(*i)), name=f"T_{name}", tag=ELEMWISE)


def scalar_sign(x: Any) -> Any:
    """-1, 0 or 1 by the sign of x; NaN stays NaN."""
    zero, one = T.const(0, x.dtype), T.const(1, x.dtype)
    if info(x.dtype).kind in ("uint", "bool"):
        return T.select(x > zero, one, zero)
    middle = T.select(T.equal(x, zero), zero, x) if is_float(x.dtype) else zero
    return T.select(x > zero, one, T.select(x < zero, T.const(-1, x.dtype), middle))


def scalar_logical_not(x: Any) -> Any:
    """Whether x is zero, in its own dtype."""
    return T.logical_not(x) if is_bool(x.dtype) else T.cast(T.equal(x, T.const(0, x.dtype)), x.dtype)


def _unary(name: str, fn: Scalar, doc: str) -> Callable[[Tensor], Tensor]:
    def make(x: Tensor) -> Tensor:
        return elementwise(x, fn, name)

    make.__name__ = make.__qualname__ = name
    make.__doc__ = f"{doc}  Shape and dtype are the input's."
    return make


def _predicate(name: str, fn: Scalar, doc: str) -> Callable[[Tensor], Tensor]:
    def make(x: Tensor) -> Tensor:
        return te.compute(x.shape, lambda *i: fn(x(*i)), name=f"T_{name}", tag=ELEMWISE)

    make.__name__ = make.__qualname__ = name
    make.__doc__ = f"{doc}  The result is bool."
    return make


exp = _unary("exp", T.exp, "e to the power of x.")
fast_exp = _unary("fast_exp", T.exp, "e to the power of x.")
erf = _unary("erf", T.erf, "The error function.")
fast_erf = _unary("fast_erf", T.erf, "The error function.")
tanh = _unary("tanh", T.tanh, "The hyperbolic tangent.")
fast_tanh = _unary("fast_tanh", T.tanh, "The hyperbolic tangent.")
sigmoid = _unary("sigmoid", T.sigmoid, "1 / (1 + exp(-x)).")
log = _unary("log", T.log, "The natural logarithm.")
log2 = _unary("log2", T.log2, "The logarithm to base 2.")
log10 = _unary("log10", T.log10, "The logarithm to base 10.")
sqrt = _unary("sqrt", T.sqrt, "The square root.")
rsqrt = _unary("rsqrt", T.rsqrt, "1 / sqrt(x).")
sin, cos, tan = _unary("sin", T.sin, "The sine."), _unary("cos", T.cos, "The cosine."), _unary("tan", T.tan, "The tangent.")
sinh, cosh = _unary("sinh", T.sinh, "The hyperbolic sine."), _unary("cosh", T.cosh, "The hyperbolic cosine.")
asin, acos = _unary("asin", T.asin, "The arc sine."), _unary("acos", T.acos, "The arc cosine.")
atan, atanh = _unary("atan", T.atan, "The arc tangent."), _unary("atanh", T.atanh, "The inverse hyperbolic tangent.")
asinh, acosh = _unary("asinh", T.asinh, "The inverse hyperbolic sine."), _unary("acosh", T.acosh, "The inverse hyperbolic cosine.")
floor, ceil = _unary("floor", T.floor, "The greatest integer not above x."), _unary("ceil", T.ceil, "The least integer not below x.")
trunc = _unary("trunc", T.trunc, "x without its fraction.")
round = _unary("round", T.round, "The nearest integer, halves away from zero.")
rint = _unary("rint", T.nearbyint, "The nearest integer, halves to the even one.")
abs = _unary("abs", T.abs, "The absolute value.")
sign = _unary("sign", scalar_sign, "-1, 0 or 1 by the sign; NaN stays NaN.")
negative = _unary("negative", T.negative, "x with its sign turned.")
identity = _unary("identity", lambda x: x, "x itself.")
logical_not = _unary("logical_not", scalar_logical_not, "Whether x is zero, in its own dtype.")
bitwise_not = _unary("bitwise_not", T.bitwise_not, "All bits turned.")
isnan = _predicate("isnan", T.isnan, "Whether x is not a number.")
isfinite = _predicate("isfinite", T.isfinite, "Whether x is neither infinite nor NaN.")
isinf = _predicate("isinf", T.isinf, "Whether x is infinite.")

__all__ = ["exp", "fast_exp", "erf", "fast_erf", "tanh", "fast_tanh", "sigmoid", "log", "log2", "log10", "sqrt", "rsqrt", "sin", "cos", "tan",
           "sinh", "cosh", "asin", "acos", "atan", "atanh", "asinh", "acosh", "floor", "ceil", "trunc", "round", "rint", "abs", "sign", "negative",
           "identity", "logical_not", "bitwise_not", "isnan", "isfinite", "isinf"]
