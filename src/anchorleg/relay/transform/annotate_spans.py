"""AnnotateSpans: gives every expression a place in the module's own text, so that errors can point at it.

before::  add(%x, %y)                        (built by a program, of no known origin)
after::   add(%x, %y) /* span=GeneratedSource:3:3 */
"""
from __future__ import annotations

from typing import Any

from ...ir.expr import GlobalVar, RelayExpr
from ...ir.module import IRModule
from ...ir.op import Op
from ...ir.span import Span
from ...ir.transform import ModulePass, Pass, PassContext, PassInfo, register_pass
from ...ir.visit import post_order
from ...support.errors import ArgumentError
from ..adt import Constructor, Match
from ..analysis.variables import exprs, pattern_vars
from ..dataflow_pattern.indexed_graph import IndexedGraph
from ..expr import Call, Var
from ..function import Function
from ..text.parser import parse
from ..text.printer import astext
from .common import map_functions, rewrite_exprs


def AnnotateSpans() -> Pass:
    """The pass; it prints the module and reads it back."""
    return ModulePass(_annotate, PassInfo(0, "AnnotateSpans"))


def _annotate(mod: IRModule, ctx: PassContext) -> IRModule:
    return parse(astext(mod), "GeneratedSource")


def SpanCheck() -> Pass:
    """A pass that changes nothing; ArgumentError when the module has calls of no known origin."""
    return ModulePass(_check, PassInfo(0, "SpanCheck"))


def _check(mod: IRModule, ctx: PassContext) -> IRModule:
    bare = [(var.name_hint, node) for var, func in mod.functions.items() for node in post_order(func) if isinstance(node, Call) and node.span is None]
    if bare:
        names = ", ".join(dict.fromkeys(f"@{name}" for name, _ in bare))
        raise ArgumentError(f"{len(bare)} calls have no span, in {names}: run AnnotateSpans before")
    return mod


def CapturePostDfsIndexInSpans() -> Pass:
    """Gives every expression its number in post-order as its span's line, and that of its nearest post-dominator (-1: none) as the column.

    before::  add(%x, %y)
    after::   add(%x, %y) /* span=index:4:-1 */
    """
    return ModulePass(lambda mod, ctx: map_functions(mod, _numbered), PassInfo(0, "CapturePostDfsIndexInSpans"))


def _numbered(func: Function) -> Function:
    graph = IndexedGraph(func)
    at = {id(d.expr): n.index for n in graph.nodes for d in n.dominated}
    matched = {v for e in exprs(func) if isinstance(e, Match) for c in e.clauses for v in pattern_vars(c.lhs)}

    def rule(old: Any, new: Any) -> RelayExpr:
        if isinstance(old, (Op, Constructor, GlobalVar)) or isinstance(old, Var) and old in matched:
            return new  # type: ignore[no-any-return]
        line, column = graph[old].index, at.get(id(old), -1)
        spanned = new.replace(span=Span("index", line, line, column, column))
        spanned._checked_type = old._checked_type
        return spanned  # type: ignore[no-any-return]

    return rewrite_exprs(func, rule)  # type: ignore[return-value]


register_pass("AnnotateSpans", AnnotateSpans)
register_pass("CapturePostDfsIndexInSpans", CapturePostDfsIndexInSpans)
register_pass("SpanCheck", SpanCheck)
