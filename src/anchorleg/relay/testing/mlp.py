"""A multilayer perceptron of three layers."""
from __future__ import annotations

from typing import Any

from ...ir.module import IRModule
from .. import op
from ..analysis import free_vars
from ..expr import var
from ..function import Function
from .init import create_workload
from .layers import dense_add_bias


def get_net(batch_size: int, num_classes: int = 10, image_shape: tuple[int, ...] = (1, 28, 28), dtype: str = "float32") -> Function:
    """The network; its input is ``data``."""
    body = op.nn.batch_flatten(var("data", shape=(batch_size, *image_shape), dtype=dtype))
    for name, units in (("fc1", 128), ("fc2", 64)):
        body = op.nn.relu(dense_add_bias(body, units=units, name=name))
    body = op.nn.softmax(dense_add_bias(body, units=num_classes, name="fc3"))
    return Function(free_vars(body), body)


def get_workload(batch_size: int, num_classes: int = 10, image_shape: tuple[int, ...] = (1, 28, 28),
                 dtype: str = "float32") -> tuple[IRModule, dict[str, Any]]:
    """The network as a module, and values for its parameters."""
    return create_workload(get_net(batch_size, num_classes, image_shape, dtype))
