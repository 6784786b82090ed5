"""LLVM code for processors: ``emit_kernel(func, target)`` gives the text of a module with a fast and a packed entry."""
from __future__ import annotations

from .kernel import Kernel, emit_kernel

__all__ = ["Kernel", "emit_kernel"]
