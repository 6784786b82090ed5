"""Types of the graph language."""
from __future__ import annotations

from enum import IntEnum
from typing import Any, Sequence

from .expr import PrimExpr, as_dim, as_dim_expr
from .node import BINDS, CHILD, CHILDREN, DATA, Kind, Node


class TypeKind(IntEnum):
    """What a type variable stands for."""

    Type = 0
    ShapeVar = 1
    BaseType = 2
    Constraint = 4
    AdtHandle = 5
    TypeData = 6


class Type(Node):
    """Base of all types.

    ``==`` compares structure; a type variable, and a type yet to be inferred, equal only themselves.  Types hash by identity:
    as dictionary keys, equal types that are different objects are different keys.
    """

    __slots__ = ()
    __hash__ = Node.__hash__

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if not isinstance(other, Type):
            return NotImplemented
        from .structural import structural_equal

        return structural_equal(self, other)


class TensorType(Type):
    """A tensor's shape and element type.

    ``dims`` is the inner form: a tuple of Python ints, ``Any`` or symbolic expressions.  ``shape`` is the same with
    every int as an ``IntImm`` (upstream's surface).
    """

    __slots__ = ("dims", "dtype", "_shape")
    FIELDS: dict[str, Kind] = {"dims": CHILDREN, "dtype": DATA}

    def __init__(self, shape: Sequence[Any], dtype: str = "float32", span: Any = None) -> None:
        self.dims = tuple(as_dim(d) for d in shape)
        self.dtype, self._shape, self.span = "bool" if dtype == "uint1" else str(dtype), None, span

    def _reset_caches(self, copy: Node) -> None:
        copy._shape = None  # type: ignore[attr-defined]

    @property
    def shape(self) -> tuple[PrimExpr, ...]:
        """The dimensions as expressions."""
        if self._shape is None:
            self._shape = tuple(as_dim_expr(d) for d in self.dims)
        return self._shape

    @property
    def concrete_shape(self) -> tuple[int, ...]:
        """The dimensions as ints; TypeError when one is not known."""
        return tuple(int(d) for d in self.dims)  # type: ignore[arg-type]

    @property
    def is_static(self) -> bool:
        """Whether every dimension is a known int."""
        return all(isinstance(d, int) for d in self.dims)


class TupleType(Type):
    """The type of a tuple."""

    __slots__ = ("fields",)
    FIELDS = {"fields": CHILDREN}

    def __init__(self, fields: Sequence[Type], span: Any = None) -> None:
        self.fields, self.span = tuple(fields), span


def flatten_types(ty: Type) -> list[Any]:
    """What a (nested) tuple type holds, left to right; any other type is itself."""
    found: list[Any] = []
    stack = [ty]
    while stack:
        t = stack.pop()
        if isinstance(t, TupleType):
            stack.extend(reversed(t.fields))
        else:
            found.append(t)
    return found


class TypeVar(Type):
    """A type variable, bound by a function or a data type definition."""

    __slots__ = ("name_hint", "kind")
    FIELDS = {"name_hint": DATA, "kind": DATA}
    BINDABLE, LABELS = True, ("name_hint",)

    def __init__(self, name_hint: str, kind: TypeKind = TypeKind.Type) -> None:
        self.name_hint, self.kind, self.span = name_hint, kind, None

    def __call__(self, *args: Type) -> TypeCall:
        return TypeCall(self, args)


class GlobalTypeVar(Type):
    """The name of an algebraic data type of a module."""

    __slots__ = ("name_hint", "kind")
    FIELDS = {"name_hint": DATA, "kind": DATA}
    LABELS = ("kind",)

    def __init__(self, name_hint: str, kind: TypeKind = TypeKind.AdtHandle) -> None:
        self.name_hint, self.kind, self.span = name_hint, kind, None

    def __call__(self, *args: Type) -> TypeCall:
        return TypeCall(self, args)


class IncompleteType(Type):
    """A type yet to be inferred."""

    __slots__ = ("kind",)
    FIELDS = {"kind": DATA}
    BINDABLE = True

    def __init__(self, kind: TypeKind = TypeKind.Type) -> None:
        self.kind, self.span = kind, None


class FuncType(Type):
    """The type of a function: argument types, result type, bound type variables, constraints."""

    __slots__ = ("type_params", "arg_types", "ret_type", "type_constraints")
    FIELDS = {"type_params": BINDS, "arg_types": CHILDREN, "ret_type": CHILD, "type_constraints": CHILDREN}

    def __init__(self, arg_types: Sequence[Type], ret_type: Type, type_params: Sequence[TypeVar] = (),
                 type_constraints: Sequence[Any] = ()) -> None:
        self.arg_types, self.ret_type = tuple(arg_types), ret_type
        self.type_params, self.type_constraints = tuple(type_params or ()), tuple(type_constraints or ())
        self.span = None


class RefType(Type):
    """The type of a reference to a value of type ``value``."""

    __slots__ = ("value",)
    FIELDS = {"value": CHILD}

    def __init__(self, value: Type) -> None:
        self.value, self.span = value, None


RelayRefType = RefType


class TypeCall(Type):
    """A type constructor applied to arguments, e.g. ``List[Tensor[(3,), float32]]``."""

    __slots__ = ("func", "args")
    FIELDS = {"func": CHILD, "args": CHILDREN}

    def __init__(self, func: Type, args: Sequence[Type]) -> None:
        self.func, self.args, self.span = func, tuple(args), None


class TypeConstraint(Type):
    """Base of conditions between types."""

    __slots__ = ()


class TypeRelation(TypeConstraint):
    """A named relation between argument types and the result's type (the last of ``args``)."""

    __slots__ = ("func", "args", "num_inputs", "attrs")
    FIELDS = {"func": DATA, "args": CHILDREN, "num_inputs": DATA, "attrs": DATA}

    def __init__(self, func: Any, args: Sequence[Type], num_inputs: int, attrs: Any) -> None:
        self.func, self.args, self.num_inputs, self.attrs, self.span = func, tuple(args), num_inputs, attrs, None


class PrimType(Type):
    """A scalar of the loop language."""

    __slots__ = ("dtype",)
    FIELDS = {"dtype": DATA}

    def __init__(self, dtype: str) -> None:
        self.dtype, self.span = str(dtype), None


class PointerType(Type):
    """A pointer of the loop language, with the memory it points into."""

    __slots__ = ("element_type", "storage_scope")
    FIELDS = {"element_type": CHILD, "storage_scope": DATA}

    def __init__(self, element_type: Type, storage_scope: str = "") -> None:
        self.element_type, self.storage_scope, self.span = element_type, storage_scope, None
