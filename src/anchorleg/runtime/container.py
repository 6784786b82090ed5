"""Small runtime containers: tagged tuples (`ADT`), text and shapes, with upstream's names."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np

from ..support.errors import ArgumentError
from .object import Object


class ADT(Object):
    """A constructor's tag and its fields; a tuple is an `ADT` with tag 0.

    Fields are tensors or further `ADT` values; indexing, ``len`` and iteration reach them.
    """

    __slots__ = ("tag", "fields")

    def __init__(self, tag: int, fields: Iterable[object]) -> None:
        self.tag = int(tag)
        self.fields = tuple(fields)

    def __getitem__(self, index):  # noqa: ANN001, ANN204
        try:
            return self.fields[index]
        except IndexError:
            raise IndexError(f"index {index} out of range for {len(self.fields)} fields") from None

    def __len__(self) -> int:
        return len(self.fields)

    def __iter__(self) -> Iterator[object]:
        return iter(self.fields)

    def __repr__(self) -> str:
        inner = ", ".join("ADT(…)" if isinstance(f, ADT) else repr(f) for f in self.fields)
        return f"ADT(tag={self.tag}, [{inner}])"


class RefValue:
    """A reference's cell: ``value`` is what it holds."""

    __slots__ = ("value",)

    def __init__(self, value: object) -> None:
        self.value = value

    def __repr__(self) -> str:
        return f"ref({'ref(…)' if isinstance(self.value, RefValue) else repr(self.value)})"


def tuple_object(fields: Iterable[object] | None = None) -> ADT:
    """A tuple value of the given fields."""
    return ADT(0, fields or ())


class String(str):
    """Text; a plain ``str`` under upstream's name."""

    __slots__ = ()

    @property
    def __tvm_object__(self) -> "String":
        """The text as an object: itself."""
        return self

    def same_as(self, other: object) -> bool:
        return self is other


class ShapeTuple(tuple):
    """An immutable tuple of ints (as a shape: -1 may stand for what is not known); it equals a list of the same ints."""

    __slots__ = ()

    def __new__(cls, shape: Iterable[int] = ()) -> "ShapeTuple":
        values = tuple(shape)
        if not all(isinstance(v, (int, np.integer)) for v in values):
            raise ArgumentError(f"a ShapeTuple is made of ints, got {values}")
        return super().__new__(cls, map(int, values))

    def __eq__(self, other: object) -> bool:
        return tuple(self) == tuple(other) if isinstance(other, (list, tuple)) else NotImplemented

    def __ne__(self, other: object) -> bool:
        return not self == other

    __hash__ = tuple.__hash__
