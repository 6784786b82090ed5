"""Operators of neural networks whose widths or factors are inputs, and sizes that aren't held in integers."""
import numpy as np
import pytest

from anchorleg import IRModule, relay
from anchorleg.relay.transform import DynamicToStatic, InferType
from anchorleg.support.errors import TypeMismatchError

RNG = np.random.default_rng(5)


def run(func, *args, kind="vm"):
    return relay.create_executor(kind, mod=IRModule.from_expr(func)).evaluate()(*args)


def static(expr):
    return DynamicToStatic()(InferType()(IRModule.from_expr(expr)))["main"].body


@pytest.mark.parametrize("kind", ["vm", "debug"])
@pytest.mark.parametrize("mode", ["constant", "edge"])
def test_pad_by_widths_that_are_an_input(kind, mode):
    x, widths = relay.var("x", shape=(2, 3)), relay.var("w", shape=(2, 2), dtype="int64")
    func = relay.Function([x, widths], relay.nn.pad(x, widths, 2.5, mode))
    data, given = RNG.random((2, 3), np.float32), np.array([[1, 0], [0, 2]])
    wanted = np.pad(data, given, mode, **({"constant_values": 2.5} if mode == "constant" else {}))
    assert np.array_equal(run(func, data, given, kind=kind).numpy(), wanted)


def test_pad_refuses_widths_of_another_rank():
    x, widths = relay.var("x", shape=(2, 3)), relay.var("w", shape=(3, 2), dtype="int64")
    with pytest.raises(TypeMismatchError, match="pad_width must have shape"):
        InferType()(IRModule.from_expr(relay.nn.pad(x, widths)))


@pytest.mark.parametrize("layout, shape", [("NCHW", (1, 2, 3, 4)), ("NHWC", (1, 3, 4, 2))])
def test_upsampling_by_factors_that_are_inputs(layout, shape):
    x, h, w = relay.var("x", shape=shape), relay.var("h", shape=()), relay.var("w", shape=())
    func = relay.Function([x, h, w], relay.nn.upsampling(x, h, w, layout=layout))
    data, axis = RNG.random(shape, np.float32), layout.index("H")
    found = run(func, data, np.float32(2), np.float32(3)).numpy()
    assert np.array_equal(found, data.repeat(2, axis).repeat(3, axis + 1))


def test_upsampling3d_by_factors_that_are_inputs():
    x, d = relay.var("x", shape=(1, 1, 2, 2, 2)), relay.var("d", shape=())
    func = relay.Function([x, d], relay.nn.upsampling3d(x, d, 1.0, 2.0, coordinate_transformation_mode="asymmetric"))
    data = RNG.random((1, 1, 2, 2, 2), np.float32)
    assert np.array_equal(run(func, data, np.float32(3)).numpy(), data.repeat(3, 2).repeat(2, 4))


def test_known_factors_give_the_static_operator():
    x = relay.var("x", shape=(1, 1, 2, 2, 2))
    call = relay.Call(relay.op.get("dyn.nn.upsampling3d"), [x, *(relay.const(s) for s in (2.0, 1.0, 3.0))],
                      relay.nn.upsampling3d(x, relay.var("d", shape=())).attrs)
    found = static(call)
    assert found.op.name == "nn.upsampling3d" and (found.attrs.scale_d, found.attrs.scale_w) == (2.0, 3.0)


@pytest.mark.parametrize("kind", ["vm", "debug"])
def test_counts_may_be_floats(kind):
    x, n = relay.var("x", shape=(2, 3)), relay.var("n", shape=(1,))
    data, two = np.array([[1, 3, 2], [6, 4, 5]], np.float32), np.array([2], np.float32)
    assert np.array_equal(run(relay.Function([x, n], relay.topk(x, n, ret_type="values")), data, two, kind=kind).numpy(), [[3, 2], [6, 5]])
    assert np.array_equal(run(relay.Function([x, n], relay.tile(x, n)), data, two, kind=kind).numpy(), np.tile(data, 2))


@pytest.mark.parametrize("kind", ["vm", "debug", "graph"])
def test_the_default_of_sparse_values_may_have_another_dtype(kind):
    at, values = relay.var("at", shape=(2,), dtype="int64"), relay.var("v", shape=(2,), dtype="float64")
    func = relay.Function([at, values], relay.sparse_to_dense(at, (4,), values, 7))
    found = run(func, np.array([3, 1]), np.array([1.5, 2.5]), kind=kind).numpy()
    assert found.dtype == np.float64 and np.array_equal(found, [7, 2.5, 7, 1.5])


def test_conv1d_transpose_takes_its_output_padding_twice_over():
    x, w = relay.var("x", shape=(relay.Any(), 2, 5)), relay.var("w", shape=(2, 3, 3))
    once, twice = (relay.nn.conv1d_transpose(x, w, 2, 1, kernel_size=3, output_padding=p) for p in (1, (1, 1)))
    assert once.attrs.output_padding == twice.attrs.output_padding
    data, kernel = RNG.random((2, 2, 5), np.float32), RNG.random((2, 3, 3), np.float32)
    assert run(relay.Function([x, w], twice), data, kernel).shape == (2, 3, 10)
    with pytest.raises(ValueError, match="the same one twice"):
        relay.nn.conv1d_transpose(x, w, output_padding=(1, 2), kernel_size=3)
