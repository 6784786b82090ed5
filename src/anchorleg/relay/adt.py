"""Algebraic data types and pattern matching."""
from __future__ import annotations

from typing import Any, Sequence

from ..ir.expr import RelayExpr
from ..ir.node import BIND, BINDS, CHILD, CHILDREN, DATA, Node
from ..ir.type import GlobalTypeVar, Type, TypeVar
from .expr import Call, ExprWithOp, Var


class Pattern(Node):
    """Base of patterns."""

    __slots__ = ()


class PatternWildcard(Pattern):
    """Matches anything."""

    __slots__ = ()

    def __init__(self) -> None:
        self.span = None


class PatternVar(Pattern):
    """Matches anything and names it."""

    __slots__ = ("var",)
    FIELDS = {"var": BIND}

    def __init__(self, var: Var) -> None:
        self.var, self.span = var, None


class PatternConstructor(Pattern):
    """Matches a value built by ``constructor`` whose fields match ``patterns``."""

    __slots__ = ("constructor", "patterns")
    FIELDS = {"constructor": CHILD, "patterns": BINDS}

    def __init__(self, constructor: Constructor, patterns: Sequence[Pattern] = ()) -> None:
        self.constructor, self.patterns, self.span = constructor, tuple(patterns), None


class PatternTuple(Pattern):
    """Matches a tuple field by field."""

    __slots__ = ("patterns",)
    FIELDS = {"patterns": BINDS}

    def __init__(self, patterns: Sequence[Pattern] = ()) -> None:
        self.patterns, self.span = tuple(patterns), None


class Constructor(RelayExpr):
    """A constructor of a data type.  ``tag`` is its number: unique within a module (-1 before it is added to one)."""

    __slots__ = ("name_hint", "inputs", "belong_to", "tag")
    FIELDS = {"name_hint": DATA, "inputs": CHILDREN, "belong_to": CHILD}
    __hash__ = RelayExpr.__hash__

    def __init__(self, name_hint: str, inputs: Sequence[Type], belong_to: GlobalTypeVar) -> None:
        self.name_hint, self.inputs, self.belong_to = name_hint, tuple(inputs), belong_to
        self.tag, self.span, self._checked_type = -1, None, None

    def __call__(self, *args: RelayExpr) -> Call:
        return Call(self, args)

    def structural_parts(self) -> list[tuple[str, Any, Any]]:
        """Its name and its type's: what it holds is compared where the type is defined."""
        return [("name_hint", DATA, self.name_hint), ("belong_to", CHILD, self.belong_to)]


class TypeData(Type):
    """The definition of a data type: its name, type variables and constructors."""

    __slots__ = ("header", "type_vars", "constructors")
    FIELDS = {"header": CHILD, "type_vars": BINDS, "constructors": CHILDREN}

    def __init__(self, header: GlobalTypeVar, type_vars: Sequence[TypeVar], constructors: Sequence[Constructor]) -> None:
        self.header, self.type_vars, self.constructors, self.span = header, tuple(type_vars), tuple(constructors), None

    def structural_parts(self) -> list[tuple[str, Any, Any]]:
        held = tuple(("inputs of " + c.name_hint, CHILDREN, c.inputs) for c in self.constructors)
        return [*super().structural_parts(), *held]


class Clause(Node):
    """One case of a match."""

    __slots__ = ("lhs", "rhs")
    FIELDS = {"lhs": BIND, "rhs": CHILD}

    def __init__(self, lhs: Pattern, rhs: RelayExpr) -> None:
        self.lhs, self.rhs, self.span = lhs, rhs, None


class Match(ExprWithOp):
    """Chooses the first clause whose pattern matches ``data``; ``complete`` asks that every value has one."""

    __slots__ = ("data", "clauses", "complete")
    FIELDS = {"data": CHILD, "clauses": CHILDREN, "complete": DATA}
    __hash__ = RelayExpr.__hash__

    def __init__(self, data: RelayExpr, clauses: Sequence[Clause], complete: bool = True) -> None:
        self.data, self.clauses, self.complete, self.span, self._checked_type = data, tuple(clauses), complete, None, None
