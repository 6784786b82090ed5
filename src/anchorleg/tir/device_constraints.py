"""The memory scopes of a function's tensors, as a graph's planner of devices asks for them and sets them."""
from __future__ import annotations

from typing import Any, Iterable, Sequence

from ..ir.expr import PrimExpr
from ..ir.type import PointerType, flatten_types
from ..support.errors import ArgumentError
from . import expr as tir
from . import stmt as ts
from .buffer import Buffer
from .function import PrimFunc
from .functor import StmtMutator


def _groups(func: PrimFunc, relay_func_type: Any) -> list[list[Buffer]]:
    """The buffers behind each argument and, last, the result of a graph function's type; tuples have several.

    ArgumentError when the function's buffers are not as many as the type's tensors.
    """
    buffers = [b for b in func.buffers if b is not None]
    counts = [len(flatten_types(t)) for t in (*relay_func_type.arg_types, relay_func_type.ret_type)]
    if sum(counts) != len(buffers):
        raise ArgumentError(f"the type has {sum(counts)} tensors, arguments and results together, but the loop program takes {len(buffers)} buffers")
    rest = iter(buffers)
    return [[next(rest) for _ in range(n)] for n in counts]


def _scope(b: Buffer) -> str:
    return getattr(b.data.type_annotation, "storage_scope", "") or ""


def get_prim_func_arg_and_result_memory_constraints(func: PrimFunc, relay_func_type: Any) -> list[str]:
    """The memory scope of each argument and, last, the result of a lowered graph function ("": none is asked for).

    ArgumentError when the fields of one tuple lie in different scopes.
    """
    return [_one_scope(group) for group in _groups(func, relay_func_type)]


def _one_scope(group: Sequence[Buffer]) -> str:
    scopes = {s for s in map(_scope, group) if s}
    if len(scopes) > 1:
        raise ArgumentError(f"the fields of a tuple are expected in one memory scope, got {', '.join(sorted(scopes))}")
    return next(iter(scopes), "")


class _Rescope(StmtMutator):
    """Replaces pointers, and every buffer over them."""

    def __init__(self, scopes: Iterable[tuple[Buffer, str]]) -> None:
        super().__init__()
        self.pointers: dict[int, tuple[tir.Var, tir.Var]] = {}
        self.buffers: dict[int, tuple[Buffer, Buffer]] = {}
        for b, scope in scopes:
            self._rescope(b.data, scope)

    def _rescope(self, data: tir.Var, scope: str) -> None:
        kind: Any = data.type_annotation
        new = data.replace(type_annotation=PointerType(kind.element_type, scope))
        self.pointers[id(data)] = (data, new)

    def _finish(self, e: PrimExpr) -> PrimExpr:
        found = self.pointers.get(id(e))
        return e if found is None else found[1]

    def buffer(self, b: Buffer) -> Buffer:
        found = self.buffers.get(id(b))
        if found is None:
            data: Any = self._finish(b.data)
            scope = b.scope_name if data is b.data else data.type_annotation.storage_scope
            found = self.buffers[id(b)] = (b, b.replace(data=data, scope_name=scope))
        return found[1]

    def visit_Block(self, s: Any) -> Any:
        for m in s.match_buffers:
            source = self.pointers.get(id(m.source.buffer.data))
            if source is not None:
                self._rescope(m.buffer.data, source[1].type_annotation.storage_scope)
        return (yield from self._default_block(s))

    def visit_LetStmt(self, s: ts.LetStmt) -> Any:
        """A pointer that is another's value lies where that does."""
        source = self.pointers.get(id(s.value))
        if source is not None and isinstance(s.var.type_annotation, PointerType):
            self._rescope(s.var, source[1].type_annotation.storage_scope)
            body = yield s.body
            return ts.LetStmt(self._finish(s.var), source[1], body, s.span)
        return (yield from self.default(s))


def apply_prim_func_arg_and_result_memory_constraints(func: PrimFunc, relay_func_type: Any, arg_and_result_memory_scopes: Sequence[str]) -> PrimFunc:
    """The function with the given memory scope for each argument and, last, the result ("": left as it is)."""
    groups = _groups(func, relay_func_type)
    if len(groups) != len(arg_and_result_memory_scopes):
        raise ArgumentError(f"a memory scope is expected for each of {len(groups)} arguments and results, got {len(arg_and_result_memory_scopes)}")
    changes = [(b, scope) for group, scope in zip(groups, arg_and_result_memory_scopes) for b in group if scope and scope != _scope(b)]
    if not changes:
        return func
    mutator = _Rescope(changes)
    buffers = tuple(None if b is None else mutator.buffer(b) for b in func.buffers)
    return func.replace(buffers=buffers, body=mutator.stmt(func.body))
