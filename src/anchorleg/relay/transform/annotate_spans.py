"""AnnotateSpans: gives every expression a place in the module's own text, so that errors can point at it.

before::  add(%x, %y)                        (built by a program, of no known origin)
after::   add(%x, %y) /* span=GeneratedSource:3:3 */
"""
from __future__ import annotations

from ...ir.module import IRModule
from ...ir.transform import ModulePass, Pass, PassContext, PassInfo, register_pass
from ...ir.visit import post_order
from ...support.errors import ArgumentError
from ..expr import Call
from ..text.parser import parse
from ..text.printer import astext


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


register_pass("AnnotateSpans", AnnotateSpans)
register_pass("SpanCheck", SpanCheck)
