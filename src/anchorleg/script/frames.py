"""What is being gathered while a script is read: bodies of scopes, and the facts of the enclosing block and function."""
from __future__ import annotations

from typing import Any, Callable, Union

from ..ir.expr import PrimExpr
from ..ir.type import Type
from ..tir import expr as tir
from ..tir.block import BufferRegion, MatchBufferRegion
from ..tir.buffer import Buffer
from ..tir.stmt import Evaluate, SeqStmt, Stmt

Wrapper = Callable[[Stmt], Stmt]


class Body:
    """Statements of one scope in order; a wrapper among them holds all that follows it."""

    def __init__(self) -> None:
        self.items: list[Union[Stmt, Wrapper]] = []

    def add(self, item: Stmt | Wrapper) -> None:
        """Appends a statement or a wrapper."""
        self.items.append(item)

    def close(self) -> Stmt:
        """The scope as one statement."""
        pending: list[Stmt] = []  # in reverse
        for item in reversed(self.items):
            if isinstance(item, Stmt):
                pending.extend(reversed(item.seq) if isinstance(item, SeqStmt) else (item,))
            else:
                pending = [item(in_order(pending))]
        return in_order(pending)


def in_order(reversed_statements: list[Stmt]) -> Stmt:
    """Statements gathered last first, as one; every one of them is kept."""
    if not reversed_statements:
        return Evaluate(0)
    return reversed_statements[0] if len(reversed_statements) == 1 else SeqStmt(reversed_statements[::-1])


class BlockBody(Body):
    """The inside of a block."""

    def __init__(self) -> None:
        super().__init__()
        self.iter_vars: list[tir.IterVar] = []
        self.iter_values: list[PrimExpr] = []
        self.reads: list[BufferRegion] | None = None
        self.writes: list[BufferRegion] | None = None
        self.init: Stmt | None = None
        self.predicate: PrimExpr | None = None
        self.alloc_buffers: list[Buffer] = []
        self.match_buffers: list[MatchBufferRegion] = []
        self.annotations: dict[str, Any] = {}


class BranchBody(Body):
    """The inside of ``T.If``."""

    def __init__(self) -> None:
        super().__init__()
        self.sides: dict[bool, Stmt] = {}


class FunctionBody(Body):
    """The inside of a function."""

    def __init__(self) -> None:
        super().__init__()
        self.params: list[tir.Var] = []
        self.buffer_map: dict[tir.Var, Buffer] = {}
        self.attrs: dict[str, Any] = {}
        self.ret_type: Type | None = None
        self.alloc_buffers: list[Buffer] = []
