"""The operator registry: names, argument lists, and attributes that rooms attach to operators."""
from __future__ import annotations

from enum import IntEnum
from typing import Any, Callable, NamedTuple, Protocol

from ..support.errors import ArgumentError, UnsupportedOpError
from .expr import RelayExpr
from .node import DATA
from .type import Type


class OpPattern(IntEnum):
    """How an operator's outputs depend on its inputs; what fusion goes by."""

    ELEMWISE = 0
    BROADCAST = 1
    INJECTIVE = 2
    COMM_REDUCE = 3
    OUT_ELEMWISE_FUSABLE = 4
    TUPLE = 7
    OPAQUE = 8


class Argument(NamedTuple):
    """One declared input of an operator."""

    name: str
    type_info: str
    description: str


class RelationContext(Protocol):
    """What a type relation may ask of inference."""

    def unify(self, a: Type, b: Type) -> Type:
        """Makes both types equal, or raises TypeMismatchError."""


Relation = Callable[[tuple[Type, ...], Any, RelationContext], "Type | None"]


class Op(RelayExpr):
    """A primitive operator; one object per name (``Op.get``)."""

    __slots__ = ("name", "num_inputs", "arguments", "attrs_type", "description", "support_level", "relation",
                 "relation_name", "_table")
    FIELDS = {"name": DATA}
    __hash__ = RelayExpr.__hash__

    def __init__(self, name: str) -> None:
        self.name, self.span, self._checked_type = name, None, None
        self.num_inputs, self.arguments, self.attrs_type = -1, (), None
        self.description, self.support_level = "", 10
        self.relation: Relation | None = None
        self.relation_name = ""
        self._table: dict[str, tuple[Any, int]] = {}

    @staticmethod
    def get(op_name: str) -> Op:
        """The operator of that name; UnsupportedOpError (with near names) when there is none."""
        found = _REGISTRY.get(op_name)
        if found is None and _load_operators():
            found = _REGISTRY.get(op_name)
        if found is None:
            import difflib

            near = difflib.get_close_matches(op_name, _REGISTRY, 3)
            raise UnsupportedOpError(f"operator {op_name!r} is not registered" + (f"; did you mean {', '.join(near)}?" if near else ""))
        return found

    @staticmethod
    def list_op_names() -> list[str]:
        """All operator names, sorted."""
        _load_operators()
        return sorted(_REGISTRY)

    def get_attr(self, attr_name: str, default: Any = None) -> Any:
        """What was attached under ``attr_name``, or ``default``."""
        return self._table.get(attr_name, (default, 0))[0]

    def has_attr(self, attr_name: str) -> bool:
        """Whether something is attached under ``attr_name``."""
        return attr_name in self._table

    def set_attr(self, attr_name: str, value: Any, plevel: int = 10) -> None:
        """Attaches ``value``; a higher ``plevel`` replaces a lower one, an equal one replaces too."""
        if attr_name in self._table and self._table[attr_name][1] > plevel:
            return
        self._table[attr_name] = (value, plevel)

    def reset_attr(self, attr_name: str) -> None:
        """Detaches ``attr_name``."""
        self._table.pop(attr_name, None)

    def add_argument(self, name: str, type: str, description: str) -> None:
        """Declares the next input."""
        self.arguments = (*self.arguments, Argument(name, type, description))

    def set_num_inputs(self, n: int) -> None:
        """Declares how many inputs a call has (-1: any number)."""
        self.num_inputs = n

    def set_attrs_type_key(self, key: str) -> None:
        """Declares the attribute class by its registered name."""
        self.attrs_type = key

    def set_support_level(self, level: int) -> None:
        """Documentation level of the operator (1 is basic)."""
        self.support_level = level

    def describe(self, text: str) -> None:
        """Sets the description."""
        self.description = text

    def add_type_rel(self, rel_name: str, type_rel_func: Callable[..., Any] | None = None) -> None:
        """Sets the type relation: by the name of a known one, or a function ``(arg_types, attrs) -> Type``."""
        if type_rel_func is None:
            if rel_name not in _RELATIONS:
                raise ArgumentError(f"no type relation is named {rel_name!r}; known: {', '.join(sorted(_RELATIONS))}")
            self.relation, self.relation_name = _RELATIONS[rel_name], rel_name
            return
        self.relation = lambda args, attrs, ctx: type_rel_func(list(args), attrs)
        self.relation_name = rel_name


_REGISTRY: dict[str, Op] = {}
_RELATIONS: dict[str, Relation] = {}


_LIBRARIES: list[Callable[[], Any]] = []


def register_operator_library(load: Callable[[], Any]) -> None:
    """Sets what to call, once, when an operator is asked for that is not registered yet."""
    _LIBRARIES.append(load)


def _load_operators() -> bool:
    """Loads the libraries not loaded yet; whether there were any."""
    waiting = _LIBRARIES[:]
    _LIBRARIES.clear()
    for load in waiting:
        load()
    return bool(waiting)


def register_op(op_name: str, describe: str = "") -> Op:
    """The operator of that name, created when new."""
    op = _REGISTRY.get(op_name)
    if op is None:
        op = _REGISTRY[op_name] = Op(op_name)
    if describe:
        op.describe(describe)
    return op


def register_relation(name: str, relation: Relation) -> Relation:
    """Names a type relation so that operators can refer to it."""
    _RELATIONS[name] = relation
    return relation


def relation_named(name: str) -> Relation:
    """The type relation registered under ``name``; ArgumentError when there is none."""
    if name not in _RELATIONS:
        _load_operators()
    if name not in _RELATIONS:
        raise ArgumentError(f"no type relation is named {name!r}; known: {', '.join(sorted(_RELATIONS))}")
    return _RELATIONS[name]


def register_op_attr(op_name: str, attr_key: str, value: Any = None, level: int = 10) -> Any:
    """Attaches ``value`` to an operator (created when new); without ``value``, a decorator."""
    def attach(v: Any) -> Any:
        register_op(op_name).set_attr(attr_key, v, level)
        return v

    return attach if value is None else attach(value)

