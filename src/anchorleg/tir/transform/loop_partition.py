"""``LoopPartition``: loops are split where their ``likely`` conditions cease to hold always.

Before: ``for i in range(13): for j in range(4): if likely(i * 4 + j < 50): S``; after: ``for i in range(12): for j in range(4): S`` and a tail
``for j in range(2): S`` with ``i = 12``.  The main part is free of the conditions; the tail is partitioned in turn (an inner vectorised or
unrolled loop shrinks).  A PARALLEL loop stays one loop, with a branch between main part and tail in its body.
Conditions without ``likely`` are treated alike under ``pragma_loop_partition_hint``; ``LoopPartition(hinted_only=True)`` splits no other loops.
"""
from __future__ import annotations

from typing import Any, Iterable

from ...arith import Analyzer
from ...arith.int_set import _Cover
from ...arith.logic import Cond
from ...arith.terms import Atom, Lin
from ...ir.expr import INDEX_DTYPE, IntImm, PrimExpr
from .. import build, intrin
from .. import expr as tir
from .. import stmt as ts
from ..function import PrimFunc
from ..functor import StmtMutator, StmtVisitor, contains, kids, substitute, uses_var
from .common import const_int, fresh_copy, func_pass, is_no_op
from .simplify import AnalyzerMutator

_MAX_SPLITS = 24  # per function: what is not split keeps its conditions
_HINT = "pragma_loop_partition_hint"
SINGLE = "pragma_often_single"  # in a loop of a tile of an axis of unknown extent, of which often one entry alone is wanted


class _Candidates(StmtVisitor):
    """The conditions in a loop's body that mention its variable, and the loops between."""

    def __init__(self, var: tir.Var, hinted: bool, in_values: bool) -> None:
        super().__init__()
        self.var, self.hinted, self.in_values = var, hinted, in_values or hinted
        self.loops: list[ts.For] = []
        self.blocked: list[tir.Var] = []  # variables whose range is not known
        self.conditions: list[PrimExpr] = []

    def expr(self, e: PrimExpr) -> None:
        stack = [e]
        seen: set[int] = set()
        while stack:
            n = stack.pop()
            if id(n) in seen:
                continue
            seen.add(id(n))
            if isinstance(n, tir.Call) and n.op is intrin.LIKELY:
                self.add(n)
                continue
            if self.hinted and isinstance(n, tir.Call) and n.op is intrin.IF_THEN_ELSE:
                self.parts(n.args[0])
            if isinstance(n, tir.Let):
                self.blocked.append(n.var)
            stack.extend(kids(n))  # type: ignore[arg-type]

    def add(self, n: PrimExpr) -> None:
        if uses_var(n, self.var):
            self.conditions.append(n)

    def parts(self, cond: PrimExpr) -> None:
        """Each conjunct of a hinted condition."""
        stack = [cond]
        while stack:
            c = stack.pop()
            if isinstance(c, tir.And):
                stack.extend((c.a, c.b))
            elif not (isinstance(c, tir.Call) and c.op is intrin.LIKELY):
                self.add(c)

    def visit_For(self, s: ts.For) -> Any:
        self.loops.append(s)
        return self.default(s)

    def visit_BufferStore(self, s: ts.BufferStore) -> None:
        if self.in_values:
            self.expr(s.value)

    def visit_IfThenElse(self, s: ts.IfThenElse) -> Any:
        if self.hinted:
            self.parts(s.condition)
        return self.default(s)

    def visit_LetStmt(self, s: ts.LetStmt) -> Any:
        self.blocked.append(s.var)
        return self.default(s)

    def visit_AttrStmt(self, s: ts.AttrStmt) -> Any:
        if s.attr_key in ("thread_extent", "virtual_thread"):
            self.blocked.append(s.node.var if isinstance(s.node, tir.IterVar) else s.node)
        return self.default(s)


class _Assume(StmtMutator):
    """Replaces certain conditions (by identity) with true and a variable with an expression, and drops branches decided thereby."""

    def __init__(self, conditions: Iterable[PrimExpr], var: tir.Var, value: PrimExpr) -> None:
        super().__init__()
        self.true = {id(c) for c in conditions}
        self.var, self.value = var, value
        self._has_pre, self._identity_exprs = True, False

    def mutate_Var(self, v: tir.Var) -> PrimExpr:
        return self.value if v is self.var else v

    def _enter(self, e: PrimExpr) -> PrimExpr | None:
        return IntImm("bool", 1) if id(e) in self.true else None

    def visit_IfThenElse(self, s: ts.IfThenElse) -> Any:
        cond = self.expr(s.condition)
        if isinstance(cond, IntImm) and cond.value:
            return (yield s.then_case)
        then = yield s.then_case
        return s.replace(condition=cond, then_case=then, else_case=None if s.else_case is None else (yield s.else_case))


class _FirstOnly(StmtMutator):
    """Replaces loops that are marked by ``SINGLE`` with their first turn."""

    def visit_For(self, s: ts.For) -> Any:
        if isinstance(s.body, ts.AttrStmt) and _is_single(s.body):
            return (yield substitute(s.body.body, {s.loop_var: s.min}))
        return (yield from self.default(s))


class _Partition(AnalyzerMutator):
    def __init__(self, in_values: bool, hinted_only: bool = False) -> None:
        super().__init__(Analyzer())
        self.n = self.analyzer._n
        self.in_values, self.hinted_only = in_values, hinted_only
        self.splits = 0
        self.done: dict[int, tir.Var] = {}
        self.hinted: set[int] = set()
        self.kept: list[tir.Var] = []  # so that no other variable gets a hinted one's identity

    def expr(self, e: PrimExpr) -> PrimExpr:
        return e

    # ------------------------------------------------------------ where conditions hold

    def _main_range(self, s: ts.For, found: _Candidates) -> tuple[Lin, Lin, list[PrimExpr]] | None:
        """[first, end) in which conditions hold whatever the inner loops do, and those conditions."""
        n = self.n
        value = n.var(s.loop_var)
        atom = value.single() if isinstance(value, Lin) else None
        if atom is None:
            return None
        cover = self._cover(found)
        first, last = n.lin(s.min), n.space.shift(n.space.add(n.lin(s.min), n.lin(s.extent)), -1)
        lows, highs, conditions = [first], [last], []
        for c in found.conditions:
            ends = self._ends(cover, atom, n.cond(c))
            if ends is None or not self._usable(s, ends):
                continue
            conditions.append(c)
            lows.extend(ends[0])
            highs.extend(ends[1])
        if len(lows) + len(highs) == 2:
            return None
        return self._clipped(first, last, lows, highs) + (conditions,)

    def _cover(self, found: _Candidates) -> _Cover:
        n = self.n
        dom: dict[Atom, Any] = {}
        variables: set[int] = set()
        for v in found.blocked:
            self._relax(dom, variables, v, (None, None))
        cover = _Cover(n, dom, variables)
        for loop in found.loops:
            low = cover.lin(n.lin(loop.min))[0]
            high = cover.lin(n.space.shift(n.space.add(n.lin(loop.min), n.lin(loop.extent)), -1))[1]
            self._relax(cover.memo, variables, loop.loop_var, (low, high))
            cover.dom = {**cover.dom, **{k: v for k, v in cover.memo.items() if k.kind == "var"}}
        return cover

    def _relax(self, dom: dict[Atom, Any], variables: set[int], v: tir.Var, ends: Any) -> None:
        value = self.n.var(v)
        if isinstance(value, Lin) and value.single() is not None:
            dom[value.terms[0][0]] = ends
            variables.add(id(v))

    def _ends(self, cover: _Cover, atom: Atom, c: Any) -> tuple[list[Lin], list[Lin]] | None:
        """(lower ends, upper ends) of the variable that make a condition hold; None when they cannot be told."""
        lows: list[Lin] = []
        highs: list[Lin] = []
        stack = [c]
        while stack:
            c = stack.pop()
            if c is True:
                continue
            if not isinstance(c, Cond) or c.kind not in ("ge", "and", "likely"):
                return None
            if c.kind != "ge":
                stack.extend(c.args)
            elif not self._one_end(cover, atom, c.args[0], lows, highs):
                return None
        return lows, highs

    def _one_end(self, cover: _Cover, atom: Atom, x: Lin, lows: list[Lin], highs: list[Lin]) -> bool:
        """Solves k * variable + rest >= 0 for the least value of rest."""
        space, k = self.n.space, dict(x.terms).get(atom, 0)
        rest = cover.lin(space.add(x, space.of_atom(atom), -k))[0]
        if rest is None or k == 0 or self._mentions(rest, atom):
            return False
        if k > 0:  # variable >= ceil(-rest / k)
            lows.append(space.scale(self.n.algebra.floor_div(rest, k), -1))
        else:
            highs.append(self.n.algebra.floor_div(rest, -k))
        return True

    @staticmethod
    def _mentions(x: Lin, atom: Atom) -> bool:
        return any(contains(a.expr, lambda e: e is atom.expr) for a, _ in x.terms)

    def _usable(self, s: ts.For, ends: tuple[list[Lin], list[Lin]]) -> bool:
        """Ends must be constant, except for a loop whose extent may be unknown, where they may depend on the function's parameters."""
        both = [*ends[0], *ends[1]]
        if all(x.is_const for x in both):
            return True
        if s.kind in (ts.ForKind.VECTORIZED, ts.ForKind.UNROLLED):
            return False
        return not any(contains(a.expr, lambda e: id(e) in self.done) for x in both for a, _ in x.terms)

    def _clipped(self, first: Lin, last: Lin, lows: list[Lin], highs: list[Lin]) -> tuple[Lin, Lin]:
        extreme, space = self.n.algebra.extreme, self.n.space
        low, high = first, last
        for x in lows[1:]:
            low = extreme("max", low, x)
        for x in highs[1:]:
            high = extreme("min", high, x)
        end = space.shift(last, 1)
        low = extreme("min", low, end)
        return low, extreme("max", low, space.shift(high, 1))

    # ------------------------------------------------------------ splitting

    def visit_For(self, s: ts.For) -> Any:
        if const_int(s.extent) == 1 and s.kind not in (ts.ForKind.PARALLEL, ts.ForKind.THREAD_BINDING):
            return (yield substitute(s.body, {s.loop_var: s.min}))
        if const_int(s.extent) == 0:
            return ts.Evaluate(0)
        fresh = id(s.loop_var) not in self.done
        self.done[id(s.loop_var)] = s.loop_var
        self.bind_loop(s)
        parts = self._split(s) if fresh and self.splits < _MAX_SPLITS and s.kind != ts.ForKind.THREAD_BINDING else None
        if parts is None:
            body = yield s.body
            return ts.Evaluate(0) if is_no_op(body) else s.replace(body=body)
        if isinstance(parts, ts.For):
            self.splits += 1
            return (yield parts)
        self.splits += len(parts) - 1
        done = []
        for p in parts:
            done.append((yield p))
        return ts.seq(*done)

    def _split(self, s: ts.For) -> Any:
        """None, a loop with a branch (for PARALLEL), or the loops before, within and after the main range."""
        if self.hinted_only and id(s.loop_var) not in self.hinted:
            return None
        found = _Candidates(s.loop_var, id(s.loop_var) in self.hinted, self.in_values)
        found.visit(s.body)
        if not found.conditions:
            return None
        main = self._main_range(s, found)
        if main is None:
            return None
        low, end, conditions = main
        n, space = self.n, self.n.space
        size = space.add(end, low, -1)
        if size.is_const and size.const <= 0:
            return None
        first, stop = n.lin(s.min), space.add(n.lin(s.min), n.lin(s.extent))
        before, after = n.algebra.add(low, first, -1), n.algebra.add(stop, end, -1)
        if before.is_const and before.const == 0 and after.is_const and after.const == 0:
            return [s.replace(body=_Assume(conditions, s.loop_var, s.loop_var).stmt(s.body))]
        if s.kind == ts.ForKind.PARALLEL:
            return self._branching(s, conditions, low, end, before, after)
        shared = None if size.is_const else self._one_computation(s, conditions, low, end, before, after)
        if shared is not None:
            return shared
        pieces = [self._piece(s, conditions, low, size)]
        if not self._false_outside(s, conditions):
            pieces = [self._piece(s, None, first, before), *pieces, self._piece(s, None, end, after)]
        return [p for p in pieces if p is not None]

    def _false_outside(self, s: ts.For, conditions: list[PrimExpr]) -> bool:
        """Whether nothing happens outside of the main range: the body hangs on conditions that ask about this variable only."""
        body = s.body
        if not isinstance(body, ts.IfThenElse) or body.else_case is not None or len(conditions) != 1 or body.condition is not conditions[0]:
            return False
        c = self.n.cond(body.condition)
        if isinstance(c, Cond) and c.kind == "likely":
            c = c.args[0]
        return isinstance(c, Cond) and c.kind == "ge" and len(c.args[0].terms) == 1

    def _piece(self, s: ts.For, conditions: list[PrimExpr] | None, low: Lin, size: Lin) -> ts.Stmt | None:
        """The loop over part of the range, with the conditions taken as true, or (None) as a copy that keeps them."""
        if size.is_const and size.const <= 0:
            return None
        v = tir.Var(s.loop_var.name, s.loop_var.dtype)
        if conditions is None and not size.is_const:  # a part whose length is not known: to cut it again would never end
            self.done[id(v)] = v
        elif conditions is None and id(s.loop_var) in self.hinted:
            self.hinted.add(id(v))
            self.kept.append(v)
        start = build.cast(v.dtype, self.n.space.emit(low, INDEX_DTYPE))
        value: PrimExpr = v if low.is_const and low.const == 0 else build.add(v, start)
        if size.is_const and size.const == 1:
            value = start
        body = fresh_copy(s.body, {s.loop_var: value}) if conditions is None else _Assume(conditions, s.loop_var, value).stmt(s.body)
        if size.is_const and size.const == 1:
            return body
        return ts.For(v, 0, self.n.space.emit(size, INDEX_DTYPE), s.kind, body, s.thread_binding, s.annotations)

    def _one_computation(self, s: ts.For, conditions: list[PrimExpr], low: Lin, end: Lin, before: Lin, after: Lin) -> ts.For | None:
        """The loop with a branch around what is stored alone, where sums in registers come first and ask about nothing.

        A computation is then compiled once, and serves whole tiles and the last one.
        """
        around, body = [], s.body
        while isinstance(body, (ts.BufferRealize, ts.Allocate, ts.AttrStmt, ts.DeclBuffer)):
            around.append(body)
            body = body.body
        if not isinstance(body, ts.SeqStmt) or not any(_is_local(b) for b in around):
            return None
        *first, last = body.seq
        wanted = {id(c) for c in conditions}
        if any(contains(each, lambda n: id(n) in wanted) for each in first):
            return None
        branch = self._branching(s.replace(body=last), conditions, low, end, before, after).body
        made: ts.Stmt = ts.SeqStmt([*self._for_one(first, last, conditions), branch])
        for each in reversed(around):
            made = each.replace(body=made)
        self.done[id(s.loop_var)] = s.loop_var
        return s.replace(body=made)

    @staticmethod
    def _for_one(first: list[ts.Stmt], last: ts.Stmt, conditions: list[PrimExpr]) -> list[ts.Stmt]:
        """The computation with a shorter one beside it for a tile of which one entry alone is wanted, where the schedule says that this is usual."""
        inner = [v for v in _loop_variables(last) if any(uses_var(c, v) for c in conditions)]
        if len(inner) != 1 or len(conditions) != 1 or not isinstance(conditions[0], tir.Call):
            return first
        alone = build.logical_not(substitute(conditions[0].args[0], {inner[0]: IntImm(inner[0].dtype, 1)}))
        return [ts.IfThenElse(alone, _FirstOnly().stmt(fresh_copy(each)), each) if contains(each, _is_single) else each for each in first]

    def _branching(self, s: ts.For, conditions: list[PrimExpr], low: Lin, end: Lin, before: Lin, after: Lin) -> ts.For:
        emit, v = self.n.space.emit, s.loop_var
        tests = []
        if not (before.is_const and before.const == 0):
            tests.append(build.greater_equal(v, emit(low, v.dtype)))
        if not (after.is_const and after.const == 0):
            tests.append(build.less(v, emit(end, v.dtype)))
        cond = tests[0] if len(tests) == 1 else build.logical_and(tests[0], tests[1])
        outside = self.n.space.add(before, after)
        only = {}
        if outside.is_const and outside.const == 1:
            only = {v: emit(end if after.const else self.n.lin(s.min), v.dtype)}
        return s.replace(body=ts.IfThenElse(cond, _Assume(conditions, v, v).stmt(s.body), fresh_copy(s.body, only)))

    # ------------------------------------------------------------ the rest

    def visit_IfThenElse(self, s: ts.IfThenElse) -> Any:
        cond = self.analyzer.simplify(s.condition)
        if isinstance(cond, IntImm):
            taken = s.then_case if cond.value else s.else_case
            return ts.Evaluate(0) if taken is None else (yield taken)
        then = yield from self.under(cond, s.then_case)
        other = None
        if s.else_case is not None:
            other = yield from self.under(tir.Not(cond), s.else_case)
        return s.replace(then_case=then, else_case=other)

    def visit_AttrStmt(self, s: ts.AttrStmt) -> Any:
        if s.attr_key == SINGLE:
            return (yield s.body)
        if s.attr_key == _HINT:
            if isinstance(s.body, ts.For) and const_int(s.value) != 0:
                self.hinted.add(id(s.body.loop_var))
            return (yield s.body)
        return (yield from super().visit_AttrStmt(s))


def _is_single(n: Any) -> bool:
    return isinstance(n, ts.AttrStmt) and n.attr_key == SINGLE


def _loop_variables(stmt: ts.Stmt) -> list[tir.Var]:
    found = _Candidates(tir.Var("none", INDEX_DTYPE), False, False)
    found.visit(stmt)
    return [loop.loop_var for loop in found.loops]


def _is_local(stmt: ts.Stmt) -> bool:
    """Whether a statement makes room in registers."""
    return isinstance(stmt, ts.Allocate) and getattr(stmt.buffer_var.type_annotation, "storage_scope", "") == "local"


def loop_partition(func: PrimFunc, hinted_only: bool = False) -> PrimFunc:
    """The function with loops split into a main part without ``likely`` conditions and tails."""
    if not contains(func.body, _is_hint if hinted_only else _may_partition):
        return func
    return _Partition(contains(func.body, _asks_in_value), hinted_only).func(func)


def _is_hint(n: Any) -> bool:
    return isinstance(n, ts.AttrStmt) and n.attr_key == _HINT


def _asks_in_value(n: Any) -> bool:
    return isinstance(n, ts.BufferStore) and contains(n.value, _may_partition)


def _may_partition(n: Any) -> bool:
    return isinstance(n, tir.Call) and n.op is intrin.LIKELY or _is_hint(n)


LoopPartition = func_pass("LoopPartition", loop_partition)
