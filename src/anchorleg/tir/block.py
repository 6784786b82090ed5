"""Blocks: pieces of a loop program that say which axes they compute over and what they read and write.

    for i, k in T.grid(16, 32):
        with T.block("sum"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                C[vi] = 0
            C[vi] += A[vi, vk]

They are made by the script language and lowered to plain loops by ``tir.transform.LowerBlocks`` before code is generated.
"""
from __future__ import annotations

from typing import Any as _Any, Mapping, Sequence

from ..ir.expr import PrimExpr, Range, as_dim_expr
from ..ir.node import BIND, BINDS, CHILD, CHILDREN, DATA, Node
from .buffer import Buffer
from .expr import IterVar
from .stmt import Stmt


class BufferRegion(Node):
    """The part of ``buffer`` within ``region``, one range per dimension."""

    __slots__ = ("buffer", "region")
    FIELDS = {"buffer": CHILD, "region": CHILDREN}

    def __init__(self, buffer: Buffer, region: Sequence[Range], span: _Any = None) -> None:
        self.buffer, self.region, self.span = buffer, tuple(region), span


class MatchBufferRegion(Node):
    """``buffer`` stands for the part ``source`` of another buffer."""

    __slots__ = ("buffer", "source")
    FIELDS = {"source": CHILD, "buffer": BIND}

    def __init__(self, buffer: Buffer, source: BufferRegion, span: _Any = None) -> None:
        self.buffer, self.source, self.span = buffer, source, span


class Block(Stmt):
    """A computation over ``iter_vars``: ``init`` runs before the first round of its reduction axes, then ``body``.

    ``reads`` and ``writes`` are the regions it touches; ``alloc_buffers`` live inside it.
    """

    __slots__ = ("iter_vars", "reads", "writes", "name_hint", "alloc_buffers", "match_buffers", "annotations", "init", "body")
    FIELDS = {"iter_vars": CHILDREN, "alloc_buffers": BINDS, "match_buffers": CHILDREN, "reads": CHILDREN, "writes": CHILDREN,
              "name_hint": DATA, "annotations": DATA, "init": CHILD, "body": CHILD}
    LABELS = ("name_hint",)

    def __init__(self, iter_vars: Sequence[IterVar], reads: Sequence[BufferRegion], writes: Sequence[BufferRegion], name_hint: str,
                 body: Stmt, init: Stmt | None = None, alloc_buffers: Sequence[Buffer] = (), match_buffers: Sequence[MatchBufferRegion] = (),
                 annotations: Mapping[str, _Any] | None = None, span: _Any = None) -> None:
        self.iter_vars, self.reads, self.writes, self.name_hint = tuple(iter_vars), tuple(reads), tuple(writes), name_hint
        self.body, self.init, self.alloc_buffers = body, init, tuple(alloc_buffers or ())
        self.match_buffers, self.annotations, self.span = tuple(match_buffers or ()), dict(annotations or {}), span


class BlockRealize(Stmt):
    """Runs ``block`` with its axes at ``iter_values``, where ``predicate`` holds."""

    __slots__ = ("iter_values", "predicate", "block")
    FIELDS = {"iter_values": CHILDREN, "predicate": CHILD, "block": CHILD}

    def __init__(self, iter_values: Sequence[PrimExpr | int], predicate: PrimExpr | bool, block: Block, span: _Any = None) -> None:
        from .build import make_const

        self.iter_values = tuple(as_dim_expr(v) for v in iter_values)
        self.predicate = make_const(predicate, "bool") if isinstance(predicate, bool) else predicate
        self.block, self.span = block, span
