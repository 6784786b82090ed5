"""Quantised operators computed by compiled integer kernels equal their numpy definitions."""
from __future__ import annotations

import numpy as np
import pytest

from anchorleg import relay
from anchorleg.ir.module import IRModule
from anchorleg.ir.op import Op
from anchorleg.relay.backend import Executor
from anchorleg.relay.op.qnn.quantize import requantise
from anchorleg.relay.transform import InferType, QnnCanonicalize
from anchorleg.runtime import cpu
from anchorleg.runtime.aot_executor import AotModule

qnn = relay.qnn.op
RNG = np.random.default_rng(7)


def f32(v):
    return relay.const(np.float32(v))


def i32(v):
    return relay.const(np.int32(v))


def ints(shape, dtype="int8", low=None, high=None):
    info = np.iinfo(dtype)
    return RNG.integers(info.min if low is None else low, info.max + 1 if high is None else high, shape).astype(dtype)


def run(params, body, values, target="llvm"):
    mod = IRModule.from_expr(relay.Function(params, body))
    module = AotModule(relay.build(mod, target=target, executor=Executor("aot"))["default"](cpu(0)))
    for p, v in zip(params, values):
        module.set_input(p.name_hint, v)
    module.run()
    return module.get_output(0).numpy()


def check(make, arrays, tolerance=0, target="llvm"):
    """Compares the compiled result with the operator's numpy rule."""
    params = [relay.var(f"x{i}", shape=a.shape, dtype=str(a.dtype)) for i, a in enumerate(arrays)]
    body = make(*params)
    mod = InferType()(IRModule.from_expr(relay.Function(params, body)))
    lowered = QnnCanonicalize()(mod)
    assert "qnn." not in str(lowered["main"])
    call = mod["main"].body
    table = dict(zip([id(p) for p in mod["main"].params], arrays))
    args = [table[id(a)] if id(a) in table else a.data.numpy() for a in call.args]
    expected = call.op.get_attr("FNumpy")(call.attrs, args, call.checked_type)
    got = run(params, body, arrays, target)
    assert got.dtype == expected.dtype and got.shape == expected.shape
    if tolerance:
        assert np.abs(got.astype(np.int64) - expected.astype(np.int64)).max() <= tolerance
    else:
        np.testing.assert_array_equal(got, expected)


@pytest.mark.parametrize("target", ["llvm", "c"])
@pytest.mark.parametrize("factor", [0.5, 0.00123, 0.9999, 1.7, 37.25, 1e-12])
def test_requantize_rounds_as_tensorflow_lite(factor, target):
    x = np.concatenate([ints(500, "int32", -(1 << 20), 1 << 20), np.arange(-40, 41, dtype=np.int32)])
    check(lambda v: qnn.requantize(v, f32(factor), i32(3), f32(1.0), i32(-5), rounding="TFLITE", out_dtype="int8"), [x], target=target)


def test_tensorflow_lite_rounding_of_ties():
    """The product's half goes up, the shifted half away from zero: -3 × 0.5 = -1.5 → -2, 3 × 0.5 = 1.5 → 2."""
    got = requantise(np.array([-3, -1, 1, 3], np.int32), np.float32(0.5), np.int32(0), np.float32(1), np.int32(0), "int8", rounding="TFLITE")
    assert got.tolist() == [-1, 0, 1, 2]  # 0.5 is the multiplier 2**30 with shift 0: one rounding, halves up
    got = requantise(np.array([-6, -2, 2, 6], np.int32), np.float32(0.25), np.int32(0), np.float32(1), np.int32(0), "int8", rounding="TFLITE")
    assert got.tolist() == [-2, -1, 1, 2]


@pytest.mark.parametrize("rounding", ["UPWARD", "TONEAREST", "TFLITE"])
def test_requantize_per_channel(rounding):
    scales = relay.const(np.array([0.25, 0.003, 1.5, 0.125], np.float32))
    x = ints((6, 4, 5), "int32", -3000, 3000)
    tolerance = 0 if rounding == "TFLITE" else 1  # the others' definition is in real numbers, the kernel's in fixed point
    check(lambda v: qnn.requantize(v, scales, i32(0), f32(0.7), i32(2), axis=1, rounding=rounding, out_dtype="int8"), [x], tolerance)


def test_quantize_and_dequantize():
    x = RNG.normal(size=(3, 8)).astype(np.float32) * 4
    check(lambda v: qnn.quantize(v, f32(0.05), i32(-3), out_dtype="int8"), [x])
    check(lambda v: qnn.quantize(v, relay.const(np.linspace(0.01, 0.2, 8).astype(np.float32)), i32(0), axis=1, out_dtype="uint8"), [x])
    q = ints((3, 8))
    params = [relay.var("q", shape=q.shape, dtype="int8")]
    got = run(params, qnn.dequantize(params[0], f32(0.05), i32(-3)), [q])
    np.testing.assert_allclose(got, (q.astype(np.float32) + 3) * np.float32(0.05), rtol=1e-6)


@pytest.mark.parametrize("target", ["llvm", "c"])
@pytest.mark.parametrize("layouts,groups", [(("NHWC", "HWIO"), 1), (("NCHW", "OIHW"), 1), (("NHWC", "HWOI"), 4), (("NCHW", "OIHW"), 4)])
def test_conv2d_pads_with_the_zero_point(layouts, groups, target):
    data_layout, kernel_layout = layouts
    data = ints((1, 7, 6, 4) if data_layout == "NHWC" else (1, 4, 7, 6))
    shape = {"HWIO": (3, 3, 4, 8), "OIHW": (8 if groups == 1 else 4, 4 // groups, 3, 3), "HWOI": (3, 3, 4, 1)}[kernel_layout]
    weight = relay.const(ints(shape))
    check(lambda v: qnn.conv2d(v, weight, i32(-7), i32(0), f32(0.1), f32(0.2), kernel_size=(3, 3), channels=8 if groups == 1 else 4, padding=(1, 1, 1, 1),
                               groups=groups, data_layout=data_layout, kernel_layout=kernel_layout, out_dtype="int32"), [data], target=target)


def test_conv2d_with_weight_zero_points():
    weight = relay.const(ints((8, 4, 3, 3), "uint8"))
    check(lambda v: qnn.conv2d(v, weight, i32(128), i32(120), f32(0.1), f32(0.2), kernel_size=(3, 3), channels=8, padding=(1, 1, 1, 1),
                               out_dtype="int32"), [ints((1, 4, 6, 6), "uint8")])


@pytest.mark.parametrize("zero", [0, 5])
def test_dense(zero):
    weight = relay.const(ints((9, 16)))
    check(lambda v: qnn.dense(v, weight, i32(-7), i32(zero), f32(0.1), f32(0.2), units=9, out_dtype="int32"), [ints((3, 16))])


@pytest.mark.parametrize("name", ["tanh", "sigmoid", "exp", "hardswish", "abs"])
@pytest.mark.parametrize("dtype", ["int8", "uint8"])
def test_functions_are_tables(name, dtype):
    x = np.arange(np.iinfo(dtype).min, np.iinfo(dtype).max + 1).astype(dtype).reshape(16, 16)
    check(lambda v: getattr(qnn, name)(v, f32(0.03), i32(2), f32(0.01), i32(-4 if dtype == "int8" else 100)), [x])


@pytest.mark.parametrize("name", ["add", "subtract", "mul"])
def test_binary(name):
    fn = getattr(qnn, name)
    check(lambda a, b: fn(a, b, f32(0.1), i32(3), f32(0.07), i32(-9), f32(0.15), i32(1)), [ints((4, 9)), ints((4, 9))], tolerance=1)


def test_softmax():
    check(lambda v: qnn.softmax(v, f32(0.1), i32(0), f32(1 / 256), i32(-128)), [ints((4, 10))], tolerance=1)


def test_every_quantised_operator_has_a_rule():
    from anchorleg.relay.op.qnn.canonicalize import RULES

    known = [n for n in Op.list_op_names() if n.startswith("qnn.")]
    assert set(known) - set(RULES) == {"qnn.simulated_quantize", "qnn.simulated_dequantize", "qnn.contrib_dense_pack"}
