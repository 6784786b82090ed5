"""Kinds of fault in layout passes: operators that reach across packed channels, constants that must not be packed, indices rewritten wrongly."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from anchorleg import relay
from anchorleg.relay import nn

from .run import by_numpy, everywhere, module

RNG = np.random.default_rng(0)


def floats(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape).astype("float32")


def var(name: str, value: np.ndarray) -> Any:
    return relay.var(name, shape=value.shape, dtype=str(value.dtype))


def same_as_numpy(params: list[Any], body: Any, *args: np.ndarray) -> list[np.ndarray]:
    """The graph executor at every level agrees with the numpy rules on the program as written."""
    mod = module(params, body)
    want = by_numpy(mod, *args)
    everywhere(mod, *args, want=want, rtol=1e-4)
    return want


@pytest.mark.parametrize("dtype", ["int64", "int32"])
@pytest.mark.parametrize("op", ["argmax", "argmin"])
def test_index_types_of_shapes(dtype: str, op: str) -> None:
    value = np.array([[3.0], [-1.0]])
    x = var("x", value)
    b = relay.broadcast_to(x, relay.const(np.array([2, 1], dtype)))
    index = getattr(np, op)(value, 0).astype("int32")
    everywhere(module([x], relay.Tuple([b, getattr(relay, op)(b, axis=[0])])), value, want=[value, index])


def test_broadcast_to_a_64_bit_shape_after_a_convolution() -> None:
    x, w, b = floats(2, 3, 48, 48), floats(1, 3, 1, 1), floats(1)
    params = [var("x", x), var("w", w), var("b", b)]
    t = nn.bias_add(nn.conv2d(*params[:2], strides=(47, 47), channels=1, kernel_size=(1, 1)), params[2])
    body = relay.add(t, relay.broadcast_to(t, relay.const(np.array([2, 1, 2, 2], "int64"))))
    want = 2 * (np.einsum("ncij,oc->noij", x[:, :, ::47, ::47], w[:, :, 0, 0]) + b.reshape(1, 1, 1, 1))
    everywhere(module(params, body), x, w, b, want=want.astype("float32"), rtol=1e-4)


@pytest.mark.parametrize("begin, end, stride", [(3, 6, 3), (0, 9, 2), (1, 8, 4), (2, 3, 1), (0, 6, 3), (3, 9, 3)])
@pytest.mark.parametrize("channels", [9, 12, 16])
def test_slices_of_channels_with_steps(begin: int, end: int, stride: int, channels: int) -> None:
    x, w, b = floats(4, 12, 1, 1), floats(channels, 12, 1, 1), floats(channels)
    params = [var("x", x), var("w", w), var("b", b)]
    body = relay.strided_slice(nn.bias_add(nn.conv2d(*params[:2]), params[2]), [begin], [end], [stride], axes=[1])
    want = (np.einsum("ncij,oc->noij", x, w[:, :, 0, 0]) + b.reshape(1, -1, 1, 1))[:, begin:end:stride]
    everywhere(module(params, body), x, w, b, want=want.astype("float32"), rtol=1e-4, levels=(0, 3))


@pytest.mark.parametrize("channels, out", [(3, 1), (8, 8), (5, 16)])
@pytest.mark.parametrize("reduce, axis", [("argmin", 1), ("argmax", 1), ("sum", 1), ("max", (1, 2)), ("mean", (2, 3)), ("argmin", 2)])
def test_reductions_over_packed_channels(channels: int, out: int, reduce: str, axis: Any) -> None:
    x, w = floats(1, channels, 48, 48), floats(out, channels, 1, 1)
    params = [var("x", x), var("w", w)]
    same_as_numpy(params, getattr(relay, reduce)(nn.conv2d(*params, strides=(47, 47)), axis=axis), x, w)


@pytest.mark.parametrize("shape", [(1,), (), (1, 1, 1, 64), (64,)])
def test_small_constants_beside_packed_values(shape: tuple[int, ...]) -> None:
    x, w, b = floats(1, 6, 5, 64), floats(3, 3, 64, 64) * np.float32(0.05), floats(64)
    params = [var("x", x), var("w", w), var("b", b)]
    conv = nn.conv2d(*params[:2], padding=(1, 1), channels=64, kernel_size=(3, 3), data_layout="NHWC", kernel_layout="HWIO")
    body = relay.multiply(nn.relu(relay.add(conv, params[2])), relay.const(np.full(shape, 0.1, "float32")))
    same_as_numpy(params, body, x, w, b)


@pytest.mark.parametrize("source, to, shape", [("NCHW4c", "NCHW2c", (2, 5, 2, 2, 4)), ("NCHW2c", "NCHW4c", (2, 6, 2, 2, 2)), ("NCHW", "NCHW5c", (1, 10, 2, 3)),
                                               ("NCHW8c", "NHWC", (1, 2, 3, 2, 8)), ("OIHW", "OIHW3i2o", (4, 6, 1, 2)), ("NCHW6c", "NCHW4c", (1, 2, 3, 1, 6))])
def test_changes_of_the_block(source: str, to: str, shape: tuple[int, ...]) -> None:
    value = floats(*shape)
    x = var("x", value)
    (want,) = same_as_numpy([x], relay.layout_transform(x, source, to), value)
    if source == "NCHW4c" and to == "NCHW2c":
        for n, c, h, w, j in np.ndindex(*want.shape):
            assert want[n, c, h, w, j] == value[n, (2 * c + j) // 4, h, w, (2 * c + j) % 4]


@pytest.mark.parametrize("build", [
    lambda c: relay.concatenate([c, c, relay.negative(c)], axis=1), lambda c: relay.reshape(c, (1, 3, 8, 6, 6)), lambda c: relay.split(c, 3, axis=1).astuple(),
    lambda c: nn.pad(c, ((0, 0), (1, 2), (0, 0), (1, 0))), lambda c: relay.transpose(c, (0, 2, 3, 1)), lambda c: nn.softmax(c, axis=1),
    lambda c: relay.add(c, relay.const(floats(24, 1, 1))), lambda c: relay.add(c, relay.const(floats(6))), lambda c: nn.upsampling(c, 2, 2), lambda c: nn.lrn(c),
    lambda c: nn.batch_flatten(c), lambda c: relay.take(c, relay.const(np.array([1, 5], "int64")), axis=1), lambda c: relay.cumsum(c, axis=1), lambda c: relay.squeeze(c, [0]),
    lambda c: relay.where(relay.greater(c, relay.const(np.float32(0))), c, relay.zeros_like(c)), lambda c: nn.instance_norm(c, relay.const(floats(24)), relay.const(floats(24))),
    lambda c: nn.global_avg_pool2d(c) * c, lambda c: nn.prelu(c, relay.const(floats(24))), lambda c: relay.repeat(c, 2, axis=1), lambda c: nn.depth_to_space(c, 2),
])
def test_what_may_follow_a_packed_convolution(build: Any) -> None:
    x, w = floats(1, 16, 6, 6), floats(24, 16, 1, 1)
    params = [var("x", x), var("w", w)]
    same_as_numpy(params, build(nn.conv2d(*params)), x, w)
