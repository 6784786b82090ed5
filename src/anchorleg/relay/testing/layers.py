"""Layers that make variables for their parameters, named after the layer."""
from __future__ import annotations

from typing import Any

from ...ir.expr import RelayExpr
from ...support.errors import ArgumentError
from ..expr import var
from ..op import nn

_KERNEL = {"NCHW": "OIHW", "NHWC": "HWIO"}
_DEPTHWISE_KERNEL = {"NCHW": "OIHW", "NHWC": "HWOI"}


def _or_var(given: RelayExpr | None, name: str, ending: str) -> RelayExpr:
    return given if given is not None else var(f"{name}_{ending}")


def batch_norm_infer(data: RelayExpr, gamma: RelayExpr | None = None, beta: RelayExpr | None = None,
                     moving_mean: RelayExpr | None = None, moving_var: RelayExpr | None = None, *, name: str, **kwargs: Any) -> RelayExpr:
    """The first result of ``nn.batch_norm``."""
    parameters = [_or_var(v, name, ending) for v, ending in
                  ((gamma, "gamma"), (beta, "beta"), (moving_mean, "moving_mean"), (moving_var, "moving_var"))]
    return nn.batch_norm(data, *parameters, **kwargs)[0]


def conv2d(data: RelayExpr, weight: RelayExpr | None = None, *, name: str, **kwargs: Any) -> RelayExpr:
    """``nn.conv2d`` with a weight of its own."""
    return nn.conv2d(data, _or_var(weight, name, "weight"), **kwargs)


def conv3d(data: RelayExpr, weight: RelayExpr | None = None, *, name: str, **kwargs: Any) -> RelayExpr:
    """``nn.conv3d`` with a weight of its own."""
    return nn.conv3d(data, _or_var(weight, name, "weight"), **kwargs)


def conv2d_transpose(data: RelayExpr, weight: RelayExpr | None = None, *, name: str, **kwargs: Any) -> RelayExpr:
    """``nn.conv2d_transpose`` with a weight of its own."""
    return nn.conv2d_transpose(data, _or_var(weight, name, "weight"), **kwargs)


def dense_add_bias(data: RelayExpr, weight: RelayExpr | None = None, bias: RelayExpr | None = None, units: int | None = None, *,
                   name: str, **kwargs: Any) -> RelayExpr:
    """``nn.dense`` and ``nn.bias_add``, each with a parameter of its own."""
    product = nn.dense(data, _or_var(weight, name, "weight"), units, **kwargs)
    return nn.bias_add(product, _or_var(bias, name, "bias"), axis=-1)


def conv_kernel_layout(data_layout: str, is_depthwise: bool = False) -> str:
    """The kernel layout that goes with a data layout (NCHW or NHWC)."""
    table = _DEPTHWISE_KERNEL if is_depthwise else _KERNEL
    if data_layout not in table:
        raise ArgumentError(f"a data layout among {', '.join(table)} is expected, got {data_layout!r}")
    return table[data_layout]


def classifier(features: RelayExpr, num_classes: int, name: str) -> RelayExpr:
    """Flattened features → scores → probabilities."""
    return nn.softmax(dense_add_bias(nn.batch_flatten(features), units=num_classes, name=name))
