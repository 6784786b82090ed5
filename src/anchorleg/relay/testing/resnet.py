"""Residual networks with the activation before the convolution (He et al., "Identity Mappings in Deep Residual Networks", 2016)."""
from __future__ import annotations

from typing import Any, NamedTuple, Sequence

from ...ir.expr import RelayExpr
from ...ir.module import IRModule
from ...support.errors import ArgumentError
from .. import op
from ..analysis import free_vars
from ..expr import var
from ..function import Function
from . import layers
from .init import create_workload

EPSILON = 2e-5
_IMAGENET_UNITS = {18: [2, 2, 2, 2], 34: [3, 4, 6, 3], 50: [3, 4, 6, 3], 101: [3, 4, 23, 3], 152: [3, 8, 36, 3], 200: [3, 24, 36, 3],
                   269: [3, 30, 48, 8]}


class _Style(NamedTuple):
    """The layout of a network's data, and whether its units have a bottleneck."""

    layout: str
    bottle_neck: bool

    @property
    def channel_axis(self) -> int:
        return self.layout.index("C")

    def conv(self, data: RelayExpr, channels: int, kernel: int, stride: int, name: str) -> RelayExpr:
        return layers.conv2d(data, channels=channels, kernel_size=(kernel, kernel), strides=(stride, stride), padding=(kernel // 2, kernel // 2),
                             data_layout=self.layout, kernel_layout=layers.conv_kernel_layout(self.layout), name=name)

    def norm(self, data: RelayExpr, name: str, **kwargs: Any) -> RelayExpr:
        return layers.batch_norm_infer(data, epsilon=EPSILON, axis=self.channel_axis, name=name, **kwargs)

    def activated(self, data: RelayExpr, name: str) -> RelayExpr:
        return op.nn.relu(self.norm(data, name))


def _unit(data: RelayExpr, channels: int, stride: int, same: bool, name: str, style: _Style) -> RelayExpr:
    first = style.activated(data, f"{name}_bn1")
    narrow = channels // 4
    plan = [(narrow, 1, stride), (narrow, 3, 1), (channels, 1, 1)] if style.bottle_neck else [(channels, 3, stride), (channels, 3, 1)]
    body = first
    for i, (width, kernel, step) in enumerate(plan, 1):
        body = body if i == 1 else style.activated(body, f"{name}_bn{i}")
        body = style.conv(body, width, kernel, step, f"{name}_conv{i}")
    return op.add(body, data if same else style.conv(first, channels, 1, stride, f"{name}_sc"))


def _stem(data: RelayExpr, channels: int, height: int, style: _Style) -> RelayExpr:
    data = style.norm(data, "bn_data", scale=False)
    if height <= 32:
        return style.conv(data, channels, 3, 1, "conv0")
    body = style.activated(style.conv(data, channels, 7, 2, "conv0"), "bn0")
    return op.nn.max_pool2d(body, pool_size=(3, 3), strides=(2, 2), padding=(1, 1), layout=style.layout)


def resnet(units: Sequence[int], num_stages: int, filter_list: Sequence[int], num_classes: int, data_shape: Sequence[int],
           bottle_neck: bool = True, layout: str = "NCHW", dtype: str = "float32") -> Function:
    """A residual network of ``num_stages`` stages of ``units[i]`` units with ``filter_list[i + 1]`` channels."""
    if len(units) != num_stages:
        raise ArgumentError(f"resnet: {num_stages} entries of units are expected, got {len(units)}")
    style = _Style(layout, bottle_neck)
    body = _stem(var("data", shape=data_shape, dtype=dtype), filter_list[0], data_shape[layout.index("H")], style)
    for stage in range(num_stages):
        for i in range(units[stage]):
            stride = 2 if i == 0 and stage > 0 else 1
            body = _unit(body, filter_list[stage + 1], stride, i > 0, f"stage{stage + 1}_unit{i + 1}", style)
    pooled = op.nn.global_avg_pool2d(style.activated(body, "bn1"), layout=layout)
    net = layers.classifier(pooled, num_classes, "fc1")
    return Function(free_vars(net), net)


def _plan(num_layers: int, height: int) -> tuple[list[int], list[int], bool]:
    """(units per stage, channels, bottleneck) of the published network of that depth."""
    if height <= 28:
        deep = num_layers >= 164
        if (num_layers - 2) % (9 if deep else 6):
            raise ArgumentError(f"resnet: no network of {num_layers} layers is known for small images")
        channels = [16, 64, 128, 256] if deep else [16, 16, 32, 64]
        return [(num_layers - 2) // (9 if deep else 6)] * 3, channels, deep
    if num_layers not in _IMAGENET_UNITS:
        raise ArgumentError(f"resnet: num_layers is expected to be one of {', '.join(map(str, _IMAGENET_UNITS))}, got {num_layers}")
    deep = num_layers >= 50
    return _IMAGENET_UNITS[num_layers], [64, 256, 512, 1024, 2048] if deep else [64, 64, 128, 256, 512], deep


def get_net(batch_size: int, num_classes: int, num_layers: int = 50, image_shape: tuple[int, ...] = (3, 224, 224), layout: str = "NCHW",
            dtype: str = "float32", **kwargs: Any) -> Function:
    """The published network of ``num_layers`` layers for images of that shape."""
    units, channels, bottle_neck = _plan(num_layers, image_shape[layout.index("H") - 1])
    return resnet(units, len(units), channels, num_classes, (batch_size, *image_shape), bottle_neck, layout, dtype)


def get_workload(batch_size: int = 1, num_classes: int = 1000, num_layers: int = 18, image_shape: tuple[int, ...] = (3, 224, 224),
                 layout: str = "NCHW", dtype: str = "float32", **kwargs: Any) -> tuple[IRModule, dict[str, Any]]:
    """The network as a module, and values for its parameters."""
    return create_workload(get_net(batch_size, num_classes, num_layers, image_shape, layout, dtype))
