"""Which parts of buffers a block reads and writes, found from its body."""
from __future__ import annotations

from typing import Any, Iterable

from ..arith import IntervalSet, IntSet, eval_set, union
from ..ir.expr import PrimExpr, Range
from ..ir.node import Node
from . import stmt as ts
from .block import Block, BlockRealize, BufferRegion
from .buffer import Buffer, BufferLoad
from .functor import StmtVisitor, kids, substitute

_Region = "list[IntervalSet]"


class _Accesses:
    """Regions by buffer, in order of first access."""

    def __init__(self) -> None:
        self.found: dict[int, tuple[Buffer, list[IntervalSet]]] = {}

    def add(self, buffer: Buffer, region: list[IntervalSet]) -> None:
        """Widens the region of a buffer."""
        old = self.found.get(id(buffer))
        if old is not None:
            region = [union([a, b]) for a, b in zip(old[1], region)]
        self.found[id(buffer)] = (buffer, region)

    def regions(self, without: Iterable[Buffer]) -> list[BufferRegion]:
        """All regions but those of some buffers; a dimension without known ends is taken whole."""
        skip = {id(b) for b in without}
        return [BufferRegion(b, [s.cover_range(Range.from_min_extent(0, d)) for s, d in zip(sets, b.shape)])
                for b, sets in self.found.values() if id(b) not in skip]


class _Detector(StmtVisitor):
    def __init__(self) -> None:
        super().__init__()
        self.reads, self.writes = _Accesses(), _Accesses()
        self.loops: list[tuple[Any, IntervalSet]] = []
        self.local: list[Buffer] = []

    def expr(self, e: PrimExpr) -> None:
        stack, seen = [e], set()
        while stack:  # a load before those in its indices
            n: Any = stack.pop()
            if id(n) in seen:
                continue
            seen.add(id(n))
            if isinstance(n, BufferLoad):
                self.reads.add(n.buffer, [self._relaxed(_positions(i)) for i in n.indices])
            stack.extend(reversed(kids(n)))

    def visit_For(self, s: ts.For) -> Any:
        self.expr(s.min)
        self.expr(s.extent)
        self.loops.append((s.loop_var, IntSet.from_range(Range.from_min_extent(s.min, s.extent))))
        yield s.body
        self.loops.pop()

    def visit_BufferStore(self, s: ts.BufferStore) -> None:
        self.expr(s.value)
        for i in s.indices:
            self.expr(i)
        self.writes.add(s.buffer, [self._relaxed(_positions(i)) for i in s.indices])

    def visit_BlockRealize(self, s: BlockRealize) -> Any:
        """The regions an inner block states, at the values of its axes."""
        self.expr(s.predicate)
        table = {axis.var: value for axis, value in zip(s.block.iter_vars, s.iter_values)}
        for regions, into in ((s.block.reads, self.reads), (s.block.writes, self.writes)):
            for r in regions:
                into.add(r.buffer, [self._relaxed(IntSet.from_range(_at(x, table))) for x in r.region])
        self.local.extend(s.block.alloc_buffers)
        return iter(())

    def visit_Allocate(self, s: ts.Allocate) -> Any:
        yield s.body

    def visit_DeclBuffer(self, s: ts.DeclBuffer) -> Any:
        self.local.append(s.buffer)
        yield s.body

    def _relaxed(self, positions: IntervalSet) -> IntervalSet:
        """All positions while the loops around run, the innermost loop first."""
        for var, dom in reversed(self.loops):
            table = {var: dom}
            low, high = eval_set(positions.min_value, table), eval_set(positions.max_value, table)
            positions = IntervalSet(low.min_value, high.max_value)
        return positions


def _positions(index: PrimExpr) -> IntervalSet:
    return IntSet.vector(index)


def _at(r: Range, table: dict[Any, PrimExpr]) -> Range:
    return Range.from_min_extent(substitute(r.min, table), substitute(r.extent, table))


def block_access_regions(block: Block) -> tuple[list[BufferRegion], list[BufferRegion]]:
    """What a block reads and what it writes, seen from outside: its own buffers are left out, and of a reduction (a block with
    ``init``) the buffers it writes are not counted as read."""
    detector = _Detector()
    for part in (block.init, block.body):
        if part is not None:
            detector.visit(part)
    own = [*block.alloc_buffers, *detector.local, *(m.buffer for m in block.match_buffers)]
    for m in block.match_buffers:  # what happens to a part happens to its source
        for found in (detector.reads, detector.writes):
            if id(m.buffer) in found.found:
                found.add(m.source.buffer, [IntSet.from_range(r) for r in m.source.region])
    writes = detector.writes.regions(own)
    return detector.reads.regions([*own, *(w.buffer for w in writes if block.init is not None)]), writes


def uses_blocks(node: Node) -> bool:
    """Whether there are blocks under a statement."""
    from .functor import contains

    return contains(node, lambda n: isinstance(n, BlockRealize))
