"""Upstream's address of the visitors (``tvm.tir.stmt_functor``)."""
from __future__ import annotations

from typing import Any, Sequence

from .functor import ir_transform, post_order_visit, substitute
from .stmt import SeqStmt, Stmt, seq


def stmt_seq(*args: Any) -> Stmt:
    """Statements (or expressions, evaluated for effect) in order."""
    from .stmt import Evaluate

    return seq(*(a if isinstance(a, Stmt) else Evaluate(a) for a in args))


def stmt_list(stmt: Stmt) -> Sequence[Stmt]:
    """The statements of a sequence; a list of one for any other statement."""
    return list(stmt.seq) if isinstance(stmt, SeqStmt) else [stmt]


__all__ = ["ir_transform", "post_order_visit", "stmt_list", "stmt_seq", "substitute"]
