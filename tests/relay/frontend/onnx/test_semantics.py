"""Rules of the specification that are easy to get wrong, each with the result it must have."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import helper

from anchorleg.relay.frontend import from_onnx

from .models import assert_same, model, ours, single


def f(*shape: int) -> np.ndarray:
    return np.random.default_rng(1).standard_normal(shape).astype(np.float32)


def run(op: str, *inputs: Any, **options: Any) -> np.ndarray:
    return ours(*single(op, inputs, **options))[0]


def test_sum_of_one_input_five_times() -> None:
    x = f(2, 3, 1, 3)
    node = helper.make_node("Sum", ["x"] * 5, ["y"])
    np.testing.assert_allclose(ours(model([node], {"x": x}, ["y"]), {"x": x})[0], 5 * x, rtol=1e-6)


def test_nearest_resize_rounds_halves_down_in_the_data() -> None:
    x = np.arange(9, dtype=np.float32).reshape(1, 1, 3, 3)
    y = run("Resize", x, None, np.array([1, 1, 1.5, 1.5], np.float32), opset=13, fixed=[2], mode="nearest", nearest_mode="round_prefer_floor",
            coordinate_transformation_mode="half_pixel")
    np.testing.assert_array_equal(y[0, 0], [[0, 0, 1, 2], [0, 0, 1, 2], [3, 3, 4, 5], [6, 6, 7, 8]])


def test_flatten_of_a_vector() -> None:
    assert run("Flatten", f(1), axis=1).shape == (1, 1)
    assert run("Flatten", f(1, 3, 4, 4), axis=1).shape == (1, 48)


def test_expand_to_a_lower_rank() -> None:
    assert run("Expand", f(1, 1), np.array([3]), fixed=[1]).shape == (1, 3)


@pytest.mark.parametrize("a, b", [((3,), (3, 4)), ((1, 3), (3,)), ((3,), (3,)), ((4, 2, 16, 8), (1, 2, 8, 16)), ((2, 3, 4), (4,)),
                                  ((3,), (2, 3, 4))])
def test_matmul_follows_numpy(a: tuple[int, ...], b: tuple[int, ...]) -> None:
    x, y = f(*a), f(*b)
    got = run("MatMul", x, y)
    assert got.shape == np.matmul(x, y).shape
    np.testing.assert_allclose(got, np.matmul(x, y), rtol=1e-4, atol=1e-5)


def test_grouped_conv_transpose() -> None:
    a, b = f(1, 2, 1, 1), f(2, 1, 1, 1)
    np.testing.assert_allclose(run("ConvTranspose", a, b, group=2), a * b.reshape(1, 2, 1, 1), rtol=1e-6)
    y = run("ConvTranspose", f(1, 10, 3, 3), f(10, 1, 3, 3), group=10, strides=[3, 2], pads=[1, 2, 1, 2])
    assert y.shape == (1, 10, 7, 3)


@pytest.mark.parametrize("rank", [1, 2, 3])
def test_conv_transpose_without_strides(rank: int) -> None:
    y = run("ConvTranspose", f(1, 1, *[5] * rank), f(1, 1, *[3] * rank), pads=[1] * 2 * rank)
    assert y.shape == (1, 1, *[5] * rank)


def test_pad_value_under_the_empty_name() -> None:
    x = f(1, 2, 7, 6)
    y = run("Pad", x, np.array([0, 0, 0, 2, 0, 0, 0, 0]), None, opset=13, fixed=[1])
    np.testing.assert_array_equal(y, np.pad(x, [(0, 0), (0, 0), (0, 0), (2, 0)]))


def test_one_shape_constant_for_two_reshapes() -> None:
    x, shape = f(4, 3, 3, 4), np.array([6, 2, 4, 3])
    nodes = [helper.make_node("Reshape", ["x", "s"], ["a"]), helper.make_node("Reshape", ["x", "s"], ["b"]), helper.make_node("Add", ["a", "b"], ["y"])]
    y = ours(model(nodes, {"x": x}, ["y"], constants={"s": shape}), {"x": x})[0]
    np.testing.assert_array_equal(y, 2 * x.reshape(6, 2, 4, 3))


def test_lp_pool_without_strides() -> None:
    x = f(1, 3, 8, 8)
    y = run("LpPool", x, kernel_shape=[2, 2], p=4, auto_pad="SAME_LOWER")
    padded = np.pad(np.abs(x) ** 4, [(0, 0), (0, 0), (1, 0), (1, 0)])
    want = (padded[..., 1:, 1:] + padded[..., :-1, 1:] + padded[..., 1:, :-1] + padded[..., :-1, :-1]) ** 0.25
    np.testing.assert_allclose(y, want, rtol=1e-5)


def test_mod_signs() -> None:
    a, b = np.array([-7, 7, 5], np.int32), np.array([3, -3, 3], np.int32)
    np.testing.assert_array_equal(run("Mod", a, b), [2, -2, 2])
    np.testing.assert_array_equal(run("Mod", a, b, fmod=1), [-1, 1, 2])
    np.testing.assert_array_equal(run("Mod", f(1, 1, 4), f(1, 3, 4), fmod=1), np.fmod(f(1, 1, 4), f(1, 3, 4)))


def _softmax(x: np.ndarray, axes: tuple[int, ...]) -> np.ndarray:
    e = np.exp(x - x.max(axes, keepdims=True))
    return e / e.sum(axes, keepdims=True)


@pytest.mark.parametrize("opset, attributes, axes", [(11, {}, (1, 2)), (11, {"axis": 1}, (1, 2)), (11, {"axis": 2}, (2,)), (13, {}, (2,)),
                                                     (13, {"axis": 1}, (1,))])
def test_softmax_axes_by_version(opset: int, attributes: dict[str, int], axes: tuple[int, ...]) -> None:
    x = f(2, 3, 4)
    np.testing.assert_allclose(run("Softmax", x, opset=opset, **attributes), _softmax(x, axes), rtol=1e-5)
    np.testing.assert_allclose(run("LogSoftmax", x, opset=opset, **attributes), np.log(_softmax(x, axes)), rtol=1e-4)


def test_hardmax_marks_one_element_per_row() -> None:
    assert run("Hardmax", f(2, 3, 4), opset=11).sum() == 2
    assert run("Hardmax", f(2, 3, 4), opset=13).sum() == 6


def test_old_broadcasting_places_the_operand_at_an_axis() -> None:
    x, b = f(2, 3, 4, 5), f(3, 4)
    np.testing.assert_array_equal(run("Add", x, b, opset=6, broadcast=1, axis=1), x + b.reshape(1, 3, 4, 1))
    slope = f(3)
    np.testing.assert_array_equal(run("PRelu", x, slope, opset=6), np.where(x < 0, x * slope.reshape(1, 3, 1, 1), x))


def test_batch_norm_without_spatial_means_one_statistic_per_element() -> None:
    x, p = f(2, 3, 4), np.abs(f(3, 4)) + 0.1
    y = run("BatchNormalization", x, p, p, p, p, opset=7, spatial=0, epsilon=0.0)
    np.testing.assert_allclose(y, (x - p) / np.sqrt(p) * p + p, rtol=1e-4, atol=1e-5)


def test_batch_norm_of_training_gives_statistics() -> None:
    x, one = f(4, 3, 5), np.ones(3, np.float32)
    y, mean, _ = ours(*single("BatchNormalization", [x, one, 0 * one, one, one], 15, outputs=3, training_mode=1, momentum=0.9))
    np.testing.assert_allclose(y.mean((0, 2)), 0, atol=1e-5)
    np.testing.assert_allclose(mean, 0.9 + 0.1 * x.mean((0, 2)), rtol=1e-5)


def test_half_integers_round_to_even() -> None:
    x = np.array([-2.5, -1.5, -0.5, 0.5, 1.5, 2.5, 1e9], np.float32)
    np.testing.assert_array_equal(run("Round", x), np.round(x))


def test_group_norm_scale_by_version() -> None:
    x = f(2, 4, 3)
    per_group = run("GroupNormalization", x, np.array([1, 2], np.float32), np.zeros(2, np.float32), opset=18, num_groups=2)
    per_channel = run("GroupNormalization", x, np.array([1, 1, 2, 2], np.float32), np.zeros(4, np.float32), opset=21, num_groups=2)
    np.testing.assert_allclose(per_group, per_channel, rtol=1e-5)


def test_empty_tensors_in_concat() -> None:
    x = f(2, 3)
    np.testing.assert_array_equal(run("Concat", x, np.zeros((0, 3), np.float32), axis=0), x)


def test_a_function_body_stands_in_for_a_converter() -> None:
    x, w = f(2, 3, 4), f(4)
    y = run("SoftmaxCrossEntropyLoss", f(3, 5), np.array([1, 0, 4]))
    assert y.shape == () and np.isfinite(y)
    assert run("RMSNormalization", x, w, opset=23).shape == x.shape


def test_attention_through_its_body() -> None:
    q, k, v = f(1, 2, 3, 4), f(1, 2, 5, 4), f(1, 2, 5, 4)
    got = run("Attention", q, k, v, opset=23)
    want = _softmax(q @ k.swapaxes(2, 3) / 2, (3,)) @ v
    np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5)


def test_model_functions_with_attributes() -> None:
    body = [helper.make_node("LeakyRelu", ["x"], ["t"]), helper.make_node("Add", ["t", "x"], ["y"])]
    ref = body[0].attribute.add()
    ref.name, ref.ref_attr_name, ref.type = "alpha", "slope", 1
    function = helper.make_function("my", "Twice", ["x"], ["y"], body, [helper.make_opsetid("", 17)], ["slope"])
    x = f(3)
    node = helper.make_node("Twice", ["x"], ["y"], domain="my", slope=0.5)
    y = ours(model([node], {"x": x}, ["y"], domains=[("my", 1)], functions=[function]), {"x": x})[0]
    np.testing.assert_allclose(y, np.where(x < 0, 1.5 * x, 2 * x), rtol=1e-6)


# ---- control flow ----------------------------------------------------------------------------------------------------------

def _branch(op: str) -> Any:
    return helper.make_graph([helper.make_node(op, ["x"], [f"{op}_y"])], op, [], [helper.make_tensor_value_info(f"{op}_y", 1, None)])


@pytest.mark.parametrize("flag", [True, False])
@pytest.mark.parametrize("fixed", [True, False])
def test_if_sees_names_around_it(flag: bool, fixed: bool) -> None:
    x, c = f(3), np.array(flag)
    node = helper.make_node("If", ["c"], ["y"], then_branch=_branch("Neg"), else_branch=_branch("Abs"))
    feed = {"x": x} if fixed else {"x": x, "c": c}
    proto = model([node], feed, ["y"], constants={"c": c} if fixed else {})
    np.testing.assert_array_equal(ours(proto, feed)[0], -x if flag else np.abs(x))
    assert ("if (" in str(from_onnx(proto)[0].astext())) is not fixed


def test_loop_with_a_known_number_of_turns() -> None:
    x = f(3)
    body = helper.make_graph(
        [helper.make_node("Add", ["s", "x"], ["s2"]), helper.make_node("Identity", ["going"], ["going2"]), helper.make_node("Neg", ["s2"], ["scan"])],
        "b", [helper.make_tensor_value_info("i", 7, []), helper.make_tensor_value_info("going", 9, []), helper.make_tensor_value_info("s", 1, [3])],
        [helper.make_tensor_value_info(o, t, None) for o, t in (("going2", 9), ("s2", 1), ("scan", 1))])
    node = helper.make_node("Loop", ["n", "", "x"], ["last", "all"], body=body)
    last, every = ours(model([node], {"x": x}, ["last", "all"], constants={"n": np.array(3)}), {"x": x})
    assert_same([last, every], [(4 * x).astype(np.float32), np.stack([-2 * x, -3 * x, -4 * x])])


def test_scan_over_rows() -> None:
    x, start = f(4, 3), np.zeros(3, np.float32)
    body = helper.make_graph([helper.make_node("Add", ["s", "e"], ["s2"]), helper.make_node("Identity", ["s2"], ["out"])], "b",
                             [helper.make_tensor_value_info(n, 1, [3]) for n in ("s", "e")],
                             [helper.make_tensor_value_info(n, 1, [3]) for n in ("s2", "out")])
    node = helper.make_node("Scan", ["s0", "x"], ["last", "all"], body=body, num_scan_inputs=1)
    last, every = ours(model([node], {"s0": start, "x": x}, ["last", "all"]), {"s0": start, "x": x})
    np.testing.assert_allclose(every, np.cumsum(x, 0), rtol=1e-5)
    np.testing.assert_allclose(last, x.sum(0), rtol=1e-5)


def test_sequences_of_known_length() -> None:
    x = f(4, 2)
    nodes = [helper.make_node("SplitToSequence", ["x"], ["s"], axis=0, keepdims=0), helper.make_node("SequenceAt", ["s", "at"], ["e"]),
             helper.make_node("SequenceInsert", ["s", "e"], ["t"]), helper.make_node("ConcatFromSequence", ["t"], ["y"], axis=0, new_axis=1)]
    y = ours(model(nodes, {"x": x}, ["y"], constants={"at": np.array(-3)}), {"x": x})[0]
    np.testing.assert_array_equal(y, np.concatenate([x, x[1:2]]))
