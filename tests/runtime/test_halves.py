"""Conversions of 16-bit floats, bit by bit against numpy and ml_dtypes."""

from __future__ import annotations

import ctypes

import ml_dtypes
import numpy as np
import pytest

from anchorleg.runtime import llvm
from anchorleg.runtime.native import NativeLibrary

# on a processor of the plainest kind each conversion below is a call of the function under test
TEXT = "\n".join(
    f"""
define void @{name}(ptr %in, ptr %out, i64 %n) {{
entry:
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %i2, %loop ]
  %p = getelementptr {source}, ptr %in, i64 %i
  %q = getelementptr {target}, ptr %out, i64 %i
  %x = load {source}, ptr %p
  %y = {op} {source} %x to {target}
  store {target} %y, ptr %q
  %i2 = add i64 %i, 1
  %more = icmp slt i64 %i2, %n
  br i1 %more, label %loop, label %end
end:
  ret void
}}"""
    for name, op, source, target in [
        ("sh", "fptrunc", "float", "half"), ("dh", "fptrunc", "double", "half"), ("sb", "fptrunc", "float", "bfloat"),
        ("db", "fptrunc", "double", "bfloat"), ("hs", "fpext", "half", "float"), ("hd", "fpext", "half", "double"),
    ]
)


@pytest.fixture(scope="module")
def library():
    return NativeLibrary.from_objects([llvm.compile_text(TEXT)], ["sh", "dh", "sb", "db", "hs", "hd"])


def convert(library, name: str, values: np.ndarray, dtype) -> np.ndarray:
    out = np.empty(values.size, dtype)
    function = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64)(library[name])
    function(values.ctypes.data, out.ctypes.data, values.size)
    return out


def _floats() -> np.ndarray:
    rng = np.random.default_rng(0)
    every = np.arange(1 << 16, dtype=np.uint32) << 16
    near = (every[:, None] + np.array([0, 1, 0x7FFF, 0x8000, 0x8001, 0xFFFF], np.uint32)).ravel()
    halves = np.arange(1 << 16).astype(np.uint16).view(np.float16).astype(np.float32).view(np.uint32)
    ties = (halves[:, None] + np.array([0, 0xFFF, 0x1000, 0x1001, -1], np.int64)).astype(np.uint32).ravel()
    return np.concatenate([near, ties, rng.integers(0, 1 << 32, 50_000, dtype=np.uint32)]).view(np.float32)


def _same(got: np.ndarray, want: np.ndarray) -> None:
    nan = np.isnan(want.astype(np.float32))
    np.testing.assert_array_equal(np.isnan(got.astype(np.float32)), nan)
    bits = np.dtype(f"u{got.itemsize}")
    np.testing.assert_array_equal(got.view(bits)[~nan], want.view(bits)[~nan])


@pytest.mark.filterwarnings("ignore")
def test_from_float(library):
    values = _floats()
    _same(convert(library, "sh", values, np.float16), values.astype(np.float16))
    _same(convert(library, "sb", values, ml_dtypes.bfloat16), values.astype(ml_dtypes.bfloat16))


@pytest.mark.filterwarnings("ignore")
def test_from_double(library):
    """Values just beside a tie must not be rounded twice."""
    base = np.arange(1 << 16).astype(np.uint16)
    for kind, name in ((np.float16, "dh"), (ml_dtypes.bfloat16, "db")):
        exact = base.view(kind).astype(np.float64)
        exact = exact[np.isfinite(exact)]
        order = np.unique(exact)
        middle = (order[1:] + order[:-1]) / 2
        values = np.concatenate([exact, middle, middle * (1 + 2.0**-50), middle * (1 - 2.0**-50), [np.inf, -np.inf, np.nan]])
        got = convert(library, name, values, kind).astype(np.float64)
        below = order[np.clip(np.searchsorted(order, values[:-3], "right") - 1, 0, None)]
        above = order[np.clip(np.searchsorted(order, values[:-3], "left"), None, len(order) - 1)]
        distance = np.minimum(abs(values[:-3] - below), abs(values[:-3] - above))
        np.testing.assert_array_equal(abs(got[:-3] - values[:-3]), distance)
        ties = convert(library, name, middle, kind).view(np.uint16)
        assert not np.any(ties & 1)
        assert got[-3] == np.inf and got[-2] == -np.inf and np.isnan(got[-1])


def test_from_half(library):
    values = np.arange(1 << 16).astype(np.uint16).view(np.float16)
    _same(convert(library, "hs", values, np.float32), values.astype(np.float32))
    _same(convert(library, "hd", values, np.float64).astype(np.float32), values.astype(np.float32))
