"""Which buffers a program allocates, and which of them hold something at the same time.

Statements are counted in the order in which they run, through calls of the module's functions; a buffer lives from its first access
to its last.  A loop runs many times: what is accessed in it lives for all of it.
"""
from __future__ import annotations

from typing import Any, Iterable, NamedTuple, Sequence

from ...ir.expr import PrimExpr
from ...ir.module import IRModule
from ...ir.op import Op
from ...support.errors import ArgumentError
from .. import expr as tir
from .. import stmt as ts
from ..buffer import BufferLoad
from ..function import PrimFunc
from ..functor import StmtVisitor, kids
from .utils import (CANDIDATE_MEMORY_POOL_ATTR, INPUT_TENSOR_ATTR, OUTPUT_TENSOR_ATTR, BufferInfo, BufferInfoAnalysis, BufferInfoKind,
                    extents_bytes)

_CALLS = ("tir.call_extern", "tir.tvm_call_cpacked")
_DEFAULT_ALIGNMENT = 16


class _Allocation:
    """An allocation behind a pointer: its statement, the function it is in, and the call of that function which runs."""

    def __init__(self, stmt: Any, func: PrimFunc, call: Any) -> None:
        self.stmt, self.func, self.call = stmt, func, call


class _Scope(NamedTuple):
    """Where the walk is: call, function, innermost loop, the allocations accessed in loops, the statement at which the nest began."""

    call: Any
    func: PrimFunc | None
    loop: ts.For | None
    accessed: dict[int, ts.Stmt]
    nest_start: int | None


class _Extractor(StmtVisitor):
    def __init__(self, mod: IRModule) -> None:
        super().__init__()
        self.functions = {g.name_hint: f for g, f in mod.functions.items() if isinstance(f, PrimFunc)}
        executor = mod.get_attr("executor", None)
        self.workspace_alignment = int((executor and executor.get("workspace-byte-alignment", 0)) or _DEFAULT_ALIGNMENT)
        self.constant_alignment = int((executor and executor.get("constant-byte-alignment", 0)) or _DEFAULT_ALIGNMENT)
        self.buffers: dict[int, tuple[BufferInfo, Any]] = {}  # id of a pointer → the buffer and its statement
        self.allocations: dict[int, _Allocation] = {}
        self.starts: dict[tuple[int, int], int] = {}  # (call, statement) → the first access
        self.ends: dict[tuple[int, int], int] = {}
        self.names: dict[str, int] = {}
        self.scopes = [_Scope(None, None, None, {}, None)]
        self.kept: list[Any] = []
        self.now = 0

    # ------------------------------------------------------------ the walk

    def run(self, main: PrimFunc) -> BufferInfoAnalysis:
        """The buffers of ``main`` and of what it calls."""
        self.scopes.append(_Scope(None, main, None, {}, None))
        self.visit(main.body)
        return _analysed([b for b in self.buffers.values()], self._events())

    def default(self, s: ts.Stmt) -> Any:
        self.now += 1
        if isinstance(s, ts.BufferStore):
            self._access(s.buffer.data)
        for k in kids(s):
            if isinstance(k, ts.Stmt):
                yield k
            else:
                yield from self._expression(k)  # type: ignore[arg-type]

    def _expression(self, root: PrimExpr) -> Any:
        """Accesses in an expression; calls of the module's functions are walked through."""
        stack = [root]
        while stack:
            e: Any = stack.pop()
            if isinstance(e, tir.Var):
                self._access(e)
                continue
            if isinstance(e, BufferLoad):
                self._access(e.buffer.data)
            func = self._callee(e) if isinstance(e, tir.Call) else None
            if func is None:
                stack.extend(reversed(kids(e)))
                continue
            self._alias(e.args[1:] if isinstance(e.op, Op) else e.args, func)
            outer = self.scopes[-1]
            self.scopes.append(_Scope(e, func, outer.loop, dict(outer.accessed), outer.nest_start))
            self.kept.append(e)
            yield func.body
            self.scopes.pop()

    def _callee(self, call: tir.Call) -> PrimFunc | None:
        if isinstance(call.op, Op):
            named = call.op.name in _CALLS and isinstance(call.args[0], tir.StringImm)
            return self.functions.get(call.args[0].value) if named else None  # type: ignore[attr-defined]
        return self.functions.get(getattr(call.op, "name_hint", ""))

    def _alias(self, args: Sequence[PrimExpr], func: PrimFunc) -> None:
        """The buffers of a function's parameters stand for the allocations that are handed over."""
        for arg, b in zip(args, func.buffers):
            found = self.allocations.get(id(arg))
            if found is not None and b is not None:
                self.allocations[id(b.data)] = _Allocation(found.stmt, found.func, found.call)

    def _access(self, pointer: tir.Var) -> None:
        found = self.allocations.get(id(pointer))
        if found is None:
            return
        scope = self.scopes[-1]
        key = (id(scope.call if found.func is scope.func else found.call), id(found.stmt))
        self.starts.setdefault(key, self.now)
        self.ends[key] = self.now
        if scope.loop is not None:
            scope.accessed[id(found.stmt)] = found.stmt

    def visit_For(self, s: ts.For) -> Any:
        self.now += 1
        outer = self.scopes[-1]
        start = outer.nest_start if outer.nest_start is not None else self.now
        scope = _Scope(outer.call, outer.func, s, dict(outer.accessed), start)
        self.scopes.append(scope)
        for k in (s.min, s.extent):
            yield from self._expression(k)
        yield s.body
        for stmt in scope.accessed.values():
            found = self.allocations[id(stmt.buffer_var)]  # type: ignore[attr-defined]
            key = (id(scope.call if found.func is scope.func else found.call), id(stmt))
            if isinstance(stmt, ts.Allocate) and key in self.starts:
                self.starts[key], self.ends[key] = min(self.starts[key], start), max(self.ends[key], self.now)
        self.scopes.pop()

    # ------------------------------------------------------------ allocations

    def visit_Allocate(self, s: ts.Allocate) -> Any:
        self.now += 1
        scope = self.scopes[-1]
        memory = getattr(s.buffer_var.type_annotation, "storage_scope", "") or "global"
        size = extents_bytes(s)
        if memory.startswith("global") and (scope.loop is None or scope.loop.kind is ts.ForKind.SERIAL) and size is not None:
            self._record(s, size, self.workspace_alignment)
        yield s.body
        scope.accessed.pop(id(s), None)

    def visit_AllocateConst(self, s: ts.AllocateConst) -> Any:
        self.now += 1
        size = extents_bytes(s)
        if CANDIDATE_MEMORY_POOL_ATTR in s.annotations and size is not None:
            self._record(s, size, self.constant_alignment)
        yield s.body
        self.scopes[-1].accessed.pop(id(s), None)

    def _record(self, s: Any, size: int, alignment: int) -> None:
        key, scope = id(s.buffer_var), self.scopes[-1]
        if key in self.allocations:
            self.allocations[key].call = scope.call
            return
        pools = s.annotations.get(CANDIDATE_MEMORY_POOL_ATTR)
        if not pools:
            raise ArgumentError(f"the allocation {s.buffer_var.name!r} names no pools: run AssignPoolInfo first")
        kind, name = _kind_and_name(s)
        self.allocations[key] = _Allocation(s, scope.func, scope.call)  # type: ignore[arg-type]
        self.buffers[key] = (BufferInfo(self._fresh(name), size, list(pools), alignment, kind), s)

    def _fresh(self, name: str) -> str:
        count = self.names[name] = self.names.get(name, 0) + 1
        return name if count == 1 else f"{name}{count}"

    def _events(self) -> list[tuple[int, int, BufferInfo]]:
        """(statement, 0 for a start or 1 for an end, buffer), in order."""
        by_stmt = {id(s): b for b, s in self.buffers.values()}
        starts = [(at, 0, by_stmt[stmt]) for (_, stmt), at in self.starts.items()]
        ends = [(at, 1, by_stmt[stmt]) for (_, stmt), at in self.ends.items()]
        return sorted([*starts, *ends], key=lambda event: event[:2])


def _kind_and_name(s: Any) -> tuple[BufferInfoKind, str]:
    for attr, kind in ((INPUT_TENSOR_ATTR, BufferInfoKind.Input), (OUTPUT_TENSOR_ATTR, BufferInfoKind.Output)):
        if attr in s.annotations:
            return kind, str(getattr(s.annotations[attr], "value", s.annotations[attr]))
    return BufferInfoKind.Intermediate, s.buffer_var.name


def _analysed(buffers: Sequence[tuple[BufferInfo, Any]], events: Iterable[tuple[int, int, BufferInfo]]) -> BufferInfoAnalysis:
    """Conflicts from the order of events; constants, which are there all the time, conflict with one another and nothing else."""
    alive: dict[int, BufferInfo] = {}
    conflicts: dict[int, dict[int, BufferInfo]] = {id(b): {} for b, _ in buffers}
    size = peak = 0
    for _, is_end, b in events:
        if is_end:
            size -= b.size_bytes
            alive.pop(id(b), None)
            continue
        for other in alive.values():
            if other is not b:
                conflicts[id(b)][id(other)] = other
                conflicts[id(other)][id(b)] = b
        size += b.size_bytes
        peak = max(peak, size)
        alive[id(b)] = b
    constants = {id(b): b for b, s in buffers if isinstance(s, ts.AllocateConst)}
    for b, _ in buffers:
        found = constants if id(b) in constants else {k: o for k, o in conflicts[id(b)].items() if k not in constants}
        b.set_conflicts([o for o in found.values() if o is not b])
    return BufferInfoAnalysis(dict(buffers), peak)


def extract_buffer_info(main: PrimFunc, mod: IRModule) -> BufferInfoAnalysis:
    """The buffers that ``main``, and the functions of ``mod`` it calls by name, allocate in global memory, with their conflicts.

    ArgumentError when an allocation names no pools (annotation ``candidate_memory_pools``).
    """
    return _Extractor(mod).run(main)


__all__ = ["extract_buffer_info"]
