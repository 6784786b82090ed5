"""The parser's address under upstream's name: ``from anchorleg.script.parser import tir as T, ir as I``."""
from __future__ import annotations

from . import ir, tir
from .decorators import from_source, ir_module

parse = from_source

__all__ = ["from_source", "ir", "ir_module", "parse", "tir"]
