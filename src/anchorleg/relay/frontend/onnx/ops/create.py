"""Tensors made from nothing but a shape or a few numbers."""
from __future__ import annotations

import numpy as np

from .....ir.expr import RelayExpr
from .....runtime.dtype import dtype_name, numpy_dtype
from .....support.errors import ArgumentError, UnsupportedOpError
from ....expr import Constant
from ....op.dyn import transform as dyn
from ....op.transform.create import arange
from ..context import NodeContext
from ..make import call, const, constant_of
from ..registry import op
from ..tensors import relay_dtype

_STORED = 1 << 26  # bytes: a constant up to this size is stored, a larger one filled in at run time


@op("Constant")
def constant(n: NodeContext) -> RelayExpr:
    """The value of whichever attribute is given."""
    for name, dtype in (("value_float", "float32"), ("value_int", "int64"), ("value_floats", "float32"), ("value_ints", "int64")):
        if name in n.attributes:
            return const(n.attributes[name], dtype)
    for name in ("value", "sparse_value"):
        if name in n.attributes:
            return Constant(n.attributes[name])
    raise UnsupportedOpError(f"a constant is expected to be a tensor of numbers, got {', '.join(n.attributes) or 'no attribute'}")


@op("ConstantOfShape")
def constant_of_shape(n: NodeContext) -> RelayExpr:
    """One value in a given shape."""
    given = n.attr("value", None)
    value = np.zeros((), np.float32) if given is None else given.numpy().reshape(-1)[0]
    shape = n.value(n.need(0))
    if shape is None:
        return dyn.full(const(value, value.dtype), n.need(0), dtype_name(value.dtype))
    return filled(value, [int(s) for s in shape.reshape(-1)])


def filled(value: np.ndarray | np.generic, shape: list[int]) -> RelayExpr:
    """A tensor of one value: stored when it is not large."""
    if np.prod(shape, dtype=np.float64) * value.dtype.itemsize <= _STORED:
        return constant_of(np.broadcast_to(value, shape))
    return call("full", const(value, value.dtype), shape=tuple(shape), dtype=dtype_name(value.dtype))


@op("EyeLike")
def eye_like(n: NodeContext) -> RelayExpr:
    """Ones on a diagonal, in the shape of a matrix."""
    rows, columns = n.static_dims(n.need(0))
    dtype = relay_dtype(n.attr("dtype"), "the result") if "dtype" in n.attributes else n.dtype(n.need(0))
    return constant_of(np.eye(rows, columns, n.attr("k", 0), dtype=numpy_dtype(dtype)))


def _numbers(first: np.generic, last: np.generic, step: np.generic) -> np.ndarray:
    if step == 0:
        raise ArgumentError("a range with step 0 has no end")
    if np.issubdtype(first.dtype, np.floating):
        count = int(np.ceil((float(last) - float(first)) / float(step)))  # type: ignore[arg-type]
    else:
        count = -((int(first) - int(last)) // int(step))  # type: ignore[call-overload]
    return (first + np.arange(max(count, 0)) * step).astype(first.dtype)


@op("Range")
def range_(n: NodeContext) -> RelayExpr:
    """Numbers from start to limit, in steps."""
    bounds = n.needs(3)
    dtype, values = n.dtype(bounds[0]), [n.value(b) for b in bounds]
    if all(v is not None for v in values):
        return constant_of(_numbers(*(v.reshape(-1)[0] for v in values)))  # type: ignore[union-attr]
    scalars = [call("reshape", b, newshape=(), allowzero=False) for b in bounds]
    return arange(*scalars, dtype=dtype)


def _window(n: NodeContext, a: tuple[float, ...]) -> RelayExpr:
    """A sum of cosines over a window of given size."""
    size = int(n.scalar(0, 0, "size"))
    whole = size if n.attr("periodic", 1) else size - 1
    phase = np.arange(size) * 2 * np.pi / max(whole, 1)
    value = sum(sign * c * np.cos(k * phase) for k, (sign, c) in enumerate(zip((1, -1, 1), a)))
    return constant_of(np.asarray(value).astype(numpy_dtype(relay_dtype(n.attr("output_datatype", 1), "the window"))))


op("HannWindow")(lambda n: _window(n, (0.5, 0.5)))
op("HammingWindow")(lambda n: _window(n, (25 / 46, 21 / 46)))
op("BlackmanWindow")(lambda n: _window(n, (0.42, 0.5, 0.08)))


@op("MelWeightMatrix")
def mel_weight_matrix(n: NodeContext) -> RelayExpr:
    """The matrix that takes a spectrum to mel bands: triangles between centres equally far apart on the mel scale."""
    bands, length, rate = (int(n.scalar(i, 0, "a size")) for i in range(3))
    low, high = (float(n.scalar(i, 0.0, "an edge frequency")) for i in (3, 4))
    bins = length // 2 + 1
    mels = [2595 * np.log10(1 + hertz / 700) for hertz in (low, high)]
    points = mels[0] + np.arange(bands + 2) * (mels[1] - mels[0]) / (bands + 2)
    at = np.floor(((length + 1) * (700 * (10 ** (points / 2595) - 1))) / rate).astype(int)
    out = np.zeros((bins, bands))
    for band in range(bands):
        left, centre, right = at[band:band + 3]
        if centre == left:
            out[centre, band] = 1
        else:
            out[left:centre + 1, band] = (np.arange(left, centre + 1) - left) / (centre - left)
        if right > centre:
            out[centre:right, band] = (right - np.arange(centre, right)) / (right - centre)
    return constant_of(out.astype(numpy_dtype(relay_dtype(n.attr("output_datatype", 1), "the matrix"))))
