"""``VectorizeLoop``: VECTORIZED loops become vector operations.

Before: ``for j in vectorized(8): C[i * 8 + j] = A[i * 8 + j] + b``; after: ``C[ramp(i * 8, 1, 8)] = A[ramp(i * 8, 1, 8)] + broadcast(b, 8)``.
What has no vector form (a condition that differs between lanes, a call with effects) becomes a serial loop around that statement.
"""
from __future__ import annotations

from typing import Any

from ...ir.expr import PrimExpr
from ...ir.op import Op
from .. import build, intrin
from .. import expr as tir
from .. import stmt as ts
from ..buffer import BufferLoad
from ..dtypes import lanes_of, with_lanes
from ..function import PrimFunc
from ..functor import ExprMutator, StmtMutator, kids, rebuild, substitute, uses_var
from .common import const_int, fresh_copy, func_pass


class _NoVectorForm(Exception):
    """This expression has no vector form."""


class _Vectors(ExprMutator):
    """Expressions with the loop variable replaced by a ramp."""

    def __init__(self, var: tir.Var, low: PrimExpr, lanes: int) -> None:
        super().__init__()
        self.var, self.lanes = var, lanes
        self.lets: dict[int, tir.Var] = {}
        self.index = build.ramp(low, build.make_const(1, var.dtype), lanes)

    def mutate_Var(self, v: tir.Var) -> PrimExpr:
        return self.index if v is self.var else self.lets.get(id(v), v)

    def _rebuilt(self, e: PrimExpr, new: list[PrimExpr]) -> PrimExpr:
        if all(a is b for a, b in zip(new, kids(e))):
            return e
        if all(lanes_of(n.dtype) == lanes_of(o.dtype) for n, o in zip(new, kids(e))):  # type: ignore[attr-defined]
            return rebuild(e, new)
        rule = _VECTOR_RULES.get(type(e))
        if rule is not None:
            return rule(self, e, new)
        if isinstance(e, tir.BinaryExpr):
            return build.BUILDERS[type(e)](self.wide(new[0]), self.wide(new[1]))
        raise _NoVectorForm

    def _go(self, e: PrimExpr, depth: int) -> PrimExpr:
        if isinstance(e, tir.BinaryExpr) and depth < 80:
            hit = self.memo.get(id(e))
            if hit is not None:
                return hit[1]
            a, b = self._go(e.a, depth + 1), self._go(e.b, depth + 1)
            result = self._rebuilt(e, [a, b])
            self.memo[id(e)] = (e, result)
            return result
        return super()._go(e, depth)

    def wide(self, e: PrimExpr) -> PrimExpr:
        """The expression with all lanes."""
        have = lanes_of(e.dtype)
        if have == self.lanes:
            return e
        if have != 1:
            raise _NoVectorForm
        return tir.Broadcast(e, self.lanes)

    def _cast(self, e: tir.Cast, new: list[PrimExpr]) -> PrimExpr:
        return build.cast(with_lanes(e.dtype, self.lanes), new[0])

    def _select(self, e: tir.Select, new: list[PrimExpr]) -> PrimExpr:
        t, f = self.wide(new[1]), self.wide(new[2])
        return build.select(new[0], t, f) if lanes_of(new[0].dtype) == 1 else build.select(self.wide(new[0]), t, f)

    def _load(self, e: BufferLoad, new: list[PrimExpr]) -> PrimExpr:
        if any(lanes_of(n.dtype) > 1 for n in new[:-1]) or lanes_of(e.dtype) > 1:
            raise _NoVectorForm
        return BufferLoad(e.buffer, new)

    def _call(self, e: tir.Call, new: list[PrimExpr]) -> PrimExpr:
        if e.op is intrin.IF_THEN_ELSE:
            if lanes_of(new[0].dtype) > 1:
                return self._masked(new)
            return tir.Call(with_lanes(e.dtype, self.lanes), e.op, (new[0], self.wide(new[1]), self.wide(new[2])))
        if not (isinstance(e.op, Op) and e.op.get_attr("TVectorizable") and intrin.is_pure_op(e.op)) or "call" in e.op.name:
            raise _NoVectorForm
        return tir.Call(with_lanes(e.dtype, self.lanes), e.op, [self.wide(n) for n in new])

    def _masked(self, new: list[PrimExpr]) -> PrimExpr:
        """A choice per lane: both sides may be evaluated when neither can fault."""
        if not all(cannot_fault(n) for n in new[1:]):
            raise _NoVectorForm
        return build.select(self.wide(new[0]), self.wide(new[1]), self.wide(new[2]))

    def _let(self, e: tir.Let, new: list[PrimExpr]) -> PrimExpr:
        return self.expr(substitute(e.body, {e.var: e.value}))


_VECTOR_RULES = {
    tir.Cast: _Vectors._cast, tir.Select: _Vectors._select, BufferLoad: _Vectors._load, tir.Call: _Vectors._call, tir.Let: _Vectors._let,
    tir.Not: lambda m, e, n: build.logical_not(n[0]),
}


def cannot_fault(e: PrimExpr) -> bool:
    """Whether evaluating the expression for nothing is harmless: no loads, no integer division by a variable, no effects."""
    from ..functor import contains

    def faults(n: Any) -> bool:
        if isinstance(n, (tir.Div, tir.Mod, tir.FloorDiv, tir.FloorMod)):
            return build.const_value(n.b) in (None, 0) and "int" in n.dtype
        return isinstance(n, BufferLoad) or isinstance(n, tir.Call) and not intrin.is_pure_op(n.op)

    return not contains(e, faults)


class _VectorBody(StmtMutator):
    """The body of one VECTORIZED loop."""

    def __init__(self, loop: ts.For, lanes: int) -> None:
        super().__init__()
        self.loop, self.var = loop, loop.loop_var
        self.vectors = _Vectors(loop.loop_var, loop.min, lanes)
        self._identity_exprs = False

    def expr(self, e: PrimExpr) -> PrimExpr:
        return self.vectors.expr(e)

    def uniform(self, *exprs: PrimExpr) -> bool:
        """Whether all lanes have the same value."""
        return all(lanes_of(self.expr(e).dtype) == 1 for e in exprs)

    def serial(self, s: ts.Stmt) -> ts.Stmt:
        """The statement once per lane."""
        v = tir.Var(self.var.name, self.var.dtype)
        return ts.For(v, self.loop.min, self.loop.extent, ts.ForKind.SERIAL, substitute(fresh_copy(s), {self.var: v}))

    def default(self, s: ts.Stmt) -> Any:
        if isinstance(s, ts.SeqStmt):
            return (yield from super().default(s))
        if not uses_var(s, self.var) and not self.vectors.lets:
            return s if not isinstance(s, ts.Evaluate) else self.serial(s)
        return self.serial(s)

    def visit_BufferStore(self, s: ts.BufferStore) -> ts.Stmt:
        try:
            value, indices = self.expr(s.value), [self.expr(i) for i in s.indices]
        except _NoVectorForm:
            return self.serial(s)
        if all(lanes_of(i.dtype) == 1 for i in indices):
            return self.serial(s) if lanes_of(value.dtype) > 1 or _reads(s) else s.replace(value=value, indices=tuple(indices))
        if any(lanes_of(i.dtype) > 1 for i in indices[:-1]) or lanes_of(s.value.dtype) > 1:
            return self.serial(s)
        return ts.BufferStore(s.buffer, self.vectors.wide(value), indices)

    def _header(self, s: ts.Stmt, *exprs: PrimExpr) -> Any:
        try:
            return self.uniform(*exprs)
        except _NoVectorForm:
            return False

    def visit_For(self, s: ts.For) -> Any:
        if not self._header(s, s.min, s.extent):
            return self.serial(s)
        kind = ts.ForKind.SERIAL if s.kind == ts.ForKind.VECTORIZED else s.kind
        return s.replace(kind=kind, body=(yield s.body))

    def visit_IfThenElse(self, s: ts.IfThenElse) -> Any:
        if not self._header(s, s.condition):
            return self.serial(s)
        cond = self.expr(s.condition)
        then = yield s.then_case
        return s.replace(condition=cond, then_case=then, else_case=None if s.else_case is None else (yield s.else_case))

    def visit_AttrStmt(self, s: ts.AttrStmt) -> Any:
        return s.replace(body=(yield s.body))

    def visit_LetStmt(self, s: ts.LetStmt) -> Any:
        try:
            value = self.expr(s.value)
        except _NoVectorForm:
            return self.serial(s)
        if lanes_of(value.dtype) == 1:
            return s.replace(value=value, body=(yield s.body))
        v = tir.Var(s.var.name, value.dtype)
        self.vectors.lets[id(s.var)] = v
        return ts.LetStmt(v, value, (yield s.body))


def _reads(s: ts.BufferStore) -> bool:
    """Whether the store's value reads the buffer it writes."""
    from ..functor import contains

    return contains(s.value, lambda n: isinstance(n, BufferLoad) and n.buffer.data is s.buffer.data)


class _VectorizeLoops(StmtMutator):
    def __init__(self, enable: bool) -> None:
        super().__init__()
        self.enable = enable

    def visit_For(self, s: ts.For) -> Any:
        body = yield s.body
        s = s.replace(body=body)
        if s.kind != ts.ForKind.VECTORIZED:
            return s
        lanes = const_int(s.extent)
        if lanes == 1:
            return substitute(s.body, {s.loop_var: s.min})
        if lanes is None or not self.enable or lanes < 1:
            return s.replace(kind=ts.ForKind.SERIAL)
        return vectorized(s, lanes)


def vectorized(loop: ts.For, lanes: int) -> ts.Stmt:
    """The statement for a VECTORIZED loop of a constant extent.

    Let bindings that have no vector form inside are undone by making the whole loop serial.
    """
    body = _VectorBody(loop, lanes)
    result = body.stmt(loop.body)
    if uses_var(result, loop.loop_var) or _loses_lets(result, body):
        return loop.replace(kind=ts.ForKind.SERIAL)
    return result


def _loses_lets(result: ts.Stmt, body: _VectorBody) -> bool:
    """Whether a serial part refers to a binding that was turned into a vector."""
    replaced = set(body.vectors.lets)
    return bool(replaced) and uses_var(result, lambda v: id(v) in replaced)


def vectorize_loop(func: PrimFunc, enable_vectorize: bool = True) -> PrimFunc:
    """The function with its VECTORIZED loops as vector operations (as serial loops when not enabled)."""
    return _VectorizeLoops(enable_vectorize).func(func)


VectorizeLoop = func_pass("VectorizeLoop", vectorize_loop)

__all__ = ["VectorizeLoop", "cannot_fault", "vectorize_loop", "vectorized"]
