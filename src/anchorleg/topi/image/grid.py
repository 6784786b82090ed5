"""affine_grid and grid_sample."""
from __future__ import annotations

from itertools import product
from typing import Any, Sequence

from ... import te
from ... import tir
from ...te.tensor import Tensor
from ..elemwise import scalar_cast
from ..tag import INJECTIVE
from ..utils import get_const_int
from .resize import cubic_weights


def affine_grid(data: Tensor, target_shape: Sequence[int]) -> Tensor:
    """The points (x, y) of a grid over the unit square under the affine maps ``data`` (n, 2, 3)."""
    height, width = (int(s) for s in target_shape)

    def step(k: Any, n: int) -> Any:
        along = tir.op.cast(k, "float64") * tir.const(2 / (n - 1) if n > 1 else 0.0, "float64") - tir.const(1, "float64")
        return tir.op.cast(along, data.dtype)

    def element(n: Any, d: Any, i: Any, j: Any) -> Any:
        return data(n, d, 0) * step(j, width) + data(n, d, 1) * step(i, height) + data(n, d, 2)

    return te.compute((data.shape[0], 2, height, width), element, name="affine_grid", tag=INJECTIVE)


class _Sampler:
    """Reads pixels at positions that may lie outside of the image."""

    def __init__(self, data: Tensor, method: str, padding_mode: str, align_corners: bool) -> None:
        self.data, self.method, self.padding, self.align = data, method, padding_mode, align_corners
        self.sizes = [get_const_int(d) for d in data.shape[2:]]
        self.dtype = data.dtype if data.dtype == "float64" else "float32"

    def const(self, v: float) -> Any:
        """A constant in the type of positions."""
        return tir.const(v, self.dtype)

    def position(self, g: Any, n: int) -> Any:
        """The position in pixels of a grid value."""
        g = tir.op.cast(g, self.dtype)
        one = self.const(1)
        at = (g + one) * self.const((n - 1) / 2) if self.align else ((g + one) * self.const(n) - one) * self.const(0.5)
        if self.method == "bicubic" or self.padding == "zeros":
            return at
        return self.clip(self.reflect(at, n) if self.padding == "reflection" else at, n)

    def clip(self, at: Any, n: int) -> Any:
        """The nearest position within the image."""
        return tir.op.maximum(tir.op.minimum(at, self.const(n - 1)), self.const(0))

    def reflect(self, at: Any, n: int) -> Any:
        """A position reflected at the outer pixels' centres, or edges, until it lies between them."""
        low, span = (0.0, n - 1.0) if self.align else (-0.5, float(n))
        if span <= 0:
            return self.const(0)
        period = self.const(2 * span)
        away = tir.abs(at - self.const(low))
        rest = away - tir.floor(away / period) * period
        return tir.op.minimum(rest, period - rest) + self.const(low)

    def pixel(self, n: Any, c: Any, where: Sequence[Any]) -> Any:
        """The pixel at whole-numbered positions, or what lies there outside of the image."""
        if self.padding == "reflection":
            where = [self.reflect(w, size) for w, size in zip(where, self.sizes)]
        indices = [self.index(w, size) for w, size in zip(where, self.sizes)]
        value = tir.op.cast(self.data(n, c, *indices), self.dtype)
        if self.padding != "zeros":
            return value
        inside = [x for w, size in zip(where, self.sizes) for x in (tir.op.greater_equal(w, self.const(0)), tir.op.less_equal(w, self.const(size - 1)))]
        return tir.op.select(tir.all(*inside), value, self.const(0))

    def index(self, at: Any, n: int) -> Any:
        """A position as an index within the image; undefined positions become 0."""
        return tir.op.cast(tir.op.select(tir.isnan(at), self.const(0), self.clip(at, n)), "int64")


def grid_sample(data: Tensor, grid: Tensor, method: str = "bilinear", layout: str = "NCHW", padding_mode: str = "zeros",
                align_corners: bool = True) -> Tensor:
    """``data`` (NCHW or NCDHW) at the points of ``grid``, which hold x, y(, z) along axis 1."""
    sampler = _Sampler(data, method, padding_mode, align_corners)
    rank = len(sampler.sizes)
    positions = te.compute((grid.shape[0], rank, *grid.shape[2:]), lambda n, d, *i: _position(sampler, grid, n, d, i, rank),
                           name="grid_position", tag="grid_position")

    def element(n: Any, c: Any, *i: Any) -> Any:
        at = [positions(n, d, *i) for d in range(rank)]
        return scalar_cast(_interpolate(sampler, n, c, at), data.dtype)

    return te.compute((data.shape[0], data.shape[1], *grid.shape[2:]), element, name="grid_sample", tag=INJECTIVE)


def _position(sampler: _Sampler, grid: Tensor, n: Any, d: Any, i: Sequence[Any], rank: int) -> Any:
    """The position along spatial axis ``d`` (0: the slowest), which the grid stores last."""
    value: Any = None
    for k in reversed(range(rank)):
        at = sampler.position(grid(n, rank - 1 - k, *i), sampler.sizes[k])
        value = at if value is None else tir.op.select(tir.op.equal(d, k), at, value)
    return value


def _interpolate(sampler: _Sampler, n: Any, c: Any, at: Sequence[Any]) -> Any:
    if sampler.method == "nearest":
        return sampler.pixel(n, c, [tir.nearbyint(a) for a in at])
    low = [tir.floor(a) for a in at]
    rest = [a - f for a, f in zip(at, low)]
    one = sampler.const(1)
    weights = [[one - r, r] for r in rest] if sampler.method == "bilinear" else [cubic_weights(r, -0.75) for r in rest]
    first = 0 if sampler.method == "bilinear" else -1
    total: Any = None
    for taps in product(range(len(weights[0])), repeat=len(at)):
        weight: Any = None
        for w, t in zip(weights, taps):
            weight = w[t] if weight is None else weight * w[t]
        term = weight * sampler.pixel(n, c, [f + sampler.const(t + first) for f, t in zip(low, taps)])
        total = term if total is None else total + term
    return total


__all__ = ["affine_grid", "grid_sample"]
