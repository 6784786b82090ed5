"""Short ways to write types, and questions about them."""
from __future__ import annotations

from ..ir.expr import Any
from ..ir.type import TensorType, Type, TypeKind, TypeVar
from ..ir.visit import post_order


def ShapeVar(name: str) -> TypeVar:
    """A type variable that stands for a shape."""
    return TypeVar(name, TypeKind.ShapeVar)


def scalar_type(dtype: str) -> TensorType:
    """The type of a tensor without dimensions."""
    return TensorType((), dtype)


def type_has_any(typ: Type) -> bool:
    """Whether a dimension of some tensor in the type is not known before run time."""
    return any(isinstance(node, Any) for node in post_order(typ))


def is_dynamic(typ: Type) -> bool:
    """Whether a dimension of some tensor in the type is not known before run time."""
    return type_has_any(typ)
