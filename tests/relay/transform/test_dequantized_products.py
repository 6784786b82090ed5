"""Products of dequantised bytes, and the divisions of quantisation."""
from __future__ import annotations

import numpy as np
import pytest

from anchorleg import relay
from anchorleg.ir.module import IRModule
from anchorleg.ir.structural import assert_structural_equal
from anchorleg.ir.visit import post_order
from anchorleg.relay.expr import Call
from anchorleg.target import Target

from .test_integer_products import built, conv_reference

RNG = np.random.default_rng(0)


def real(x, zero, scale):
    """Dequantised bytes."""
    return relay.multiply(relay.cast(relay.subtract(relay.cast(x, "int32"), relay.const(np.int32(zero))), "float32"), relay.const(np.float32(scale)))


def quantised(x, zero, scale, dtype="uint8"):
    """Bytes again."""
    info = np.iinfo(dtype)
    whole = relay.add(relay.rint(relay.divide(x, relay.const(np.float32(scale)))), relay.const(np.float32(zero)))
    return relay.cast(relay.clip(whole, float(info.min), float(info.max)), dtype)


def module(body):
    return relay.transform.InferType()(IRModule.from_expr(relay.Function(relay.analysis.free_vars(body), body)))


def passed(name, body, target="llvm"):
    mod = module(body)
    with Target(target):
        return mod, relay.transform.InferType()(getattr(relay.transform, name)()(mod))


def operators(mod):
    return {n.op.name for n in post_order(mod["main"].body) if isinstance(n, Call)}


def test_dense_becomes_an_integer_product():
    x, q, s = relay.var("x", shape=(3, 40), dtype="uint8"), RNG.integers(-127, 128, (8, 40)), RNG.random(8).astype(np.float32) + 0.1
    w = q.astype(np.float32) * s[:, None]
    _, done = passed("DequantizedProducts", relay.nn.dense(real(x, 3, 0.5), relay.const(w)))
    whole = relay.subtract(relay.cast(x, "int32"), relay.const(np.int32(3)))
    product = done["main"].body.args[0].args[0]
    assert product.op.name == "nn.dense" and product.attrs.out_dtype == "int32"
    numbers, scales = product.args[1].data.numpy(), done["main"].body.args[1].data.numpy()
    np.testing.assert_array_equal(numbers.astype(np.float32) * (scales * 2)[:, None], w)
    expected = relay.multiply(relay.cast(relay.nn.dense(whole, relay.const(numbers), out_dtype="int32"), "float32"), relay.const(scales))
    assert_structural_equal(done, module(expected))


def test_what_is_no_integer_product_is_left_alone():
    x, w = relay.var("x", shape=(3, 40), dtype="uint8"), RNG.standard_normal((8, 40)).astype(np.float32)
    v = relay.var("v", shape=(8, 40))
    for body, target in ((relay.nn.dense(real(x, 3, 0.5), relay.const(w)), "llvm"), (relay.nn.dense(real(x, 3, 0.5), v), "llvm"),
                         (relay.nn.dense(real(x, 3, 0.5), relay.const(np.ones((8, 40), np.float32))), "c")):
        mod, done = passed("DequantizedProducts", body, target)
        assert_structural_equal(done, mod)


def test_bytes_that_come_back_stay():
    x = relay.var("x", shape=(1, 4, 8, 8), dtype="int8")
    pooled = relay.nn.max_pool2d(real(x, -3, 0.25), (2, 2), (2, 2))
    _, done = passed("DequantizedProducts", quantised(relay.reshape(pooled, (1, -1)), -3, 0.25, "int8"))
    assert_structural_equal(done, module(relay.reshape(relay.nn.max_pool2d(x, (2, 2), (2, 2)), (1, -1))))
    for zero, scale, dtype in ((-3, 0.5, "int8"), (4, 0.25, "int8"), (-3, 0.25, "uint8")):
        assert "rint" in operators(passed("DequantizedProducts", quantised(real(x, -3, 0.25), zero, scale, dtype))[1])


def test_all_bytes_come_back_as_they_were():
    """The justification of the rule: dividing a product by its factor gives the whole number back."""
    for scale in (1 / 3, 0.1, 1e-30, 3e30, 0.0123):
        s, v = np.float32(scale), np.arange(-255, 256).astype(np.float32)
        np.testing.assert_array_equal(np.rint(v * s / s), v)


def test_divisions_move_into_constants():
    x, s, b = relay.var("x", shape=(2, 4, 6, 6), dtype="int32"), RNG.random((4, 1, 1)).astype(np.float32), RNG.random((4, 1, 1)).astype(np.float32)
    y = relay.nn.relu(relay.add(relay.multiply(relay.cast(x, "float32"), relay.const(s)), relay.const(b)))
    d = np.float32(0.3)
    _, done = passed("FoldQuantizeScale", relay.rint(relay.divide(y, relay.const(d))))
    moved = relay.nn.relu(relay.add(relay.multiply(relay.cast(x, "float32"), relay.const(s / d)), relay.const(b / d)))
    assert_structural_equal(done, module(relay.rint(moved)))


def test_divisions_stay_where_they_cannot_move():
    x = relay.var("x", shape=(2, 4))
    scaled = relay.multiply(x, relay.const(np.float32(2)))
    for y in (relay.exp(scaled), x, relay.add(scaled, x)):
        mod, done = passed("FoldQuantizeScale", relay.rint(relay.divide(y, relay.const(np.float32(0.3)))))
        assert_structural_equal(done, mod)
    twice = relay.Tuple([relay.rint(relay.divide(scaled, relay.const(np.float32(0.3)))), scaled])  # the product is read as it is, too
    mod, done = passed("FoldQuantizeScale", twice)
    assert_structural_equal(done, mod)


@pytest.mark.parametrize("low, high", [(-127, 127), (-128, 127), (-100, 155)])
@pytest.mark.parametrize("groups", [1, 16])
def test_a_quantised_convolution(low, high, groups):
    channels, outputs = 16, 16
    x = RNG.integers(0, 256, (1, channels, 6, 6)).astype(np.uint8)
    q, s = RNG.integers(low, high + 1, (outputs, channels // groups, 3, 3)), np.float32(0.02)
    q.flat[:4] = low, high, high - 1, 0
    w, bias = q.astype(np.float32) * s, RNG.standard_normal(outputs).astype(np.float32)
    data = relay.var("x", shape=x.shape, dtype="uint8")
    y = relay.nn.conv2d(real(data, 100, 0.1), relay.const(w), padding=(1, 1), groups=groups, channels=outputs, kernel_size=(3, 3))
    got, _ = built(quantised(relay.nn.relu(relay.nn.bias_add(y, relay.const(bias))), 7, 1.5), "llvm", x=x)
    acc = conv_reference(x.astype(np.int64) - 100, q, (1, 1), ((1, 1), (1, 1)), groups)
    exact = acc * (np.float64(0.1) * s) + bias.reshape(-1, 1, 1)
    want = np.clip(np.rint(np.maximum(exact, 0) / 1.5) + 7, 0, 255)
    off = np.abs(got.astype(np.int64) - want)
    ties = np.abs(np.abs(exact / 1.5 % 1) - 0.5) < 1e-4
    assert off.max() <= 1 and not off[~ties].any()
