"""Types read from text."""
from __future__ import annotations

from typing import Any, Generator

from ...ir.expr import Any as AnyDim
from ...ir.expr import PrimExpr, as_dim
from ...ir.type import FuncType, GlobalTypeVar, IncompleteType, RefType, TensorType, TupleType, Type, TypeCall, TypeVar
from ...runtime.dtype import DataType
from ...support.errors import ArgumentError
from .cursor import Cursor
from .scopes import Globals, Scopes

Steps = Generator[Any, Any, Any]
_SCALARS = ("int", "float", "uint", "bool", "bfloat", "e4m3", "e5m2", "handle", "custom[")


class TypeParser:
    """Reads types at the cursor."""

    def __init__(self, cursor: Cursor, names: Globals, variables: Scopes[TypeVar]) -> None:
        self.at, self.names, self.variables = cursor, names, variables

    def annotation(self) -> Steps:
        """The type after a colon, if one stands here; ``_`` says nothing, like no annotation."""
        if not self.at.take(":"):
            return None
        found = yield self.type()
        return None if isinstance(found, IncompleteType) else found

    def type(self) -> Steps:
        """One type."""
        kind = self.at.kind()
        if kind == "(":
            return TupleType((yield self.sequence("(", ")")))
        if kind == "fn":
            return (yield self._function())
        if kind == "ref":
            self.at.expect("ref")
            self.at.expect("(")
            value = yield self.type()
            self.at.expect(")")
            return RefType(value)
        if kind == "meta":
            return self.at.meta_as(Type, "a type")
        if kind != "word":
            self.at.fail("a type")
        return (yield self._named())

    def sequence(self, opening: str, closing: str) -> Steps:
        """Types between brackets, separated by commas; one more comma may follow the last."""
        self.at.expect(opening)
        found: list[Type] = []
        while not self.at.take(closing):
            found.append((yield self.type()))
            if not self.at.take(","):
                self.at.expect(closing, "','")
                break
        return found

    def generics(self) -> list[TypeVar]:
        """``[A, B]`` after a name, bound in the current scope of type variables; none when no bracket stands here."""
        found: list[TypeVar] = []
        if not self.at.take("["):
            return found
        while not self.at.take("]"):
            name = self.at.expect("word")
            found.append(self.variables.bind(name, TypeVar(name)))
            if not self.at.take(","):
                self.at.expect("]", "','")
                break
        return found

    def _function(self) -> Steps:
        self.at.expect("fn")
        self.variables.push()
        params = self.generics()
        args = yield self.sequence("(", ")")
        self.at.expect("->")
        result = yield self.type()
        self.variables.pop()
        return FuncType(args, result, params)

    def _named(self) -> Steps:
        start = self.at.index
        name = self.at.expect("word")
        if name == "_":
            return IncompleteType()
        if name == "Tensor" and self.at.kind() == "[":
            return self._tensor()
        head: Type | None = self.variables.find(name)
        if head is None and name.startswith(_SCALARS) and name not in self.names.types:
            return TensorType((), self._dtype(name, start))
        if head is None:
            head = self.names.type(name)
        args = (yield self.sequence("[", "]")) if self.at.kind() == "[" else []
        return TypeCall(head, args) if args or isinstance(head, GlobalTypeVar) else head

    def _tensor(self) -> TensorType:
        self.at.expect("[")
        self.at.expect("(")
        dims: list[Any] = []
        while not self.at.take(")"):
            dims.append(self._dim())
            if not self.at.take(","):
                self.at.expect(")", "','")
                break
        self.at.expect(",")
        start = self.at.index
        dtype = self._dtype(self.at.expect("word"), start)
        self.at.expect("]")
        return TensorType(dims, dtype)

    def _dim(self) -> Any:
        if self.at.take("?"):
            return AnyDim()
        if self.at.kind() == "meta":
            return as_dim(self.at.meta_as(PrimExpr, "a dimension"))
        start = self.at.index
        value = self.at.number()
        if value is None or not isinstance(value[0], int):
            self.at.fail_at(start, "expected a dimension: a whole number, '?' or a metadata reference")
        return value[0]

    def _dtype(self, name: str, start: int) -> str:
        try:
            return str(DataType(name))
        except ArgumentError as exc:
            self.at.fail_at(start, str(exc))
