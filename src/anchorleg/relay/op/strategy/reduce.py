"""Strategies of reductions."""
from __future__ import annotations

from typing import Any, Callable

from .... import topi
from ..reduce import reduced_axes
from .generic import register_reduction


def _axes(attrs: Any, data: Any) -> tuple[int, ...]:
    return reduced_axes(len(data.shape), attrs)


def _reduce(fn: Callable[..., Any]) -> Any:
    return lambda attrs, inputs, out_type: [fn(inputs[0], _axes(attrs, inputs[0]), attrs.keepdims)]


def _arg(fn: Callable[..., Any]) -> Any:
    return lambda attrs, inputs, out_type: [fn(inputs[0], _axes(attrs, inputs[0]), attrs.keepdims, attrs.select_last_index, out_type.dtype)]


def _variance(attrs: Any, inputs: list[Any], out_type: Any) -> list[Any]:
    return [topi.variance(inputs[0], inputs[1], _axes(attrs, inputs[0]), attrs.keepdims, attrs.unbiased)]


for _name in ("sum", "prod", "max", "min", "all", "any", "mean", "logsumexp"):
    register_reduction(_name, _reduce(getattr(topi, _name)))
for _name in ("argmax", "argmin"):
    register_reduction(_name, _arg(getattr(topi, _name)))
register_reduction("variance", _variance)
