"""The script language: loop programs written as Python functions, read from their source.

    from anchorleg.script import ir as I, tir as T

    @T.prim_func
    def double(A: T.Buffer((16,), "float32"), B: T.Buffer((16,), "float32")):
        for i in range(16):
            B[i] = A[i] * T.float32(2)

``from_source(text)`` reads a text, and ``func.script()`` writes one that reads back as the same program.
"""
from . import ir, tir
from .decorators import from_source, ir_module
from .errors import ScriptError

__all__ = ["ScriptError", "from_source", "ir", "ir_module", "tir"]
