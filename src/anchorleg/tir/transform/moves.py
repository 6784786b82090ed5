"""Loops that mostly move data (padding, concatenation) without a question for every element.

``HintMoves`` marks the innermost loop that a value's condition is about for ``LoopPartition``: of ``for i in range(10): A[i] = B[i - 1] if
1 <= i < 9 else 0`` the parts before, within and after the range become loops of their own.  ``HoistMoves`` then takes what is left of a
condition, where it is the same for the whole loop, out of it.
"""
from __future__ import annotations

from typing import Any

from ...ir.expr import PrimExpr
from .. import intrin
from .. import expr as tir
from .. import stmt as ts
from ..buffer import BufferLoad
from ..function import PrimFunc
from ..functor import StmtMutator, contains, post_order, uses_var
from .common import const_int, fresh_copy, func_pass

_SMALL = 48  # nodes of a value that may be written several times
_HINT = "pragma_loop_partition_hint"


def _chosen(e: PrimExpr) -> list[tir.Call]:
    """The ``if_then_else`` calls in a value."""
    return [n for n in post_order(e) if isinstance(n, tir.Call) and n.op is intrin.IF_THEN_ELSE]


def _nest(s: ts.For) -> tuple[list[ts.For], ts.BufferStore] | None:
    """The loops from ``s`` inwards and the one store in them."""
    loops: list[ts.For] = []
    inner: Any = s
    while isinstance(inner, ts.For) and inner.kind in (ts.ForKind.SERIAL, ts.ForKind.PARALLEL) and not inner.annotations:
        loops.append(inner)
        inner = inner.body
    return (loops, inner) if isinstance(inner, ts.BufferStore) else None


def _parts(condition: PrimExpr) -> list[PrimExpr]:
    """The conjuncts of a condition."""
    found, stack = [], [condition]
    while stack:
        c = stack.pop()
        if isinstance(c, tir.And):
            stack += [c.a, c.b]
        else:
            found.append(c)
    return found


def _asks_only(part: PrimExpr, loop: ts.For, loops: list[ts.For]) -> bool:
    others = [each.loop_var for each in loops if each is not loop]
    return uses_var(part, loop.loop_var) and not (others and uses_var(part, others)) and not contains(part, lambda n: isinstance(n, BufferLoad))


def _to_split(loops: list[ts.For], store: ts.BufferStore) -> ts.For | None:
    """The innermost loop whose variable alone decides some condition."""
    parts = [p for call in _chosen(store.value) for p in _parts(call.args[0])]
    if not parts or sum(1 for _ in post_order(store.value)) > _SMALL:
        return None
    fitting = [loop for loop in loops if const_int(loop.extent) is not None and any(_asks_only(p, loop, loops) for p in parts)]
    return fitting[-1] if fitting else None


class _Hint(StmtMutator):
    def __init__(self) -> None:
        super().__init__()
        self.chosen: set[int] = set()

    def expr(self, e: PrimExpr) -> PrimExpr:
        return e

    def visit_For(self, s: ts.For) -> Any:
        found = _nest(s)
        if found is not None and id(s) not in self.chosen:
            inner = _to_split(*found)
            self.chosen.update(id(loop) for loop in found[0])  # one question per nest
            if inner is not None:
                return self._marked(found[0], inner)
        return (yield from self.default(s))

    @staticmethod
    def _marked(loops: list[ts.For], inner: ts.For) -> ts.Stmt:
        at = loops.index(inner)
        made: ts.Stmt = ts.AttrStmt(inner.loop_var, _HINT, 1, inner)
        for loop in reversed(loops[:at]):
            made = loop.replace(body=made)
        return made


class _Hoist(StmtMutator):
    def expr(self, e: PrimExpr) -> PrimExpr:
        return e

    def visit_For(self, s: ts.For) -> Any:
        body = yield s.body
        s = s.replace(body=body)
        if s.kind not in (ts.ForKind.SERIAL, ts.ForKind.PARALLEL) or not isinstance(body, ts.BufferStore):
            return s
        value = body.value
        if not (isinstance(value, tir.Call) and value.op is intrin.IF_THEN_ELSE) or not _fixed(value.args[0], s.loop_var):
            return s
        one, other = (s.replace(body=body.replace(value=v)) for v in value.args[1:])
        return ts.IfThenElse(value.args[0], one, fresh_copy(other))


def _fixed(condition: PrimExpr, var: tir.Var) -> bool:
    return not uses_var(condition, var) and not contains(
        condition, lambda n: isinstance(n, BufferLoad) or isinstance(n, tir.Call) and not intrin.is_pure_op(n.op))


def hint_moves(func: PrimFunc) -> PrimFunc:
    """The function with loops marked whose parts are simpler than the whole."""
    return _Hint().func(func)


def hoist_moves(func: PrimFunc) -> PrimFunc:
    """The function with choices between values made once for a loop where one choice holds for all of it."""
    return _Hoist().func(func)


HintMoves = func_pass("HintMoves", hint_moves)
HoistMoves = func_pass("HoistMoves", hoist_moves)
