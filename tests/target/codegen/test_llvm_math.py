"""Mathematical functions: accuracy against float64, and special values."""
from __future__ import annotations

import math

import numpy as np
import pytest

from anchorleg.runtime.dtype import numpy_dtype
from anchorleg.target.codegen.llvm.math import MAX_ULP
from anchorleg.tir import expr as tir

from .kernels import elementwise, run

OLD_X86 = "llvm -mtriple=x86_64-unknown-linux-gnu -mcpu=x86-64"
_SPECIAL = [0.0, -0.0, np.inf, -np.inf, np.nan, 1, -1, 0.5, -0.5, 2, 3.4e38, -3.4e38, 1e-45, -1e-45, 1.17549435e-38, 88.72, 88.73, -87.3, -103.9,
            -104.0, 70000, -70000, 1e30, 128, -126, -149, -150, 4, -4, 0.9269, 0.9271, 0.6]


def _sigmoid(x):
    e = np.exp(-np.abs(x))
    return np.where(x >= 0, 1 / (1 + e), e / (1 + e))


REFERENCE = {
    "exp": np.exp, "exp2": np.exp2, "exp10": lambda x: np.power(10.0, x), "log": np.log, "log2": np.log2, "log10": np.log10, "log1p": np.log1p,
    "tanh": np.tanh, "sigmoid": _sigmoid, "erf": np.vectorize(math.erf, otypes=[float]), "sin": np.sin, "cos": np.cos, "tan": np.tan,
    "asin": np.arcsin, "acos": np.arccos, "atan": np.arctan, "sinh": np.sinh, "cosh": np.cosh, "asinh": np.arcsinh, "acosh": np.arccosh,
    "atanh": np.arctanh, "sqrt": np.sqrt, "rsqrt": lambda x: 1 / np.sqrt(x), "pow": np.power}
ROUNDING = {"floor": np.floor, "ceil": np.ceil, "trunc": np.trunc, "nearbyint": np.rint,
            "round": lambda x: np.copysign(np.floor(np.abs(x)) + (np.abs(x) - np.floor(np.abs(x)) >= 0.5), x)}


def inputs():
    rng = np.random.default_rng(7)
    n = 1 << 13
    parts = [rng.integers(0, 1 << 32, n, dtype=np.uint32).view(np.float32), rng.standard_normal(n) * 4, rng.uniform(-1, 1, n),
             rng.uniform(-110, 110, n), 1 + rng.standard_normal(n) * 0.05, np.array(_SPECIAL)]
    return np.concatenate([p.astype(np.float32) for p in parts])


def apply(name, *arrays, dtype="float32", lanes=16, target="llvm"):
    out = np.zeros(arrays[0].size, arrays[0].dtype)
    func = elementwise(lambda *a: tir.Call(a[0].dtype, f"tir.{name}", a), [dtype] * (len(arrays) + 1), out.size, lanes)
    run(func, *arrays, out, target=target)
    return out


def ulps(got, want):
    """Distance in units in the last place of float32; special values must agree exactly (inf where the distance is undefined)."""
    with np.errstate(all="ignore"):
        near = want.astype(np.float32)
        step = np.spacing(np.maximum(np.abs(near), np.float32(1.1754944e-38))).astype(np.float64)
        distance = np.abs(got.astype(np.float64) - want) / step
    same = (np.isnan(got) & np.isnan(want)) | (got == near)
    special = ~np.isfinite(got) | ~np.isfinite(near)
    return np.where(special, np.where(same, 0, np.inf), distance)


@pytest.mark.parametrize("name", sorted(REFERENCE))
@pytest.mark.parametrize("target", ["llvm", OLD_X86])
def test_accuracy(name, target):
    x = inputs()
    arrays = (x,) if name != "pow" else (np.abs(x), np.random.default_rng(1).permutation(x))
    lanes = 16 if target == "llvm" else 4
    got = apply(name, *arrays, lanes=lanes, target=target)
    with np.errstate(all="ignore"):
        want = REFERENCE[name](*(a.astype(np.float64) for a in arrays))
    slack = 1.0 if target == "llvm" else 4.0  # without fused multiply-add the reductions are less exact
    assert ulps(got, want).max() <= MAX_ULP[name] * slack + (slack - 1)
    zero = (got == 0) & (want == 0)
    assert (np.signbit(got[zero]) == np.signbit(want[zero])).all()


@pytest.mark.parametrize("name", ["exp", "tanh", "erf", "sin"])
@pytest.mark.parametrize("lanes", [1, 2, 8, 32])
def test_every_number_of_lanes(name, lanes):
    x = np.concatenate([np.linspace(-9, 9, 64), _SPECIAL]).astype(np.float32)
    np.testing.assert_array_max_ulp(apply(name, x, lanes=lanes), apply(name, x, lanes=16), 2)


@pytest.mark.parametrize("name", sorted(ROUNDING))
def test_rounding(name):
    x = np.concatenate([inputs(), np.arange(-8, 8, 0.5, dtype=np.float32), np.array([0.49999997, -0.49999997] * 8, np.float32)])
    got, want = apply(name, x), ROUNDING[name](x)
    np.testing.assert_array_equal(got, want)
    assert (np.signbit(got) == np.signbit(want))[~np.isnan(x)].all()


@pytest.mark.parametrize("name", ["exp", "log", "tanh", "sigmoid", "erf", "sin", "rsqrt", "exp10", "sqrt", "floor"])
@pytest.mark.parametrize("lanes", [1, 4])
def test_float64(name, lanes):
    x = np.concatenate([np.random.default_rng(0).standard_normal(1000) * 5, [0.0, np.inf, -np.inf, np.nan]])
    reference = {**REFERENCE, **ROUNDING}[name]
    with np.errstate(all="ignore"):
        np.testing.assert_allclose(apply(name, x, dtype="float64", lanes=lanes), reference(x), rtol=1e-14)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("name", ["exp", "tanh", "log", "floor", "sqrt"])
def test_narrow_floats_are_rounded_once(dtype, name):
    x = (np.random.default_rng(0).standard_normal(512) * 3).astype(np.float32).astype(numpy_dtype(dtype))
    with np.errstate(all="ignore"):
        want = {**REFERENCE, **ROUNDING}[name](x.astype(np.float64)).astype(np.float32).astype(x.dtype)
    got = apply(name, x, dtype=dtype)
    number = ~np.isnan(want.astype(np.float32))
    assert np.isnan(got.astype(np.float32)[~number]).all()
    off = np.abs(got.view(np.int16).astype(int) - want.view(np.int16).astype(int))[number]
    assert (off <= 1).all() and (off == 0).mean() > 0.98


def test_powers_of_negative_and_special_bases():
    base = np.array([-2, -2, -2, -8, 0, -0.0, 0, -0.0, -np.inf, -np.inf, np.nan, 1, -1, -1, 2, np.inf], np.float32)
    power = np.array([2, 3, 0.5, 1 / 3, -1, -1, 2, 3, 3, 0.5, 0, np.nan, np.inf, -np.inf, np.nan, -2], np.float32)
    with np.errstate(all="ignore"):
        want = np.power(base.astype(np.float64), power.astype(np.float64)).astype(np.float32)
    got = apply("pow", base, power)
    np.testing.assert_array_equal(got, want)
    assert (np.signbit(got) == np.signbit(want))[~np.isnan(want)].all()


@pytest.mark.parametrize("name, fn", [("atan2", np.arctan2), ("hypot", np.hypot), ("copysign", np.copysign), ("nextafter", np.nextafter), ("fmod", np.fmod)])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_functions_of_two_arguments(name, fn, dtype):
    rng = np.random.default_rng(0)
    x, y = (rng.standard_normal(64).astype(dtype) for _ in range(2))
    np.testing.assert_allclose(apply(name, x, y, dtype=dtype, lanes=8), fn(x, y), rtol=1e-6 if dtype == "float32" else 1e-14)
