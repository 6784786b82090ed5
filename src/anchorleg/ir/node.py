"""The node system: how every IR class of the compiler is declared.

A node is a slotted Python object that is never changed after construction.  A class names its fields once, in
``FIELDS``, with the *kind* of each; traversal, structural equality and hashing, printing, JSON and text round trip
are written against that table, so a new node class needs no code of its own for any of them.

Two nodes are equal (``==``) only when they are the same object; use :func:`anchorleg.ir.structural_equal` to compare
structure.
"""
from __future__ import annotations

from enum import Enum
from typing import Any, ClassVar, Iterator, TypeVar

Self = TypeVar("Self", bound="Node")


class Kind(Enum):
    """What a field holds, and so how the engines treat it."""

    CHILD = "child"  # a node or None: visited, compared, rewritten
    CHILDREN = "children"  # a tuple of nodes (plain ints allowed, for shapes)
    BIND = "bind"  # a node that this node defines for the fields after it (a variable, a pattern)
    BINDS = "binds"  # a tuple of such nodes
    DATA = "data"  # plain data compared with ==: strings, numbers, tuples of them
    ATTRS = "attrs"  # an Attrs object, a dict or None: compared entry by entry
    ARRAY = "array"  # a runtime NDArray: compared by dtype, shape and bytes


CHILD, CHILDREN, BIND, BINDS = Kind.CHILD, Kind.CHILDREN, Kind.BIND, Kind.BINDS
DATA, ATTRS, ARRAY = Kind.DATA, Kind.ATTRS, Kind.ARRAY
_ONE = (Kind.CHILD, Kind.BIND)
_MANY = (Kind.CHILDREN, Kind.BINDS)


class Node:
    """Base of all IR nodes.

    Subclasses declare ``__slots__`` and ``FIELDS`` (field name → :class:`Kind`), in the order in which binders come
    before what they bind.  ``span`` tells where the node came from; it takes no part in equality.
    """

    __slots__ = ("span", "__weakref__")
    FIELDS: ClassVar[dict[str, Kind]] = {}
    BINDABLE: ClassVar[bool] = False  # a variable: it equals another only where both are bound at the same place
    SHARED: ClassVar[bool] = False  # sharing is part of the structure: one node used twice differs from two equal nodes
    LABELS: ClassVar[tuple[str, ...]] = ()  # fields for people only (names): not compared, not hashed
    _one: ClassVar[tuple[str, ...]] = ()
    _many: ClassVar[tuple[str, ...]] = ()
    _child_fields: ClassVar[tuple[tuple[str, bool], ...]] = ()
    _copied: ClassVar[tuple[str, ...]] = ("span",)

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        cls._child_fields = tuple((n, k in _MANY) for n, k in cls.FIELDS.items() if k in _MANY or k in _ONE)
        cls._copied = tuple(cls.FIELDS) + ("span",)

    def children(self) -> list[Node]:
        """The nodes held by this one, in field order (ints inside shapes are left out)."""
        found: list[Node] = []
        for name, many in self._child_fields:
            value = getattr(self, name)
            if many:
                found.extend(v for v in value if isinstance(v, Node))
            elif value is not None:
                found.append(value)
        return found

    def structural_parts(self) -> list[tuple[str, Kind, Any]]:
        """(name, kind, value) of what structural equality and hashing look at, binders first."""
        return [(n, k, getattr(self, n)) for n, k in self.FIELDS.items() if n not in self.LABELS]

    def replace(self: Self, **changes: Any) -> Self:
        """A copy with some fields changed; the same object when nothing differs (by identity)."""
        if all(_same(getattr(self, name), value) for name, value in changes.items()):
            return self
        copy = object.__new__(type(self))
        self._reset_caches(copy)
        for name in self._copied:
            setattr(copy, name, changes[name] if name in changes else getattr(self, name))
        return copy

    def map_children(self: Self, fn: Any) -> Self:
        """The node with ``fn`` applied to every child; the same object when no child changed."""
        changes: dict[str, Any] = {}
        for name, many in self._child_fields:
            old = getattr(self, name)
            if many:
                new = tuple(fn(v) if isinstance(v, Node) else v for v in old)
                if any(a is not b for a, b in zip(old, new)):
                    changes[name] = new
            elif old is not None:
                new = fn(old)
                if new is not old:
                    changes[name] = new
        return self.replace(**changes) if changes else self

    def same_as(self, other: object) -> bool:
        """Whether both are one and the same object."""
        return self is other

    def _reset_caches(self, copy: Node) -> None:
        """Sets the slots of ``copy`` that are no fields (caches) to their empty state."""

    def __repr__(self) -> str:
        from .repr_hooks import render

        return render(self)


def _same(old: Any, new: Any) -> bool:
    if old is new:
        return True
    return (isinstance(old, tuple) and isinstance(new, tuple) and len(old) == len(new)
            and all(a is b for a, b in zip(old, new)))


def iter_fields(node: Node) -> Iterator[tuple[str, Kind, Any]]:
    """(name, kind, value) of each declared field, in order."""
    for name, kind in type(node).FIELDS.items():
        yield name, kind, getattr(node, name)
