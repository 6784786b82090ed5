"""Kinds of fault that ONNX importers had: attributes left out, ranks that vary, rules of the wrong version."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import helper

from anchorleg import relay
from anchorleg.support.errors import AnchorlegError

from .run import module, onnx_everywhere

RNG = np.random.default_rng(0)


def floats(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape).astype("float32")


def node(op: str, *inputs: str, **attrs: Any) -> Any:
    return helper.make_node(op, list(inputs), ["out"], **attrs)


@pytest.mark.parametrize("op, scale", [("Sum", 5), ("Mean", 1), ("Max", 1), ("Min", 1)])
def test_one_input_listed_several_times(op: str, scale: int) -> None:
    x = floats(2, 3, 1, 3)
    onnx_everywhere([node(op, "x", "x", "x", "x", "x")], {"x": x}, x * np.float32(scale))


def test_nearest_rounds_halves_down_when_told_to() -> None:
    x = np.arange(9, dtype="float32").reshape(1, 1, 3, 3)
    rows = [0, 0, 1, 2]
    resize = node("Resize", "x", "", "scales", mode="nearest", coordinate_transformation_mode="half_pixel", nearest_mode="round_prefer_floor")
    onnx_everywhere([resize], {"x": x}, x[:, :, rows][:, :, :, rows], constants={"scales": np.array([1, 1, 1.5, 1.5], "float32")})


@pytest.mark.parametrize("shape, axis, flat", [((1,), 1, (1, 1)), ((1, 3, 4, 4), 1, (1, 48)), ((2, 3), 0, (1, 6)), ((2, 3, 4), -1, (6, 4)), ((2, 3), 2, (6, 1))])
def test_flatten_of_any_rank(shape: tuple[int, ...], axis: int, flat: tuple[int, int]) -> None:
    x = floats(*shape)
    onnx_everywhere([node("Flatten", "x", axis=axis)], {"x": x}, x.reshape(flat))


@pytest.mark.parametrize("shape, to, full", [((1, 1), [3], (1, 3)), ((3, 1), [2, 1, 6], (2, 3, 6)), ((2, 3), [1], (2, 3)), ((), [2, 2], (2, 2))])
def test_expand_broadcasts_both_ways(shape: tuple[int, ...], to: list[int], full: tuple[int, ...]) -> None:
    x = floats(*shape)
    onnx_everywhere([node("Expand", "x", "s")], {"x": x}, np.broadcast_to(x, full), constants={"s": np.array(to, "int64")})


@pytest.mark.parametrize("a, b", [((3,), (3, 4)), ((1, 3), (3,)), ((3,), (3,)), ((4, 5, 16, 7), (1, 5, 7, 3)), ((1, 2, 3), (5, 3, 2)), ((2, 3), (4, 2, 3, 5)),
                                  ((7,), (2, 7, 3)), ((2, 5, 7), (7,))])
def test_products_of_vectors_and_batches(a: tuple[int, ...], b: tuple[int, ...]) -> None:
    x, y = floats(*a), floats(*b)
    onnx_everywhere([node("MatMul", "x", "y")], {"x": x, "y": y}, x @ y)
    onnx_everywhere([node("MatMul", "x", "y")], {"x": x}, x @ y, constants={"y": y})


def test_the_matrix_operator_refuses_a_vector() -> None:
    x, y = relay.var("x", shape=(2, 3)), relay.var("y", shape=(3,))
    with pytest.raises(AnchorlegError, match="matmul"):
        relay.transform.InferType()(module([x, y], relay.nn.matmul(x, y)))


def _transposed(x: np.ndarray, w: np.ndarray, groups: int, strides: tuple[int, ...], pads: tuple[int, ...]) -> np.ndarray:
    """Scatters each input times the kernel into the result: the definition."""
    rank, (n, c, *size), (_, per, *kernel) = len(strides), x.shape, w.shape
    full = np.zeros((n, per * groups, *(s * (e - 1) + k for e, k, s in zip(size, kernel, strides))))
    for i in range(c):
        first = i // (c // groups) * per
        for at in np.ndindex(*size):
            place = tuple(slice(p * s, p * s + k) for p, s, k in zip(at, strides, kernel))
            value = x[(slice(None), i, *at)].reshape(n, *[1] * (rank + 1))
            full[(slice(None), slice(first, first + per), *place)] += value * w[i]
    cut = tuple(slice(b, e - a) for b, a, e in zip(pads[:rank], pads[rank:], full.shape[2:]))
    return full[(slice(None), slice(None), *cut)].astype("float32")


@pytest.mark.parametrize("data, weight, groups, strides, pads", [
    ((1, 2, 1, 1), (2, 1, 1, 1), 2, (1, 1), (0, 0, 0, 0)), ((1, 10, 3, 3), (10, 1, 3, 3), 10, (3, 2), (1, 2, 1, 2)),
    ((1, 6, 3, 4), (6, 5, 2, 3), 3, (2, 1), (0, 1, 1, 0)), ((2, 4, 5), (4, 3, 4), 2, (3,), (1, 2)), ((1, 2, 2, 3, 2), (2, 2, 2, 1, 3), 1, (2, 1, 2), (0, 0, 1, 0, 0, 1)),
])
def test_transposed_convolutions_in_groups(data: Any, weight: Any, groups: int, strides: Any, pads: Any) -> None:
    x, w = floats(*data), floats(*weight)
    want = _transposed(x, w, groups, strides, pads)
    onnx_everywhere([node("ConvTranspose", "x", "w", group=groups, strides=strides, pads=pads)], {"x": x}, want, constants={"w": w})


@pytest.mark.parametrize("rank", [1, 2, 3])
def test_transposed_convolution_without_strides(rank: int) -> None:
    x, w = floats(1, 1, *[5] * rank), floats(1, 1, *[3] * rank)
    want = _transposed(x, w, 1, (1,) * rank, (1,) * 2 * rank)
    assert want.shape == x.shape
    onnx_everywhere([node("ConvTranspose", "x", "w", pads=[1] * 2 * rank)], {"x": x}, want, constants={"w": w})


def test_an_optional_input_of_empty_name() -> None:
    x = floats(1, 2, 25, 12)
    want = np.pad(x, ((0, 0), (0, 0), (0, 0), (2, 0)))
    onnx_everywhere([node("Pad", "x", "pads", "")], {"x": x}, want, constants={"pads": np.array([0, 0, 0, 2, 0, 0, 0, 0], "int64")})


def test_one_constant_used_as_two_shapes() -> None:
    x = floats(4, 3, 3, 4)
    nodes = [helper.make_node("Reshape", ["x", "s"], ["a"]), helper.make_node("Reshape", ["x", "s"], ["b"]), node("Add", "a", "b")]
    onnx_everywhere(nodes, {"x": x}, 2 * x.reshape(6, 2, 4, 3), constants={"s": np.array([6, 2, 4, 3], "int64")})


@pytest.mark.parametrize("pad, before, after", [("SAME_LOWER", 1, 0), ("SAME_UPPER", 0, 1)])
def test_norm_pooling_without_strides(pad: str, before: int, after: int) -> None:
    x = floats(1, 3, 9, 8)
    wide = np.pad(np.abs(x.astype("float64")) ** 4, ((0, 0), (0, 0), (before, after), (before, after)))
    want = (wide[:, :, :-1, :-1] + wide[:, :, 1:, :-1] + wide[:, :, :-1, 1:] + wide[:, :, 1:, 1:]) ** 0.25
    onnx_everywhere([node("LpPool", "x", kernel_shape=[2, 2], p=4, auto_pad=pad)], {"x": x}, want.astype("float32"))


@pytest.mark.parametrize("fmod", [0, 1])
@pytest.mark.parametrize("dtype", ["int8", "int32", "int64", "float32"])
def test_remainders_of_either_sign(fmod: int, dtype: str) -> None:
    if dtype == "float32" and not fmod:
        pytest.skip("not in the specification")
    a = np.array([[-7, 7, -7, 7, 0, -6]] * 2, dtype)
    b = np.array([3, -3, -3, 3, 5, 3], dtype)
    onnx_everywhere([node("Mod", "x", "y", fmod=fmod)], {"x": a, "y": b}, (np.fmod if fmod else np.mod)(a, b))


def _softmax(x: np.ndarray, op: str) -> np.ndarray:
    """Over the last of two axes."""
    e = np.exp(x - x.max(-1, keepdims=True))
    p = e / e.sum(-1, keepdims=True)
    hard = (np.arange(x.shape[-1]) == x.argmax(-1)[:, None]).astype("float32")
    return {"Softmax": p, "LogSoftmax": np.log(p), "Hardmax": hard}[op]


@pytest.mark.parametrize("op", ["Softmax", "LogSoftmax", "Hardmax"])
@pytest.mark.parametrize("opset, axis, rows", [(11, None, 2), (11, 1, 2), (11, 2, 6), (11, 0, 1), (13, None, 6), (13, -1, 6)])
def test_softmax_by_the_rule_of_its_version(op: str, opset: int, axis: int | None, rows: int) -> None:
    x = floats(2, 3, 4)
    want = _softmax(x.reshape(rows, -1), op).reshape(x.shape)
    onnx_everywhere([node(op, "x", **({} if axis is None else {"axis": axis}))], {"x": x}, want, opset=opset)


def test_softmax_over_a_middle_axis() -> None:
    x = floats(2, 3, 4)
    rows = x.transpose(0, 2, 1).reshape(8, 3)
    want = _softmax(rows, "Softmax").reshape(2, 4, 3).transpose(0, 2, 1)
    onnx_everywhere([node("Softmax", "x", axis=1)], {"x": x}, want, opset=13)


def test_layout_names_in_text_are_attributes() -> None:
    text = '''#[version = "0.0.5"]
def @main(%x: Tensor[(1, 32, 32, 3), float32], %y: Tensor[(1, 1, 3, 3), float32]) {
  nn.conv2d(%x, %y, data_layout="NHWC", kernel_layout="HWIO", channels=3, kernel_size=[1, 1])
}'''
    mod = relay.transform.InferType()(relay.fromtext(text))
    attrs = mod["main"].body.attrs
    assert (attrs.data_layout, attrs.kernel_layout) == ("NHWC", "HWIO")
    assert mod["main"].ret_type.concrete_shape == (1, 32, 32, 3)
