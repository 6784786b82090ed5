"""The names of a script: ``from anchorleg.script import tir as T``.

Types (``T.int32``, ``T.handle``, ``T.Buffer``), statements (``statements.py``) and expressions (``intrinsics.py``).
"""
from __future__ import annotations

import re
from typing import Any

from ..ir.expr import FloatImm, IntImm, Range
from ..tir.expr import IterVar, SizeVar, Var
from .decorators import prim_func
from .intrinsics import INTRINSICS
from .macro import macro
from .statements import (Assert, AxisMaker, BufferMaker, Else, If, LetStmt, Then, While, alloc_buffer, allocate, allocate_const, attr, block,
                         block_attr, buffer_store, decl_buffer, env_thread, evaluate, func_attr, func_ret, grid, init, iter_var, launch_thread, let,
                         match_buffer, meta_var, parallel, reads, realize, serial, target, thread_binding, unroll, var, vectorized, where, writes)
from .types import TYPES, PtrMaker, ScalarType

Buffer = BufferMaker()
axis = AxisMaker()
Ptr = PtrMaker()
ptr = pointer = Ptr
buffer_decl = buffer = Buffer
preflattened_buffer = match_buffer

_VECTOR = re.compile(r"(bool|u?int(8|16|32|64)|b?float(16|32|64))x[1-9][0-9]*")
_NAMES: dict[str, Any] = {**INTRINSICS, **TYPES}


def __getattr__(name: str) -> Any:
    if name in _NAMES:
        return _NAMES[name]
    if _VECTOR.fullmatch(name):
        return ScalarType(name)
    raise AttributeError(f"the script language has no T.{name}")


def __dir__() -> list[str]:
    return sorted([*globals(), *_NAMES])


__all__ = ["Assert", "Buffer", "Else", "FloatImm", "If", "IntImm", "IterVar", "LetStmt", "Ptr", "Range", "SizeVar", "Then", "Var", "While",
           "alloc_buffer", "allocate", "allocate_const", "attr", "axis", "block", "block_attr", "buffer", "buffer_decl", "buffer_store",
           "decl_buffer", "env_thread", "evaluate", "func_attr", "func_ret", "grid", "init", "iter_var", "launch_thread", "let",
           "macro", "match_buffer", "meta_var", "parallel", "pointer", "preflattened_buffer", "prim_func", "ptr", "reads", "realize", "serial",
           "target", "thread_binding", "unroll", "var", "vectorized", "where", "writes"]
