"""DenseNet: every layer reads all layers before it in its block (Huang et al., 2016)."""
from __future__ import annotations

from typing import Any, Sequence

from ...ir.expr import RelayExpr
from ...ir.module import IRModule
from ...support.errors import ArgumentError
from .. import op
from ..analysis import free_vars
from ..expr import var
from ..function import Function
from . import layers
from .init import create_workload

# layers: (first channels, growth per layer, layers of each block)
_SPECS: dict[int, tuple[int, int, list[int]]] = {121: (64, 32, [6, 12, 24, 16]), 161: (96, 48, [6, 12, 36, 24]), 169: (64, 32, [6, 12, 32, 32]),
                                                 201: (64, 32, [6, 12, 48, 32])}


def _normalised(data: RelayExpr, name: str) -> RelayExpr:
    return op.nn.relu(layers.batch_norm_infer(data, name=name))


def _dense_layer(data: RelayExpr, growth: int, bn_size: int, name: str) -> RelayExpr:
    narrow = layers.conv2d(_normalised(data, f"{name}_batch_norm1"), channels=bn_size * growth, kernel_size=(1, 1), name=f"{name}_conv2d1")
    return layers.conv2d(_normalised(narrow, f"{name}_batch_norm2"), channels=growth, kernel_size=(3, 3), padding=(1, 1), name=f"{name}_conv2d2")


def _block(data: RelayExpr, count: int, growth: int, bn_size: int, name: str) -> RelayExpr:
    for index in range(count):
        data = op.concatenate((data, _dense_layer(data, growth, bn_size, f"{name}_{index}")), axis=1)
    return data


def _transition(data: RelayExpr, channels: int, name: str) -> RelayExpr:
    body = layers.conv2d(_normalised(data, f"{name}_t_batch_norm"), channels=channels, kernel_size=(1, 1), name=f"{name}_t_conv2d")
    return op.nn.avg_pool2d(body, pool_size=(2, 2), strides=(2, 2))


def _network(first: int, growth: int, blocks: Sequence[int], data_shape: tuple[int, ...], data_dtype: str, bn_size: int, classes: int) -> Function:
    body = layers.conv2d(var("data", shape=data_shape, dtype=data_dtype), channels=first, kernel_size=(7, 7), strides=(2, 2), padding=(3, 3),
                         name="conv1")
    body = op.nn.max_pool2d(_normalised(body, "batch_norm1"), pool_size=(3, 3), strides=(2, 2), padding=(1, 1))
    channels = first
    for index, count in enumerate(blocks):
        body = _block(body, count, growth, bn_size, f"block{index}")
        channels += count * growth
        if index != len(blocks) - 1:
            channels //= 2
            body = _transition(body, channels, f"block{index}")
    body = op.nn.batch_flatten(op.nn.global_avg_pool2d(_normalised(body, "batch_norm2")))
    body = layers.dense_add_bias(body, units=classes, name="dense")
    return Function(free_vars(body), body)


def get_workload(densenet_size: int = 121, classes: int = 1000, batch_size: int = 4, image_shape: tuple[int, int, int] = (3, 224, 224),
                 dtype: str = "float32") -> tuple[IRModule, dict[str, Any]]:
    """DenseNet of 121, 161, 169 or 201 layers as a module, and values for its parameters."""
    if densenet_size not in _SPECS:
        raise ArgumentError(f"densenet: the number of layers is expected to be one of {', '.join(map(str, _SPECS))}, got {densenet_size}")
    first, growth, blocks = _SPECS[densenet_size]
    return create_workload(_network(first, growth, blocks, (batch_size, *image_shape), dtype, 4, classes))
