"""SqueezeNet: few parameters by narrow layers that feed pairs of wide ones (Iandola et al., 2016)."""
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

# the first convolution (channels, kernel, padding), then widths of the narrow layers; 0 stands for a pooling
_VERSIONS = {"1.0": ((96, 7, 3), [0, 16, 16, 32, 0, 32, 48, 48, 64, 0, 64]), "1.1": ((64, 3, 1), [0, 16, 16, 0, 32, 32, 0, 48, 48, 64, 64])}


def _conv(data: RelayExpr, channels: int, kernel: int, padding: int, name: str, stride: int = 1) -> RelayExpr:
    body = layers.conv2d(data, channels=channels, kernel_size=(kernel, kernel), strides=(stride, stride), padding=(padding, padding), name=name)
    return op.nn.relu(op.nn.bias_add(body, var(f"{name}_bias")))


def _fire(data: RelayExpr, width: int, name: str) -> RelayExpr:
    narrow = _conv(data, width, 1, 0, f"{name}_input_conv")
    left, right = _conv(narrow, 4 * width, 1, 0, f"{name}_left_conv"), _conv(narrow, 4 * width, 3, 1, f"{name}_right_conv")
    return op.concatenate((left, right), axis=1)


def get_net(batch_size: int, image_shape: tuple[int, ...], num_classes: int, version: str, dtype: str) -> Function:
    """SqueezeNet of version ``"1.0"`` or ``"1.1"``."""
    if version not in _VERSIONS:
        raise ArgumentError(f"squeezenet: version is expected to be 1.0 or 1.1, got {version!r}")
    (channels, kernel, padding), widths = _VERSIONS[version]
    body = _conv(var("data", shape=(batch_size, *image_shape), dtype=dtype), channels, kernel, padding, "conv1", stride=2)
    count = 0
    for width in widths:
        if width:
            count += 1
            body = _fire(body, width, f"fire{count}")
        else:
            body = op.nn.max_pool2d(body, pool_size=(3, 3), strides=(2, 2))
    body = _conv(op.nn.dropout(body, rate=0.5), num_classes, 1, 0, "conv_final")
    body = op.nn.softmax(op.nn.batch_flatten(op.nn.global_avg_pool2d(body)))
    return Function(free_vars(body), body)


def get_workload(batch_size: int = 1, num_classes: int = 1000, version: str = "1.0", image_shape: tuple[int, ...] = (3, 224, 224),
                 dtype: str = "float32") -> tuple[IRModule, dict[str, Any]]:
    """The network as a module, and values for its parameters."""
    return create_workload(get_net(batch_size, image_shape, num_classes, version, dtype))
