"""Sampling images at the points of a grid: image.affine_grid, image.grid_sample."""
from __future__ import annotations

from itertools import product
from typing import Any, Callable, Sequence

import numpy as np

from ....ir.attrs import BOOL, OPT_INTS, Attrs, Field
from ....ir.expr import RelayExpr
from ....ir.op import Op, OpPattern
from ....ir.type import TensorType, Type
from ....support.errors import TypeMismatchError
from ...expr import Call
from ..registry import declare
from ..transform.common import choice, same_dim, show
from ..type_relations import tensor, tensors
from .resize import cubic_weights


class AffineGridAttrs(Attrs, name="relay.attrs.AffineGridAttrs"):
    """Attributes of image.affine_grid."""

    target_shape = Field(OPT_INTS, None, "Height and width of the grid.")


class GridSampleAttrs(Attrs, name="relay.attrs.GridSampleAttrs"):
    """Attributes of image.grid_sample."""

    method = Field(choice("nearest", "bilinear", "bicubic"), "bilinear", "The interpolation.")
    layout = Field(choice("NCHW", "NCDHW"), "NCHW", "The layout of the data.")
    padding_mode = Field(choice("zeros", "border", "reflection"), "zeros", "What lies outside of the image.")
    align_corners = Field(BOOL, True, "Whether -1 and 1 are the centres of the outer pixels, rather than their outer edges.")


def _affine_grid_rel(args: tuple[Type, ...], attrs: AffineGridAttrs, ctx: Any) -> Type | None:
    data = tensor(args[0], "data")
    if data is None:
        return None
    if len(data.dims) != 3 or len(attrs.target_shape or ()) != 2:
        raise TypeMismatchError(f"expects matrices (n, 2, 3) and a target_shape of two numbers, got {show(data.dims)} and {attrs.target_shape}")
    same_dim("dimension 1 of data", 2, data.dims[1])
    same_dim("dimension 2 of data", 3, data.dims[2])
    return TensorType([data.dims[0], 2, *attrs.target_shape], data.dtype)


def _steps(n: int, dtype: Any) -> np.ndarray:
    return (-1 + np.arange(n) * (2 / (n - 1) if n > 1 else 0)).astype(dtype)


def _affine_grid_numpy(attrs: AffineGridAttrs, args: list[np.ndarray], out_type: Type) -> np.ndarray:
    theta = args[0]
    height, width = attrs.get_int_tuple("target_shape")
    y, x = _steps(height, theta.dtype)[:, None], _steps(width, theta.dtype)[None, :]
    t = theta[:, :, :, None, None]
    return t[:, :, 0] * x + t[:, :, 1] * y + t[:, :, 2]


def _grid_sample_rel(args: tuple[Type, ...], attrs: GridSampleAttrs, ctx: Any) -> Type | None:
    types = tensors(args, ("data", "grid"))
    if types is None:
        return None
    data, grid = types
    rank = len(attrs.layout)
    if len(data.dims) != rank or len(grid.dims) != rank:
        raise TypeMismatchError(f"layout {attrs.layout} expects data and grid of rank {rank}, got {show(data.dims)} and {show(grid.dims)}")
    same_dim("dimension 1 of grid", rank - 2, grid.dims[1])
    if rank == 5 and attrs.method == "bicubic":
        raise TypeMismatchError("bicubic is for images, not for volumes")
    batch = same_dim("the batch of grid", data.dims[0], grid.dims[0])
    return TensorType([batch, data.dims[1], *grid.dims[2:]], data.dtype)


def _pixel_position(g: np.ndarray, n: int, attrs: GridSampleAttrs) -> np.ndarray:
    at = (g + 1) * g.dtype.type((n - 1) / 2) if attrs.align_corners else ((g + 1) * g.dtype.type(n) - 1) * g.dtype.type(0.5)
    if attrs.method != "bicubic" and attrs.padding_mode == "border":
        return np.clip(at, 0, n - 1)
    if attrs.method != "bicubic" and attrs.padding_mode == "reflection":
        return np.clip(_reflect(at, n, attrs.align_corners), 0, n - 1)
    return at


def _reflect(at: np.ndarray, n: int, align_corners: bool) -> np.ndarray:
    """Positions reflected at the outer pixels' centres, or edges, until they lie between them."""
    low, span = (0.0, n - 1.0) if align_corners else (-0.5, float(n))
    if span <= 0:
        return np.zeros_like(at)
    rest = np.mod(np.abs(at - at.dtype.type(low)), at.dtype.type(2 * span))
    return (np.minimum(rest, at.dtype.type(2 * span) - rest) + at.dtype.type(low)).astype(at.dtype)


def _sampler(data: np.ndarray, attrs: GridSampleAttrs) -> Callable[[Sequence[np.ndarray]], np.ndarray]:
    """A function from index arrays, one an axis, to pixels (batch × channel × grid), with what lies outside of the image."""
    sizes, batch = data.shape[2:], np.arange(data.shape[0])

    def pick(index: Sequence[np.ndarray]) -> np.ndarray:
        if attrs.padding_mode == "reflection":
            index = [_reflect(i.astype(np.float64), n, attrs.align_corners) for i, n in zip(index, sizes)]
        inside = np.ones(index[0].shape, bool)
        for i, n in zip(index, sizes):
            inside &= (i >= 0) & (i <= n - 1)
        where = [np.clip(np.nan_to_num(i), 0, n - 1).astype(np.int64) for i, n in zip(index, sizes)]
        n = batch.reshape([-1] + [1] * (where[0].ndim - 1))
        found = np.moveaxis(data[(n, slice(None), *where)], -1, 1)
        return found * inside[:, None] if attrs.padding_mode == "zeros" else found

    return pick


def _grid_sample_numpy(attrs: GridSampleAttrs, args: list[np.ndarray], out_type: Type) -> np.ndarray:
    data, grid = args
    sizes = data.shape[2:]
    at = [_pixel_position(grid[:, len(sizes) - 1 - i], n, attrs) for i, n in enumerate(sizes)]
    pick = _sampler(data, attrs)
    if attrs.method == "nearest":
        return pick([np.rint(a) for a in at])
    low = [np.floor(a) for a in at]
    if attrs.method == "bilinear":
        weights = [np.stack([1 - (a - f), a - f]) for a, f in zip(at, low)]
        first = 0
    else:
        weights = [cubic_weights(a - f, -0.75) for a, f in zip(at, low)]
        first = -1
    out = np.zeros((data.shape[0], data.shape[1], *grid.shape[2:]), data.dtype)
    for taps in product(range(len(weights[0])), repeat=len(sizes)):
        weight = np.prod([w[t] for w, t in zip(weights, taps)], axis=0)
        out = out + weight[:, None] * pick([f + (t + first) for f, t in zip(low, taps)])
    return out


declare("image.affine_grid", attrs=AffineGridAttrs, relation=_affine_grid_rel, pattern=OpPattern.INJECTIVE, numpy=_affine_grid_numpy,
        level=5, doc="A regular grid over [-1, 1] x [-1, 1], moved by affine maps.")
declare("image.grid_sample", inputs=("data", "grid"), attrs=GridSampleAttrs, relation=_grid_sample_rel, pattern=OpPattern.INJECTIVE,
        numpy=_grid_sample_numpy, level=5, doc="The values of an image at the points of a grid.")


def affine_grid(data: RelayExpr, target_shape: Any = None) -> Call:
    """The points (x, y) along axis 1 of a grid of ``target_shape`` over the unit square, under the affine maps ``data`` (n, 2, 3)."""
    return Call(Op.get("image.affine_grid"), [data], AffineGridAttrs(target_shape=target_shape))


def grid_sample(data: RelayExpr, grid: RelayExpr, method: str = "bilinear", layout: str = "NCHW", padding_mode: str = "zeros",
                align_corners: bool = True) -> Call:
    """``data`` at the points of ``grid`` (n, 2, h, w) or (n, 3, d, h, w), which hold x, y(, z) between -1 and 1 along axis 1.

    ``method``: nearest, bilinear (trilinear for volumes) or bicubic.  Outside of the image lie zeros, its border, or its
    reflection, by ``padding_mode``.
    """
    attrs = GridSampleAttrs(method=method, layout=layout, padding_mode=padding_mode, align_corners=align_corners)
    return Call(Op.get("image.grid_sample"), [data, grid], attrs)


__all__ = ["AffineGridAttrs", "GridSampleAttrs", "affine_grid", "grid_sample"]
