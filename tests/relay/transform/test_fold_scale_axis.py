"""FoldScaleAxis, forward and backward."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from anchorleg import relay
from anchorleg.relay.transform import BackwardFoldScaleAxis, FoldScaleAxis, ForwardFoldScaleAxis, InferType

from .passes import count, of, same_values

RNG = np.random.default_rng(0)


def const(*shape: int, low: float = 0.5) -> relay.Expr:
    return relay.const(RNG.uniform(low, 1.5, shape).astype("float32"))


def conv(x: relay.Expr, layout: str = "NCHW", **kwargs: Any) -> relay.Expr:
    kernel = const(6, 4, 3, 3, low=-1.5) if layout == "NCHW" else const(3, 3, 4, 6, low=-1.5)
    return relay.nn.conv2d(x, kernel, data_layout=layout, kernel_layout="OIHW" if layout == "NCHW" else "HWIO", **kwargs)


def folded(each: Any, expr: relay.Expr) -> bool:
    """Whether no multiplication is left; the values are checked."""
    return not count(same_values(each, of(expr), rtol=1e-4), "multiply")


@pytest.mark.parametrize("shape", [(6, 1, 1), (1, 6, 1, 1), (1,), ()])
def test_scales_behind_a_convolution(shape: tuple[int, ...]) -> None:
    assert folded(BackwardFoldScaleAxis(), relay.multiply(conv(relay.var("x", shape=(1, 4, 5, 5))), const(*shape)))


def test_channels_last() -> None:
    assert folded(BackwardFoldScaleAxis(), relay.multiply(conv(relay.var("x", shape=(1, 5, 5, 4)), "NHWC"), const(6)))
    assert folded(ForwardFoldScaleAxis(), conv(relay.multiply(relay.var("x", shape=(1, 5, 5, 4)), const(4)), "NHWC"))


@pytest.mark.parametrize("between", [
    lambda y: relay.add(y, const(6, 1, 1)), lambda y: relay.subtract(const(1, 6, 1, 1), y), lambda y: relay.nn.bias_add(y, const(6)),
    lambda y: relay.nn.relu(relay.add(y, const(1))), lambda y: relay.nn.leaky_relu(y, 0.1)])
def test_scales_pass_what_lies_between(between: Any) -> None:
    assert folded(FoldScaleAxis(), relay.multiply(between(conv(relay.var("x", shape=(1, 4, 5, 5)))), const(6, 1, 1)))


def test_dense_layers_and_other_ranks() -> None:
    assert folded(FoldScaleAxis(), relay.multiply(relay.nn.dense(relay.var("x", shape=(2, 4)), const(3, 4)), const(3)))
    assert folded(FoldScaleAxis(), relay.nn.dense(relay.multiply(relay.var("x", shape=(2, 4)), const(4)), const(3, 4)))
    assert folded(FoldScaleAxis(), relay.multiply(relay.nn.conv1d(relay.var("x", shape=(1, 4, 9)), const(6, 4, 3)), const(6, 1)))


def test_depthwise_convolutions() -> None:
    y = relay.nn.conv2d(relay.var("x", shape=(1, 4, 5, 5)), const(4, 1, 3, 3), groups=4, channels=4, kernel_size=(3, 3))
    assert folded(FoldScaleAxis(), relay.multiply(y, const(4, 1, 1)))


@pytest.mark.parametrize("factor, folds", [((6, 1, 1), True), ((), True), ((6, 1, 4), False), ((2, 6, 1, 1), False)])
def test_sizes_that_are_not_known(factor: tuple[int, ...], folds: bool) -> None:
    y = relay.multiply(conv(relay.var("x", shape=(relay.Any(), 4, relay.Any(), relay.Any()))), const(*factor))
    module = FoldScaleAxis()(InferType()(of(y)))
    assert (count(module, "multiply") == 0) == folds


def test_negative_scales_do_not_pass_a_relu() -> None:
    y = relay.multiply(relay.nn.relu(conv(relay.var("x", shape=(1, 4, 5, 5)))), relay.const(-np.ones((6, 1, 1), "float32")))
    assert not folded(FoldScaleAxis(), y)
    assert folded(FoldScaleAxis(), relay.multiply(conv(relay.var("x", shape=(1, 4, 5, 5))), relay.const(-np.ones((6, 1, 1), "float32"))))


def test_a_scale_along_another_axis_stays() -> None:
    assert not folded(FoldScaleAxis(), relay.multiply(conv(relay.var("x", shape=(1, 4, 5, 5))), const(3)))
    assert not folded(FoldScaleAxis(), relay.multiply(conv(relay.var("x", shape=(1, 4, 5, 5))), const(6, 3, 3)))


def test_a_value_with_another_reader_stays() -> None:
    y = conv(relay.var("x", shape=(1, 4, 5, 5)))
    assert not folded(FoldScaleAxis(), relay.Tuple([relay.multiply(y, const(6, 1, 1)), y]))
    x = relay.multiply(relay.var("x", shape=(1, 4, 5, 5)), const(4, 1, 1))
    assert not folded(FoldScaleAxis(), relay.Tuple([conv(x), x]))


def test_integer_weights_take_no_fractions() -> None:
    x, w = relay.var("x", shape=(1, 4, 5, 5)), relay.const(RNG.integers(-9, 9, (6, 4, 3, 3)).astype("int32"))
    y = relay.cast(relay.nn.conv2d(relay.cast(x, "int32"), w), "float32")
    assert not folded(FoldScaleAxis(), relay.multiply(y, const(6, 1, 1)))
    z = relay.nn.conv2d(x, relay.const(np.ones((6, 4, 3, 3), "float64")), out_dtype="float32")
    assert not folded(FoldScaleAxis(), relay.multiply(z, const(6, 1, 1)))
