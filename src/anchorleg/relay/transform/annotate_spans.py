"""AnnotateSpans: gives every expression a place in the module's own text, so that errors can point at it.

before::  add(%x, %y)                        (built by a program, of no known origin)
after::   add(%x, %y) /* span=GeneratedSource:3:3 */
"""
from __future__ import annotations

from ...ir.module import IRModule
from ...ir.transform import ModulePass, Pass, PassContext, PassInfo, register_pass
from ..text.parser import parse
from ..text.printer import astext


def AnnotateSpans() -> Pass:
    """The pass; it prints the module and reads it back."""
    return ModulePass(_annotate, PassInfo(0, "AnnotateSpans"))


def _annotate(mod: IRModule, ctx: PassContext) -> IRModule:
    return parse(astext(mod), "GeneratedSource")


register_pass("AnnotateSpans", AnnotateSpans)
