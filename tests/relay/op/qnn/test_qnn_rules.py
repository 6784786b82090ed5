"""Quantised operators' numpy rules against ONNX Runtime and the definition in real numbers."""
from __future__ import annotations

import numpy as np
import pytest

from anchorleg import relay
from anchorleg.ir.module import IRModule
from anchorleg.relay import qnn
from anchorleg.relay.op.registry import evaluate
from anchorleg.support.errors import AnchorlegError

f32 = lambda *v: np.array(v if len(v) > 1 else v[0], "float32")
i32 = lambda *v: np.array(v if len(v) > 1 else v[0], "int32")


def run(build, *arrays):
    params = [relay.var(f"a{i}", shape=a.shape, dtype=str(a.dtype)) for i, a in enumerate(arrays)]
    func = relay.transform.InferType()(IRModule.from_expr(relay.Function(params, build(*params))))["main"]
    call = func.body
    table = dict(zip(func.params, arrays))
    args = [tuple(table[f] for f in a.fields) if isinstance(a, relay.Tuple) else table[a] for a in call.args]
    return evaluate(call.op, call.attrs, args, call.checked_type)


def real(q, scale, zero):
    return (q.astype("float64") - zero) * scale


def test_quantize_clips_before_it_converts():
    x = f32(1e10, -1e10, 0.5, -0.5, 1.49)
    assert run(lambda *a: qnn.op.quantize(*a, out_dtype="uint8"), x, f32(1.0), i32(0)).tolist() == [255, 0, 1, 0, 1]
    assert run(lambda *a: qnn.op.quantize(*a), x, f32(1.0), i32(0)).tolist() == [127, -128, 1, -1, 1]


def test_quantize_per_channel():
    x = np.arange(12, dtype="float32").reshape(3, 4)
    got = run(lambda *a: qnn.op.quantize(*a, axis=0), x, f32(1.0, 2.0, 4.0), i32(0, 1, 2))
    assert got.tolist() == [[0, 1, 2, 3], [3, 4, 4, 5], [4, 4, 5, 5]]


def test_dequantize_with_parameters_of_one_element():
    q = np.array([0, 1, 2, 3, 4, 251, 252, 253, 254, 255], "uint8")
    got = run(lambda *a: qnn.op.dequantize(*a), q, np.array([0.5], "float32"), np.array([127], "int32"))
    assert got.tolist() == [-63.5, -63, -62.5, -62, -61.5, 62, 62.5, 63, 63.5, 64]


@pytest.mark.parametrize("rounding, want", [("UPWARD", [-1, 2, -2, 3]), ("TONEAREST", [-2, 2, -3, 3])])
def test_requantize_rounds_halves(rounding, want):
    q = np.array([-3, 3, -5, 5], "int32")
    assert run(lambda *a: qnn.op.requantize(*a, rounding=rounding), q, f32(0.5), i32(0), f32(1.0), i32(0)).tolist() == want


def test_requantize_per_channel_and_saturation():
    q = np.array([[100, -100], [1000, -1000]], "int32")
    got = run(lambda *a: qnn.op.requantize(*a, axis=1, out_dtype="uint8"), q, f32(1.0, 0.5), i32(0, 0), f32(2.0), i32(10))
    assert got.tolist() == [[60, 0], [255, 0]]


@pytest.mark.parametrize("op, fn", [(qnn.op.add, np.add), (qnn.op.subtract, np.subtract), (qnn.op.mul, np.multiply)])
def test_binary_within_one_step(op, fn):
    gen = np.random.default_rng(0)
    a, b = (gen.integers(0, 256, (4, 5)).astype("uint8") for _ in range(2))
    got = run(lambda *x: op(*x), a, b, f32(0.02), i32(120), f32(0.03), i32(100), f32(0.05), i32(128))
    want = np.clip(np.round(fn(real(a, 0.02, 120), real(b, 0.03, 100)) / 0.05) + 128, 0, 255)
    assert np.abs(got.astype(int) - want).max() <= 1


@pytest.mark.parametrize("name, fn", [("tanh", np.tanh), ("sigmoid", lambda x: 1 / (1 + np.exp(-x))), ("exp", np.exp), ("abs", np.abs)])
def test_unary(name, fn):
    q = np.arange(-128, 128).astype("int8")
    got = run(lambda *x: getattr(qnn.op, name)(*x), q, f32(0.02), i32(3), f32(0.03), i32(-5))
    want = np.clip(np.round(fn(real(q, np.float64(np.float32(0.02)), 3)) / np.float64(np.float32(0.03))) - 5, -128, 127)
    assert np.abs(got - want).max() <= 1


def test_conv2d_is_exact():
    gen = np.random.default_rng(1)
    x, w = gen.integers(0, 256, (1, 3, 6, 6)).astype("uint8"), gen.integers(-128, 128, (4, 3, 3, 3)).astype("int8")
    scales, zeros = np.array([0.1, 0.2, 0.3, 0.4], "float32"), i32(1, -2, 3, 0)
    got = run(lambda a, b, c, d, e, f: qnn.op.conv2d(a, b, c, d, e, f, (3, 3), 4, padding=1), x, w, i32(7), zeros, f32(0.1), scales)
    xs, ws = np.pad(x.astype(int) - 7, ((0, 0), (0, 0), (1, 1), (1, 1))), w.astype(int) - zeros.reshape(4, 1, 1, 1)
    want = sum(np.einsum("nchw,oc->nohw", xs[:, :, i:i + 6, j:j + 6], ws[:, :, i, j]) for i in range(3) for j in range(3))
    assert np.array_equal(got, want)


def test_dense_and_batch_matmul_are_exact():
    gen = np.random.default_rng(2)
    x, w = gen.integers(0, 256, (3, 10)).astype("uint8"), gen.integers(-128, 128, (4, 10)).astype("int8")
    got = run(lambda *a: qnn.op.dense(*a, units=4), x, w, i32(9), i32(-3), f32(0.1), f32(0.2))
    assert np.array_equal(got, (x.astype(int) - 9) @ (w.astype(int) + 3).T)
    got = run(lambda *a: qnn.op.batch_matmul(*a), x[None], w[None], i32(9), i32(-3), f32(0.1), f32(0.2))
    assert np.array_equal(got[0], (x.astype(int) - 9) @ (w.astype(int) + 3).T)


def test_avg_pool_rescales_before_it_rounds():
    q = np.arange(9, dtype="int8").reshape(1, 3, 3, 1)
    got = run(lambda *a: qnn.op.avg_pool2d(*a, pool_size=(3, 3), strides=(1, 1), padding=(0, 0), dilation=(1, 1)), q, f32(2.0), i32(-12), f32(0.5), i32(10))
    want = real(q, 2.0, -12).mean() / 0.5 + 10
    assert abs(int(got.reshape(())) - want) <= 1


def test_concatenate_brings_parts_to_one_scale():
    a, b = np.array([[10, 20]], "uint8"), np.array([[30, 40]], "uint8")
    params = [relay.var(n, shape=v.shape, dtype=str(v.dtype)) for n, v in
              zip("abstuvwz", (a, b, f32(1.0), f32(2.0), i32(0), i32(10), f32(1.0), i32(5)))]
    p = params
    body = qnn.op.concatenate([p[0], p[1]], [p[2], p[3]], [p[4], p[5]], p[6], p[7], 1)
    call = relay.transform.InferType()(IRModule.from_expr(relay.Function(params, body)))["main"].body
    got = evaluate(call.op, call.attrs, [(a, b), (f32(1.0), f32(2.0)), (i32(0), i32(10)), f32(1.0), i32(5)], call.checked_type)
    assert got.tolist() == [[15, 25, 45, 65]]


@pytest.mark.parametrize("build, arrays, says", [
    (lambda *a: qnn.op.quantize(*a), [np.zeros((2, 2), "int8"), f32(1.0), i32(0)], "float32"),
    (lambda *a: qnn.op.quantize(*a, axis=5), [np.zeros((2, 2), "float32"), f32(1.0, 2.0), i32(0)], "out of range"),
    (lambda *a: qnn.op.dequantize(*a), [np.zeros((2, 3), "int8"), f32(1.0, 2.0), i32(0)], "vector of 3"),
    (lambda *a: qnn.op.requantize(*a), [np.zeros(2, "int32"), f32(1.0), i32(0), f32(1.0, 2.0), i32(0)], "one value"),
])
def test_refused(build, arrays, says):
    with pytest.raises(AnchorlegError, match=says):
        run(build, *arrays)
