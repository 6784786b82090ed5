"""Operators on images, ``relay.image.*``: resize, crop_and_resize, dilation2d, affine_grid, grid_sample."""
from __future__ import annotations

from .dilation import dilation2d
from .grid import affine_grid, grid_sample
from .resize import crop_and_resize, resize1d, resize2d, resize3d
from .scaled import resize_scaled

__all__ = ["affine_grid", "crop_and_resize", "dilation2d", "grid_sample", "resize1d", "resize2d", "resize3d", "resize_scaled"]
