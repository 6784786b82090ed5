"""Strategies of the operators that order elements."""
from __future__ import annotations

from typing import Any, Callable

from ....topi.sort import argsort, searchsorted, sort, topk
from ..op import register_strategy
from .generic import as_outputs, naive_schedule, simple_strategy


def _topk(attrs: Any, inputs: list[Any], out_type: Any) -> list[Any]:
    return as_outputs(topk(inputs[0], attrs.k, attrs.axis, attrs.ret_type, attrs.is_ascend, attrs.dtype or "int32"))


COMPUTES: dict[str, Callable[..., Any]] = {
    "sort": lambda attrs, inputs, out_type: [sort(inputs[0], attrs.axis, attrs.is_ascend)],
    "argsort": lambda attrs, inputs, out_type: [argsort(inputs[0], None, attrs.axis, attrs.is_ascend, out_type.dtype)],
    "topk": _topk,
    "searchsorted": lambda attrs, inputs, out_type: [searchsorted(inputs[0], inputs[1], attrs.right, out_type.dtype)],
}

for _name, _compute in COMPUTES.items():
    register_strategy(_name, simple_strategy(_compute, naive_schedule, f"{_name}.generic"))
