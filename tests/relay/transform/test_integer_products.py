"""Products of shifted bytes: exact for every zero point and weight, under every instruction set."""
from __future__ import annotations

import numpy as np
import pytest

import anchorleg
from anchorleg import relay
from anchorleg.contrib import graph_executor
from anchorleg.ir.module import IRModule
from anchorleg.ir.structural import assert_structural_equal
from anchorleg.target import Target

X86 = "llvm -mtriple=x86_64-unknown-linux-gnu -mcpu="
TARGETS = ["llvm", "llvm -mattr=-avx512vnni", X86 + "x86-64-v3", X86 + "x86-64"]
RANGE = {"uint8": (0, 255), "int8": (-128, 127)}


def values(rng, kind, low, high, shape):
    """Random numbers, or all at one end."""
    return rng.integers(low, high + 1, shape) if kind == "random" else np.full(shape, low if kind == "low" else high)


def built(body, target, **feeds):
    """(result, names of the kernels)"""
    mod = IRModule.from_expr(relay.Function(relay.analysis.free_vars(body), body))
    with anchorleg.transform.PassContext(opt_level=3):
        lib = relay.build(mod, target=target)
    m = graph_executor.GraphModule(lib["default"](anchorleg.cpu(0)))
    for name, value in feeds.items():
        m.set_input(name, value)
    m.run()
    return m.get_output(0).numpy(), lib.get_graph_json()


def centred(x, zero):
    return relay.subtract(relay.cast(x, "int32"), relay.const(np.int32(zero)))


def dense_case(m, k, n, dtype, weights, zero, kinds, target):
    rng = np.random.default_rng(m * k * n)
    x, w = values(rng, kinds[0], *RANGE[dtype], (m, k)).astype(dtype), values(rng, kinds[1], *weights, (n, k)).astype(np.int32)
    data = relay.var("x", shape=(m, k), dtype=dtype)
    got, graph = built(relay.nn.dense(centred(data, zero), relay.const(w), out_dtype="int32"), target, x=x)
    want = (x.astype(np.int64) - zero) @ w.T.astype(np.int64)
    np.testing.assert_array_equal(got, want.astype(np.int32))
    return graph


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("k", [1, 3, 4, 63, 64, 1000])
def test_dense(k, target):
    for dtype, zero in (("uint8", 0), ("uint8", 255), ("int8", -128), ("int8", 127)):
        graph = dense_case(5, k, 33, dtype, (-128, 127), zero, ("random", "random"), target)
        assert "dense_pack" in graph
    dense_case(1, k, 17, "uint8", (-128, 127), 128, ("high", "low"), target)
    dense_case(2, k, 16, "int8", (-128, 127), 127, ("low", "low"), target)


@pytest.mark.parametrize("weights", [(0, 255), (-100, 155), (-255, 0), (-255, 255), (-1000, 1000)])
@pytest.mark.parametrize("kinds", [("random", "random"), ("high", "high"), ("low", "low")])
def test_weights_that_are_no_bytes(weights, kinds):
    dense_case(4, 20, 24, "uint8", weights, 3, kinds, "llvm")


def conv_reference(x, w, strides, pads, groups):
    x, (s, t) = np.pad(x, ((0, 0), (0, 0), *pads)), strides
    out = [(x.shape[2] - w.shape[2]) // s + 1, (x.shape[3] - w.shape[3]) // t + 1]
    total = np.zeros((x.shape[0], w.shape[0], *out), np.int64)
    per_in, per_out = w.shape[1], w.shape[0] // groups
    for y in range(w.shape[2]):
        for z in range(w.shape[3]):
            seen = x[:, :, y:y + s * out[0]:s, z:z + t * out[1]:t]
            for g in range(groups):
                o = slice(g * per_out, (g + 1) * per_out)
                total[:, o] += np.einsum("ncyx,oc->noyx", seen[:, g * per_in:(g + 1) * per_in], w[o, :, y, z])
    return total


# channels, outputs, groups, kernel, stride, what the kernels are
CONVOLUTIONS = [(16, 32, 1, 3, 1, "conv2d_NCHWc"), (3, 16, 1, 3, 2, "conv2d_NCHWc"), (20, 20, 1, 1, 1, "conv2d_NCHWc"), (6, 5, 1, 3, 1, ""),
                (32, 32, 32, 3, 1, "depthwise_conv2d_NCHWc"), (16, 16, 16, 5, 2, "depthwise_conv2d_NCHWc"), (16, 32, 2, 3, 1, "conv2d_NCHWc"),
                (64, 64, 1, 1, 2, "conv2d_NCHWc"), (5, 10, 5, 3, 1, "")]


def conv_case(case, dtype, weights, zero, kinds, target, layout="NCHW"):
    channels, outputs, groups, kernel, stride, name = case
    rng = np.random.default_rng(channels + kernel)
    x = values(rng, kinds[0], *RANGE[dtype], (2, channels, 7, 9)).astype(dtype)
    w = values(rng, kinds[1], *weights, (outputs, channels // groups, kernel, kernel)).astype(np.int32)
    to, back = ((0, 1, 2, 3), (0, 1, 2, 3)) if layout == "NCHW" else ((0, 2, 3, 1), (0, 3, 1, 2))
    data = relay.var("x", shape=x.transpose(to).shape, dtype=dtype)
    pad = kernel // 2
    body = relay.nn.conv2d(centred(data, zero), relay.const(w), strides=(stride, stride), padding=(pad, pad), groups=groups, channels=outputs,
                           kernel_size=(kernel, kernel), data_layout=layout, kernel_layout="OIHW", out_dtype="int32")
    got, graph = built(body, target, x=x.transpose(to))
    want = conv_reference(x.astype(np.int64) - zero, w.astype(np.int64), (stride, stride), ((pad, pad), (pad, pad)), groups)
    np.testing.assert_array_equal(got.transpose(back), want.astype(np.int32))
    assert name in graph or weights != (-128, 127) and 1 < groups < channels


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("case", CONVOLUTIONS, ids=str)
def test_convolutions(case, target):
    conv_case(case, "uint8", (-128, 127), 255, ("random", "random"), target)
    conv_case(case, "int8", (-128, 127), -128, ("low", "low"), target)


@pytest.mark.parametrize("case", CONVOLUTIONS, ids=str)
def test_convolutions_with_other_weights_and_zero_points(case):
    conv_case(case, "uint8", (-100, 155), 128, ("random", "random"), "llvm")
    conv_case(case, "uint8", (-255, 0), 0, ("high", "low"), "llvm")
    conv_case(case, "int8", (-128, 127), 0, ("random", "random"), "llvm", "NHWC")


def test_a_zero_point_that_is_computed():
    rng = np.random.default_rng(0)
    x, w = rng.integers(0, 256, (2, 3, 20)).astype(np.uint8), rng.integers(-128, 128, (24, 20)).astype(np.int32)
    data, zero = relay.var("x", shape=(2, 3, 20), dtype="uint8"), relay.var("z", shape=(1,), dtype="uint8")
    shifted = relay.reshape(relay.subtract(relay.cast(data, "int32"), relay.cast(zero, "int32")), (-1, 20))
    got, graph = built(relay.nn.dense(shifted, relay.const(w), out_dtype="int32"), "llvm", x=x, z=np.array([77], np.uint8))
    np.testing.assert_array_equal(got, (x.reshape(6, 20).astype(np.int64) - 77) @ w.T)
    assert "dense_pack" in graph


def passed(body, target):
    mod = relay.transform.InferType()(IRModule.from_expr(relay.Function(relay.analysis.free_vars(body), body)))
    with Target(target):
        return mod, relay.transform.InferType()(relay.transform.IntegerProducts()(mod))


def test_the_data_get_the_sign_that_the_processor_wants():
    data, w = relay.var("x", shape=(2, 8), dtype="int8"), np.ones((4, 8), np.int32)
    mod, done = passed(relay.nn.dense(relay.cast(data, "int32"), relay.const(w), out_dtype="int32"), X86 + "znver4")
    moved = relay.cast(relay.add(relay.cast(data, "int32"), relay.const(np.int32(128))), "uint8")
    raw = relay.nn.dense(moved, relay.const(w.astype(np.int8)), out_dtype="int32")
    wanted = relay.subtract(raw, relay.const(np.full(4, 128 * 8, np.int32)))
    assert_structural_equal(done, relay.transform.InferType()(IRModule.from_expr(relay.Function([data], wanted))))
    for target in ("llvm -mtriple=aarch64-linux-gnu -mcpu=neoverse-n1", X86 + "x86-64-v3"):
        _, same = passed(mod["main"].body, target)
        assert same["main"].body.args[0] is mod["main"].params[0]


def test_what_is_left_alone():
    data, wide = relay.var("x", shape=(2, 8), dtype="int8"), relay.var("y", shape=(2, 8), dtype="int32")
    w, vector = relay.var("w", shape=(4, 8), dtype="int32"), relay.const(np.arange(8, dtype=np.int32))
    cast, ones = relay.cast(data, "int32"), relay.const(np.ones((4, 8), np.int32))
    for body in (relay.nn.dense(cast, w, out_dtype="int32"), relay.nn.dense(wide, ones, out_dtype="int32"),
                 relay.nn.dense(relay.subtract(cast, vector), ones, out_dtype="int32"),
                 relay.nn.dense(cast, relay.const(np.full((4, 8), 1 << 20, np.int32)) * relay.const(np.int32(1)), out_dtype="int32")):
        mod, done = passed(body, "llvm")
        assert done is mod
    mod, done = passed(relay.nn.dense(cast, ones, out_dtype="int32"), "c")
    assert done is mod
