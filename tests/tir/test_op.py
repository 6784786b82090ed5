"""Operators on expressions: types, folding, identities, errors."""
from __future__ import annotations

import math

import numpy as np
import pytest

from anchorleg import tir
from anchorleg.support.errors import ArgumentError, TypeMismatchError
from anchorleg.tir.dtypes import int_range, round_float, wrap

X, Y, F = tir.Var("x"), tir.Var("y"), tir.Var("f", "float32")


@pytest.mark.parametrize("expr, cls, dtype", [
    (X + 1, tir.Add, "int64"), (2 - X, tir.Sub, "int64"), (X // 3, tir.FloorDiv, "int64"), (7 % X, tir.FloorMod, "int64"),
    (F / 2, tir.Div, "float32"), (1 / F, tir.Div, "float32"), (X + F, tir.Add, "float32"), (X < 3, tir.LT, "bool"), (3 < X, tir.GT, "bool"),
    ((X < 3) & (Y < 4), tir.And, "bool"), ((X < 3) | (Y < 4), tir.Or, "bool"), (~(X < 3), tir.GE, "bool"), (~(F < 3), tir.Not, "bool"),
    (X << 2, tir.Call, "int64"), (-F, tir.Mul, "float32"), (tir.Var("u", "uint8") + 300, tir.Add, "int32"),
    (tir.Var("h", "float16") * 2.5, tir.Mul, "float16"), (tir.Var("b", "bool") + tir.Var("i", "int8"), tir.Add, "int8"),
    (tir.Var("a", "int32") + X, tir.Add, "int64"), (tir.Var("h", "float16") + tir.Var("g", "bfloat16"), tir.Add, "float32"),
])
def test_node_and_dtype(expr, cls, dtype):
    assert type(expr) is cls and expr.dtype == dtype


@pytest.mark.parametrize("expr", [X + 0, 0 + X, X - 0, X * 1, 1 * X, X // 1, tir.truncdiv(X, 1), tir.Select(X < 1, X, X).true_value,
                                  tir.if_then_else(True, X, Y), tir.all(True, X < 1).a, tir.min(X, X)])
def test_identities_return_the_operand(expr):
    assert expr is X


def test_zero_identities_are_for_integers_only():
    assert (X * 0).value == 0 and (X - X).value == 0 and (X % 1).value == 0
    assert isinstance(F * 0.0, tir.Mul) and isinstance(F - F, tir.Sub) and isinstance(F + 0.0, tir.Add) and isinstance(F == F, tir.EQ)
    assert F * 1.0 is F and F / 1.0 is F


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int32", "int64", "uint64"])
def test_integer_folding_wraps_like_numpy(dtype):
    lo, hi = int_range(dtype)
    for a in (lo, lo + 1, -1, 0, 1, 7, hi - 1, hi):
        for b in (lo, 1, 3, hi):
            a, b = wrap(a, dtype), wrap(b, dtype)
            ca, cb, na, nb = tir.const(a, dtype), tir.const(b, dtype), np.array(a, dtype), np.array(b, dtype)
            assert (ca + cb).value == int(na + nb) and (ca - cb).value == int(na - nb) and (ca * cb).value == int(na * nb)
            if b and not (a == lo and b == -1):
                assert (ca // cb).value == int(na // nb) and (ca % cb).value == int(na % nb)
                assert tir.truncmod(ca, cb).value == int(np.fmod(na, nb))
    assert (tir.const(lo, dtype) // tir.const(-1 if lo else hi, dtype)).value == (lo if lo else 0)


def test_floor_and_trunc_division_of_negatives():
    c = tir.const
    assert [(c(-7) // 2).value, (c(-7) % 2).value, (c(7) // -2).value, (c(7) % -2).value] == [-4, 1, -4, -1]
    assert [tir.truncdiv(c(-7), 2).value, tir.truncmod(c(-7), 2).value, tir.truncdiv(c(7), -2).value, tir.truncmod(c(7), -2).value] == [-3, -1, -3, 1]


def test_float_folding_rounds_to_the_dtype():
    a, b = tir.const(0.1, "float32"), tir.const(0.2, "float32")
    assert (a + b).value == float(np.float32(0.1) + np.float32(0.2))
    assert round_float(1e40, "float32") == math.inf and round_float(1.003, "bfloat16") == 1.0
    assert math.isnan((tir.const(0.0) / tir.const(0.0)).value) and (tir.const(1.0) / tir.const(-0.0)).value == -math.inf
    assert math.isnan(tir.max(tir.const(math.nan), tir.const(1.0)).value)


def test_casts_of_constants():
    assert tir.cast(tir.const(-1, "int64"), "bool").value == 1
    assert tir.cast(tir.const(300), "uint8").value == 44
    assert tir.cast(tir.const(-2.7), "int32").value == -2
    assert isinstance(tir.cast(tir.const(1e30), "int32"), tir.Cast) and isinstance(tir.cast(tir.const(math.nan), "int32"), tir.Cast)
    assert tir.cast(X, "int64") is X


def test_vectors():
    r = tir.Ramp(X, tir.const(1, "int64"), 4)
    moved = r * 2 + 3
    assert type(moved) is tir.Ramp and moved.dtype == "int64x4" and moved.stride.value == 2
    assert type(r * 0) is tir.Broadcast
    assert (r < 3).dtype == "boolx4" and tir.cast(F, "float32x8").dtype == "float32x8"


@pytest.mark.parametrize("make, error", [
    (lambda: X // 0, ArgumentError), (lambda: tir.truncmod(X, 0), ArgumentError), (lambda: X / Y, TypeMismatchError),
    (lambda: bool(X < Y), TypeMismatchError), (lambda: F & 1, TypeMismatchError), (lambda: X << 64, ArgumentError),
    (lambda: tir.infinity("int8"), ArgumentError), (lambda: tir.all(X), TypeMismatchError), (lambda: tir.reinterpret("float32", X), TypeMismatchError),
    (lambda: tir.Ramp(X, X, 4) + tir.Ramp(X, X, 8), TypeMismatchError), (lambda: X + "a", TypeError),
])
def test_errors(make, error):
    with pytest.raises(error):
        make()


def test_equality_is_identity_in_python():
    assert bool(X == X) and not bool(X == Y) and X != None  # noqa: E711
    assert {X: 1}[X] == 1 and bool(tir.const(3) == tir.const(3))


def test_reducers():
    k = tir.IterVar(tir.Range(0, 10), "k", tir.IterVar.CommReduce)
    s = tir.sum(F, axis=k)
    assert type(s) is tir.Reduce and s.dtype == "float32" and s.combiner.identity_element[0].value == 0
    assert type(tir.max(X, Y)) is tir.Max and tir.max(3, 4, 2).value == 4
    argmax = tir.comm_reducer(lambda x, y: (tir.Select(x[1] >= y[1], x[0], y[0]), tir.Select(x[1] >= y[1], x[1], y[1])),
                              lambda t0, t1: (tir.const(-1, t0), tir.min_value(t1)), "argmax")
    idx, val = argmax((k.var, F), axis=k)
    assert idx.dtype == "int64" and val.dtype == "float32" and val.value_index == 1
    assert tir.max(F, axis=k).combiner.identity_element[0].value == -math.inf
    with pytest.raises(ArgumentError):
        tir.sum(F, axis=tir.IterVar(tir.Range(0, 10), "i"))


def test_rounding_of_constants():
    v = [tir.const(x) for x in (2.5, -2.5, 0.5, -0.2)]
    assert [tir.round(x).value for x in v] == [3, -3, 1, 0] and [tir.nearbyint(x).value for x in v] == [2, -2, 0, 0]
    assert math.copysign(1, tir.ceil(v[3]).value) == -1 and tir.floor(X) is X
    assert tir.isfinite(tir.const(math.inf)).value == 0 and tir.isinf(tir.const(-math.inf)).value == 1


def test_words_of_bytes_want_bytes_and_words():
    byte, word = tir.Var("b", "int8"), tir.Var("w", "int32")
    packed = tir.op.pack4x8(byte, byte, byte, byte)
    assert packed.dtype == tir.op.dot4(packed, word, signed=True).dtype == "int32"
    with pytest.raises(TypeMismatchError, match="pack4x8: expected four values of int8 or of uint8, got int8, int8, int8, int32"):
        tir.op.pack4x8(byte, byte, byte, word)
    with pytest.raises(TypeMismatchError, match="dot4: expected words"):
        tir.op.dot4(packed, byte, signed=False)


@pytest.mark.parametrize("value, dtype", [(128, "int8"), (-129, "int8"), (256, "uint8"), (-1, "uint32"), (1 << 63, "int64"), (65505.0, "float16"), (-3.5e38, "float32")])
def test_constants_beyond_their_type_are_refused(value: float, dtype: str) -> None:
    with pytest.raises(ArgumentError, match=f"of dtype {dtype} is expected between"):
        tir.const(value, dtype)
    tir.op.const(value, dtype)  # the compiler's own way in: wraps


def test_constants_at_the_ends_of_their_type() -> None:
    for value, dtype in [(-128, "int8"), (255, "uint8"), (2**64 - 1, "uint64"), (65504.0, "float16"), (float("inf"), "float16"), (1e300, "float64")]:
        assert tir.const(value, dtype).value == value
    assert tir.const(3.5e38).dtype == "float64" and tir.const(3.4e38).dtype == tir.const(math.inf).dtype == "float32"
