"""How axes descend from one another: each schedule primitive on axes leaves one of these records on the stage."""
from __future__ import annotations

from typing import NamedTuple, Sequence, Union

from ..ir.expr import PrimExpr
from ..tir.expr import IterVar

Extent = Union[int, PrimExpr]


class Split(NamedTuple):
    """``parent = outer * factor + inner``; one of ``factor`` (inner's extent) and ``nparts`` (outer's) is given."""

    parent: IterVar
    outer: IterVar
    inner: IterVar
    factor: Extent | None
    nparts: Extent | None


class Fuse(NamedTuple):
    """``fused = outer * extent(inner) + inner``."""

    outer: IterVar
    inner: IterVar
    fused: IterVar


class Singleton(NamedTuple):
    """``iter`` runs once; for stages without axes."""

    iter: IterVar


Relation = Union[Split, Fuse, Singleton]


def descendants(axes: Sequence[IterVar], relations: Sequence[Relation]) -> set[int]:
    """The ids of ``axes`` and of everything made from them."""
    found = {id(iv) for iv in axes}
    for r in relations:
        if isinstance(r, Split) and id(r.parent) in found:
            found.update((id(r.outer), id(r.inner)))
        elif isinstance(r, Fuse) and (id(r.outer) in found or id(r.inner) in found):
            found.add(id(r.fused))
    return found
