"""The names of a module in a script: ``from anchorleg.script import ir as I``."""
from __future__ import annotations

from ..ir.expr import GlobalVar
from .decorators import ir_module, module_attrs

__all__ = ["GlobalVar", "ir_module", "module_attrs"]
