"""What each intrinsic computes, in numpy: the reference the interpreter uses.

Scalars are Python ints and bools and numpy floating scalars; vectors are numpy arrays.  Results are brought to the result dtype by
the caller.
"""
from __future__ import annotations

import math
from typing import Any, Callable

import numpy as np

from ..runtime.dtype import numpy_dtype
from ..support.errors import UnsupportedOpError
from .dtypes import info, wrap


def trunc_div(a: Any, b: Any) -> Any:
    """The quotient of integers cut towards zero."""
    if isinstance(a, np.ndarray) or isinstance(b, np.ndarray):
        q = np.floor_divide(a, b)
        return q + ((np.remainder(a, b) != 0) & ((a < 0) != (b < 0)))
    q = abs(a) // abs(b)
    return q if (a >= 0) == (b >= 0) else -q


def trunc_mod(a: Any, b: Any) -> Any:
    """The remainder of the division cut towards zero."""
    return a - trunc_div(a, b) * b


def minimum(a: Any, b: Any) -> Any:
    """The smaller; NaN if either is."""
    return np.minimum(a, b)


def maximum(a: Any, b: Any) -> Any:
    """The larger; NaN if either is."""
    return np.maximum(a, b)


def _wide(x: Any) -> Any:
    return np.asarray(x, dtype=np.float64)


def erf(x: Any) -> Any:
    """The error function, in double precision."""
    return np.vectorize(math.erf, otypes=[np.float64])(_wide(x))


def sigmoid(x: Any) -> Any:
    """1 / (1 + exp(-x)) without overflow."""
    x = _wide(x)
    e = np.exp(-np.abs(x))
    return np.where(x >= 0, 1 / (1 + e), e / (1 + e))


def round_half_away(x: Any) -> Any:
    """The nearest integer, halves away from zero."""
    x = _wide(x)
    whole = np.trunc(x)
    return np.copysign(np.abs(whole) + (np.abs(x - whole) >= 0.5), x)


def _q_multiply_shift(x: Any, y: Any, q: Any, s: Any) -> Any:
    def one(v: Any) -> int:
        v = int(v) << max(int(s), 0)
        shift = int(q) + max(-int(s), 0)
        return wrap((v * int(y) + (1 << shift - 1 if shift else 0)) >> shift, "int32")

    return np.vectorize(one, otypes=[np.int64])(x) if isinstance(x, np.ndarray) else one(x)


def _q_multiply_shift_per_axis(x: Any, y: Any, ls: Any, rs: Any, q: Any, has_left: Any, has_right: Any) -> Any:
    def one(v: Any, m: Any, left: Any, right: Any) -> int:
        v = int(v) << (int(left) if has_left else 0)
        shift = int(q) + (int(right) if has_right else 0)
        return wrap((v * int(m) + (1 << shift - 1)) >> shift, "int32")

    if any(isinstance(v, np.ndarray) for v in (x, y, ls, rs)):
        return np.vectorize(one, otypes=[np.int64])(x, y, ls, rs)
    return one(x, y, ls, rs)


def _pack4x8(*parts: Any) -> Any:
    total: Any = 0
    for i, part in enumerate(parts):
        total = total | ((part.astype(np.int64) if isinstance(part, np.ndarray) else int(part)) & 255) << 8 * i
    return _to_int32(total)


def _to_int32(x: Any) -> Any:
    return (x + (1 << 31) & (1 << 32) - 1) - (1 << 31)


def _byte(word: Any, i: int, signed: bool) -> Any:
    value = (word.astype(np.int64) if isinstance(word, np.ndarray) else int(word)) >> 8 * i & 255
    return (value ^ 128) - 128 if signed else value


def _dot4(signed: bool) -> Callable[..., Any]:
    def dot(a: Any, b: Any, acc: Any) -> Any:
        total = acc.astype(np.int64) if isinstance(acc, np.ndarray) else int(acc)
        for i in range(4):
            total = total + _byte(a, i, signed) * _byte(b, i, True)
        return _to_int32(total)

    return dot


def _popcount(x: Any, bits: int) -> Any:
    count = lambda v: bin(int(v) & (1 << bits) - 1).count("1")  # noqa: E731
    return np.vectorize(count, otypes=[np.int64])(x) if isinstance(x, np.ndarray) else count(x)


def _clz(x: Any, bits: int) -> Any:
    count = lambda v: bits - (int(v) & (1 << bits) - 1).bit_length()  # noqa: E731
    return np.vectorize(count, otypes=[np.int64])(x) if isinstance(x, np.ndarray) else count(x)


def _fma(a: Any, b: Any, c: Any) -> Any:
    return _wide(a) * _wide(b) + _wide(c)


_DIRECT: dict[str, Callable[..., Any]] = {
    "exp": np.exp, "exp2": np.exp2, "exp10": lambda x: np.power(10.0, _wide(x)), "erf": erf, "tanh": np.tanh, "sigmoid": sigmoid,
    "log": np.log, "log2": np.log2, "log10": np.log10, "log1p": np.log1p, "tan": np.tan, "cos": np.cos, "cosh": np.cosh, "acos": np.arccos,
    "acosh": np.arccosh, "sin": np.sin, "sinh": np.sinh, "asin": np.arcsin, "asinh": np.arcsinh, "atan": np.arctan, "atanh": np.arctanh,
    "sqrt": np.sqrt, "rsqrt": lambda x: 1.0 / np.sqrt(_wide(x)), "floor": np.floor, "ceil": np.ceil, "trunc": np.trunc, "fabs": np.abs,
    "round": round_half_away, "nearbyint": np.rint, "isnan": np.isnan, "isfinite": np.isfinite, "isinf": np.isinf,
    "atan2": np.arctan2, "hypot": np.hypot, "nextafter": np.nextafter, "copysign": np.copysign, "fmod": np.fmod, "fma": _fma,
    "ldexp": lambda x, n: np.ldexp(_wide(x), n), "likely": lambda x: x, "assume": lambda x: x,
    "bitwise_and": lambda a, b: a & b, "bitwise_or": lambda a, b: a | b, "bitwise_xor": lambda a, b: a ^ b, "bitwise_not": lambda a: ~a,
    "shift_left": lambda a, b: a << b, "shift_right": lambda a, b: a >> b,
    "q_multiply_shift": _q_multiply_shift, "q_multiply_shift_per_axis": _q_multiply_shift_per_axis,
    "vectorlow": lambda v: v[:len(v) // 2], "vectorhigh": lambda v: v[len(v) // 2:], "vectorcombine": lambda a, b: np.concatenate([a, b]),
    "vector_reduce_add": lambda v: np.add.reduce(v), "vector_reduce_max": lambda v: np.maximum.reduce(v),
    "vector_reduce_min": lambda v: np.minimum.reduce(v), "undef": lambda: 0,
    "pack4x8": _pack4x8, "dot4_u8s8": _dot4(False), "dot4_s8s8": _dot4(True),
    "dp4a": lambda a, b, acc: int(np.dot(a.astype(np.int64), b.astype(np.int64))) + acc,
}
_LLVM: dict[str, Callable[..., Any]] = {"llvm.fma": _fma, "llvm.fmuladd": _fma, "llvm.sqrt": np.sqrt, "llvm.fabs": np.abs,
                                        "llvm.floor": np.floor, "llvm.ceil": np.ceil, "llvm.exp": np.exp, "llvm.log": np.log}


def _narrow(fn: Callable[..., Any]) -> Callable[..., Any]:
    """A function of types numpy has no mathematics for, computed in float32."""
    def wrapped(*args: Any) -> Any:
        return fn(*(np.asarray(a).astype(np.float32) if getattr(getattr(a, "dtype", None), "kind", "") == "V" else a for a in args))

    return wrapped


def _pow(dtype: str) -> Callable[..., Any]:
    if info(dtype).is_float:
        return np.power
    return lambda a, b: np.power(a, b) if isinstance(a, np.ndarray) else a ** b


def _reinterpret(source: str, target: str) -> Callable[..., Any]:
    old, new, lanes = numpy_dtype(info(source).scalar), numpy_dtype(info(target).scalar), info(target).lanes

    def fn(x: Any) -> Any:
        bits = np.asarray(x).astype(old).reshape(-1).view(new)
        return bits if lanes > 1 else bits[0]

    return fn


def intrinsic(name: str, arg_dtypes: list[str], dtype: str) -> Callable[..., Any]:
    """What the intrinsic ``tir.<name>`` computes for arguments and a result of these dtypes."""
    if name == "pow":
        return _pow(dtype)
    if name == "reinterpret":
        return _reinterpret(arg_dtypes[0], dtype)
    if name in ("popcount", "clz"):
        bits, count = info(arg_dtypes[0]).bits, _popcount if name == "popcount" else _clz
        return lambda x: count(x, bits)
    found = _DIRECT.get(name)
    if found is None:
        raise UnsupportedOpError(f"the interpreter does not know the intrinsic tir.{name}")
    return _narrow(found) if any(info(d).kind in ("bfloat", "fp8") for d in arg_dtypes) else found


def llvm_intrinsic(name: str) -> Callable[..., Any]:
    """What an LLVM intrinsic computes (``llvm.fma.v8f32`` …)."""
    if name.startswith("llvm.prefetch"):
        return lambda *args: 0
    for known, fn in _LLVM.items():
        if name == known or name.startswith(known + "."):
            return fn
    raise UnsupportedOpError(f"the interpreter does not know the LLVM intrinsic {name}")


def converter(source: str, target: str) -> Callable[[Any], Any]:
    """A function that converts values of dtype ``source`` to ``target``, as ``Cast`` does."""
    s, t = info(source), info(target)
    new = None if t.kind == "handle" else numpy_dtype(t.scalar)
    if t.kind == "handle":
        return lambda x: x
    if t.kind == "bool":
        return (lambda x: np.not_equal(x, 0)) if t.lanes > 1 else (lambda x: bool(x != 0))
    if t.lanes > 1:
        return lambda x: np.asarray(x).astype(new)
    if t.is_float:
        old = None if s.is_float else np.dtype(np.int64 if s.kind != "uint" else np.uint64)
        return (lambda x: new.type(x)) if old is None else (lambda x: np.asarray(x, old).astype(new)[()])
    if s.is_float:
        wide = np.int64 if t.kind == "int" or t.bits < 64 else np.uint64
        return lambda x: wrap(int(np.asarray(x).astype(wide)), target)
    return lambda x: wrap(int(x), target)
