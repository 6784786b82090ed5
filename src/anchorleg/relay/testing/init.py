"""Initial values of a network's parameters, by the endings of their names."""
from __future__ import annotations

from typing import Any

import numpy as np

from ...ir.module import IRModule
from ...support.errors import ArgumentError
from ..function import Function

_FIXED = {"bias": 0.0, "gamma": 1.0, "beta": 0.0, "mean": 0.0, "var": 1.0}


class Initializer:
    """Fills an array by its name: ``…_weight`` as the subclass says, others with constants."""

    def __call__(self, name: str, array: np.ndarray) -> None:
        for ending, value in _FIXED.items():
            if name.endswith(ending):
                array[...] = value
                return
        if not name.endswith("weight"):
            raise ArgumentError(f"no initial value is known for a parameter named {name!r}; "
                                f"names are expected to end in weight, {', '.join(_FIXED)}")
        self.weight(name, array)

    def weight(self, name: str, array: np.ndarray) -> None:
        """Fills a weight."""
        raise NotImplementedError


class Xavier(Initializer):
    """Uniform weights whose spread follows from the numbers of inputs and outputs (Glorot and Bengio, 2010)."""

    def __init__(self, rnd_type: str = "uniform", factor_type: str = "avg", magnitude: float = 3) -> None:
        if rnd_type != "uniform":
            raise ArgumentError(f"Xavier: rnd_type is expected to be 'uniform', got {rnd_type!r}")
        if factor_type not in ("avg", "in", "out"):
            raise ArgumentError(f"Xavier: factor_type is expected to be 'avg', 'in' or 'out', got {factor_type!r}")
        self.factor_type, self.magnitude = factor_type, float(magnitude)

    def weight(self, name: str, array: np.ndarray) -> None:
        if array.ndim < 2:
            raise ArgumentError(f"Xavier: a weight of at least two dimensions is expected, {name!r} has {array.ndim}")
        window = float(np.prod(array.shape[2:]))
        inputs, outputs = array.shape[1] * window, array.shape[0] * window
        factor = {"avg": (inputs + outputs) / 2, "in": inputs, "out": outputs}[self.factor_type]
        if "depthwise" in name:  # one input channel for each output
            factor = window
        spread = np.sqrt(self.magnitude / factor)
        array[...] = np.random.uniform(-spread, spread, size=array.shape)


class Constant(Initializer):
    """Equal weights that sum to 1."""

    def weight(self, name: str, array: np.ndarray) -> None:
        array[...] = 1.0 / array.size


def create_workload(net: Function, initializer: Initializer | None = None, seed: int = 0) -> tuple[IRModule, dict[str, Any]]:
    """A typed module of the network, and values for all its parameters but ``data``, the same for the same seed."""
    from ...runtime import ndarray
    from ..transform import InferType

    mod = InferType()(IRModule.from_expr(net))
    np.random.seed(seed)
    fill = initializer or Xavier()
    params = {}
    for var in mod["main"].params:
        if var.name_hint != "data":
            value = np.zeros(var.checked_type.concrete_shape, var.checked_type.dtype)
            fill(var.name_hint, value)
            params[var.name_hint] = ndarray.array(value)
    return mod, params
