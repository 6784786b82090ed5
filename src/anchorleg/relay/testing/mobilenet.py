"""MobileNet: depthwise separable convolutions (Howard et al., 2017)."""
from __future__ import annotations

from typing import Any

from ...ir.expr import RelayExpr
from ...ir.module import IRModule
from ...support.errors import ArgumentError
from .. import op
from ..analysis import free_vars
from ..expr import var
from ..function import Function
from . import layers
from .init import create_workload

EPSILON = 1e-5
# (input channels, output channels, whether the image is halved), in units of 32 channels
_DEEP = [(1, 2, False), (2, 4, True), (4, 4, False), (4, 8, True), (8, 8, False), (8, 16, True), *[(16, 16, False)] * 5, (16, 32, True),
         (32, 32, False)]
_SHALLOW = [*_DEEP[:6], (16, 32, True), (32, 32, True)]


def _norm_relu(data: RelayExpr, name: str, layout: str) -> RelayExpr:
    return op.nn.relu(layers.batch_norm_infer(data, epsilon=EPSILON, axis=layout.index("C"), name=name))


def _separable(data: RelayExpr, name: str, inputs: int, outputs: int, halved: bool, layout: str, dtype: str) -> RelayExpr:
    stride = (2, 2) if halved else (1, 1)
    weight = var(f"{name}_weight", shape=(inputs, 1, 3, 3) if layout == "NCHW" else (3, 3, inputs, 1), dtype=dtype)
    body = layers.conv2d(data, weight, channels=inputs, groups=inputs, kernel_size=(3, 3), strides=stride, padding=(1, 1), data_layout=layout,
                         kernel_layout=layers.conv_kernel_layout(layout, True), name=f"{name}_depthwise_conv1")
    body = _norm_relu(body, f"{name}_bn1", layout)
    body = layers.conv2d(body, channels=outputs, kernel_size=(1, 1), strides=(1, 1), padding=(0, 0), data_layout=layout,
                         kernel_layout=layers.conv_kernel_layout(layout), name=f"{name}_conv2")
    return _norm_relu(body, f"{name}_bn2", layout)


def mobile_net(num_classes: int = 1000, data_shape: tuple[int, ...] = (1, 3, 224, 224), dtype: str = "float32", alpha: float = 1.0,
               is_shallow: bool = False, layout: str = "NCHW") -> Function:
    """The network; ``alpha`` scales the numbers of channels."""
    if layout not in ("NCHW", "NHWC"):
        raise ArgumentError(f"mobile_net: layout is expected to be NCHW or NHWC, got {layout!r}")
    data = var("data", shape=data_shape, dtype=dtype)
    body = layers.conv2d(data, channels=int(32 * alpha), kernel_size=(3, 3), strides=(2, 2), padding=(1, 1), data_layout=layout,
                         kernel_layout=layers.conv_kernel_layout(layout), name="conv_block_1_conv")
    body = _norm_relu(body, "conv_block_1_bn", layout)
    for i, (inputs, outputs, halved) in enumerate(_SHALLOW if is_shallow else _DEEP, 1):
        body = _separable(body, f"separable_conv_block_{i}", int(32 * inputs * alpha), int(32 * outputs * alpha), halved, layout, dtype)
    net = layers.classifier(op.nn.global_avg_pool2d(body, layout=layout), num_classes, "fc")
    return Function(free_vars(net), net)


def get_workload(batch_size: int = 1, num_classes: int = 1000, image_shape: tuple[int, ...] = (3, 224, 224), dtype: str = "float32",
                 layout: str = "NCHW") -> tuple[IRModule, dict[str, Any]]:
    """The network as a module, and values for its parameters."""
    return create_workload(mobile_net(num_classes, (batch_size, *image_shape), dtype, layout=layout))
