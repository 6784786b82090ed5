"""What the shape-changing operators share: reading argument types, axes, dimensions that may be unknown, index checks.

A dimension is a Python int, or an expression (``Any`` for one not known before run time).  The helpers keep a known
dimension known and let an unknown one through.
"""
from __future__ import annotations

from typing import Any, Callable, Sequence

import numpy as np

from ....ir.attrs import Field
from ....ir.expr import Any as AnyDim, RelayExpr
from ....ir.type import IncompleteType, TensorType, TupleType, Type
from ....runtime.dtype import dtype_name, numpy_dtype
from ....support.errors import ArgumentError, TypeMismatchError
from ...expr import Constant, Tuple, TupleWrapper

Dim = Any
Dims = Sequence[Any]


# ---- attribute converters ------------------------------------------------------------------------------------------

def DTYPE(value: Any) -> str:  # noqa: N802 - a converter, named like those of ir.attrs
    """A data type's name; None and "" mean "as the input"."""
    return dtype_name(value) if value else ""


def INDICES(value: Any) -> tuple[int | None, ...] | None:  # noqa: N802
    """A tuple of ints in which None stands for "from the start" or "to the end"."""
    if value is None:
        return None
    if isinstance(value, (int, np.integer)):
        return (int(value),)
    return tuple(None if v is None else int(v) for v in value)


def FLOATS(value: Any) -> tuple[float, ...]:  # noqa: N802
    """A tuple of floats."""
    return tuple(float(v) for v in value) if not isinstance(value, (int, float)) else (float(value),)


def choice(*allowed: str) -> Callable[[Any], str]:
    """A converter for strings that must be one of ``allowed``."""
    def convert(value: Any) -> str:
        if str(value) not in allowed:
            raise ValueError(value)
        return str(value)

    convert.__name__ = "one of " + ", ".join(repr(a) for a in allowed)
    return convert


def dtype_field(doc: str = "The result's data type; empty: the input's.") -> Field:
    """An attribute ``dtype`` or ``out_dtype`` that defaults to "as the input"."""
    return Field(DTYPE, "", doc)


# ---- reading argument types ----------------------------------------------------------------------------------------

def tensor_type(op: str, what: str, t: Type) -> TensorType | None:
    """``t`` as a tensor type; None when it is not known yet; TypeMismatchError when it is something else."""
    if isinstance(t, TensorType):
        return t
    if isinstance(t, IncompleteType):
        return None
    raise TypeMismatchError(f"{op}: {what} must be a tensor, got {t}")


def tensor_types(op: str, names: Sequence[str], args: Sequence[Type]) -> list[TensorType] | None:
    """The argument types as tensor types; None while one of them is not known."""
    found = [tensor_type(op, n, t) for n, t in zip(names, args)]
    return None if any(t is None for t in found) else found  # type: ignore[return-value]


def tuple_types(op: str, t: Type) -> list[TensorType] | None:
    """The fields of a tuple of tensors; None while one of them is not known."""
    if isinstance(t, IncompleteType):
        return None
    if not isinstance(t, TupleType):
        raise TypeMismatchError(f"{op}: expects a tuple of tensors, got {t}")
    return tensor_types(op, [f"input {i}" for i in range(len(t.fields))], t.fields)


def require_integer(op: str, what: str, t: TensorType) -> None:
    """TypeMismatchError unless the tensor holds integers."""
    if not t.dtype.startswith(("int", "uint")):
        raise TypeMismatchError(f"{op}: {what} must hold integers, got dtype {t.dtype}")


def normalize_axis(op: str, axis: int, ndim: int, name: str = "axis") -> int:
    """``axis`` counted from the front; TypeMismatchError outside of ``[-ndim, ndim)``."""
    if not -ndim <= axis < ndim:
        raise TypeMismatchError(f"{op}: {name}={axis} is out of range for a tensor of rank {ndim} (allowed: {-ndim} to {ndim - 1})")
    return axis % ndim


def known(dim: Dim) -> bool:
    """Whether a dimension is a known int."""
    return isinstance(dim, int)


def product(dims: Dims) -> Dim:
    """The product; ``Any`` when a factor is unknown (unless the known ones already give 0)."""
    total = 1
    for d in dims:
        total = total * d if isinstance(d, int) else total
    unknown = [d for d in dims if not isinstance(d, int)]
    if not unknown:
        return total
    return unknown[0] if total == 1 and len(unknown) == 1 else AnyDim()


def same_dim(op: str, what: str, a: Dim, b: Dim) -> Dim:
    """The dimension that both are, preferring the known one; TypeMismatchError when they differ."""
    if isinstance(a, int) and isinstance(b, int) and a != b:
        raise TypeMismatchError(f"{op}: {what}: expected {a}, got {b}")
    return a if isinstance(a, int) else b


def show(dims: Dims) -> str:
    """A shape for a message."""
    inner = ", ".join(str(d) if isinstance(d, int) else "?" for d in dims)
    return f"({inner},)" if len(dims) == 1 else f"({inner})"


def broadcast_dims(op: str, a: Dims, b: Dims) -> list[Dim]:
    """The shape two shapes broadcast to, by numpy's rule; an unknown dimension against n > 1 gives n."""
    longer, shorter = (list(a), list(b)) if len(a) >= len(b) else (list(b), list(a))
    out = longer[:len(longer) - len(shorter)]
    for x, y in zip(longer[len(out):], shorter):
        out.append(_broadcast_dim(op, a, b, x, y))
    return out


def _broadcast_dim(op: str, a: Dims, b: Dims, x: Dim, y: Dim) -> Dim:
    if isinstance(x, int) and x == 1:
        return y
    if isinstance(y, int) and y == 1:
        return x
    if isinstance(x, int) and isinstance(y, int):
        if x != y:
            raise TypeMismatchError(f"{op}: shapes {show(a)} and {show(b)} do not broadcast: {x} against {y}")
        return x
    return x if isinstance(x, int) else y


# ---- constants given where shapes are expected ---------------------------------------------------------------------

def constant_ints(value: Any) -> Any:
    """A Constant as a list of ints (a scalar as one int); anything else as it is."""
    if isinstance(value, Constant):
        found = value.data.numpy()
        return int(found) if found.ndim == 0 else [int(v) for v in found.reshape(-1)]
    return value


def as_int_list(op: str, what: str, value: Any) -> list[int]:
    """An int, or a sequence of them, as a list; ArgumentError for anything else."""
    value = constant_ints(value)
    try:
        return [int(value)] if isinstance(value, (int, np.integer)) else [int(v) for v in value]
    except (TypeError, ValueError):
        raise ArgumentError(f"{op}: {what} must be an int or a list of ints, got {value!r}") from None


def is_dynamic(value: Any) -> bool:
    """Whether ``value`` is an expression whose value is not known while the graph is built."""
    return isinstance(value, RelayExpr) and not isinstance(value, Constant)


def as_tuple(op: str, data: Any) -> RelayExpr:
    """A list of expressions, or a tuple-typed expression, as one expression."""
    if isinstance(data, TupleWrapper):
        return data.astuple()
    if isinstance(data, RelayExpr):
        return data
    fields = list(data)
    if not fields:
        raise ArgumentError(f"{op}: expects at least one tensor, got an empty list")
    return Tuple(fields)


# ---- numpy -----------------------------------------------------------------------------------------------------------

def out_dtype(out_type: Type, fallback: Any = None) -> np.dtype:
    """The numpy dtype of a tensor result."""
    return numpy_dtype(out_type.dtype) if isinstance(out_type, TensorType) else np.dtype(fallback)


def wrap_negative(indices: np.ndarray, size: int) -> np.ndarray:
    """Indices in which a negative one counts from the end."""
    indices = indices.astype(np.int64)
    return np.where(indices < 0, indices + size, indices)
