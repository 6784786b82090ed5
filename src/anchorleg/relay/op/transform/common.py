"""What the shape-changing operators share: reading argument types, axes, dimensions that may be unknown, index checks.

A dimension is a Python int, or an expression (``Any`` for one not known before run time).  The helpers keep a known
dimension known and let an unknown one through.
"""
from __future__ import annotations

from typing import Any, Callable, Sequence

import numpy as np

from ....ir.attrs import Field
from ....ir.expr import RelayExpr
from ....ir.type import TensorType, Type
from ....runtime.dtype import numpy_dtype
from ....support.errors import ArgumentError, TypeMismatchError
from ...expr import Constant, Tuple, TupleWrapper
from ..attrs_common import OPT_DTYPE
from ..type_relations import broadcast_many, normalize_axis, product, show_dims as show, tensor, tensors, tuple_of_tensors

Dim = Any
Dims = Sequence[Any]


# ---- attribute converters ------------------------------------------------------------------------------------------

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
    return Field(OPT_DTYPE, "", doc)


# ---- checks ----------------------------------------------------------------------------------------------------------

def require_integer(what: str, t: TensorType) -> None:
    """TypeMismatchError unless the tensor holds integers."""
    if not t.dtype.startswith(("int", "uint")):
        raise TypeMismatchError(f"{what} must hold integers, got dtype {t.dtype}")


def known(dim: Dim) -> bool:
    """Whether a dimension is a known int."""
    return isinstance(dim, int)


def same_dim(what: str, a: Dim, b: Dim) -> Dim:
    """The dimension that both are, preferring the known one; TypeMismatchError when they differ."""
    if isinstance(a, int) and isinstance(b, int) and a != b:
        raise TypeMismatchError(f"{what}: expected {a}, got {b}")
    return a if isinstance(a, int) else b


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


__all__ = ["Dim", "Dims", "INDICES", "FLOATS", "choice", "dtype_field", "tensor", "tensors", "tuple_of_tensors", "require_integer",
           "normalize_axis", "known", "product", "same_dim", "show", "broadcast_many", "constant_ints", "as_int_list", "is_dynamic",
           "as_tuple", "out_dtype", "wrap_negative"]
