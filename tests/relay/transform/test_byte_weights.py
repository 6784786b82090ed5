"""Float weights that are scaled bytes."""
from __future__ import annotations

import numpy as np
import pytest

import anchorleg
from anchorleg import relay
from anchorleg.ir.module import IRModule
from anchorleg.relay.transform.byte_weights import scaled_integers
from anchorleg.target import Target

RNG = np.random.default_rng(0)


def made(units, inner, scale, low=-127, high=127):
    q = RNG.integers(low, high + 1, (units, inner))
    return q, (q.astype(np.float32) * np.float32(scale) if np.isscalar(scale) else q.astype(np.float32) * scale[:, None]).astype(np.float32)


@pytest.mark.parametrize("scale", [0.013, 1 / 3, RNG.random(20).astype(np.float32) * 0.01 + 1e-4])
@pytest.mark.parametrize("low, high", [(-127, 127), (-128, 127), (-60, 50)])
def test_scaled_integers_are_found_exactly(scale, low, high):
    _, w = made(20, 300, scale, low, high)
    found = scaled_integers(w)
    assert found is not None and found.values.dtype == np.int16
    np.testing.assert_array_equal(found.values.astype(np.float32) * found.scales[:, None], w)


def test_numbers_are_as_small_as_can_be():
    q, w = made(20, 300, 0.01, -85, 85)
    q[:, 0], w[:, 0] = 85, np.float32(85) * np.float32(0.01)
    found = scaled_integers(w, -255, 255)
    np.testing.assert_array_equal(found.values, q)


def test_rows_of_zeros_and_single_values():
    w = np.zeros((3, 5), np.float32)
    w[1, 2] = 0.7
    found = scaled_integers(w)
    np.testing.assert_array_equal(found.values.astype(np.float32) * found.scales[:, None], w)


def test_other_weights_are_left_alone():
    _, w = made(8, 300, 0.01)
    off, huge = w.copy(), w.copy()
    off[5, 7] = np.nextafter(off[5, 7], np.float32(9))
    huge[6, 0] = np.inf
    wide = (RNG.integers(-1000, 1001, (8, 300)) * np.float32(0.01)).astype(np.float32)
    for weight in (off, huge, wide, RNG.standard_normal((8, 300)).astype(np.float32)):
        assert scaled_integers(weight) is None


def passed(x, w, target="llvm"):
    mod = relay.transform.InferType()(IRModule.from_expr(relay.Function([x], relay.nn.dense(x, relay.const(w)))))
    with Target(target):
        return mod, relay.transform.ByteWeights()(mod)


def test_large_products_of_few_rows_are_scaled_afterwards():
    _, w = made(256, 256, RNG.random(256).astype(np.float32) + 0.1)
    for rows in (1, 63, relay.Any()):
        _, done = passed(relay.var("x", shape=(rows, 256)), w)
        product, scales = done["main"].body.args
        assert done["main"].body.op.name == "multiply" and product.args[1].data.dtype == "int8" and scales.data.shape == (256,)
    for x, weight, target in ((relay.var("x", shape=(64, 256)), w, "llvm"), (relay.var("x", shape=(1, 100)), made(100, 100, 0.1)[1], "llvm"),
                              (relay.var("x", shape=(1, 256)), w, "c")):
        mod, done = passed(x, weight, target)
        assert done is mod


@pytest.mark.parametrize("rows", [1, 5, 40])
def test_the_value_is_the_same(rows):
    _, w = made(272, 256, RNG.random(272).astype(np.float32) * 0.01)
    x, data = RNG.standard_normal((rows, 256)).astype(np.float32), relay.var("x", shape=(relay.Any(), 256))
    body = relay.add(relay.nn.dense(data, relay.const(w)), relay.const(np.ones(272, np.float32)))
    exe = relay.vm.compile(IRModule.from_expr(relay.Function([data], body)), "llvm")
    got = anchorleg.runtime.vm.VirtualMachine(exe, anchorleg.cpu(0)).invoke("main", x).numpy()
    np.testing.assert_allclose(got, x @ w.T + 1, rtol=1e-5, atol=1e-5)
