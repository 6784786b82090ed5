"""``InjectVirtualThread``: virtual threads become a loop around the code they share.

Before: ``attr virtual_thread(v) = 4 { S }``; after: ``for v in unrolled(4) { S }``.  That runs the threads one after the other, which is the
same as side by side as long as nothing in ``S`` waits for all of them; a barrier inside is an error.
"""
from __future__ import annotations

from typing import Any

from ...support.errors import UnsupportedOpError
from .. import expr as tir
from .. import stmt as ts
from ..function import PrimFunc
from ..functor import StmtMutator, contains
from .common import func_pass


def _is_barrier(n: Any) -> bool:
    return isinstance(n, tir.Call) and getattr(n.op, "name", "") == "tir.tvm_storage_sync"


class _VirtualThreads(StmtMutator):
    def __init__(self) -> None:
        super().__init__()
        self.open: set[int] = set()

    def expr(self, e: Any) -> Any:
        return e

    def visit_AttrStmt(self, s: ts.AttrStmt) -> Any:
        if s.attr_key != "virtual_thread":
            return s.replace(body=(yield s.body))
        v = s.node.var if isinstance(s.node, tir.IterVar) else s.node
        if id(v) in self.open:  # opened further out already
            return (yield s.body)
        if contains(s.body, _is_barrier):
            raise UnsupportedOpError(f"virtual thread {v.name}: a barrier inside virtual threads is not supported")
        self.open.add(id(v))
        body = yield s.body
        self.open.discard(id(v))
        return ts.For(v, 0, s.value, ts.ForKind.UNROLLED, body)


def inject_virtual_thread(func: PrimFunc) -> PrimFunc:
    """The function with virtual threads as loops."""
    return _VirtualThreads().func(func)


InjectVirtualThread = func_pass("InjectVirtualThread", inject_virtual_thread)
