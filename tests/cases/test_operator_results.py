"""Kinds of fault in operators' results: special cases that never copy, windows at the border, counts that hardware takes modulo."""
from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

from anchorleg import relay
from anchorleg.relay import nn

from .run import everywhere, module

RNG = np.random.default_rng(0)


def var(name: str, value: np.ndarray) -> Any:
    return relay.var(name, shape=value.shape, dtype=str(value.dtype))


@pytest.mark.parametrize("dtype", ["int64", "float32", "bool"])
@pytest.mark.parametrize("axis", [0, 1, -1])
def test_concatenation_of_one(dtype: str, axis: int) -> None:
    value = np.array([[33], [13]], dtype)
    x = var("x", value)
    everywhere(module([x], relay.concatenate([x], axis=axis)), value, want=value)


@pytest.mark.parametrize("axis, keepdims, exclude", [*itertools.product([0, 3, (0, 2), (1, -1), (0, 1, 2, 3)], [False, True], [False]), ((0, 2), False, True), (None, True, False)])
def test_sums_of_bools_are_any(axis: Any, keepdims: bool, exclude: bool) -> None:
    value = RNG.random((3, 5, 7, 9)) < 0.02
    axes = axis if not exclude else tuple(a for a in range(4) if a not in axis)
    x = var("x", value)
    everywhere(module([x], relay.sum(x, axis, keepdims, exclude)), value, want=value.any(axes, keepdims=keepdims), levels=(0, 3))


def test_average_of_a_window_that_leaves_the_padding() -> None:
    value = np.arange(1, 10, dtype="float32").reshape(1, 1, 1, 9)
    x = var("x", value)
    body = nn.avg_pool2d(x, (1, 2), (1, 2), ceil_mode=True, count_include_pad=True)
    everywhere(module([x], body), value, want=np.array([1.5, 3.5, 5.5, 7.5, 9], "float32").reshape(1, 1, 1, 5))


def _average(x: np.ndarray, k: int, s: int, pad: tuple[int, int], ceil: bool, count_pad: bool) -> np.ndarray:
    """By the definition: a window counts what lies in the data (or the padding), and starts in the data or the padding before it."""
    total = x.shape[-1] + sum(pad)
    count = (total - k + (s - 1 if ceil else 0)) // s + 1
    starts = [i * s for i in range(count) if i * s < x.shape[-1] + pad[0]]
    columns = []
    for a in starts:
        inside = range(max(a, pad[0]), min(a + k, pad[0] + x.shape[-1]))
        divisor = min(a + k, total) - a if count_pad else len(inside)
        columns.append(sum(x[..., i - pad[0]] for i in inside) / divisor)
    return np.stack(columns, -1).astype(x.dtype)


@pytest.mark.parametrize("ceil, count_pad", [(a, b) for a in (False, True) for b in (False, True)])
@pytest.mark.parametrize("size, k, s, pad", [(9, 2, 2, (0, 0)), (8, 3, 2, (1, 1)), (7, 3, 3, (1, 0)), (10, 4, 3, (2, 1)), (5, 5, 5, (0, 2)), (4, 1, 2, (0, 0))])
def test_average_pool_by_definition(size: int, k: int, s: int, pad: tuple[int, int], ceil: bool, count_pad: bool) -> None:
    value = RNG.standard_normal((2, 3, size)).astype("float32")
    x = var("x", value)
    want = _average(value, k, s, pad, ceil, count_pad)
    body = nn.avg_pool1d(x, (k,), (s,), padding=pad, ceil_mode=ceil, count_include_pad=count_pad)
    everywhere(module([x], body), value, want=want, levels=(0, 3))


def test_a_window_does_not_start_behind_the_data() -> None:
    value = RNG.standard_normal((1, 6, 4)).astype("float32")
    x = var("x", value)
    for pool in (nn.avg_pool1d, nn.max_pool1d):
        everywhere(module([x], pool(x, (1,), (2,), ceil_mode=True)), value, want=value[..., ::2], levels=(0, 3))


def _softmax(x: np.ndarray, axis: int) -> np.ndarray:
    e = np.exp(x - x.max(axis, keepdims=True))
    return e / e.sum(axis, keepdims=True)


@pytest.mark.parametrize("with_floor", [False, True])
@pytest.mark.parametrize("axis", [1, 2, 3])
def test_softmax_between_a_convolution_and_element_wise_operators(axis: int, with_floor: bool) -> None:
    value, kernel = np.ones((3, 3, 10, 1), "float32"), RNG.standard_normal((3, 3, 1, 1)).astype("float32")
    x, w = var("x", value), var("w", kernel)
    conv = nn.conv2d(x, w)
    soft = nn.softmax(conv, axis=axis)
    body = soft + relay.const(np.float32(1))
    c = np.einsum("ncxy,oc->noxy", value, kernel[:, :, 0, 0])
    want = _softmax(c, axis) + 1
    if with_floor:
        body, want = (soft - relay.floor(x)) + (conv - relay.floor(x)), (_softmax(c, axis) - 1) + (c - 1)
    everywhere(module([x, w], body), value, kernel, want=want.astype("float32"))


@pytest.mark.parametrize("dtype", ["int64", "uint64", "int32", "uint32", "int8", "uint8"])
def test_shifts_by_more_than_the_width(dtype: str) -> None:
    bits = np.dtype(dtype).itemsize * 8
    value = np.full(9, 1, dtype)
    counts = np.array([0, 1, bits - 1, bits, bits + 1, 2 * bits, 63, 64, 100], dtype)
    x = var("x", value)
    left = relay.left_shift(x, relay.const(counts))
    want = [0 if int(c) >= bits else (1 << int(c)) % (1 << bits) for c in counts]
    everywhere(module([x], left), value, want=np.array(want, f"uint{bits}").astype(dtype))
    big = np.full(9, np.iinfo(dtype).max, dtype)
    everywhere(module([x], relay.right_shift(x, relay.const(counts))), big, want=np.array([int(np.iinfo(dtype).max) >> int(c) for c in counts], dtype))


@pytest.mark.parametrize("name, fn", [("tanh", np.tanh), ("exp", np.exp), ("sigmoid", lambda v: 1 / (1 + np.exp(-v))), ("erf", None)])
def test_nan_and_infinities_survive_every_level(name: str, fn: Any) -> None:
    import math

    value = np.array([np.nan, np.inf, -np.inf, -0.0, 0.5], "float32")
    with np.errstate(all="ignore"):
        want = np.array([math.erf(float(v)) for v in value], "float32") if fn is None else fn(value)
    x = var("x", value)
    everywhere(module([x], getattr(relay, name)(x)), value, want=want, rtol=1e-4)


@pytest.mark.parametrize("middle, values, want", [
    ("bool", [-1, 0, 2], [1, 0, 1]), ("int8", [300, -129, 5], [44, 127, 5]), ("float32", [2**24 + 1, -3, 7], [2**24, -3, 7]), ("uint8", [-1, 256, 3], [255, 0, 3]),
])
def test_a_chain_of_casts_keeps_what_the_middle_loses(middle: str, values: list[int], want: list[int]) -> None:
    value = np.array(values, "int64")
    x = var("x", value)
    everywhere(module([x], relay.cast(relay.cast(x, middle), "int32")), value, want=np.array(want, "int32"))


@pytest.mark.parametrize("value", [3.5, -2.25])
def test_a_cast_through_an_integer_truncates(value: float) -> None:
    x = relay.var("x", shape=(1,), dtype="float32")
    everywhere(module([x], relay.cast(relay.cast(x, "int32"), "float32")), np.array([value], "float32"), want=np.array([int(value)], "float32"))
