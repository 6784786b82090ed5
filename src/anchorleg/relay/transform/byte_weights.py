"""ByteWeights: float weights that are bytes times a scale per output are kept as bytes, and the products are scaled instead.

before (every row of ``W`` is ``S[i]`` times whole numbers from -128 to 127, exactly)::

    nn.dense(%x, W)

after::

    multiply(nn.dense(%x, Q, out_dtype="float32"), S)        # Q: int8

A product with few rows waits for its weights to come from memory, of which there are then a quarter.  How the weights came to be
(a model quantised by weights alone, dequantised constants) does not matter: the values tell.
"""
from __future__ import annotations

from typing import Any, Iterator, NamedTuple

import numpy as np

from ...ir.expr import RelayExpr
from ...ir.type import TensorType
from ...target.target import Target
from ..expr import Constant
from ..function import Function
from .common import call, constant, declare_pass, is_op, mentions, rewrite_exprs

SMALL = 1 << 16   # elements of a weight that stays in the cache in any case
MANY_ROWS = 64    # rows from which arithmetic takes the time, not memory
_TRIED_FIRST = 4  # outputs that tell whether the rest is worth looking at


class Scaled(NamedTuple):
    """A matrix (units, in) of whole numbers, and the scale of each unit."""

    values: np.ndarray
    scales: np.ndarray


def scaled_integers(weight: np.ndarray, low: int = -128, high: int = 127) -> Scaled | None:
    """A float32 matrix as int16 numbers from ``low`` to ``high`` and scales whose products are exactly its elements; None when there are none."""
    if not np.isfinite(weight).all():
        return None
    first = weight[:_TRIED_FIRST]
    if weight.size > SMALL and _rows(first, low, high, np.abs(first).max()) is None:
        return None
    return _rows(weight, low, high, np.abs(weight).max(initial=0))


def _rows(weight: np.ndarray, low: int, high: int, most: float) -> Scaled | None:
    values, scales = np.zeros(weight.shape, np.int16), np.ones(len(weight), np.float32)
    left = np.flatnonzero(weight.any(axis=1))
    for candidate in _candidates(weight, most, max(-low, high)):
        if not len(left):
            break
        rows, scale = weight[left], candidate[left]
        found, fits = _exactly(rows, scale, low, high)
        if fits.any():
            found, scale = _smallest(rows, found, scale, low, high)
        values[left[fits]], scales[left[fits]] = found[fits], scale[fits]
        left = left[~fits]
    return None if len(left) else Scaled(values, scales)


def _smallest(rows: np.ndarray, found: np.ndarray, scale: np.ndarray, low: int, high: int) -> tuple[np.ndarray, np.ndarray]:
    """Numbers that are all multiples of one divided by it, where the larger scale is as exact."""
    common = np.maximum(np.gcd.reduce(found.astype(np.int64), axis=1), 1)
    larger = (scale * common).astype(np.float32)
    fewer, fits = _exactly(rows, larger, low, high)
    return np.where(fits[:, None], fewer, found), np.where(fits, larger, scale)


def _exactly(rows: np.ndarray, scale: np.ndarray, low: int, high: int) -> tuple[np.ndarray, np.ndarray]:
    """(whole multiples of the scales, whether these times the scales are the rows)"""
    with np.errstate(all="ignore"):
        whole = np.rint(rows / scale[:, None])
        fits = ((whole >= low) & (whole <= high) & (whole.astype(np.float32) * scale[:, None] == rows)).all(axis=1)
    return np.where(fits[:, None], whole, 0).astype(np.int16), fits


def _candidates(weight: np.ndarray, most: float, limit: int) -> Iterator[np.ndarray]:
    """Scales to try, the likeliest first: the largest element is 127 (128, 255) of them, in its row or in all; or the least distance tells."""
    top = np.abs(weight).max(axis=1)
    whole = np.full_like(top, most)
    for count in (n for n in (127, 128, 255) if n <= limit):
        yield from _near(top / count)
        yield from _near(whole / count)
    for rows, largest in ((weight, top), (weight.reshape(1, -1), whole)):
        yield from _near(largest / _steps(rows, limit))


def _near(scale: np.ndarray) -> Iterator[np.ndarray]:
    """A scale and the floats beside it: what it was divided from was rounded."""
    scale = scale.astype(np.float32)
    yield from (scale, np.nextafter(scale, np.float32(0)), np.nextafter(scale, np.float32(np.inf)))


def _steps(rows: np.ndarray, limit: int) -> np.ndarray:
    """How many of the least distances between elements the largest one is, row by row."""
    ordered = np.sort(np.abs(rows), axis=1)
    gaps = np.diff(np.concatenate([np.zeros_like(ordered[:, :1]), ordered], axis=1), axis=1)
    with np.errstate(all="ignore"):
        least = np.where(gaps > ordered[:, -1:] * 1e-4, gaps, np.inf).min(axis=1)
        return np.clip(np.rint(ordered[:, -1] / least), 1, limit)


def _worth_it(old: Any) -> bool:
    """Whether a call multiplies few rows, or we know not how many, by a large constant."""
    if not is_op(old, "nn.dense") or not isinstance(old.args[1], Constant) or not isinstance(old._checked_type, TensorType):
        return False
    weight, rows = old.args[1].data, 1
    for d in old._checked_type.dims[:-1]:
        rows = rows * d if isinstance(d, int) else 0  # what is not known may be few
    kinds = {old._checked_type.dtype, old.args[0]._checked_type.dtype, weight.dtype}
    return kinds == {"float32"} and weight.shape[0] * weight.shape[1] >= SMALL and rows < MANY_ROWS


def byte_weights(func: Function, mod: Any, ctx: Any) -> Function:
    """Keeps weights that are scaled bytes as bytes."""
    target = Target.current(allow_none=True)
    if target is None or target.kind.name != "llvm" or not mentions(mod, lambda e: is_op(e, "nn.dense")):
        return func

    def rule(old: Any, new: Any) -> RelayExpr:
        found = scaled_integers(old.args[1].data.numpy()) if _worth_it(old) else None
        if found is None:
            return new
        attrs = old.attrs.replace(units=len(found.scales), out_dtype="float32")
        product = call("nn.dense", new.args[0], constant(found.values.astype(np.int8), "int8"), attrs=attrs, span=old.span)
        return call("multiply", product, constant(found.scales, "float32"), span=old.span)

    return rewrite_exprs(func, rule)  # type: ignore[return-value]


ByteWeights = declare_pass("ByteWeights", 3, byte_weights)
