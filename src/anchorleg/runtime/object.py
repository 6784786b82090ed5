"""`Object`: the base that runtime values with no tensor form share."""

from __future__ import annotations


class Object:
    """A runtime value that is not a tensor; ``same_as`` tells whether two names mean one object."""

    __slots__ = ()

    def same_as(self, other: object) -> bool:
        return self is other
