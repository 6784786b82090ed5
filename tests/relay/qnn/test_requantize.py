"""Requantize against arithmetic written down independently: gemmlowp's as TensorFlow Lite uses it, and each rounding in exact integers."""
from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from anchorleg import relay
from anchorleg.ir.module import IRModule
from anchorleg.relay.op.qnn.quantize import requantise
from anchorleg.relay.transform import InferType, QnnCanonicalize
from anchorleg.target import Target

from .test_canonicalize import f32, i32, run

qnn = relay.qnn.op
LOW, HIGH = -(1 << 31), (1 << 31) - 1
EDGES = [0, 1, -1, 2, -2, 3, -3, 127, -128, 255, 1 << 20, -(1 << 20), HIGH, LOW + 1, LOW, (1 << 30) - 1, 1 << 30, -(1 << 30)]


def high_of_double(a, b):
    """SaturatingRoundingDoublingHighMul."""
    if a == b == LOW:
        return HIGH
    product = a * b
    nudge = 1 << 30 if product >= 0 else 1 - (1 << 30)
    total = product + nudge
    return int(math.trunc(Fraction(total, 1 << 31)))


def by_power(x, exponent):
    """RoundingDivideByPOT."""
    mask = (1 << exponent) - 1
    threshold = (mask >> 1) + (1 if x < 0 else 0)
    return (x >> exponent) + (1 if x & mask > threshold else 0)


def multiplier_of(factor):
    """QuantizeMultiplier: 31 fraction bits and an exponent."""
    if factor == 0:
        return 0, 0
    q, shift = math.frexp(factor)
    fixed = math.floor(q * (1 << 31) + 0.5)
    if fixed == 1 << 31:
        fixed, shift = fixed // 2, shift + 1
    return (0, 0) if shift < -31 else (fixed, shift)


def tensorflow_lite(x, factor, zero, dtype):
    """MultiplyByQuantizedMultiplier, the output's offset, and the clamp."""
    fixed, shift = multiplier_of(factor)
    left, right = max(shift, 0), max(-shift, 0)
    info = np.iinfo(dtype)
    value = by_power(high_of_double(x << left, fixed), right) + zero
    return min(max(value, info.min), info.max)


def fixed_point(x, factor, zero, dtype, rounding):
    """The 64-bit product with the multiplier, rounded once."""
    fixed, shift = multiplier_of(factor)
    exact = Fraction(x * fixed * (1 << max(shift, 0)), 1 << (31 + max(-shift, 0)))
    up = math.floor(exact + Fraction(1, 2))
    value = up if rounding == "UPWARD" or exact >= 0 else -math.floor(-exact + Fraction(1, 2))
    info = np.iinfo(dtype)
    return min(max(value + zero, info.min), info.max)


def requantised(x, factor, zero, dtype, target="llvm", **how):
    data = relay.var("x", shape=x.shape, dtype="int32")
    return run([data], qnn.requantize(data, f32(factor), i32(0), f32(1.0), i32(zero), out_dtype=dtype, **how), [x], target)


def numbers(factor):
    """Sums as products of bytes give, ties of the factor, and edges that a left shift leaves within 32 bits."""
    rng = np.random.default_rng(0)
    room = max(0, math.frexp(factor)[1])
    return np.array([*rng.integers(-(1 << 22), 1 << 22, 400), *range(-260, 261), *(e >> room for e in EDGES)], np.int32)


@pytest.mark.parametrize("target", ["llvm", "c"])
@pytest.mark.parametrize("factor", [0.5, 0.25, 0.0078125, 0.00123, 0.9999, 1.5, 37.25, 1e-9])
def test_tensorflow_lite(factor, target):
    x = numbers(factor)
    for dtype, zero in (("int8", -128), ("uint8", 255)) if target == "llvm" else (("int8", 5),):
        want = [tensorflow_lite(int(v), float(np.float32(factor)), zero, dtype) for v in x]
        np.testing.assert_array_equal(requantised(x, factor, zero, dtype, target, rounding="TFLITE"), want)


@pytest.mark.parametrize("rounding", ["UPWARD", "TONEAREST"])
@pytest.mark.parametrize("factor", [0.5, 0.25, 0.00123, 0.9999, 1.5, 37.25, 1e-9, 1e-12])
def test_fixed_point(factor, rounding):
    x = numbers(factor)
    x = x[np.abs(x * factor) < 2e9]
    for dtype, zero in (("int8", -128), ("uint8", 255), ("int32", 7)):
        want = [fixed_point(int(v), float(np.float32(factor)), zero, dtype, rounding) for v in x]
        np.testing.assert_array_equal(requantised(x, factor, zero, dtype, rounding=rounding, compute_dtype="int64"), want)
        rule = requantise(x, np.float32(factor), np.int32(0), np.float32(1), np.int32(zero), dtype, rounding=rounding, compute="int64")
        np.testing.assert_array_equal(rule, want)


@pytest.mark.parametrize("kind", ["float32", "float64"])
@pytest.mark.parametrize("rounding", ["UPWARD", "TONEAREST"])
@pytest.mark.parametrize("factor", [0.5, 0.25, 0.00123, 0.9999, 1.5, 37.25, 1e-9])
def test_floats(factor, rounding, kind):
    x = numbers(factor)
    for dtype, zero in (("int8", -128), ("uint8", 255)):
        want = requantise(x, np.float32(factor), np.int32(0), np.float32(1), np.int32(zero), dtype, rounding=rounding, compute=kind)
        np.testing.assert_array_equal(requantised(x, factor, zero, dtype, rounding=rounding, compute_dtype=kind), want)


@pytest.mark.parametrize("compute", ["int64", "float32", "float64"])
@pytest.mark.parametrize("rounding", ["UPWARD", "TONEAREST"])
def test_per_channel(rounding, compute):
    scales, rng = np.array([0.25, 0.003, 1.5, 0.125, 1e-6], np.float32), np.random.default_rng(1)
    x = rng.integers(-(1 << 18), 1 << 18, (6, 5, 40)).astype(np.int32)
    data = relay.var("x", shape=x.shape, dtype="int32")
    how = {"axis": 1, "rounding": rounding}
    got = run([data], qnn.requantize(data, relay.const(scales), i32(0), f32(0.7), i32(3), out_dtype="int8", compute_dtype=compute, **how), [x])
    want = requantise(x, scales, np.int32(0), np.float32(0.7), np.int32(3), "int8", compute=compute, **how)
    np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("target, floats", [("llvm -mtriple=x86_64-linux-gnu -mcpu=x86-64-v3", True), ("llvm -mtriple=x86_64-linux-gnu -mcpu=x86-64", False),
                                            ("llvm -mtriple=aarch64-linux-gnu", False), ("c", False), (None, False)])
def test_the_default_arithmetic_is_what_suits_the_processor(target, floats):
    data = relay.var("x", shape=(4,), dtype="int32")
    mod = InferType()(IRModule.from_expr(relay.Function([data], qnn.requantize(data, f32(0.3), i32(0), f32(1.0), i32(0), out_dtype="int8"))))
    if target is None:
        done = QnnCanonicalize()(mod)
    else:
        with Target(target):
            done = QnnCanonicalize()(mod)
    assert ("float32" in str(done["main"])) == floats and ("fixed_point_multiply" in str(done["main"])) == (not floats)


def test_operators_have_both_addresses():
    for name in ("conv2d", "dense", "add", "mul", "requantize", "quantize"):
        assert getattr(relay.qnn, name) is getattr(qnn, name)
