"""What quantised operators share: parameter types, rounding, and the step from real numbers to integers."""
from __future__ import annotations

from typing import Any, Sequence

import numpy as np

from ....ir.type import IncompleteType, TensorType, TupleType, Type
from ....runtime.dtype import numpy_dtype
from ....support.errors import TypeMismatchError
from ..nn.common import known, shown, tensor

INTEGERS = ("int8", "uint8", "int16", "uint16", "int32", "int64")


def check_dtype(op: str, what: str, dtype: str, allowed: Sequence[str]) -> None:
    """TypeMismatchError unless the dtype is one of those."""
    if dtype not in allowed:
        raise TypeMismatchError(f"{op}: expected {what} of dtype {', '.join(allowed)}, got {dtype}")


def is_known(args: Sequence[Type]) -> bool:
    """Whether every argument's type is known, tuples included."""
    return all(not isinstance(a, IncompleteType) and (not isinstance(a, TupleType) or is_known(a.fields)) for a in args)


def check_parameter(op: str, what: str, arg: Type, dtype: str, size: Any = None) -> None:
    """A scale or zero point: a scalar, a single value or, along an axis of extent ``size``, a vector."""
    t = tensor(arg, f"{op}, {what}")
    if t is None:
        return
    if t.dtype != dtype:
        raise TypeMismatchError(f"{op}: expected {what} of dtype {dtype}, got {t.dtype}")
    count = 1
    for d in t.dims:
        count = count * d if known(d) else count
    if count == 1 or size is None and not t.dims:
        return
    if size is None:
        raise TypeMismatchError(f"{op}: expected {what} to be one value, got shape {shown(t.dims)}")
    if len(t.dims) != 1 or (known(t.dims[0], size) and t.dims[0] != size):
        raise TypeMismatchError(f"{op}: expected {what} to be one value or a vector of {size}, got shape {shown(t.dims)}")


def axis_extent(op: str, data: TensorType, axis: int, parameters: Sequence[Type]) -> Any:
    """The extent of the axis that vectors of parameters run along; 1 for a scalar; an error only when a vector needs the axis."""
    rank = len(data.dims)
    if rank == 0:
        return 1
    if -rank <= axis < rank:
        return data.dims[axis]
    if any(isinstance(p, TensorType) and p.dims and not all(known(d) and d == 1 for d in p.dims) for p in parameters):
        raise TypeMismatchError(f"{op}: axis {axis} is out of range for data of rank {rank}")
    return 1


def along(values: np.ndarray, rank: int, axis: int) -> np.ndarray:
    """Parameters shaped to broadcast against data of that rank; a single value stays a scalar."""
    values = np.asarray(values)
    if values.size == 1:
        return values.reshape(())
    return values.reshape([-1 if i == axis % rank else 1 for i in range(rank)])


def real(q: np.ndarray, scale: np.ndarray, zero_point: np.ndarray, axis: int = -1) -> np.ndarray:
    """The numbers (float64) that quantised values stand for."""
    shifted = q.astype(np.int64) - along(zero_point, q.ndim, axis)
    return shifted * along(scale, q.ndim, axis).astype(np.float64)


def round_away(x: np.ndarray) -> np.ndarray:
    """Rounds to the nearest integer, halves away from zero."""
    return np.copysign(np.floor(np.abs(x) + 0.5), x)


def round_up(x: np.ndarray) -> np.ndarray:
    """Rounds to the nearest integer, halves up."""
    return np.floor(x + 0.5)


def saturate(x: np.ndarray, dtype: str) -> np.ndarray:
    """Clips to the range of an integer dtype, then converts; NaN becomes 0."""
    info = np.iinfo(dtype)
    if x.dtype.kind == "f":
        top = np.nextafter(float(info.max), 0.0) if float(info.max) > info.max else float(info.max)
        x = np.clip(np.nan_to_num(x, nan=0.0, posinf=top, neginf=float(info.min)), float(info.min), top)
    else:
        x = np.clip(x, info.min, info.max)
    return x.astype(numpy_dtype(dtype))


def quantised(x: np.ndarray, scale: np.ndarray, zero_point: np.ndarray, dtype: str, axis: int = -1) -> np.ndarray:
    """Real numbers as quantised values."""
    scaled = round_away(x / along(scale, x.ndim, axis).astype(np.float64))
    return saturate(scaled + along(zero_point, x.ndim, axis), dtype)
