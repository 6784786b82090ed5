"""A value and the layout it is in, and the expressions that move it to another layout."""
from __future__ import annotations

from typing import Any, NamedTuple, Sequence

from ....ir.expr import RelayExpr
from ....tir.data_layout import Layout
from ...op.registry import make_attrs
from ..common import call


class Place(NamedTuple):
    """``old`` is the layout the program speaks of, ``new`` the one the value is really in."""

    old: str
    new: str

    @property
    def moved(self) -> bool:
        """Whether the value is in another layout than the program's."""
        return self.old != self.new


class Value(NamedTuple):
    """An expression of the rewritten program; ``place`` None where no layout is known."""

    expr: RelayExpr
    place: Place | None
    dims: tuple[Any, ...]  # the shape the program speaks of


class Plan(NamedTuple):
    """What an operator wants: a place for each tensor argument (None: the program's), the places of its results, its attributes.

    ``broadcasts`` tells that arguments of lower rank, or of extent 1 along a blocked axis, are broadcast and stay unblocked there.
    """

    inputs: Sequence[Place | None]
    outputs: Sequence[Place | None]
    attrs: Any
    broadcasts: bool = False


def blocked_axis(layout: str) -> tuple[str, int]:
    """The axis that has a block and the block's size: ``NCHW16c`` → ("C", 16); ("", 0) where there is none or several."""
    found = [(a.upper(), Layout(layout).factor_of(a.upper())) for a in layout if a.isalpha() and a.islower()]
    return found[0] if len(found) == 1 else ("", 0)


def primal(layout: str) -> str:
    """The layout without blocks: ``NCHW16c`` → ``NCHW``."""
    return "".join(c for c in layout if c.isalpha() and c.isupper())


def new_axis(place: Place, axis: int) -> int:
    """Where the program's axis lies in the new layout."""
    letter = primal(place.old)[axis % len(primal(place.old))]
    return Layout(place.new).index_of(letter)


def divisible(dims: Sequence[Any], old: str, new: str) -> bool:
    """Whether a tensor of ``dims`` in layout ``old`` fills the blocks of ``new`` exactly."""
    axis, factor = blocked_axis(new)
    if not axis:
        return all(not c.islower() for c in new)
    size = dims[primal(old).index(axis)] if axis in primal(old) else None
    return isinstance(size, int) and size % factor == 0


class Mover:
    """Makes the expressions that change layouts, each once."""

    def __init__(self) -> None:
        self._made: dict[tuple[int, str, str], tuple[RelayExpr, RelayExpr]] = {}

    def transform(self, expr: RelayExpr, src: str, dst: str) -> RelayExpr:
        """``expr`` moved from one layout to another."""
        if src == dst:
            return expr
        key = (id(expr), src, dst)
        if key not in self._made:
            self._made[key] = (expr, self._moved(expr, src, dst))
        return self._made[key][1]

    @staticmethod
    def _moved(expr: RelayExpr, src: str, dst: str) -> RelayExpr:
        """A change of layout; where it only adds a last block of size 1, or drops it, no element moves."""
        rank = len(primal(src))
        if dst[:-2] == src == primal(src) and dst[-2] == "1":
            return call("expand_dims", expr, attrs=make_attrs("expand_dims", axis=rank, num_newaxis=1))
        if src[:-2] == dst == primal(dst) and src[-2] == "1":
            return call("squeeze", expr, attrs=make_attrs("squeeze", axis=[rank]))
        return call("layout_transform", expr, attrs=make_attrs("layout_transform", src_layout=src, dst_layout=dst))

    def restore(self, value: Value) -> RelayExpr:
        """The value in the program's layout."""
        if value.place is None or not value.place.moved:
            return value.expr
        return self.transform(value.expr, value.place.new, value.place.old)

    def move(self, value: Value, want: Place | None, broadcasts: bool = False) -> RelayExpr:
        """The value in the layout that is wanted; ``broadcasts`` as in :class:`Plan`."""
        if want is None:
            return self.restore(value)
        if value.place is not None and value.place.moved and primal(value.place.old) == primal(want.old):
            return self.transform(value.expr, value.place.new, want.new)
        # The reader calls the axes by other letters than the writer did: only the program's layout is common ground.
        return self._from_program(self.restore(value), value.dims, want, broadcasts)

    def _from_program(self, expr: RelayExpr, dims: Sequence[Any], want: Place, broadcasts: bool) -> RelayExpr:
        if not want.moved:
            return expr
        if not broadcasts:
            return self.transform(expr, want.old, want.new)
        missing = len(primal(want.old)) - len(dims)
        if missing > 0:
            if not dims:
                return expr
            expr = call("expand_dims", expr, attrs=make_attrs("expand_dims", axis=0, num_newaxis=missing))
            dims = (1,) * missing + tuple(dims)
        axis, _ = blocked_axis(want.new)
        if axis and dims[primal(want.old).index(axis)] == 1:
            expr = self.transform(expr, want.old, primal(want.new))
            return call("expand_dims", expr, attrs=make_attrs("expand_dims", axis=len(primal(want.new)), num_newaxis=1))
        return self.transform(expr, want.old, want.new)
