"""Optional values: which of them are there is known at import, on each way through the branches."""
from __future__ import annotations

from .....ir.expr import RelayExpr
from .....ir.type import TupleType, Type
from .....support.errors import ArgumentError
from ....expr import Tuple
from ..context import NodeContext
from ..make import const
from ..registry import op


def _is_nothing(t: Type) -> bool:
    """Whether this is what stands for an empty optional: a tuple of nothing, in a tuple (sequences hold tensors only)."""
    return isinstance(t, TupleType) and len(t.fields) == 1 and isinstance(t.fields[0], TupleType) and not t.fields[0].fields


@op("Optional")
def optional(n: NodeContext) -> RelayExpr:
    """A value, or nothing."""
    given = n.input(0)
    return given if given is not None else Tuple([Tuple([])])


@op("OptionalHasElement")
def has_element(n: NodeContext) -> RelayExpr:
    """Whether there is a value."""
    given = n.input(0)
    return const(given is not None and not _is_nothing(n.builder.type_of(given)), "bool")


@op("OptionalGetElement")
def get_element(n: NodeContext) -> RelayExpr:
    """The value, which must be there."""
    if _is_nothing(n.builder.type_of(n.need(0))):
        raise ArgumentError("the optional value is empty: it has no element to take")
    return n.need(0)
