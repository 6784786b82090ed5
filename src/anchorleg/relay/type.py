"""Types of the graph language under their relay names, and short ways to write them."""
from __future__ import annotations

from ..ir.type import TensorType, TypeKind, TypeVar


def ShapeVar(name: str) -> TypeVar:
    """A type variable that stands for a shape."""
    return TypeVar(name, TypeKind.ShapeVar)


def scalar_type(dtype: str) -> TensorType:
    """The type of a tensor without dimensions."""
    return TensorType((), dtype)
