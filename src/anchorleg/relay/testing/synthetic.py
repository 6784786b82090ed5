"""A small network with a bit of everything, for tests that look at how a build behaves."""
from __future__ import annotations

from typing import Any

from ...ir.expr import RelayExpr
from ...ir.module import IRModule
from .. import op
from ..analysis import free_vars
from ..expr import var
from ..function import Function
from .init import Constant, create_workload
from .layers import batch_norm_infer


def _block(data: RelayExpr, x: RelayExpr, image: tuple[int, ...], dtype: str, number: str) -> RelayExpr:
    """relu(dense(x)) + softmax(conv(x)), both in the form of the data."""
    channels, width = image[1], image[3]
    product = op.nn.dense(op.reshape(x, [-1, width]), var(f"dense{number}_weight", shape=[width, width], dtype=dtype))
    convolved = op.nn.conv2d(x, var(f"conv{number}_weight", shape=[channels, channels, 3, 3], dtype=dtype), padding=1, kernel_size=3)
    return op.add(op.reshape_like(op.nn.relu(product), data), op.nn.softmax(convolved))


def get_net(input_shape: tuple[int, ...] = (1, 3, 24, 12), dtype: str = "float32", wtype: str | None = None) -> Function:
    """The network; its input is ``data``."""
    weights = wtype or dtype
    data = var("data", shape=input_shape, dtype=dtype)
    first = _block(data, data, input_shape, weights, "")
    middle = batch_norm_infer(op.nn.bias_add(first, var("bias", dtype=weights)), name="batch_norm")
    body = _block(data, middle, input_shape, weights, "2")
    return Function(free_vars(body), body)


def get_workload(input_shape: tuple[int, ...] = (1, 3, 24, 12), dtype: str = "float32", wtype: str | None = None) -> tuple[IRModule, dict[str, Any]]:
    """The network as a module, and constant values for its parameters."""
    return create_workload(get_net(input_shape, dtype, wtype), initializer=Constant())
