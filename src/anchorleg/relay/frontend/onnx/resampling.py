"""Resampling along axes whose sizes, before or after, only a running model knows.

Places and weights are worked out in the model, in float32 as other runtimes do it: for each place of the result the place in
the data that it shows, and the few elements around it with what each counts.
"""
from __future__ import annotations

from typing import TYPE_CHECKING, Any, Callable, NamedTuple

from ....ir.expr import RelayExpr
from ....support.errors import ArgumentError, UnsupportedOpError
from ...op.transform.create import arange
from .context import NodeContext
from .make import call, cast, const, expand_dims, where

if TYPE_CHECKING:
    from .ops.resize import Spec


TIE = 1e-6  # a position this near to a half is one: positions in float32 are not exact

SIMPLE = "simple"  # how models older than version 11 round: up where the axis shrinks, else down


class Stretch(NamedTuple):
    """One axis: int64 scalars for its sizes before and after, the float32 scale between them, and the region's begin and end (float32)."""

    size: RelayExpr
    out: RelayExpr
    scale: RelayExpr
    roi: tuple[RelayExpr, RelayExpr] | None = None


def number(value: float) -> RelayExpr:
    """A float32 scalar."""
    return const(value, "float32")


def _int(value: int) -> RelayExpr:
    return const(value, "int64")


def _float(x: RelayExpr) -> RelayExpr:
    return cast(x, "float32")


def _half_pixel(x: RelayExpr, s: Stretch) -> RelayExpr:
    return call("subtract", call("divide", call("add", x, number(0.5)), s.scale), number(0.5))


def _where_several(s: Stretch, places: RelayExpr) -> RelayExpr:
    return where(call("greater", s.out, _int(1)), places, number(0))


def _align_corners(x: RelayExpr, s: Stretch) -> RelayExpr:
    last = call("maximum", call("subtract", _float(s.out), number(1)), number(1))
    return _where_several(s, call("divide", call("multiply", x, call("subtract", _float(s.size), number(1))), last))


def _symmetric(x: RelayExpr, s: Stretch) -> RelayExpr:
    """As half_pixel, moved so that the middle of the result shows the middle of the data: in float64, as other runtimes do it."""
    size = _float(s.size)
    short = call("subtract", number(1), call("divide", _float(s.out), call("multiply", s.scale, size)))
    offset = call("multiply", call("divide", size, number(2)), short)
    half, scale = const(0.5, "float64"), cast(s.scale, "float64", "float32")
    place = call("divide", call("add", cast(x, "float64", "float32"), half), scale)
    return _float(call("subtract", call("add", cast(offset, "float64", "float32"), place), half))


def _crop(x: RelayExpr, s: Stretch) -> RelayExpr:
    assert s.roi is not None
    (first, last), end = s.roi, call("subtract", _float(s.size), number(1))
    step = call("multiply", call("multiply", x, call("subtract", last, first)), end)
    several = call("add", call("multiply", first, end), call("divide", step, call("maximum", call("subtract", _float(s.out), number(1)), number(1))))
    return where(call("greater", s.out, _int(1)), several, call("multiply", call("multiply", number(0.5), call("add", first, last)), end))


_COORDINATES: dict[str, Callable[[RelayExpr, Stretch], RelayExpr]] = {
    "half_pixel": _half_pixel,
    "pytorch_half_pixel": lambda x, s: _where_several(s, _half_pixel(x, s)),
    "align_corners": _align_corners,
    "asymmetric": lambda x, s: call("divide", x, s.scale),
    "tf_half_pixel_for_nn": lambda x, s: where(call("equal", s.scale, number(1)), x, call("divide", call("add", x, number(0.5)), s.scale)),
    "half_pixel_symmetric": _symmetric,
    "tf_crop_and_resize": _crop,
}

def _rounded(x: RelayExpr, compare: str, half: float) -> RelayExpr:
    """``x`` rounded up where what it has beyond a whole number is more than a half."""
    whole = call("floor", x)
    return call("add", whole, _float(call(compare, call("subtract", x, whole), number(half))))


_ROUND: dict[str, Callable[[RelayExpr, Stretch], RelayExpr]] = {
    "round_prefer_floor": lambda x, s: _rounded(x, "greater", 0.5 + TIE),
    "round_prefer_ceil": lambda x, s: _rounded(x, "greater_equal", 0.5 - TIE),
    "floor": lambda x, s: call("floor", x),
    "ceil": lambda x, s: call("ceil", x),
    SIMPLE: lambda x, s: where(call("less", s.scale, number(1)), call("ceil", x), call("floor", x)),
}


def _linear(t: RelayExpr, a: float) -> RelayExpr:
    return call("maximum", call("subtract", number(1), call("abs", t)), number(0))


def _polynomial(t: RelayExpr, factors: list[float]) -> RelayExpr:
    """The value of a polynomial, its factors from the highest power down."""
    total = number(factors[0])
    for f in factors[1:]:
        total = call("add", call("multiply", total, t), number(f))
    return total


def _cubic(t: RelayExpr, a: float) -> RelayExpr:
    t = call("abs", t)
    near, far = _polynomial(t, [a + 2, -(a + 3), 0, 1]), _polynomial(t, [a, -5 * a, 8 * a, -4 * a])
    return where(call("less_equal", t, number(1)), near, where(call("less", t, number(2)), far, number(0)))


_TAPS = {"linear": ((0, 1), _linear), "cubic": ((-1, 0, 1, 2), _cubic)}


def check(spec: Spec) -> None:
    """UnsupportedOpError for a way of resampling that needs known sizes."""
    if spec.coordinates not in _COORDINATES:
        raise ArgumentError(f"coordinate_transformation_mode {spec.coordinates!r} is not known")
    if spec.mode not in ("nearest", *_TAPS):
        raise ArgumentError(f"mode must be nearest, linear or cubic, got {spec.mode!r}")
    if spec.antialias and spec.mode != "nearest":
        raise UnsupportedOpError("antialias needs the sizes of the axes that are resized: give the sizes of the model's inputs with shape={name: (…)}")
    if spec.mode == "nearest" and spec.nearest not in _ROUND:
        raise ArgumentError(f"nearest_mode must be one of {', '.join(_ROUND)}, got {spec.nearest!r}")


def resample(n: NodeContext, x: RelayExpr, at: int, spec: Spec, stretch: Stretch) -> RelayExpr:
    """``x`` (of floats, unless the nearest element is taken) resampled along axis ``at``."""
    steps = arange(stretch.out, dtype="int64")
    places, last = _COORDINATES[spec.coordinates](_float(steps), stretch), call("subtract", stretch.size, _int(1))

    def taken(place: RelayExpr) -> RelayExpr:
        inside = call("maximum", call("minimum", cast(place, "int64"), last), _int(0))
        return call("take", x, inside, axis=at, batch_dims=0, mode="clip")

    if spec.mode == "nearest":
        return taken(_ROUND[spec.nearest](places, stretch))
    (places,) = n.settled(places)
    parts = [call("multiply", taken(place), _along(n, weight, n.rank(x) - 1 - at, n.dtype(x))) for place, weight in _weighted(spec, places, stretch)]
    return _sum(parts)


def _weighted(spec: Spec, places: RelayExpr, stretch: Stretch) -> list[tuple[RelayExpr, RelayExpr]]:
    """The elements that count at each place, and what each of them counts."""
    steps, weight = _TAPS[spec.mode]
    base = call("floor", places)
    taps = [call("add", base, number(step)) for step in steps]
    weights = [weight(call("subtract", places, tap), spec.cubic_a) for tap in taps]
    if spec.exclude_outside:
        kept = [where(_is_inside(tap, stretch), w, number(0)) for tap, w in zip(taps, weights)]
        total = _sum(kept)
        weights = [call("divide", w, total) for w in kept]
    return list(zip(taps, weights))


def _sum(parts: list[RelayExpr]) -> RelayExpr:
    total = parts[0]
    for part in parts[1:]:
        total = call("add", total, part)
    return total


def _is_inside(places: RelayExpr, s: Stretch) -> RelayExpr:
    return call("logical_and", call("greater_equal", places, number(0)), call("less_equal", places, call("subtract", _float(s.size), number(1))))


def extrapolate(n: NodeContext, y: RelayExpr, at: int, spec: Spec, stretch: Stretch) -> RelayExpr:
    """``y``, resampled along axis ``at``, with the extrapolation value where the region leaves the data."""
    inside = _is_inside(_COORDINATES[spec.coordinates](_float(arange(stretch.out, dtype="int64")), stretch), stretch)
    (inside,) = n.settled(inside)
    return where(expand_dims(inside, 1, n.rank(y) - 1 - at), y, n.like(spec.extrapolation, y))


def _along(n: NodeContext, weights: RelayExpr, behind: int, dtype: str) -> RelayExpr:
    """A vector as weights of an axis with that many axes behind it."""
    return expand_dims(cast(weights, dtype, "float32"), 1, behind)


def by_scale(size: RelayExpr, scale: Any) -> Stretch:
    """An axis stretched by a scale (a float, or a float32 scalar): the new size is rounded down."""
    if not isinstance(scale, RelayExpr):
        scale = number(float(scale))
    return Stretch(size, cast(call("floor", call("multiply", _float(size), scale)), "int64"), scale)


def in_proportion(stretches: list[Stretch], policy: str) -> list[Stretch]:
    """Axes stretched by one scale, the least (not_larger) or the largest (not_smaller) of theirs; sizes are rounded."""
    one = stretches[0].scale
    for s in stretches[1:]:
        one = call("minimum" if policy == "not_larger" else "maximum", one, s.scale)
    half = number(0.5)
    return [Stretch(s.size, cast(call("floor", call("add", call("multiply", _float(s.size), one), half)), "int64"), one, s.roi) for s in stretches]


def by_size(size: RelayExpr, out: RelayExpr) -> Stretch:
    """An axis stretched to a size."""
    return Stretch(size, out, call("divide", _float(out), _float(size)))


__all__ = ["SIMPLE", "TIE", "Stretch", "by_scale", "by_size", "check", "extrapolate", "in_proportion", "resample"]
