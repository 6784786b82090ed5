"""The matrices of Winograd's minimal filtering F(m, r), by the Cook–Toom construction.

Points are 0, 1, -1, 1/2, -2, 2, -1/2 …: small mixed fractions keep the transforms' entries, and so the rounding error, small.
"""
from __future__ import annotations

import functools
from fractions import Fraction

import numpy as np

from ...support.errors import ArgumentError

_POINTS = tuple(map(Fraction, ("0", "1", "-1", "1/2", "-2", "2", "-1/2", "4", "-1/4", "1/4", "-4")))


def _times(a: list[Fraction], b: list[Fraction]) -> list[Fraction]:
    out = [Fraction(0)] * (len(a) + len(b) - 1)
    for i, x in enumerate(a):
        for j, y in enumerate(b):
            out[i + j] += x * y
    return out


def _all_but(points: list[Fraction], skip: int) -> list[Fraction]:
    """Coefficients (lowest first) of the product of (x - p) over all points but one."""
    out = [Fraction(1)]
    for i, p in enumerate(points):
        if i != skip:
            out = _times(out, [-p, Fraction(1)])
    return out


@functools.lru_cache(maxsize=None)
def _exact(m: int, r: int) -> tuple[tuple[tuple[Fraction, ...], ...], ...]:
    alpha = m + r - 1
    if alpha - 1 > len(_POINTS) or min(m, r) < 1:
        raise ArgumentError(f"Winograd F({m}, {r}): tiles of {alpha} points are not supported (at most {len(_POINTS) + 1})")
    points = list(_POINTS[:alpha - 1])
    a_t = [[p ** i for p in points] + [Fraction(int(i == m - 1))] for i in range(m)]
    g, b_t = [], []
    for i, p in enumerate(points):
        scale = Fraction(1)
        for j, q in enumerate(points):
            scale *= p - q if j != i else 1
        g.append([p ** k / scale for k in range(r)])
        b_t.append(_all_but(points, i) + [Fraction(0)])
    g.append([Fraction(int(k == r - 1)) for k in range(r)])
    b_t.append(_all_but(points, -1))
    return tuple(tuple(map(tuple, x)) for x in (a_t, b_t, g))


def winograd_transform_arrays(m: int, r: int, dtype: object = "float32") -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(Aᵀ (m, α), B (α, α), G (α, r)) with α = m + r - 1, such that Aᵀ[(G g) ⊙ (Bᵀ d)] correlates d (α) with g (r)."""
    a_t, b_t, g = _exact(m, r)
    return tuple(np.array([[float(v) for v in row] for row in x], dtype) for x in  # type: ignore[return-value]
                 (a_t, tuple(zip(*b_t)), g))
