"""Visitors over types for users to subclass: override ``visit_tensor_type`` and the like, call ``self.visit`` on what is inside."""
from __future__ import annotations

from typing import Any

from ..ir.type import (FuncType, GlobalTypeVar, IncompleteType, RefType, TensorType, TupleType, Type, TypeCall, TypeRelation, TypeVar)
from ..support.errors import ArgumentError
from .adt import TypeData

_METHODS: dict[type, str] = {
    TypeVar: "visit_type_var", IncompleteType: "visit_incomplete_type", TensorType: "visit_tensor_type", FuncType: "visit_func_type",
    TupleType: "visit_tuple_type", TypeRelation: "visit_type_relation", RefType: "visit_ref_type", GlobalTypeVar: "visit_global_type_var",
    TypeCall: "visit_type_call", TypeData: "visit_type_data",
}


class TypeFunctor:
    """Calls ``visit_<kind>`` for a type."""

    def __init__(self) -> None:
        self.memo_map: dict[Any, Any] = {}

    def visit(self, typ: Type) -> Any:
        """The result for ``typ``."""
        for cls in type(typ).__mro__:
            if cls in _METHODS:
                return getattr(self, _METHODS[cls])(typ)
        raise ArgumentError(f"{type(self).__name__} cannot visit a {type(typ).__name__}: expected a type of the graph language")

    def visit_type_var(self, tv: TypeVar) -> Any:
        """Called for type variables."""
        raise NotImplementedError

    def visit_incomplete_type(self, it: IncompleteType) -> Any:
        """Called for types yet to be inferred."""
        raise NotImplementedError

    def visit_tensor_type(self, tt: TensorType) -> Any:
        """Called for tensor types."""
        raise NotImplementedError

    def visit_func_type(self, ft: FuncType) -> Any:
        """Called for function types."""
        raise NotImplementedError

    def visit_tuple_type(self, tt: TupleType) -> Any:
        """Called for tuple types."""
        raise NotImplementedError

    def visit_type_relation(self, tr: TypeRelation) -> Any:
        """Called for type relations."""
        raise NotImplementedError

    def visit_ref_type(self, rt: RefType) -> Any:
        """Called for types of references."""
        raise NotImplementedError

    def visit_global_type_var(self, gtv: GlobalTypeVar) -> Any:
        """Called for names of data types."""
        raise NotImplementedError

    def visit_type_call(self, tc: TypeCall) -> Any:
        """Called for applied type constructors."""
        raise NotImplementedError

    def visit_type_data(self, td: TypeData) -> Any:
        """Called for definitions of data types."""
        raise NotImplementedError


class TypeVisitor(TypeFunctor):
    """Visits every part of a type."""

    def _all(self, *types: Type) -> None:
        for typ in types:
            self.visit(typ)

    def visit_type_var(self, tv: TypeVar) -> None:
        pass

    def visit_incomplete_type(self, it: IncompleteType) -> None:
        pass

    def visit_tensor_type(self, tt: TensorType) -> None:
        pass

    def visit_func_type(self, ft: FuncType) -> None:
        self._all(*ft.arg_types, ft.ret_type, *ft.type_params, *ft.type_constraints)

    def visit_tuple_type(self, tt: TupleType) -> None:
        self._all(*tt.fields)

    def visit_type_relation(self, tr: TypeRelation) -> None:
        self._all(*tr.args)

    def visit_ref_type(self, rt: RefType) -> None:
        self._all(rt.value)

    def visit_global_type_var(self, gtv: GlobalTypeVar) -> None:
        pass

    def visit_type_call(self, tc: TypeCall) -> None:
        self._all(tc.func, *tc.args)

    def visit_type_data(self, td: TypeData) -> None:
        self._all(td.header, *td.type_vars, *(t for c in td.constructors for t in c.inputs))


class TypeMutator(TypeFunctor):
    """Rebuilds a type from what the visits of its parts return; unchanged parts keep their identity."""

    def _many(self, types: Any) -> tuple[Any, ...]:
        return tuple(self.visit(t) for t in types)

    def visit_type_var(self, tv: TypeVar) -> Type:
        return tv

    def visit_incomplete_type(self, it: IncompleteType) -> Type:
        return it

    def visit_tensor_type(self, tt: TensorType) -> Type:
        return tt

    def visit_func_type(self, ft: FuncType) -> Type:
        return ft.replace(type_params=self._many(ft.type_params), arg_types=self._many(ft.arg_types), ret_type=self.visit(ft.ret_type),
                          type_constraints=self._many(ft.type_constraints))

    def visit_tuple_type(self, tt: TupleType) -> Type:
        return tt.replace(fields=self._many(tt.fields))

    def visit_type_relation(self, tr: TypeRelation) -> Type:
        return tr.replace(args=self._many(tr.args))

    def visit_ref_type(self, rt: RefType) -> Type:
        return rt.replace(value=self.visit(rt.value))

    def visit_global_type_var(self, gtv: GlobalTypeVar) -> Type:
        return gtv

    def visit_type_call(self, tc: TypeCall) -> Type:
        return tc.replace(func=self.visit(tc.func), args=self._many(tc.args))

    def visit_type_data(self, td: TypeData) -> Type:
        constructors = tuple(c.replace(inputs=self._many(c.inputs)) for c in td.constructors)
        return td.replace(header=self.visit(td.header), type_vars=self._many(td.type_vars), constructors=constructors)
