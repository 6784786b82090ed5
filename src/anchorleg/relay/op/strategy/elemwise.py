"""Strategies of element-wise, broadcast, converting and creating operators."""
from __future__ import annotations

from typing import Any

from .... import topi
from ..tensor import binary, unary
from .generic import register_injective, wrap_topi_compute

_SAME_NAME = [n for n in (*unary.__all__, *binary.__all__) if n != "copy"]

for _name in _SAME_NAME:
    register_injective(_name, wrap_topi_compute(getattr(topi, _name)))

# operators whose computes need attributes or the result's type
_COMPUTES: dict[str, Any] = {
    "copy": lambda attrs, inputs, out_type: [topi.identity(inputs[0])],
    "cast": lambda attrs, inputs, out_type: [topi.cast(inputs[0], out_type.dtype)],
    "cast_like": lambda attrs, inputs, out_type: [topi.cast(inputs[0], out_type.dtype)],
    "reinterpret": lambda attrs, inputs, out_type: [topi.reinterpret(inputs[0], out_type.dtype)],
    "clip": lambda attrs, inputs, out_type: [topi.clip(inputs[0], attrs.a_min, attrs.a_max)],
    "fixed_point_multiply": lambda attrs, inputs, out_type: [topi.fixed_point_multiply(inputs[0], attrs.multiplier, attrs.shift)],
    "fixed_point_multiply_per_axis": lambda attrs, inputs, out_type: [topi.fixed_point_multiply_per_axis(
        *inputs, attrs.is_lshift_required, attrs.is_rshift_required, attrs.axes)],
    "zeros": lambda attrs, inputs, out_type: [topi.full(out_type.dims, out_type.dtype, 0)],
    "ones": lambda attrs, inputs, out_type: [topi.full(out_type.dims, out_type.dtype, 1)],
    "full": lambda attrs, inputs, out_type: [topi.full(out_type.dims, out_type.dtype, inputs[0])],
    "full_like": lambda attrs, inputs, out_type: [topi.full_like(*inputs)],
    "zeros_like": lambda attrs, inputs, out_type: [topi.zeros_like(inputs[0])],
    "ones_like": lambda attrs, inputs, out_type: [topi.ones_like(inputs[0])],
    "device_copy": lambda attrs, inputs, out_type: [topi.identity(inputs[0])],
    "annotation.stop_fusion": lambda attrs, inputs, out_type: [topi.identity(inputs[0])],
    "annotation.checkpoint": lambda attrs, inputs, out_type: [topi.identity(inputs[0])],
}

for _name, _compute in _COMPUTES.items():
    register_injective(_name, _compute)
