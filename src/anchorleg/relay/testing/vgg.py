"""VGG: stacks of 3×3 convolutions (Simonyan and Zisserman, 2014)."""
from __future__ import annotations

from typing import Any

from ...ir.module import IRModule
from ...support.errors import ArgumentError
from .. import op
from ..analysis import free_vars
from ..expr import var
from ..function import Function
from . import layers
from .init import create_workload

_CONVOLUTIONS = {11: [1, 1, 2, 2, 2], 13: [2, 2, 2, 2, 2], 16: [2, 2, 3, 3, 3], 19: [2, 2, 4, 4, 4]}
_CHANNELS = [64, 128, 256, 512, 512]


def get_net(batch_size: int, image_shape: tuple[int, ...], num_classes: int, dtype: str, num_layers: int = 11, batch_norm: bool = False) -> Function:
    """The network of 11, 13, 16 or 19 layers."""
    if num_layers not in _CONVOLUTIONS:
        raise ArgumentError(f"vgg: num_layers is expected to be one of {', '.join(map(str, _CONVOLUTIONS))}, got {num_layers}")
    body = var("data", shape=(batch_size, *image_shape), dtype=dtype)
    for i, (count, channels) in enumerate(zip(_CONVOLUTIONS[num_layers], _CHANNELS), 1):
        for j in range(1, count + 1):
            body = layers.conv2d(body, kernel_size=(3, 3), padding=(1, 1), channels=channels, name=f"conv{i}_{j}")
            body = op.nn.bias_add(body, var(f"conv{i}_{j}_bias"))
            if batch_norm:
                body = layers.batch_norm_infer(body, name=f"bn{i}_{j}")
            body = op.nn.relu(body)
        body = op.nn.max_pool2d(body, pool_size=(2, 2), strides=(2, 2))
    body = op.nn.batch_flatten(body)
    for name in ("fc6", "fc7"):
        body = op.nn.dropout(op.nn.relu(layers.dense_add_bias(body, units=4096, name=name)), rate=0.5)
    body = op.nn.softmax(layers.dense_add_bias(body, units=num_classes, name="fc8"))
    return Function(free_vars(body), body)


def get_workload(batch_size: int, num_classes: int = 1000, image_shape: tuple[int, ...] = (3, 224, 224), dtype: str = "float32",
                 num_layers: int = 11, batch_norm: bool = False) -> tuple[IRModule, dict[str, Any]]:
    """The network as a module, and values for its parameters."""
    return create_workload(get_net(batch_size, image_shape, num_classes, dtype, num_layers, batch_norm))
