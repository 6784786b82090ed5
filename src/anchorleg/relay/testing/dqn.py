"""The network of deep Q-learning (Mnih et al., Nature, 2015)."""
from __future__ import annotations

from typing import Any

from ...ir.module import IRModule
from .. import op
from ..analysis import free_vars
from ..expr import var
from ..function import Function
from . import layers
from .init import create_workload


def get_net(batch_size: int, num_actions: int = 18, image_shape: tuple[int, ...] = (4, 84, 84), dtype: str = "float32",
            layout: str = "NCHW") -> Function:
    """From a few frames to a value for each action."""
    body = var("data", shape=(batch_size, *image_shape), dtype=dtype)
    for i, (channels, kernel, stride) in enumerate(((32, 8, 4), (64, 4, 2), (64, 3, 1)), 1):
        body = layers.conv2d(body, kernel_size=(kernel, kernel), strides=(stride, stride), padding=(0, 0), channels=channels, data_layout=layout,
                             kernel_layout=layers.conv_kernel_layout(layout), name=f"conv{i}")
        body = op.nn.relu(op.nn.bias_add(body, var(f"conv{i}_bias"), layout.index("C")))
    body = op.nn.relu(layers.dense_add_bias(op.nn.batch_flatten(body), units=512, name="dense1"))
    body = layers.dense_add_bias(body, units=num_actions, name="dense2")
    return Function(free_vars(body), body)


def get_workload(batch_size: int, num_actions: int = 18, image_shape: tuple[int, ...] = (4, 84, 84), dtype: str = "float32",
                 layout: str = "NCHW") -> tuple[IRModule, dict[str, Any]]:
    """The network as a module, and values for its parameters."""
    return create_workload(get_net(batch_size, num_actions, image_shape, dtype, layout))
