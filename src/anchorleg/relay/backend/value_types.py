"""Values against the types that programs declare: sizes that a type tells are those that a value must have."""
from __future__ import annotations

from typing import Any

import numpy as np

from ...ir.type import TensorType, TupleType, Type
from ...support.errors import ArgumentError
from ..op.type_relations import show_dims


def check_sizes(value: Any, ty: Type | None, what: str) -> Any:
    """The value; ArgumentError, naming ``what``, unless the tensors in it have the sizes that a type tells."""
    stack = [(value, ty)]
    while stack:
        v, t = stack.pop()
        if isinstance(t, TupleType) and isinstance(v, tuple):
            stack.extend(zip(v, t.fields))
        elif isinstance(t, TensorType) and isinstance(v, (np.ndarray, np.generic)) and not _fits(v.shape, t.dims):
            raise ArgumentError(f"{what}: expected shape {show_dims(t.dims)}, as the program's type says, got {v.shape}")
    return value


def _fits(shape: tuple[int, ...], dims: Any) -> bool:
    return shape == dims or len(shape) == len(dims) and all(n == d or not isinstance(d, int) for n, d in zip(shape, dims))


__all__ = ["check_sizes"]
