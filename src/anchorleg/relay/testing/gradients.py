"""Comparing derived gradients with differences."""
from __future__ import annotations

from typing import Any, Callable, Sequence

import numpy as np

from ...support.errors import ArgumentError
from ..function import Function
from ..transform import InferType, Legalize, gradient
from . import run_opt_pass


def check_grad(func: Function, inputs: Sequence[np.ndarray] | None = None, test_inputs: Sequence[np.ndarray] | None = None, eps: float = 1e-6,
               atol: float = 1e-5, rtol: float = 1e-3, scale: float | None = None, mean: float = 0, mode: str = "higher_order",
               target_devices: Sequence[tuple[Any, Any]] | None = None, executor_kind: str = "debug") -> None:
    """AssertionError unless the derived gradients of ``func`` are those of two-sided differences of the sum of its result.

    inputs: arrays of the parameters' shapes and dtypes; by default normal numbers around ``mean`` with deviation ``scale`` (ten
    times ``eps``). Use double precision for small ``eps``.
    test_inputs: those among ``inputs`` (the same objects) whose gradients are compared; by default all.
    target_devices: (target, device) pairs; by default every enabled one. ``executor_kind``: as for ``relay.create_executor``.
    """
    from ...testing.targets import enabled_targets

    forward = run_opt_pass(func, InferType())
    derived = run_opt_pass(run_opt_pass(gradient(forward, mode=mode), InferType()), Legalize())
    if inputs is None:
        spread = 10 * eps if scale is None else scale
        inputs = [_normal(p.checked_type, spread, mean) for p in forward.params]
    wanted = _positions(inputs, inputs if test_inputs is None else test_inputs)
    for target, device in enabled_targets() if target_devices is None else target_devices:
        run_forward, run_derived = (_callable(f, executor_kind, device, target) for f in (forward, derived))
        _, found = run_derived(*inputs)
        for i in wanted:
            np.testing.assert_allclose(found[i].numpy().astype("float64"), _slope(run_forward, inputs, i, eps), atol=atol, rtol=rtol)


def _normal(ty: Any, scale: float, mean: float) -> np.ndarray:
    return np.asarray(mean + scale * np.random.randn(*map(int, ty.shape))).astype(ty.dtype)


def _positions(inputs: Sequence[Any], wanted: Sequence[Any]) -> list[int]:
    found = [i for i, x in enumerate(inputs) if any(x is w for w in wanted)]
    if not found:
        raise ArgumentError("check_grad: test_inputs must be among inputs, and at least one")
    return found


def _callable(func: Any, kind: str, device: Any, target: Any) -> Callable[..., Any]:
    from ..executors import create_executor

    return create_executor(kind, device=device, target=target).evaluate(func)


def _slope(run: Callable[..., Any], inputs: Sequence[np.ndarray], position: int, eps: float) -> np.ndarray:
    """The differences of the result's sum, an element of one input at a time."""
    point = inputs[position]
    slope = np.zeros(point.shape)

    def at(index: tuple[int, ...], value: Any) -> np.ndarray:
        moved = point.copy()
        moved[index] = value
        return run(*inputs[:position], moved, *inputs[position + 1:]).numpy().astype("float64")

    for index in np.ndindex(*point.shape):
        slope[index] = np.sum((at(index, point[index] + eps) - at(index, point[index] - eps)) / (2 * eps))
    return slope
