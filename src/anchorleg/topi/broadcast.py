"""Element-wise operations of two inputs, broadcast together by numpy's rule; either side may be a number.

Integer division by zero gives 0 and never traps; a shift by a count outside of the type's width gives what an unbounded
shift would.
"""
from __future__ import annotations

from typing import Any, Callable, Sequence

from .. import te
from ..support.errors import TypeMismatchError
from ..te.tensor import Tensor, register_tensor_arithmetic
from ..tir import op as T
from ..tir.dtypes import info, is_bool, is_float, is_integer
from ..tir.expr import Let, Var
from .dtypes import in_compute_dtype
from .tag import BROADCAST, ELEMWISE
from .utils import same_extent, static_int

Scalar2 = Callable[[Any, Any], Any]


# -- shapes ---------------------------------------------------------------------------------------

def broadcast_dim(a: Any, b: Any) -> Any:
    """One dimension of the result; TypeMismatchError when the two do not fit."""
    x, y = static_int(a), static_int(b)
    if x == 1 or same_extent(a, b):
        return b
    if y == 1 or y is None and x is not None:
        return a
    if x is None and y is not None:
        return b
    if x is None:
        return T.maximum(a, b)
    raise TypeMismatchError(f"dimensions {x} and {y} cannot be broadcast together: they must be equal, or one of them 1")


def broadcast_shape(a: Sequence[Any], b: Sequence[Any]) -> list[Any]:
    """The shape of the broadcast of two shapes."""
    lead = abs(len(a) - len(b))
    long, short = (a, b) if len(a) >= len(b) else (b, a)
    return [*long[:lead], *(broadcast_dim(x, y) for x, y in zip(long[lead:], short))]


def broadcast_indices(indices: Sequence[Any], out_shape: Sequence[Any], shape: Sequence[Any]) -> list[Any]:
    """The indices of the element of an input of ``shape`` that the output element at ``indices`` reads."""
    lead = len(out_shape) - len(shape)
    return [_index(i, o, s) for i, o, s in zip(indices[lead:], out_shape[lead:], shape)]


def _index(index: Any, out_dim: Any, dim: Any) -> Any:
    known = static_int(dim)
    if known == 1:
        return 0
    if known is not None or same_extent(out_dim, dim):
        return index
    return T.select(T.equal(dim, 1), T.const(0, index.dtype), index)


def broadcast_to(data: Tensor, shape: Sequence[Any]) -> Tensor:
    """``data`` repeated along dimensions of length 1 (and new leading ones) to ``shape``."""
    shape = tuple(shape)
    if len(shape) < len(data.shape):
        raise TypeMismatchError(f"broadcast_to: {len(data.shape)} dimensions cannot become {len(shape)}")
    for have, want in zip(data.shape, shape[len(shape) - len(data.shape):]):
        h, w = static_int(have), static_int(want)
        if h is not None and w is not None and h not in (1, w):
            raise TypeMismatchError(f"broadcast_to: a dimension of {h} cannot become {w}")
    return te.compute(shape, lambda *i: data(*broadcast_indices(i, shape, data.shape)), name="T_broadcast_to", tag=BROADCAST)


def binary(fn: Scalar2, lhs: Any, rhs: Any, name: str) -> Any:
    """``fn`` of two tensors broadcast together, of a tensor and a number, or of two scalar expressions."""
    if not isinstance(lhs, Tensor) and not isinstance(rhs, Tensor):
        return fn(*T.match_types(lhs, rhs))
    if not isinstance(lhs, Tensor):
        return te.compute(rhs.shape, lambda *i: _apply(fn, lhs, rhs(*i)), name=f"T_{name}", tag=ELEMWISE)
    if not isinstance(rhs, Tensor):
        return te.compute(lhs.shape, lambda *i: _apply(fn, lhs(*i), rhs), name=f"T_{name}", tag=ELEMWISE)
    shape = broadcast_shape(lhs.shape, rhs.shape)

    def element(*i: Any) -> Any:
        return _apply(fn, lhs(*broadcast_indices(i, shape, lhs.shape)), rhs(*broadcast_indices(i, shape, rhs.shape)))

    return te.compute(shape, element, name=f"T_{name}", tag=BROADCAST)


def _apply(fn: Scalar2, a: Any, b: Any) -> Any:
    a, b = T.match_types(a, b)
    return in_compute_dtype(fn, a, b)


# -- what each operation does to two scalars ------------------------------------------------------

def _const(value: int, like: Any) -> Any:
    return T.const(value, like.dtype)


def _guarded(divide: Scalar2, by_minus_one: Callable[[Any], Any]) -> Scalar2:
    """Integer division that neither traps on 0 nor on the least value divided by -1."""
    def fn(a: Any, b: Any) -> Any:
        known = static_int(b)
        if known is not None and known not in (0, -1):
            return divide(a, b)
        zero = _const(0, a)
        unsafe = T.equal(b, zero)
        if info(a.dtype).kind == "uint":
            return T.select(unsafe, zero, divide(a, T.select(unsafe, _const(1, a), b)))
        minus = T.equal(b, _const(-1, a))
        quotient = divide(a, T.select(T.logical_or(unsafe, minus), _const(1, a), b))
        return T.select(unsafe, zero, T.select(minus, by_minus_one(a), quotient))

    return fn


_int_trunc_div = _guarded(T.truncdiv, T.negative)
_int_floor_div = _guarded(T.floordiv, T.negative)
_int_trunc_mod = _guarded(T.truncmod, lambda a: _const(0, a))
_int_floor_mod = _guarded(T.floormod, lambda a: _const(0, a))


def scalar_divide(a: Any, b: Any) -> Any:
    """a / b; of integers, cut towards zero."""
    return T.divide(a, b) if is_float(a.dtype) else _int_trunc_div(a, b)


def scalar_trunc_divide(a: Any, b: Any) -> Any:
    """a / b cut towards zero."""
    return T.trunc(T.divide(a, b)) if is_float(a.dtype) else _int_trunc_div(a, b)


def scalar_floor_divide(a: Any, b: Any) -> Any:
    """The greatest integer not above a / b."""
    return T.floor(T.divide(a, b)) if is_float(a.dtype) else _int_floor_div(a, b)


def scalar_trunc_mod(a: Any, b: Any) -> Any:
    """The remainder of division cut towards zero."""
    return T.fmod(a, b) if is_float(a.dtype) else _int_trunc_mod(a, b)


def scalar_floor_mod(a: Any, b: Any) -> Any:
    """The remainder of division rounded down: it has the sign of b."""
    if not is_float(a.dtype):
        return _int_floor_mod(a, b)
    rest = Var("rest", a.dtype)
    zero = _const(0, a)
    turned = T.logical_and(T.not_equal(rest, zero), T.not_equal(rest < zero, b < zero))
    signed = T.select(T.equal(rest, zero), T.copysign(zero, b), T.select(turned, rest + b, rest))
    return Let(rest, T.fmod(a, b), signed)


def scalar_power(a: Any, b: Any) -> Any:
    """a to the power b; an integer to a negative power is cut towards zero."""
    if is_float(a.dtype) or info(a.dtype).kind == "uint":
        return T.power(a, b)
    zero, one = _const(0, a), _const(1, a)
    raised = T.power(a, T.maximum(b, zero))
    odd = T.equal(T.bitwise_and(b, one), one)
    unit = T.select(T.equal(a, one), one, T.select(T.equal(a, _const(-1, a)), T.select(odd, a, one), zero))
    return T.select(b < zero, unit, raised)


def scalar_add(a: Any, b: Any) -> Any:
    """a + b; of bools, or."""
    return T.logical_or(a, b) if is_bool(a.dtype) else a + b


def scalar_multiply(a: Any, b: Any) -> Any:
    """a * b; of bools, and."""
    return T.logical_and(a, b) if is_bool(a.dtype) else a * b


def scalar_maximum(a: Any, b: Any) -> Any:
    """The larger of both; NaN if one is NaN."""
    return T.logical_or(a, b) if is_bool(a.dtype) else T.maximum(a, b)


def scalar_minimum(a: Any, b: Any) -> Any:
    """The smaller of both; NaN if one is NaN."""
    return T.logical_and(a, b) if is_bool(a.dtype) else T.minimum(a, b)


def _in_range(b: Any) -> Any:
    """Whether a shift count is one that the machine's shift takes."""
    bits = info(b.dtype).bits
    below = b < _const(bits, b)
    return below if info(b.dtype).kind == "uint" else T.logical_and(b >= _const(0, b), below)


def _constant_count(b: Any) -> bool:
    known = static_int(b)
    return known is not None and 0 <= known < info(b.dtype).bits


def scalar_left_shift(a: Any, b: Any) -> Any:
    """a * 2**b, wrapped; 0 for counts outside of the type's width."""
    if _constant_count(b):
        return T.shift_left(a, b)
    fits = _in_range(b)
    return T.select(fits, T.shift_left(a, T.select(fits, b, _const(0, b))), _const(0, a))


def scalar_right_shift(a: Any, b: Any) -> Any:
    """a / 2**b rounded down; for counts outside of the type's width, 0 or -1 by the sign."""
    if _constant_count(b):
        return T.shift_right(a, b)
    fits = _in_range(b)
    if info(a.dtype).kind == "uint":
        return T.select(fits, T.shift_right(a, T.select(fits, b, _const(0, b))), _const(0, a))
    return T.shift_right(a, T.select(fits, b, _const(info(b.dtype).bits - 1, b)))


def _truth(x: Any) -> Any:
    return x if is_bool(x.dtype) else T.not_equal(x, _const(0, x))


def _logical(fn: Scalar2) -> Scalar2:
    def scalar(a: Any, b: Any) -> Any:
        result = fn(_truth(a), _truth(b))
        return result if is_bool(a.dtype) else T.cast(result, a.dtype)

    return scalar


def _bits(fn: Scalar2, name: str) -> Scalar2:
    def scalar(a: Any, b: Any) -> Any:
        if not is_integer(a.dtype) and not is_bool(a.dtype):
            raise TypeMismatchError(f"{name}: integers or bool are expected, got {a.dtype}")
        return fn(a, b)

    return scalar


# name, operation on scalars, meaning
_TABLE: list[tuple[str, Scalar2, str]] = [
    ("add", scalar_add, "lhs + rhs; of bools, or."), ("subtract", lambda a, b: a - b, "lhs - rhs."),
    ("multiply", scalar_multiply, "lhs * rhs; of bools, and."), ("divide", scalar_divide, "lhs / rhs; of integers, cut towards zero."),
    ("floor_divide", scalar_floor_divide, "The greatest integer not above lhs / rhs."),
    ("trunc_divide", scalar_trunc_divide, "lhs / rhs cut towards zero."),
    ("mod", scalar_trunc_mod, "The remainder of trunc_divide."), ("trunc_mod", scalar_trunc_mod, "The remainder of trunc_divide."),
    ("floor_mod", scalar_floor_mod, "The remainder of floor_divide."), ("power", scalar_power, "lhs to the power rhs."),
    ("maximum", scalar_maximum, "The larger of both; NaN if one is NaN."), ("minimum", scalar_minimum, "The smaller of both; NaN if one is NaN."),
    ("left_shift", scalar_left_shift, "lhs * 2**rhs."), ("right_shift", scalar_right_shift, "lhs / 2**rhs rounded down."),
    ("logical_and", _logical(T.logical_and), "Whether both are non-zero."),
    ("logical_or", _logical(T.logical_or), "Whether one is non-zero."),
    ("logical_xor", _logical(lambda a, b: T.not_equal(a, b)), "Whether exactly one is non-zero."),
    ("bitwise_and", _bits(T.bitwise_and, "bitwise_and"), "And, bit by bit."),
    ("bitwise_or", _bits(T.bitwise_or, "bitwise_or"), "Or, bit by bit."),
    ("bitwise_xor", _bits(T.bitwise_xor, "bitwise_xor"), "Exclusive or, bit by bit."),
    ("equal", T.equal, "lhs == rhs."), ("not_equal", T.not_equal, "lhs != rhs."), ("less", lambda a, b: a < b, "lhs < rhs."),
    ("less_equal", lambda a, b: a <= b, "lhs <= rhs."), ("greater", lambda a, b: a > b, "lhs > rhs."),
    ("greater_equal", lambda a, b: a >= b, "lhs >= rhs."),
]


def _public(name: str, fn: Scalar2, doc: str) -> Callable[[Any, Any], Any]:
    def make(lhs: Any, rhs: Any) -> Any:
        return binary(fn, lhs, rhs, name)

    make.__name__ = make.__qualname__ = name
    make.__doc__ = f"{doc}  Tensors are broadcast together; numbers are taken too."
    return make


_made = {name: _public(name, fn, doc) for name, fn, doc in _TABLE}
add, subtract, multiply, divide = (_made[n] for n in ("add", "subtract", "multiply", "divide"))
floor_divide, trunc_divide, mod, floor_mod = (_made[n] for n in ("floor_divide", "trunc_divide", "mod", "floor_mod"))
trunc_mod, power, maximum, minimum = (_made[n] for n in ("trunc_mod", "power", "maximum", "minimum"))
left_shift, right_shift = _made["left_shift"], _made["right_shift"]
logical_and, logical_or, logical_xor = (_made[n] for n in ("logical_and", "logical_or", "logical_xor"))
bitwise_and, bitwise_or, bitwise_xor = (_made[n] for n in ("bitwise_and", "bitwise_or", "bitwise_xor"))
equal, not_equal, less, less_equal = (_made[n] for n in ("equal", "not_equal", "less", "less_equal"))
greater, greater_equal = _made["greater"], _made["greater_equal"]

register_tensor_arithmetic({
    "add": add, "sub": subtract, "mul": multiply, "truediv": divide, "floordiv": floor_divide, "mod": floor_mod, "pow": power,
    "and_": bitwise_and, "or_": bitwise_or, "xor": bitwise_xor, "lshift": left_shift, "rshift": right_shift,
    "lt": less, "le": less_equal, "gt": greater, "ge": greater_equal,
})

__all__ = ["binary", "broadcast_to", "broadcast_shape", "broadcast_indices", "broadcast_dim", *_made]
