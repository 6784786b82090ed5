"""MergeCompilerRegions: regions of one compiler that feed one another become one region.

before::

    end(abs(begin(%x, "c")), "c")  →  end(relu(begin(·, "c")), "c")

after::

    end(relu(abs(begin(%x, "c"))), "c")

A region takes in the regions it reads from, unless there is another way from one to the other through something outside:
together they would need their own result.
"""
from __future__ import annotations

from typing import Any, Iterable

from ...ir.expr import RelayExpr
from ...ir.module import IRModule
from ...ir.transform import PassContext
from ...ir.visit import post_order
from ..analysis.annotated_regions import AnnotatedRegion, AnnotatedRegionSet, is_begin, is_end, region_children
from ..function import Function
from .common import declare_pass, rewrite_exprs

Vertex = Any  # a region, or an expression that is in none


class _Merger:
    """Merges the regions of one expression.

    ``upstream`` maps each vertex to the set (as bits) of the regions it needs by ways that leave its own region: those must
    stay apart from it.
    """

    def __init__(self, regions: AnnotatedRegionSet) -> None:
        self.regions = regions
        self.members = {r: 1 << r.id for r in regions}
        self.upstream: dict[int, int] = {}

    def run(self, root: RelayExpr) -> None:
        """Merges what can be merged, inputs before those that read them."""
        for vertex in list(post_order([self._vertex(root)], self._inputs)):  # type: ignore[arg-type]
            if isinstance(vertex, AnnotatedRegion):
                self._restrict(vertex)
                self._take_in(vertex)
            else:
                self.upstream[id(vertex)] = self._or(self._seen_from_outside(v) for v in self._inputs(vertex))

    def _vertex(self, expr: RelayExpr) -> Vertex:
        region = self.regions.get_region(expr)
        return expr if region is None else region

    def _inputs(self, vertex: Vertex) -> list[Vertex]:
        """What a vertex reads from."""
        if isinstance(vertex, AnnotatedRegion):
            return [self._vertex(b.args[0]) for b in vertex.args]
        return [self._vertex(c) for c in region_children(vertex)]

    @staticmethod
    def _or(parts: Iterable[int]) -> int:
        bits = 0
        for part in parts:
            bits |= part
        return bits

    def _seen_from_outside(self, vertex: Vertex) -> int:
        own = self.members[vertex] if isinstance(vertex, AnnotatedRegion) else 0
        return self.upstream.get(id(vertex), 0) | own

    def _restrict(self, region: AnnotatedRegion) -> None:
        found = 0
        for vertex in self._inputs(region):
            same = isinstance(vertex, AnnotatedRegion) and vertex.target == region.target
            found |= self.upstream.get(id(vertex), 0) if same else self._seen_from_outside(vertex)
        self.upstream[id(region)] = found

    def _take_in(self, region: AnnotatedRegion) -> None:
        for begin in region.args:
            parent = self.regions.get_region(begin.args[0])
            if parent is None or parent is region or parent.target != region.target:
                continue
            if self.upstream[id(region)] & self.members[parent] or self._leads_around(parent, region):
                continue
            self.upstream[id(region)] |= self.upstream[id(parent)]
            self.members[region] |= self.members.pop(parent)
            self.regions.merge_regions(parent, region)

    def _leads_around(self, parent: AnnotatedRegion, region: AnnotatedRegion) -> bool:
        """Whether ``region`` needs ``parent`` in another way than directly, regions merged so far counted as one."""
        waiting = [v for v in self._inputs(region) if v is not parent]
        seen: set[int] = {id(region)}
        while waiting:
            vertex = waiting.pop()
            if vertex is parent:
                return True
            if id(vertex) not in seen:
                seen.add(id(vertex))
                waiting.extend(self._inputs(vertex))
        return False


def _without_inner_marks(func: Function, regions: AnnotatedRegionSet) -> RelayExpr:
    """The function without the ends and begins between two parts of one region."""
    def rule(old: Any, new: Any) -> RelayExpr:
        inner = is_begin(old) and is_end(old.args[0]) and regions.get_region(old) is regions.get_region(old.args[0])
        return new.args[0].args[0] if inner else new

    return rewrite_exprs(func, rule)


def _merge(func: Function, mod: IRModule, ctx: PassContext) -> Function:
    """Joins regions of one compiler that feed one another."""
    regions = AnnotatedRegionSet(func)
    if len(regions) < 2:
        return func
    _Merger(regions).run(func)
    return _without_inner_marks(func, regions)  # type: ignore[return-value]


MergeCompilerRegions = declare_pass("MergeCompilerRegions", 0, _merge)
__all__ = ["MergeCompilerRegions"]
