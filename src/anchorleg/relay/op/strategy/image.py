"""Strategies of the operators on images."""
from __future__ import annotations

from typing import Any, Callable

from ....topi.image import affine_grid, crop_and_resize, dilation2d, grid_sample, resize
from ..image.dilation import four_pads
from .generic import register_injective, register_reduction


def _resize(n: int) -> Callable[..., Any]:
    def compute(attrs: Any, inputs: list[Any], out_type: Any) -> list[Any]:
        return [resize(n, inputs[0], attrs.size, attrs.roi, attrs.layout, attrs.method, attrs.coordinate_transformation_mode,
                       attrs.rounding_method, attrs.cubic_alpha, attrs.cubic_exclude, attrs.extrapolation_value, out_type.dtype)]

    return compute


def _crop(attrs: Any, inputs: list[Any], out_type: Any) -> list[Any]:
    return [crop_and_resize(*inputs, attrs.crop_size, attrs.layout, attrs.method, attrs.extrapolation_value, out_type.dtype)]


def _dilation(attrs: Any, inputs: list[Any], out_type: Any) -> list[Any]:
    return [dilation2d(*inputs, attrs.strides, four_pads(attrs.padding), attrs.dilations, attrs.data_layout, attrs.kernel_layout,
                       out_type.dims, out_type.dtype)]


COMPUTES: dict[str, Callable[..., Any]] = {
    "image.resize1d": _resize(1),
    "image.resize2d": _resize(2),
    "image.resize3d": _resize(3),
    "image.crop_and_resize": _crop,
    "image.affine_grid": lambda attrs, inputs, out_type: [affine_grid(inputs[0], attrs.target_shape)],
    "image.grid_sample": lambda attrs, inputs, out_type: [grid_sample(*inputs, attrs.method, attrs.layout, attrs.padding_mode, attrs.align_corners)],
}

for _name, _compute in COMPUTES.items():
    register_injective(_name, _compute)
register_reduction("image.dilation2d", _dilation)
