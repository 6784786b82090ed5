"""Types under the address users know; they live in :mod:`anchorleg.ir.type`."""
from ..ir.expr import Any
from ..ir.type import (FuncType, GlobalTypeVar, IncompleteType, RefType, TensorType, TupleType, Type, TypeCall, TypeConstraint, TypeKind,
                       TypeRelation, TypeVar)
from .adt import TypeData
from .type import ShapeVar, is_dynamic, scalar_type, type_has_any

__all__ = ["Any", "FuncType", "GlobalTypeVar", "IncompleteType", "RefType", "TensorType", "TupleType", "Type", "TypeCall", "TypeConstraint",
           "TypeData", "TypeKind", "TypeRelation", "TypeVar", "ShapeVar", "is_dynamic", "scalar_type", "type_has_any"]
