"""Inception v3: towers of convolutions side by side (Szegedy et al., 2015)."""
from __future__ import annotations

from typing import Any, Sequence

from ...ir.expr import RelayExpr
from ...ir.module import IRModule
from .. import op
from ..analysis import free_vars
from ..expr import var
from ..function import Function
from . import layers
from .init import create_workload

# one convolution of a tower: channels, kernel, stride, padding
Step = tuple[int, tuple[int, int], tuple[int, int], tuple[int, int]]


def _step(channels: int, kernel: Any = 1, stride: int = 1, same: bool = True) -> Step:
    size = (kernel, kernel) if isinstance(kernel, int) else kernel
    return channels, size, (stride, stride), (size[0] // 2, size[1] // 2) if same else (0, 0)


def _conv(data: RelayExpr, step: Step, name: str) -> RelayExpr:
    channels, kernel, strides, padding = step
    body = layers.conv2d(data, channels=channels, kernel_size=kernel, strides=strides, padding=padding, name=f"{name}_conv1")
    return op.nn.relu(layers.batch_norm_infer(body, epsilon=2e-5, scale=False, name=f"{name}_bn"))


def _tower(data: RelayExpr, steps: Sequence[Step], name: str) -> RelayExpr:
    for index, step in enumerate(steps):
        data = _conv(data, step, f"{name}_{index}")
    return data


def _pool(data: RelayExpr, kind: str, stride: int = 1) -> RelayExpr:
    pool = op.nn.avg_pool2d if kind == "avg" else op.nn.max_pool2d
    extra = {"count_include_pad": True} if kind == "avg" else {}
    return pool(data, pool_size=(3, 3), strides=(stride, stride), padding=(1, 1) if stride == 1 else (0, 0), **extra)


def _beside(*parts: RelayExpr) -> RelayExpr:
    return op.concatenate(tuple(parts), axis=1)


def _small(data: RelayExpr, projected: int, name: str) -> RelayExpr:
    return _beside(_tower(data, [_step(64)], f"{name}_1x1"), _tower(data, [_step(48), _step(64, 5)], f"{name}_5x5"),
                   _tower(data, [_step(64), _step(96, 3), _step(96, 3)], f"{name}_3x3"),
                   _tower(_pool(data, "avg"), [_step(projected)], f"{name}_pool"))


def _shrink_first(data: RelayExpr, name: str) -> RelayExpr:
    return _beside(_tower(data, [_step(384, 3, 2, same=False)], f"{name}_3x3"),
                   _tower(data, [_step(64), _step(96, 3), _step(96, 3, 2, same=False)], f"{name}_double"), _pool(data, "max", 2))


def _factored(data: RelayExpr, inner: int, name: str) -> RelayExpr:
    wide, tall = (1, 7), (7, 1)
    return _beside(_tower(data, [_step(192)], f"{name}_1x1"), _tower(data, [_step(inner), _step(inner, wide), _step(192, tall)], f"{name}_7"),
                   _tower(data, [_step(inner), _step(inner, tall), _step(inner, wide), _step(inner, tall), _step(192, wide)], f"{name}_77"),
                   _tower(_pool(data, "avg"), [_step(192)], f"{name}_pool"))


def _shrink_second(data: RelayExpr, name: str) -> RelayExpr:
    return _beside(_tower(data, [_step(192), _step(320, 3, 2, same=False)], f"{name}_3x3"),
                   _tower(data, [_step(192), _step(192, (1, 7)), _step(192, (7, 1)), _step(192, 3, 2, same=False)], f"{name}_7x7"),
                   _pool(data, "max", 2))


def _large(data: RelayExpr, pool: str, name: str) -> RelayExpr:
    middle = _tower(data, [_step(384)], f"{name}_3x3")
    double = _tower(data, [_step(448), _step(384, 3)], f"{name}_double")
    split = [_tower(each, [_step(384, kernel)], f"{name}_{i}") for i, (each, kernel) in
             enumerate(((middle, (1, 3)), (middle, (3, 1)), (double, (1, 3)), (double, (3, 1))))]
    return _beside(_tower(data, [_step(320)], f"{name}_1x1"), *split, _tower(_pool(data, pool), [_step(192)], f"{name}_pool"))


def get_net(batch_size: int, num_classes: int, image_shape: tuple[int, ...], dtype: str) -> Function:
    """The network; images are 299 pixels square for the published weights' layout."""
    body: RelayExpr = var("data", shape=(batch_size, *image_shape), dtype=dtype)
    body = _tower(body, [_step(32, 3, 2, same=False), _step(32, 3, same=False), _step(64, 3)], "stem")
    body = _tower(_pool(body, "max", 2), [_step(80, same=False), _step(192, 3, same=False)], "stem2")
    body = _pool(body, "max", 2)
    for index, projected in enumerate((32, 64, 64)):
        body = _small(body, projected, f"mixed_{index}")
    body = _shrink_first(body, "mixed_3")
    for index, inner in enumerate((128, 160, 160, 192), start=4):
        body = _factored(body, inner, f"mixed_{index}")
    body = _large(_large(_shrink_second(body, "mixed_8"), "avg", "mixed_9"), "max", "mixed_10")
    body = op.nn.batch_flatten(op.nn.avg_pool2d(body, pool_size=(8, 8), strides=(1, 1), padding=(0, 0), count_include_pad=True))
    body = op.nn.softmax(layers.dense_add_bias(body, units=num_classes, name="fc1"))
    return Function(free_vars(body), body)


def get_workload(batch_size: int = 1, num_classes: int = 1000, image_shape: tuple[int, ...] = (3, 299, 299),
                 dtype: str = "float32") -> tuple[IRModule, dict[str, Any]]:
    """The network as a module, and values for its parameters."""
    return create_workload(get_net(batch_size, num_classes, image_shape, dtype))
