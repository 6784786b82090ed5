"""Results that a loop collects turn by turn.

Where the number of turns and the size of a row are known when the loop begins, rows are put into a tensor of that many.
Otherwise the tensor grows: it is doubled when it is full, so that a row costs the same however many there are.
"""
from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ....ir.expr import Any as AnyDim, RelayExpr
from ....ir.type import TensorType, Type
from ....support.errors import UnsupportedOpError
from ...expr import Constant, If, Tuple
from ...op.dyn import transform as dyn
from ...op.type_relations import show
from .branches import seen_as
from .make import call, concat, const, reshape

if TYPE_CHECKING:
    from .context import NodeContext


class _Fixed:
    """Rows whose number is known: a value of the running model."""

    def __init__(self, n: NodeContext, row: TensorType, count: RelayExpr) -> None:
        self.n, self.row, self.count = n, row, count

    def empty(self) -> RelayExpr:
        """The tensor before the first turn."""
        sizes = concat([reshape(call("maximum", self.count, const(0, "int64")), [1]), const(list(self.row.dims), "int64")], 0)
        return dyn.zeros(sizes, self.row.dtype)

    def put(self, buffer: RelayExpr, turn: RelayExpr, row: RelayExpr) -> RelayExpr:
        """The tensor with the row of a turn."""
        return call("vm.put_row", buffer, turn, row)

    def rows(self, buffer: RelayExpr, count: RelayExpr) -> RelayExpr:
        """The rows of all turns."""
        return buffer


class _Growing:
    """Rows whose number, or size, only the turns tell."""

    def __init__(self, n: NodeContext, row: TensorType) -> None:
        self.n, self.row = n, row

    def empty(self) -> RelayExpr:
        """A tensor of no rows yet, of which no more is said than of the later ones."""
        found = no_rows(self.n, self.row)
        return seen_as(found, found.checked_type, TensorType([AnyDim(), *self.row.dims], self.row.dtype))

    def put(self, buffer: RelayExpr, turn: RelayExpr, row: RelayExpr) -> RelayExpr:
        """The tensor with the row of a turn.  There may be room for more rows behind it."""
        (row,) = self.n.settled(row)
        doubled = call("concatenate", Tuple([buffer, buffer]), axis=0)
        room = If(call("less", turn, row_count(buffer)), buffer, doubled)
        room = If(call("equal", turn, const(0, "int64")), call("expand_dims", row, axis=0, num_newaxis=1), room)
        return call("vm.put_row", room, turn, row)

    def rows(self, buffer: RelayExpr, count: RelayExpr) -> RelayExpr:
        """The rows of so many turns."""
        return dyn.strided_slice(buffer, [0], reshape(count, [1]), [1])


def collector(n: NodeContext, row: Type, count: RelayExpr | None = None) -> Any:
    """Collects rows of a type; ``count`` of them, where that is known."""
    if not isinstance(row, TensorType):
        raise UnsupportedOpError(f"a loop can collect tensors only, not {show(row)}")
    return _Fixed(n, row, count) if count is not None and row.is_static else _Growing(n, row)


def no_rows(n: NodeContext, row: Type) -> Constant:
    """What is collected in no turns.  Sizes that are not known are 0, as nothing has them."""
    if not isinstance(row, TensorType):
        raise UnsupportedOpError(f"a loop can collect tensors only, not {show(row)}")
    return const(np.zeros([0, *(d if isinstance(d, int) else 0 for d in row.dims)]), row.dtype)


def row_count(x: RelayExpr) -> RelayExpr:
    """The size of the first dimension, as an int64 scalar."""
    return call("take", call("shape_of", x, dtype="int64"), const(0, "int64"), axis=0, batch_dims=0, mode="fast")
