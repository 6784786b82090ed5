"""Kinds of faults in the executors: nesting, aliases, sharing, size."""
from __future__ import annotations

import numpy as np
import pytest

import anchorleg as al
from anchorleg import relay
from anchorleg.contrib import graph_executor
from anchorleg.ir import IRModule
from anchorleg.ir.transform import get_pass

from .running import built, everywhere, function, interpreted, plain


@pytest.mark.parametrize("kind", ["debug", "graph"])
def test_nested_results_come_back_nested(kind):
    x, y, z, w = (relay.var(n, shape=(2, 3)) for n in "xyzw")
    func = relay.Function([x, y, z, w], relay.Tuple([x, relay.Tuple([y, relay.Tuple([z, w])])]))
    data = [np.full((2, 3), i, "float32") for i in range(4)]
    got = plain(relay.create_executor(kind, mod=IRModule.from_expr(func), target="llvm").evaluate()(*data))
    assert len(got) == 2 and len(got[1]) == 2 and len(got[1][1]) == 2
    for want, have in zip(data, (got[0], got[1][0], *got[1][1])):
        np.testing.assert_array_equal(have, want)
    assert [o[0, 0] for o in built(func, *data)] == [0, 1, 2, 3], "the module gives them flat, in order"


def test_a_tuple_inside_a_tuple_is_planned():
    x = relay.var("x", shape=(4,))
    func = function(relay.Tuple([x + relay.const(1.0), relay.Tuple([relay.Tuple([x + relay.const(2.0), x + relay.const(3.0)]), x + relay.const(4.0)])]))
    assert [o[0] for o in built(func, np.zeros(4, "float32"))] == [1, 2, 3, 4]


def test_reshapes_that_share_storage_follow_a_redirected_input():
    x0, x1 = relay.var("x0", shape=(56, 224)), relay.var("x1", shape=(112, 112))
    body = relay.reshape(relay.nn.matmul(relay.reshape(x0, (112, 112)), x1), (-1,))
    lib = relay.build(IRModule.from_expr(function(body, x0, x1)), "llvm")
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(56, 224)).astype("float32"), rng.normal(size=(112, 112)).astype("float32")
    copied = graph_executor.GraphModule(lib["default"](al.cpu()))
    copied.run(x0=a, x1=b)
    direct = graph_executor.GraphModule(lib["default"](al.cpu()))
    out = al.nd.empty((12544,))
    direct.set_input_zero_copy("x0", al.nd.array(a))
    direct.set_input_zero_copy("x1", al.nd.array(b))
    direct.set_output_zero_copy(0, out)
    direct.run()
    np.testing.assert_array_equal(out.numpy(), copied.get_output(0).numpy())
    np.testing.assert_allclose(out.numpy(), (a.reshape(112, 112) @ b).ravel(), rtol=1e-4, atol=1e-4)


def test_concatenating_one_tensor_copies_it():
    x = relay.var("x", shape=(2, 1), dtype="int64")
    everywhere(function(relay.concatenate([x], axis=1)), np.array([[33], [13]], "int64"), wanted=np.array([[33], [13]], "int64"))


@pytest.mark.parametrize("axis, keepdims, exclude", [((0, 2), False, False), (None, True, False), ((1,), True, True), ((-1,), False, False)])
def test_sum_of_booleans_is_or(axis, keepdims, exclude):
    data = np.random.default_rng(0).random((3, 5, 7, 9)) > 0.97
    x = relay.var("x", shape=data.shape, dtype="bool")
    axes = tuple(a for a in range(4) if a not in [i % 4 for i in axis]) if exclude else axis
    everywhere(function(relay.sum(x, axis=axis, keepdims=keepdims, exclude=exclude)), data,
               wanted=np.any(data, axis=axes, keepdims=keepdims), levels=(0, 3))


def test_the_last_window_of_a_pool_ends_with_the_padded_data():
    x = relay.var("x", shape=(1, 1, 1, 9))
    call = relay.nn.avg_pool2d(x, pool_size=(1, 2), strides=(1, 2), ceil_mode=True, count_include_pad=True)
    everywhere(function(call), np.arange(1, 10, dtype="float32").reshape(1, 1, 1, 9),
               wanted=np.array([1.5, 3.5, 5.5, 7.5, 9], "float32").reshape(1, 1, 1, 5), levels=(0, 3))


def test_softmax_fuses_with_what_follows():
    x, w = relay.var("x", shape=(3, 3, 10, 1)), relay.var("w", shape=(3, 3, 1, 1))
    y = relay.nn.conv2d(x, w, kernel_size=(1, 1))
    s = relay.nn.softmax(y, axis=2)
    rng = np.random.default_rng(0)
    a, b = np.ones((3, 3, 10, 1), "float32"), rng.normal(size=(3, 3, 1, 1)).astype("float32")
    conv = np.einsum("nchw,oc->nohw", a, b[:, :, 0, 0])
    soft = np.exp(conv - conv.max(2, keepdims=True))
    soft /= soft.sum(2, keepdims=True)
    everywhere(function(s + relay.const(1.0), x, w), a, b, wanted=(soft + 1).astype("float32"))
    everywhere(function((y - relay.floor(x)) + (s - relay.floor(x)), x, w), a, b, wanted=(conv + soft - 2).astype("float32"))


@pytest.mark.parametrize("op, dtype, ones", [(relay.left_shift, "int64", 1), (relay.right_shift, "uint64", 2**40)])
def test_shifts_by_more_than_the_width_are_as_numpys(op, dtype, ones):
    counts = np.array([0, 1, 5, 39, 63, 64, 65, 500, 981], dtype)
    x = relay.var("x", shape=(9,), dtype=dtype)
    data = np.full(9, ones, dtype)
    numpy_op = np.left_shift if op is relay.left_shift else np.right_shift
    everywhere(function(op(x, relay.const(counts, dtype))), data, wanted=numpy_op(data, counts), levels=(0, 3))


def test_a_layout_with_blocks_of_another_size():
    x = relay.var("x", shape=(2, 5, 2, 2, 4))
    data = np.arange(2 * 5 * 2 * 2 * 4, dtype="float32").reshape(2, 5, 2, 2, 4)
    wanted = data.transpose(0, 1, 4, 2, 3).reshape(2, 20, 2, 2).reshape(2, 10, 2, 2, 2).transpose(0, 1, 3, 4, 2)
    everywhere(function(relay.layout_transform(x, "NCHW4c", "NCHW2c")), data, wanted=wanted, levels=(0, 3))


def test_a_slice_with_a_step_of_packed_channels():
    x, w, b = relay.var("x", shape=(4, 12, 1, 1)), relay.const(np.ones((9, 12, 1, 1), "float32")), relay.const(np.arange(9, dtype="float32"))
    y = relay.nn.bias_add(relay.nn.conv2d(x, w, kernel_size=(1, 1), channels=9), b)
    data = np.random.default_rng(0).normal(size=(4, 12, 1, 1)).astype("float32")
    full = data.sum(1, keepdims=True) + np.arange(9, dtype="float32").reshape(1, 9, 1, 1)
    everywhere(function(relay.strided_slice(y, begin=[3], end=[6], strides=[3], axes=[1])), data, wanted=full[:, 3:6:3].astype("float32"),
               rtol=1e-4)


@pytest.mark.parametrize("channels", [1, 8])
def test_reduction_over_packed_channels(channels):
    x, w = relay.var("x", shape=(1, 3, 48, 48)), relay.var("w", shape=(channels, 3, 1, 1))
    y = relay.nn.conv2d(x, w, strides=(47, 47), channels=channels, kernel_size=(1, 1))
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(1, 3, 48, 48)).astype("float32"), rng.normal(size=(channels, 3, 1, 1)).astype("float32")
    conv = np.einsum("nchw,oc->nohw", a[:, :, ::47, ::47], b[:, :, 0, 0])
    for level in range(5):
        assert (built(function(relay.argmin(y, axis=1), x, w), a, b, level=level)[0] == conv.argmin(1)).all()


def test_a_constant_of_one_element_broadcasts_in_any_layout():
    x, w, b = relay.var("x", shape=(1, 7, 7, 64)), relay.var("w", shape=(3, 3, 64, 64)), relay.var("b", shape=(64,))
    y = relay.nn.conv2d(x, w, padding=(1, 1), channels=64, kernel_size=(3, 3), data_layout="NHWC", kernel_layout="HWIO")
    func = function(relay.nn.relu(y + b) * relay.const(np.array([0.1], "float32")), x, w, b)
    rng = np.random.default_rng(0)
    args = [rng.normal(size=s).astype("float32") for s in ((1, 7, 7, 64), (3, 3, 64, 64), (64,))]
    np.testing.assert_allclose(built(func, *args, level=3)[0], built(func, *args, level=2)[0], rtol=1e-3, atol=1e-4)


def test_a_shared_graph_takes_time_by_its_nodes():
    y = x = relay.var("x", shape=())
    for _ in range(30):
        y = y + y
    func = function(y, x)
    assert interpreted(func, np.float32(1)) == 2.0**30
    mod = get_pass("InferType")(IRModule.from_expr(func))
    assert interpreted(relay.transform.ToANormalForm()(mod)["main"], np.float32(1)) == 2.0**30


def test_long_programs_at_the_default_recursion_limit():
    x = relay.var("x", shape=())
    y = x
    for _ in range(5000):
        y = y + x
    assert interpreted(function(y, x), np.float32(1)) == 5001
    value = x
    variables = [relay.var(f"v{i}") for i in range(10000)]
    body = variables[-1]
    for i in reversed(range(10000)):
        body = relay.Let(variables[i], (variables[i - 1] if i else value) + x, body)
    func = function(body, x)
    assert interpreted(func, np.float32(1)) == 10001
    mod = get_pass("InferType")(IRModule.from_expr(func))
    assert mod.astext().count("let") == 10000
