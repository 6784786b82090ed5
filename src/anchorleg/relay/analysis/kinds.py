"""Whether a type is put together rightly: its kind, and that of its parts."""
from __future__ import annotations

from typing import Any

from ...ir.expr import RelayExpr
from ...ir.module import IRModule
from ...ir.type import FuncType, GlobalTypeVar, IncompleteType, RefType, TupleType, Type, TypeCall, TypeKind, TypeRelation, TypeVar
from ...ir.visit import post_order
from ...support.errors import TypeMismatchError
from ..adt import TypeData
from ..expr import Constant, Tuple
from .variables import exprs


def check_kind(t: Type, mod: IRModule | None = None) -> TypeKind:
    """The kind of a type; a TypeMismatchError naming the part whose kind is not what its place asks for."""
    kinds: dict[int, TypeKind] = {}
    for node in post_order(t):
        if isinstance(node, Type):
            _check_parts(node, kinds, mod)
            kinds[id(node)] = _kind(node)
    return kinds[id(t)]


def _kind(node: Type) -> TypeKind:
    if isinstance(node, (TypeVar, GlobalTypeVar, IncompleteType)):
        return node.kind
    if isinstance(node, TypeRelation):
        return TypeKind.Constraint
    return TypeKind.TypeData if isinstance(node, TypeData) else TypeKind.Type


def _check_parts(node: Type, kinds: dict[int, TypeKind], mod: IRModule | None) -> None:
    for part, wanted, what in _wanted(node):
        if kinds[id(part)] != wanted:
            raise TypeMismatchError(f"{what} of {node} is expected to be of kind {wanted.name}; {part} is of kind {kinds[id(part)].name}")
    if isinstance(node, TypeCall) and isinstance(node.func, GlobalTypeVar) and mod is not None:
        data = mod.type_definitions.get(node.func)
        if data is None:
            raise TypeMismatchError(f"the module does not define the type {node.func.name_hint}")
        if len(data.type_vars) != len(node.args):
            raise TypeMismatchError(f"the type {node.func.name_hint} takes {len(data.type_vars)} arguments, got {len(node.args)}: {node}")


def _wanted(node: Type) -> list[tuple[Any, TypeKind, str]]:
    """(part, the kind it must have, what it is) of a type's parts."""
    plain = TypeKind.Type
    if isinstance(node, TupleType):
        return [(f, plain, "a field") for f in node.fields]
    if isinstance(node, FuncType):
        return [*((a, plain, "an argument") for a in node.arg_types), (node.ret_type, plain, "the result"),
                *((c, TypeKind.Constraint, "a constraint") for c in node.type_constraints)]
    if isinstance(node, RefType):
        return [(node.value, plain, "the value")]
    if isinstance(node, TypeRelation):
        return [(a, plain, "an argument") for a in node.args]
    if isinstance(node, TypeCall):
        return [(node.func, TypeKind.AdtHandle, "the head"), *((a, plain, "an argument") for a in node.args)]
    if isinstance(node, TypeData):
        return [(node.header, TypeKind.AdtHandle, "the name"), *((v, plain, "a type variable") for v in node.type_vars)]
    return []


def check_constant(expr: RelayExpr) -> bool:
    """Whether an expression is a constant, or tuples of constants."""
    return all(isinstance(n, (Constant, Tuple)) for n in exprs(expr))
