"""Computes on images."""
from __future__ import annotations

from .dilation import dilation2d
from .grid import affine_grid, grid_sample
from .resize import crop_and_resize, resize, resize1d, resize2d, resize3d

__all__ = ["affine_grid", "crop_and_resize", "dilation2d", "grid_sample", "resize", "resize1d", "resize2d", "resize3d"]
