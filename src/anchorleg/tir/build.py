"""Builders of arithmetic nodes: operands of one dtype in, the node out, folded where that is cheap and exact.

Constants fold (integers wrap to their width), and the identities that need no analysis are applied: ``x + 0``, ``x * 1``,
``x * 0`` for integers, ``true and x`` … .  Deeper algebra is the business of :mod:`anchorleg.arith`.
"""
from __future__ import annotations

import math
from typing import Callable

from ..ir.expr import FloatImm, IntImm, PrimExpr
from ..support.errors import ArgumentError, TypeMismatchError
from . import expr as tir
from .dtypes import info, is_bool, is_float, lanes_of, round_float, scalar_of, wrap

_VECTORS = (tir.Ramp, tir.Broadcast)
Builder = Callable[[PrimExpr, PrimExpr], PrimExpr]


def make_const(value: int | float | bool, dtype: str) -> PrimExpr:
    """The constant of that dtype (wrapped to its width; a vector dtype gives a Broadcast)."""
    if "x" in dtype:
        lanes = lanes_of(dtype)
        return tir.Broadcast(make_const(value, scalar_of(dtype)), lanes)
    kind = info(dtype).kind
    if kind in ("int", "uint"):
        return IntImm(dtype, wrap(int(value), dtype))
    if kind == "bool":
        return IntImm(dtype, 1 if value else 0)
    if kind == "handle":
        return IntImm(dtype, int(value))
    return FloatImm(dtype, float(value))


def zero_of(x: PrimExpr) -> PrimExpr:
    """The constant 0 of the operand's dtype."""
    return make_const(0, x.dtype)


def const_value(x: PrimExpr) -> int | float | None:
    """The Python number of a constant (or of a Broadcast of one), else None."""
    t = type(x)
    if t is IntImm or t is FloatImm:
        return x.value  # type: ignore[attr-defined]
    return const_value(x.value) if t is tir.Broadcast else None  # type: ignore[attr-defined]


def cast(dtype: str, x: PrimExpr) -> PrimExpr:
    """``x`` converted to ``dtype``: nothing if it has it, folded if constant; a scalar is broadcast to a vector type."""
    if x.dtype == dtype:
        return x
    lanes, have = lanes_of(dtype), lanes_of(x.dtype)
    if have == 1 and lanes > 1:
        return tir.Broadcast(cast(scalar_of(dtype), x), lanes)
    if have != lanes:
        raise TypeMismatchError(f"cannot cast {x.dtype} to {dtype}: expected the same number of lanes")
    if type(x) is tir.Broadcast:
        return tir.Broadcast(cast(scalar_of(dtype), x.value), lanes)
    folded = _cast_const(dtype, x)
    return tir.Cast(dtype, x) if folded is None else folded


def _cast_const(dtype: str, x: PrimExpr) -> PrimExpr | None:
    if type(x) not in (IntImm, FloatImm) or info(dtype).kind == "handle" or x.dtype == "handle":
        return None
    value = x.value  # type: ignore[attr-defined]
    if is_float(dtype):
        return FloatImm(dtype, round_float(float(round_float(value, x.dtype) if type(x) is FloatImm else value), dtype))
    if is_bool(dtype):
        return IntImm(dtype, int(value != 0))
    if type(x) is FloatImm:
        if not math.isfinite(value) or wrap(int(value), dtype) != int(value):
            return None  # out of range: what the machine does is its own affair
    return make_const(value, dtype)


def _both_float(a: PrimExpr, b: PrimExpr) -> bool:
    return type(a) is FloatImm and type(b) is FloatImm


def _fold_float(a: PrimExpr, b: PrimExpr, fn: Callable[[float, float], float]) -> PrimExpr:
    d = a.dtype
    return FloatImm(d, round_float(fn(round_float(a.value, d), round_float(b.value, d)), d))  # type: ignore[attr-defined]


def _is_const(x: PrimExpr, value: int | float) -> bool:
    return type(x) in (IntImm, FloatImm, tir.Broadcast) and const_value(x) == value


def _vector_pair(a: PrimExpr, b: PrimExpr, build: Builder, linear: bool) -> PrimExpr | None:
    """Arithmetic of two broadcasts, or (when ``linear``) of ramps with broadcasts or ramps."""
    ta, tb = type(a), type(b)
    if ta is tir.Broadcast and tb is tir.Broadcast:
        return tir.Broadcast(build(a.value, b.value), a.lanes)  # type: ignore[attr-defined]
    if not linear or is_float(a.dtype):
        return None
    if ta is tir.Ramp and tb is tir.Ramp:
        stride = build(a.stride, b.stride)  # type: ignore[attr-defined]
        base = build(a.base, b.base)  # type: ignore[attr-defined]
        return tir.Broadcast(base, a.lanes) if _is_const(stride, 0) else tir.Ramp(base, stride, a.lanes)  # type: ignore[attr-defined]
    if ta is tir.Ramp:
        return tir.Ramp(build(a.base, b.value), a.stride, a.lanes)  # type: ignore[attr-defined]
    stride = build(zero_of(b.stride), b.stride)  # type: ignore[attr-defined]
    return tir.Ramp(build(a.value, b.base), stride, b.lanes)  # type: ignore[attr-defined]


def _or_node(found: PrimExpr | None, node: type, a: PrimExpr, b: PrimExpr) -> PrimExpr:
    return node(a, b) if found is None else found


def add(a: PrimExpr, b: PrimExpr) -> PrimExpr:
    """a + b; for bools, or."""
    ta, tb = type(a), type(b)
    if tb is IntImm:
        if ta is IntImm:
            return make_const(a.value + b.value, a.dtype)  # type: ignore[attr-defined]
        if b.value == 0:  # type: ignore[attr-defined]
            return a
    elif ta is IntImm:
        if a.value == 0:  # type: ignore[attr-defined]
            return b
    elif tb is FloatImm and ta is FloatImm:
        return _fold_float(a, b, lambda x, y: x + y)
    if a.dtype == "bool":
        return logical_or(a, b)
    if ta in _VECTORS and tb in _VECTORS:
        return _or_node(_vector_pair(a, b, add, True), tir.Add, a, b)
    return tir.Add(a, b)


def sub(a: PrimExpr, b: PrimExpr) -> PrimExpr:
    """a - b"""
    ta, tb = type(a), type(b)
    if tb is IntImm:
        if ta is IntImm:
            return make_const(a.value - b.value, a.dtype)  # type: ignore[attr-defined]
        if b.value == 0:  # type: ignore[attr-defined]
            return a
    elif tb is FloatImm and ta is FloatImm:
        return _fold_float(a, b, lambda x, y: x - y)
    if a is b and not is_float(a.dtype):
        return zero_of(a)
    if a.dtype == "bool":
        return not_equal(a, b)
    if ta in _VECTORS and tb in _VECTORS:
        return _or_node(_vector_pair(a, b, sub, True), tir.Sub, a, b)
    return tir.Sub(a, b)


def mul(a: PrimExpr, b: PrimExpr) -> PrimExpr:
    """a * b; for bools, and."""
    ta, tb = type(a), type(b)
    if ta is IntImm and tb is IntImm:
        return make_const(a.value * b.value, a.dtype)  # type: ignore[attr-defined]
    if tb is IntImm and b.value in (0, 1):  # type: ignore[attr-defined]
        return a if b.value else b  # type: ignore[attr-defined]
    if ta is IntImm and a.value in (0, 1):  # type: ignore[attr-defined]
        return b if a.value else a  # type: ignore[attr-defined]
    if _both_float(a, b):
        return _fold_float(a, b, lambda x, y: x * y)
    if tb is FloatImm and b.value == 1.0:  # type: ignore[attr-defined]
        return a
    if ta is FloatImm and a.value == 1.0:  # type: ignore[attr-defined]
        return b
    if a.dtype == "bool":
        return logical_and(a, b)
    if ta in _VECTORS and tb in _VECTORS:
        return _or_node(_vector_mul(a, b), tir.Mul, a, b)
    return tir.Mul(a, b)


def _vector_mul(a: PrimExpr, b: PrimExpr) -> PrimExpr | None:
    ta, tb = type(a), type(b)
    if ta is tir.Broadcast and tb is tir.Ramp:
        a, b, ta, tb = b, a, tb, ta
    if ta is tir.Ramp and tb is tir.Broadcast and not is_float(a.dtype):
        stride = mul(a.stride, b.value)  # type: ignore[attr-defined]
        base = mul(a.base, b.value)  # type: ignore[attr-defined]
        return tir.Broadcast(base, b.lanes) if _is_const(stride, 0) else tir.Ramp(base, stride, a.lanes)  # type: ignore[attr-defined]
    return _vector_pair(a, b, mul, False)


def _float_div(x: float, y: float) -> float:
    if y != 0:
        return x / y
    if x == 0 or math.isnan(x):
        return math.nan
    return math.copysign(math.inf, x) * math.copysign(1.0, y)


def trunc_quotient(x: int, y: int) -> int:
    """The quotient cut towards zero."""
    q = abs(x) // abs(y)
    return q if (x >= 0) == (y >= 0) else -q


def _check_divisor(what: str, b: PrimExpr) -> None:
    if type(b) in (IntImm, tir.Broadcast) and const_value(b) == 0 and not is_float(b.dtype):
        raise ArgumentError(f"{what}: division by zero")


def _int_division(what: str, node: type, fn: Callable[[int, int], int], remainder: bool) -> Builder:
    def build(a: PrimExpr, b: PrimExpr) -> PrimExpr:
        ta, tb = type(a), type(b)
        if tb is IntImm or tb is tir.Broadcast:
            _check_divisor(what, b)
        if tb is IntImm:
            if ta is IntImm:
                return make_const(fn(a.value, b.value), a.dtype)  # type: ignore[attr-defined]
            if b.value == 1:  # type: ignore[attr-defined]
                return IntImm(a.dtype, 0) if remainder else a
        elif tb is tir.Broadcast and ta is tir.Broadcast:
            return tir.Broadcast(build(a.value, b.value), a.lanes)  # type: ignore[attr-defined]
        elif tb is tir.Broadcast and _is_const(b, 1):
            return zero_of(a) if remainder else a
        return node(a, b)

    build.__doc__ = node.__doc__
    return build


trunc_div = _int_division("truncdiv", tir.Div, trunc_quotient, False)
trunc_mod = _int_division("truncmod", tir.Mod, lambda x, y: x - trunc_quotient(x, y) * y, True)
floor_div = _int_division("floordiv", tir.FloorDiv, lambda x, y: x // y, False)
floor_mod = _int_division("floormod", tir.FloorMod, lambda x, y: x % y, True)


def float_div(a: PrimExpr, b: PrimExpr) -> PrimExpr:
    """a / b of floats, by IEEE rules."""
    if _both_float(a, b):
        return _fold_float(a, b, _float_div)
    if type(b) is FloatImm and b.value == 1.0:
        return a
    return _or_node(_vector_both(a, b, float_div), tir.Div, a, b)


def _vector_both(a: PrimExpr, b: PrimExpr, build: Builder) -> PrimExpr | None:
    if type(a) is tir.Broadcast and type(b) is tir.Broadcast:
        return tir.Broadcast(build(a.value, b.value), a.lanes)
    return None


def _extreme(node: type, pick: Callable[[float, float], float], on_bool: str) -> Builder:
    def of_floats(x: float, y: float) -> float:
        return math.nan if math.isnan(x) or math.isnan(y) else pick(x, y)

    def build(a: PrimExpr, b: PrimExpr) -> PrimExpr:
        ta, tb = type(a), type(b)
        if ta is IntImm and tb is IntImm:
            return IntImm(a.dtype, pick(a.value, b.value))  # type: ignore[attr-defined,arg-type]
        if _both_float(a, b):
            return _fold_float(a, b, of_floats)
        if a is b:
            return a
        if a.dtype == "bool":
            return logical_and(a, b) if on_bool == "and" else logical_or(a, b)
        return _or_node(_vector_both(a, b, build), node, a, b)

    build.__doc__ = node.__doc__
    return build


minimum = _extreme(tir.Min, min, "and")
maximum = _extreme(tir.Max, max, "or")


def _comparison(node: type, fn: Callable[[float, float], bool], on_same: bool) -> Builder:
    def build(a: PrimExpr, b: PrimExpr) -> PrimExpr:
        ta, tb = type(a), type(b)
        if ta is IntImm and tb is IntImm:
            return IntImm("bool", fn(a.value, b.value))  # type: ignore[attr-defined]
        if ta is FloatImm and tb is FloatImm:
            return IntImm("bool", fn(round_float(a.value, a.dtype), round_float(b.value, b.dtype)))  # type: ignore[attr-defined]
        if a is b and not is_float(a.dtype) and "x" not in a.dtype:
            return IntImm("bool", on_same)
        return _or_node(_vector_both(a, b, build), node, a, b)

    build.__doc__ = node.__doc__
    return build


equal = _comparison(tir.EQ, lambda x, y: x == y, True)
not_equal = _comparison(tir.NE, lambda x, y: x != y, False)
less = _comparison(tir.LT, lambda x, y: x < y, False)
less_equal = _comparison(tir.LE, lambda x, y: x <= y, True)
greater = _comparison(tir.GT, lambda x, y: x > y, False)
greater_equal = _comparison(tir.GE, lambda x, y: x >= y, True)


def logical_and(a: PrimExpr, b: PrimExpr) -> PrimExpr:
    """a and b, both bool."""
    if type(a) is IntImm:
        return b if a.value else a
    if type(b) is IntImm:
        return a if b.value else b
    return a if a is b else _or_node(_vector_both(a, b, logical_and), tir.And, a, b)


def logical_or(a: PrimExpr, b: PrimExpr) -> PrimExpr:
    """a or b, both bool."""
    if type(a) is IntImm:
        return a if a.value else b
    if type(b) is IntImm:
        return b if b.value else a
    return a if a is b else _or_node(_vector_both(a, b, logical_or), tir.Or, a, b)


_OPPOSITE = {tir.EQ: tir.NE, tir.NE: tir.EQ, tir.LT: tir.GE, tir.GE: tir.LT, tir.GT: tir.LE, tir.LE: tir.GT}


def logical_not(a: PrimExpr) -> PrimExpr:
    """not a, of a bool."""
    t = type(a)
    if t is IntImm:
        return IntImm(a.dtype, not a.value)  # type: ignore[attr-defined]
    if t is tir.Not:
        return a.a  # type: ignore[attr-defined]
    if t is tir.Broadcast:
        return tir.Broadcast(logical_not(a.value), a.lanes)  # type: ignore[attr-defined]
    if t in (tir.EQ, tir.NE) or t in _OPPOSITE and not is_float(a.a.dtype):  # type: ignore[attr-defined]
        return _OPPOSITE[t](a.a, a.b)  # type: ignore[attr-defined,index]
    return tir.Not(a)


def select(cond: PrimExpr, true_value: PrimExpr, false_value: PrimExpr) -> PrimExpr:
    """``true_value`` where ``cond`` holds, else ``false_value``; both are evaluated."""
    if type(cond) is IntImm:
        return true_value if cond.value else false_value
    if type(cond) is tir.Broadcast and type(cond.value) is IntImm:
        return true_value if cond.value.value else false_value
    return true_value if true_value is false_value else tir.Select(cond, true_value, false_value)


def broadcast(x: PrimExpr, lanes: int) -> PrimExpr:
    """``lanes`` copies of a scalar (the scalar itself for one lane)."""
    return x if lanes == 1 else tir.Broadcast(x, lanes)


def ramp(base: PrimExpr, stride: PrimExpr, lanes: int) -> PrimExpr:
    """The vector ``base + i * stride`` (a scalar for one lane, a Broadcast for stride 0)."""
    if lanes == 1:
        return base
    return tir.Broadcast(base, lanes) if _is_const(stride, 0) else tir.Ramp(base, stride, lanes)


BUILDERS: dict[type, Builder] = {
    tir.Add: add, tir.Sub: sub, tir.Mul: mul, tir.Mod: trunc_mod, tir.FloorDiv: floor_div, tir.FloorMod: floor_mod,
    tir.Min: minimum, tir.Max: maximum, tir.EQ: equal, tir.NE: not_equal, tir.LT: less, tir.LE: less_equal,
    tir.GT: greater, tir.GE: greater_equal, tir.And: logical_and, tir.Or: logical_or,
    tir.Div: lambda a, b: float_div(a, b) if is_float(a.dtype) else trunc_div(a, b),
}
"""Node class → its folding builder (operands must agree in dtype)."""

