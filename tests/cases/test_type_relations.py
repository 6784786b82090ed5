"""Kinds of faults in type relations: what has to be accepted, what refused."""
from __future__ import annotations

import numpy as np
import pytest

from anchorleg import relay
from anchorleg.ir import IRModule
from anchorleg.ir.transform import get_pass
from anchorleg.support.errors import AnchorlegError

from .running import built, everywhere, function, infer


def test_a_reshape_keeps_the_number_of_elements():
    with pytest.raises(AnchorlegError, match="6.*7|7.*6"):
        infer(relay.reshape(relay.var("x", shape=(2, 3)), (7,)))


@pytest.mark.parametrize("axis", [0, -1, -3, 1])
def test_a_bias_needs_an_axis_that_exists(axis):
    with pytest.raises(AnchorlegError):
        infer(relay.nn.bias_add(relay.const(1.0), relay.const(2.0), axis=axis))


@pytest.mark.parametrize("x, w, groups, out", [((1, 4, 8, 8, 8), (2, 2, 1, 1, 1), 2, (1, 2, 8, 8, 8)),
                                               ((1, 16, 20, 20, 20), (4, 4, 1, 1, 1), 4, (1, 4, 20, 20, 20))])
def test_as_many_groups_as_output_channels_is_not_depthwise(x, w, groups, out):
    call = relay.nn.conv3d(relay.var("x", shape=x), relay.var("w", shape=w), kernel_size=(1, 1, 1), channels=groups, groups=groups)
    assert infer(call).concrete_shape == out


def test_transposed_convolutions_take_weights_input_channels_first():
    call = relay.nn.conv3d_transpose(relay.var("x", shape=(1, 10, 5, 5, 5)), relay.var("w", shape=(10, 12, 3, 3, 3)), kernel_size=(3, 3, 3),
                                     channels=12)
    assert infer(call).concrete_shape[:2] == (1, 12)
    call = relay.nn.conv1d_transpose(relay.var("x", shape=(1, 3, 5)), relay.var("w", shape=(3, 4, 3)), kernel_size=(3,), channels=4)
    assert infer(call).concrete_shape[:2] == (1, 4)


def test_scatter_compares_updates_with_the_rest_of_the_data():
    data, indices = relay.const(np.zeros((1, 1, 10), "float32")), relay.const(np.zeros((2, 1, 1, 1), "int64"))
    updates = relay.const(np.ones((1, 1, 1, 10), "float32"))
    mod = get_pass("InferType")(IRModule.from_expr(relay.Function([], relay.scatter_nd(data, indices, updates, "update"))))
    folded = get_pass("FoldConstant")(mod)["main"].body
    np.testing.assert_array_equal(folded.data.numpy()[0, 0], np.ones(10))


def test_unknown_input_channels_fit_groups():
    data = relay.var("x", shape=(relay.Any(), relay.Any(), relay.Any(), relay.Any()))
    weight = relay.const(np.full((16, 16, 3, 3), 0.25, "float32"))
    assert infer(relay.nn.conv2d(data, weight, kernel_size=(3, 3), channels=16, groups=2)).dims[1] == 16
    known = relay.var("x", shape=(1, 32, 9, 9))
    assert infer(relay.nn.conv2d(known, weight, kernel_size=(3, 3), channels=16, groups=2)).concrete_shape == (1, 16, 7, 7)
    with pytest.raises(AnchorlegError):
        infer(relay.nn.conv2d(relay.var("x", shape=(1, 16, 9, 9)), weight, kernel_size=(3, 3), channels=16, groups=2))


def test_squeezing_no_axis_and_all_axes():
    x = relay.var("x", shape=(1, 3, 1))
    data = np.arange(3, dtype="float32").reshape(1, 3, 1)
    for axis, shape in (([], (1, 3, 1)), (2, (1, 3)), (None, (3,)), ([-1], (1, 3))):
        assert infer(relay.squeeze(x, axis=axis)).concrete_shape == shape
        assert built(function(relay.exp(relay.squeeze(x, axis=axis))), data)[0].shape == shape
    biased = relay.squeeze(relay.nn.bias_add(relay.var("y", shape=(1, 4)), relay.var("b", shape=(4,))), axis=[])
    assert built(function(biased), np.ones((1, 4), "float32"), np.ones(4, "float32"))[0].shape == (1, 4)


def test_a_slice_without_bounds_is_everything():
    mod = relay.parse('#[version = "0.0.5"]\ndef @main(%x: Tensor[(4), float32]) { strided_slice(%x, begin=[], end=[], strides=[], axes=[]) }')
    assert mod["main"].checked_type.ret_type == relay.TensorType((4,), "float32")
    np.testing.assert_array_equal(built(mod, np.arange(4, dtype="float32"))[0], np.arange(4))


@pytest.mark.parametrize("dtype", ["int32", "int64"])
@pytest.mark.parametrize("reduce", [relay.argmax, relay.argmin])
def test_shapes_of_either_integer_type_give_one_index_type(dtype, reduce):
    x = relay.var("x", shape=(2, 1), dtype="float64")
    wide = relay.broadcast_to(x, relay.const(np.array([2, 1]), dtype))
    func = function(relay.Tuple([wide, reduce(wide, axis=[0])]), x)
    values, index = built(func, np.array([[1.0], [3.0]]))
    np.testing.assert_array_equal(values, [[1.0], [3.0]])
    assert index.tolist() == ([1] if reduce is relay.argmax else [0])
    assert index.dtype == infer(func.body).fields[1].dtype


def test_a_shape_of_long_integers_in_a_layout():
    x, w, b = relay.var("x", shape=(2, 3, 48, 48)), relay.var("w", shape=(1, 3, 1, 1)), relay.var("b", shape=(1,))
    t = relay.nn.bias_add(relay.nn.conv2d(x, w, strides=[47, 47], channels=1, kernel_size=[1, 1]), b)
    func = function(relay.add(t, relay.broadcast_to(t, relay.const([2, 1, 2, 2], "int64"))), x, w, b)
    rng = np.random.default_rng(0)
    args = [rng.normal(size=s).astype("float32") for s in ((2, 3, 48, 48), (1, 3, 1, 1), (1,))]
    np.testing.assert_allclose(built(func, *args, level=3)[0], built(func, *args, level=0)[0], rtol=1e-5, atol=1e-6)


def test_functions_without_annotations_in_any_order():
    x1, x2 = relay.var("x1", shape=(), dtype="float64"), relay.var("x2")
    mod = IRModule()
    mod["F1"] = relay.Function([x1], x1)
    mod["main"] = relay.Function([x2], mod.get_global_var("F1")(x2))
    typed = get_pass("InferType")(mod)
    scalar = relay.TensorType((), "float64")
    assert typed["main"].checked_type == typed["F1"].checked_type == relay.FuncType([scalar], scalar)
    assert built(mod, np.float64(2.5))[0] == 2.5


def test_vectors_are_refused_where_matrices_are_wanted():
    with pytest.raises(AnchorlegError):
        infer(relay.nn.matmul(relay.var("x", shape=(1, 3)), relay.var("y", shape=(3,))))


def test_quantised_scales_of_one_element_are_no_axis():
    data = np.array([0, 1, 2, 3, 4, 251, 252, 253, 254, 255], "uint8")
    x = relay.var("x", shape=(10,), dtype="uint8")
    call = relay.qnn.op.dequantize(x, relay.const(np.array([0.5], "float32")), relay.const(np.array([127], "int32")), axis=-1)
    everywhere(function(call), data, wanted=np.array([-63.5, -63, -62.5, -62, -61.5, 62, 62.5, 63, 63.5, 64], "float32"), levels=(2, 3))
