"""Statements to control flow, on an explicit stack of pending work."""
from __future__ import annotations

from functools import partial
from typing import Any, Callable, Iterable

from ....ir.expr import IntImm
from ....ir.type import PointerType
from ....support.errors import UnsupportedOpError
from ....tir import expr as tir
from ....tir import stmt as st
from ....tir.dtypes import info
from .builder import Block, FunctionBuilder
from .expressions import Expressions
from .linear import Lin
from .memory import Slots
from .module_text import ModuleText
from .types import item_bytes, llvm_type
from .usage import Usage, unrolled_values

STACK_LIMIT, GLOBAL_STACK_LIMIT, WORKSPACE_ALIGN = 64 << 10, 4 << 10, 64
STATIC_SIZE, TASK_SIZE = "@@STATIC_SIZE@@", "@@TASK_SIZE@@"


def storage_scope(var: tir.Var) -> str:
    """The memory an allocation asks for."""
    kind = var.type_annotation
    return kind.storage_scope if isinstance(kind, PointerType) else "global"


class Workspace:
    """Offsets of the kernel's scratch memory; buffers that never live at once share it."""

    __slots__ = ("top", "size")

    def __init__(self) -> None:
        self.top = self.size = 0

    def take(self, size: int) -> int:
        """The offset of ``size`` bytes."""
        offset = self.top
        self.top += -(-size // WORKSPACE_ALIGN) * WORKSPACE_ALIGN
        self.size = max(self.size, self.top)
        return offset


class Statements(Expressions):
    """Emits the statements of one function.  ``shared`` is the emitter of the whole kernel (workspaces, parallel bodies)."""

    def __init__(self, module: ModuleText, builder: FunctionBuilder, usage: Usage, shared: Any, workspace: Workspace, in_parallel: bool) -> None:
        super().__init__(module, builder, usage)
        self.shared, self.workspace, self.in_parallel = shared, workspace, in_parallel
        self.work: list[Callable[[], Any] | st.Stmt] = []
        self.stack_bytes = 0

    def run(self, root: st.Stmt) -> None:
        """Emits ``root``."""
        self.work.append(root)
        self.run_pending()

    def run_pending(self) -> None:
        """Works off what is pending."""
        while self.work:
            item = self.work.pop()
            if isinstance(item, st.Stmt):
                method = _METHODS.get(type(item))
                if method is None:
                    raise UnsupportedOpError(f"{self.module.name}: statement {type(item).__name__} cannot be compiled; lower it first")
                method(self, item)
            else:
                item()

    def then(self, *steps: Callable[[], Any] | st.Stmt) -> None:
        """Does ``steps`` next, in order."""
        self.work.extend(reversed(steps))

    # -- simple statements

    def _seq(self, stmt: st.SeqStmt) -> None:
        self.then(*stmt.seq)

    def _evaluate(self, stmt: st.Evaluate) -> None:
        if not isinstance(stmt.value, IntImm):
            self.start_statement()
            self.evaluate(stmt.value)

    def _store(self, stmt: st.BufferStore) -> None:
        self.start_statement()
        value = self.operand(stmt.value)
        indices = []
        for index in stmt.indices:
            indices.append(self.evaluate(index))
        place = self._buffer_index(stmt.buffer, stmt.indices, indices)
        if isinstance(place, str):
            self.store_lanes(stmt.buffer, place, value, stmt.value.dtype)
        else:
            self.store_element(stmt.buffer, place, value, stmt.value.dtype)

    def _let(self, stmt: st.LetStmt) -> None:
        self.start_statement()
        value = self.evaluate(stmt.value)
        if stmt.var.dtype == "handle":
            self.pointers[id(stmt.var)] = self.text(value)
        self.env[id(stmt.var)] = value
        self.then(stmt.body)

    def _attr(self, stmt: st.AttrStmt) -> None:
        self.then(stmt.body)

    def _declare(self, stmt: st.DeclBuffer) -> None:
        self.then(stmt.body)

    def _assert(self, stmt: st.AssertStmt) -> None:
        self.start_statement()
        condition = self.operand(stmt.condition)
        if condition != "true":
            text = stmt.message.value if isinstance(stmt.message, tir.StringImm) else "assertion failed"
            self.fail_unless(condition, text)
        self.then(stmt.body)

    def fail_unless(self, condition: str, message: str) -> None:
        """Leaves the function with -1 and an error text unless the condition holds."""
        good, bad = self.b.new_block("ok"), self.b.new_block("bad")
        self.b.line(f"br i1 {condition}, label %{good.label}, label %{bad.label}")
        self.b.declare("TVMAPISetLastError", "void @TVMAPISetLastError(ptr)")
        bad.lines += [f"  call void @TVMAPISetLastError(ptr {self.module.string(f'{self.module.name}: {message}')})", "  ret i32 -1"]
        self.b.continue_in(good)

    def return_value(self, value: str, dtype: str) -> None:
        """Leaves the function with a result."""
        kind = info(dtype).kind
        wide = "float64" if info(dtype).is_float else "handle" if kind == "handle" else "int64"
        self.b.line(f"store {llvm_type(wide)} {self.ar.cast(value, dtype, wide)}, ptr %retval, align 8")
        self.shared.return_kind = {"float64": 2, "handle": 3, "int64": 0}[wide]
        self.b.line("ret i32 0")
        self.b.continue_in(self.b.new_block("unreachable"))

    # -- memory

    def _allocate(self, stmt: st.Allocate) -> None:
        extents = []
        for extent in stmt.extents:
            self.start_statement()
            extents.append(self.lin(self.evaluate(extent)))
        if not all(e.is_const for e in extents):
            self._allocate_dynamic(stmt, extents)
            return
        count = 1
        for e in extents:
            count *= e.const
        top = self.workspace.top
        self._place(stmt, count)
        self.then(stmt.body, partial(self._release, stmt, top))

    def _release(self, stmt: st.Allocate, top: int) -> None:
        self.workspace.top = top
        self.slots.pop(id(stmt.buffer_var), None)

    def _place(self, stmt: st.Allocate, count: int) -> None:
        scope, key = storage_scope(stmt.buffer_var), id(stmt.buffer_var)
        size = max(1, count * item_bytes(stmt.dtype) * info(stmt.dtype).lanes)
        lanes = self.usage.promotable(stmt.buffer_var, count) if info(stmt.dtype).lanes == 1 else 0
        if lanes and (scope == "local" or count <= 64):
            self.slots[key] = Slots(stmt.dtype, lanes, count // lanes)
            return
        limit = STACK_LIMIT if scope == "local" else GLOBAL_STACK_LIMIT
        if size <= limit and self.stack_bytes + size <= 4 * STACK_LIMIT:
            self.stack_bytes += size
            self.pointers[key] = self.b.alloca(f"[{size} x i8]", WORKSPACE_ALIGN)
        else:
            self.pointers[key] = self.b.op(f"getelementptr i8, ptr %workspace, i64 {self.workspace.take(size)}", "%workspace", cheap=True)
        self.touch(key)

    def _allocate_dynamic(self, stmt: st.Allocate, extents: Iterable[Lin]) -> None:
        total = Lin(item_bytes(stmt.dtype) * info(stmt.dtype).lanes)
        for e in extents:
            total = self._times(total, e)
        self.b.declare("TVMBackendAllocWorkspace", "ptr @TVMBackendAllocWorkspace(i32, i32, i64, i32, i32)")
        self.b.declare("TVMBackendFreeWorkspace", "i32 @TVMBackendFreeWorkspace(i32, i32, ptr)")
        pointer = self.b.define(f"call ptr @TVMBackendAllocWorkspace(i32 1, i32 0, i64 {self.text(total)}, i32 2, i32 8)")
        there = self.ar.op(f"icmp ne ptr {pointer}, null", pointer)
        self.fail_unless(there, "out of memory for a work buffer")
        self.pointers[id(stmt.buffer_var)] = pointer
        self.then(stmt.body, lambda: self.b.line(f"call i32 @TVMBackendFreeWorkspace(i32 1, i32 0, ptr {pointer})"))

    def _allocate_const(self, stmt: st.AllocateConst) -> None:
        self.pointers[id(stmt.buffer_var)] = self.module.data(stmt.values().tobytes(), WORKSPACE_ALIGN)
        self.then(stmt.body)

    # -- branches

    def _if(self, stmt: st.IfThenElse) -> None:
        self.start_statement()
        condition = self.operand(stmt.condition)
        if condition in ("true", "false"):
            taken = stmt.then_case if condition == "true" else stmt.else_case
            if taken is not None:
                self.then(taken)
            return
        state = _If(condition, self.b.block, self._snapshot(stmt))
        self.then(partial(self._open_case, state), stmt.then_case, partial(self._close_case, state, stmt),
                  partial(self._open_case, state), stmt.else_case or st.Evaluate(0), partial(self._close_case, state, stmt),
                  partial(self._join_cases, state))

    def _written_slots(self, stmt: st.Stmt) -> list[int]:
        return [k for k in self.usage.writes[id(stmt)] if k in self.slots]

    def _snapshot(self, stmt: st.Stmt) -> dict[int, dict[int, str]]:
        return {k: dict(self.slots[k].values) for k in self._written_slots(stmt)}

    def _open_case(self, state: _If) -> None:
        block = self.b.new_block("case")
        state.starts.append(block)
        for key, values in state.before.items():
            self.slots[key].values = dict(values)
        self.b.open_scope(block, True)

    def _close_case(self, state: _If, stmt: st.Stmt) -> None:
        state.ends.append(self.b.close_scope())
        state.after.append({k: self.slots[k].values for k in state.before})

    def _join_cases(self, state: _If) -> None:
        join = self.b.new_block("join")
        yes, no = state.starts
        self.b.terminate(state.origin, f"br i1 {state.condition}, label %{yes.label}, label %{no.label}")
        for end in state.ends:
            self.b.terminate(end, f"br label %{join.label}")
        self.b.continue_in(join)
        for key in state.before:
            self._join_slots(self.slots[key], [a[key] for a in state.after], state.ends)

    def _join_slots(self, registers: Slots, sides: list[dict[int, str]], ends: list[Block]) -> None:
        kind, merged = llvm_type(registers.dtype), {}
        for k in sorted({*sides[0], *sides[1]}):
            values = [side.get(k, "poison") for side in sides]
            if values[0] != values[1]:
                sources = ", ".join(f"[ {v}, %{e.label} ]" for v, e in zip(values, ends))
                merged[k] = self._phi_in(self.b.block, kind, sources)
            else:
                merged[k] = values[0]
        registers.values = merged

    def _phi_in(self, block: Block, kind: str, sources: str) -> str:
        name = self.b.fresh("p")
        block.phis.append(f"  {name} = phi {kind} {sources}")
        self.b.depth[name] = len(self.b.scopes) - 1
        return name

    # -- loops

    def _for(self, stmt: st.For) -> None:
        self.start_statement()
        values = unrolled_values(stmt)
        if values is not None:
            self._unrolled(stmt, values)
            return
        if stmt.kind == st.ForKind.THREAD_BINDING:
            raise UnsupportedOpError(f"{self.module.name}: loop {stmt.loop_var.name} is bound to a hardware thread, which a processor target has not")
        low, extent = self.lin(self.evaluate(stmt.min)), self.lin(self.evaluate(stmt.extent))
        if stmt.kind == st.ForKind.PARALLEL and not self.in_parallel and self.shared.has_threads:
            self.shared.emit_parallel(self, stmt, low, extent)
            return
        self.emit_loop(stmt, low, extent)

    def _unrolled(self, stmt: st.For, values: range) -> None:
        for value in reversed(values):
            self.then(partial(self._bind_constant, stmt.loop_var, value), stmt.body)

    def _bind_constant(self, var: tir.Var, value: int) -> None:
        self.env[id(var)] = Lin(value) if var.dtype == "int64" else self.ar.const(value, var.dtype)

    def emit_loop(self, stmt: st.For, low: Lin, extent: Lin) -> None:
        """A loop that stays a loop: entered only if it has iterations, tested at its end."""
        least = self.b.range_of(extent)[0]
        guarded = least is None or least < 1
        for key in self.usage.writes[id(stmt)]:
            self.touch(key)
        if id(stmt) in self.usage.opaque:
            self.touch_all()
        start, count = self.text(low), self.text(extent)
        state = _Loop(self.b.block, start, self.ar.binary("Add", "int64", start, count) if low.terms or low.const else count)
        if low.is_const and extent.is_const:
            state.end = str(low.const + extent.const)
        state.enter = self.ar.op(f"icmp sgt i64 {count}, 0", count) if guarded else ""
        body = state.body = self.b.new_block("loop")
        self.b.open_scope(body, False)
        state.var = self.b.fresh("i")
        self.b.depth[state.var] = len(self.b.scopes) - 1
        self._bound_loop_var(state.var, low, extent)
        self._bind_loop_var(stmt.loop_var, state.var)
        self._carry_slots(stmt, state)
        self.then(stmt.body, partial(self._end_loop, stmt, state))

    def _bound_loop_var(self, name: str, low: Lin, extent: Lin) -> None:
        first, last = self.b.range_of(low)[0], self.b.range_of(low.add(extent).add(Lin(-1)))[1]
        self.b.ranges[name] = (first, last)

    def _bind_loop_var(self, var: tir.Var, name: str) -> None:
        wide = Lin(0, ((name, 1),))
        if var.dtype == "int64":
            self.env[id(var)] = wide
            return
        narrow = self.ar.cast(name, "int64", var.dtype)
        self.wide[narrow] = wide
        self.env[id(var)] = narrow

    def _while(self, stmt: st.While) -> None:
        """A loop whose condition is asked in a block of its own, in front of every round."""
        self.start_statement()
        self._touch_written(stmt)
        state = _While(self.b.block, self.b.new_block("while"))
        self.b.open_scope(state.header, False)
        self._carry_slots(stmt, state)
        self.start_statement()
        state.condition, state.asked = self.operand(stmt.condition), self.b.block
        state.body = self.b.new_block("do")
        self.b.open_scope(state.body, True)
        self.then(stmt.body, partial(self._end_while, stmt, state))

    def _end_while(self, stmt: st.While, state: _While) -> None:
        b = self.b
        latch = b.close_scope()
        state.asked = b.close_scope()
        after = b.new_block("after")
        b.terminate(state.origin, f"br label %{state.header.label}")
        b.terminate(state.asked, f"br i1 {state.condition}, label %{state.body.label}, label %{after.label}")
        b.terminate(latch, f"br label %{state.header.label}")
        b.continue_in(after)
        for registers, k, name, before in state.carried:
            final = registers.values.get(k, "poison")
            state.header.phis.append(f"  {name} = phi {llvm_type(registers.dtype)} [ {before}, %{state.origin.label} ], [ {final}, %{latch.label} ]")
            registers.values[k] = name
            b.depth[name] = len(b.scopes) - 1
        self._touch_written(stmt)

    def _touch_written(self, stmt: st.While) -> None:
        for key in self.usage.writes[id(stmt)]:
            self.touch(key)
        if id(stmt) in self.usage.opaque:
            self.touch_all()

    def _carry_slots(self, stmt: st.For | st.While, state: _Loop | _While) -> None:
        for key in self._written_slots(stmt):
            registers = self.slots[key]
            for k in range(registers.count):
                before = registers.values.get(k, "poison")
                name = self.b.fresh("c")
                self.b.depth[name] = len(self.b.scopes) - 1
                registers.values[k] = name
                state.carried.append((registers, k, name, before))

    def _end_loop(self, stmt: st.For, state: _Loop) -> None:
        b = self.b
        following = b.define(f"add nsw i64 {state.var}, 1")
        again = b.define(f"icmp slt i64 {following}, {state.end}")
        latch = b.close_scope()
        after = b.new_block("after")
        b.terminate(latch, f"br i1 {again}, label %{state.body.label}, label %{after.label}")
        here = state.origin
        b.terminate(here, f"br i1 {state.enter}, label %{state.body.label}, label %{after.label}" if state.enter
                    else f"br label %{state.body.label}")
        state.body.phis.append(f"  {state.var} = phi i64 [ {state.start}, %{here.label} ], [ {following}, %{latch.label} ]")
        b.continue_in(after)
        for registers, k, name, before in state.carried:
            self._finish_carried(state, latch, registers, k, name, before)
        for key in self.usage.writes[id(stmt)]:
            self.touch(key)

    def _finish_carried(self, state: _Loop, latch: Block, registers: Slots, k: int, name: str, before: str) -> None:
        kind, final = llvm_type(registers.dtype), registers.values.get(k, "poison")
        state.body.phis.append(f"  {name} = phi {kind} [ {before}, %{state.origin.label} ], [ {final}, %{latch.label} ]")
        if state.enter:
            final = self._phi_in(self.b.block, kind, f"[ {before}, %{state.origin.label} ], [ {final}, %{latch.label} ]")
        registers.values[k] = final
        if final.startswith("%"):
            self.b.depth[final] = len(self.b.scopes) - 1


class _If:
    __slots__ = ("condition", "origin", "before", "starts", "ends", "after")

    def __init__(self, condition: str, origin: Block, before: dict[int, dict[int, str]]) -> None:
        self.condition, self.origin, self.before = condition, origin, before
        self.starts: list[Block] = []
        self.ends: list[Block] = []
        self.after: list[dict[int, dict[int, str]]] = []


class _Loop:
    __slots__ = ("origin", "start", "end", "enter", "body", "var", "carried")

    def __init__(self, origin: Block, start: str, end: str) -> None:
        self.origin, self.start, self.end, self.enter, self.var = origin, start, end, "", ""
        self.body = origin
        self.carried: list[tuple[Slots, int, str, str]] = []


class _While:
    __slots__ = ("origin", "header", "asked", "body", "condition", "carried")

    def __init__(self, origin: Block, header: Block) -> None:
        self.origin, self.header, self.asked, self.body, self.condition = origin, header, header, header, ""
        self.carried: list[tuple[Slots, int, str, str]] = []


_METHODS: dict[type, Callable[[Statements, Any], None]] = {
    st.SeqStmt: Statements._seq, st.Evaluate: Statements._evaluate, st.BufferStore: Statements._store, st.LetStmt: Statements._let,
    st.AttrStmt: Statements._attr, st.DeclBuffer: Statements._declare, st.AssertStmt: Statements._assert, st.Allocate: Statements._allocate,
    st.AllocateConst: Statements._allocate_const, st.IfThenElse: Statements._if, st.For: Statements._for,
    st.While: Statements._while,
}
