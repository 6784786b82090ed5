"""Statements to C, on an explicit stack of pending work."""
from __future__ import annotations

from functools import partial
from typing import Any, Callable

from ....ir.expr import IntImm
from ....ir.visit import post_order
from ....support.errors import UnsupportedOpError
from ....tir import expr as tir
from ....tir import stmt as st
from ....tir.buffer import BufferLoad
from ....tir.dtypes import lanes_of, scalar_of
from .bulk import Bulk, find_bulk
from .expressions import Expressions, Pointer, operands
from .types import item_size, storage_type
from .values import INT32, PRIMARY, Value, cast_text

STACK_BYTES = 256  # scratch up to this size lies on the stack, larger in the workspace
WORKSPACE_ALIGN = 16


class Statements(Expressions):
    """Writes the statements of one function."""

    def __init__(self, symbol: str, may_alias: bool = False) -> None:
        super().__init__(symbol)
        self.may_alias = may_alias
        self.work: list[Callable[[], Any] | st.Stmt] = []
        self.top = self.workspace_bytes = 0
        self.constants: list[tuple[str, Any]] = []

    def run(self, root: st.Stmt) -> None:
        """Writes ``root`` and all it holds."""
        self.work.append(root)
        while self.work:
            item = self.work.pop()
            if not isinstance(item, st.Stmt):
                item()
                continue
            method = _METHODS.get(type(item))
            if method is None:
                raise UnsupportedOpError(f"{self.symbol}: statement {type(item).__name__} has no C form; lower it first")
            method(self, item)

    def then(self, *steps: Callable[[], Any] | st.Stmt) -> None:
        """Does ``steps`` next, in order."""
        self.work.extend(reversed(steps))

    def _open(self, text: str) -> None:
        self.emit(text)
        self.indent += 1

    def _close(self, text: str = "}") -> None:
        self.indent -= 1
        self.emit(text)

    def _seq(self, stmt: st.SeqStmt) -> None:
        self.then(*stmt.seq)

    def _body(self, stmt: Any) -> None:
        self.then(stmt.body)

    def _evaluate(self, stmt: st.Evaluate) -> None:
        if isinstance(stmt.value, IntImm):
            return
        value = self.evaluate(stmt.value)
        if value.constant is None:
            self.emit(f"{value.text};" if value.ctype == "void" else f"(void)({value.text});")

    # -- stores

    def _store(self, stmt: st.BufferStore) -> None:
        lanes = lanes_of(stmt.value.dtype)
        self.pointer(stmt.buffer.data).written = True
        if lanes == 1:
            self._assign(stmt, stmt.value)
        elif self._reads(stmt.value, stmt.buffer.data):
            self._store_vector_through_copy(stmt, lanes)
        else:
            self._each_lane(lanes, lambda: self._assign(stmt, stmt.value))

    def _assign(self, stmt: st.BufferStore, value: Any) -> None:
        text = self.stored(self.evaluate(value), scalar_of(stmt.buffer.dtype))
        self._assign_text(stmt, text)

    def _assign_text(self, stmt: st.BufferStore, text: str) -> None:
        place = self.place(stmt.buffer, [self.evaluate(i) for i in stmt.indices])
        self.emit(f"{place} = {text};")

    def _each_lane(self, lanes: int, write: Callable[[], None]) -> None:
        name, before = self.fresh("lane"), self.lane
        self.lane = Value(name, PRIMARY, "int32", 0, lanes - 1)
        self._open(f"for (int32_t {name} = 0; {name} < {lanes}; ++{name}) {{")
        write()
        self._close()
        self.lane = before

    def _store_vector_through_copy(self, stmt: st.BufferStore, lanes: int) -> None:
        """All lanes are read before the first is written."""
        dtype, copy = scalar_of(stmt.buffer.dtype), self.fresh("lanes")
        self.emit(f"{storage_type(dtype)} {copy}[{lanes}];")
        self._each_lane(lanes, lambda: self.emit(f"{copy}[{self.lane.text}] = {self.stored(self.evaluate(stmt.value), dtype)};"))  # type: ignore[union-attr]
        self._each_lane(lanes, lambda: self._assign_text(stmt, f"{copy}[{self.lane.text}]"))  # type: ignore[union-attr]

    def _reads(self, value: Any, data: tir.Var) -> bool:
        return any(isinstance(n, BufferLoad) and n.buffer.data is data for n in post_order(value, operands))

    # -- variables and memory

    def _let(self, stmt: st.LetStmt) -> None:
        value = self.evaluate(stmt.value)
        if stmt.var.dtype == "handle":
            name = self.fresh(stmt.var.name)
            self.emit(f"void* const {name} = {value.text};")
            self.pointers[id(stmt.var)] = Pointer(name, "handle")
        elif value.constant is not None:
            self.env[id(stmt.var)] = value
        else:
            name = self.fresh(stmt.var.name)
            self.emit(f"const {storage_type(value.ctype)} {name} = {self.converted(value, value.ctype).text};")
            self.env[id(stmt.var)] = value._replace(text=name, binds=PRIMARY)
        self.then(stmt.body)

    def _assert(self, stmt: st.AssertStmt) -> None:
        condition = self.evaluate(stmt.condition)
        if not condition.constant:
            text = stmt.message.value if isinstance(stmt.message, tir.StringImm) else "assertion failed"
            self.emit(f"if (!({condition.text})) return -1;  /* {text.replace('*/', '* /')} */")
        self.then(stmt.body)

    def _allocate(self, stmt: st.Allocate) -> None:
        count = 1
        for extent in stmt.extents:
            size = self.evaluate(extent).constant
            if size is None:
                raise UnsupportedOpError(f"{self.symbol}: scratch memory {stmt.buffer_var.name} has a size known at run time only; "
                                         "C kernels need static shapes")
            count *= size
        count *= lanes_of(stmt.dtype)
        name, dtype, top = self.fresh(stmt.buffer_var.name), scalar_of(stmt.dtype), self.top
        size = count * item_size(dtype)
        if count == 1:
            self.emit(f"{storage_type(dtype)} {name};")
        elif size <= STACK_BYTES:
            self.emit(f"{storage_type(dtype)} {name}[{max(1, count)}];")
        else:
            offset = f" + {self.top}" if self.top else ""
            self.emit(f"{storage_type(dtype)}* const {name} = ({storage_type(dtype)}*)(void*)(workspace{offset});")
            self.top += -(-size // WORKSPACE_ALIGN) * WORKSPACE_ALIGN
            self.workspace_bytes = max(self.workspace_bytes, self.top)
        self.pointers[id(stmt.buffer_var)] = Pointer(name, dtype, count == 1)
        self.then(stmt.body, partial(setattr, self, "top", top))

    def _allocate_const(self, stmt: st.AllocateConst) -> None:
        array = stmt.values()
        name = self.fresh(f"{self.symbol}_{stmt.buffer_var.name}")
        self.constants.append((name, array))
        self.pointers[id(stmt.buffer_var)] = Pointer(name, scalar_of(stmt.dtype))
        self.then(stmt.body)

    # -- control flow

    def _if(self, stmt: st.IfThenElse) -> None:
        condition = self.evaluate(stmt.condition)
        if condition.constant is not None:
            taken = stmt.then_case if condition.constant else stmt.else_case
            self.then(*[taken] if taken is not None else [])
            return
        self._open(f"if ({condition.text}) {{")
        steps: list[Any] = [stmt.then_case]
        if stmt.else_case is not None:
            steps += [partial(self._else), stmt.else_case]
        self.then(*steps, self._close)

    def _else(self) -> None:
        self._close("} else {")
        self.indent += 1

    def _for(self, stmt: st.For) -> None:
        if stmt.kind == st.ForKind.THREAD_BINDING:
            raise UnsupportedOpError(f"{self.symbol}: loop {stmt.loop_var.name} is bound to a hardware thread, which C has not")
        low, extent = self.evaluate(stmt.min), self.evaluate(stmt.extent)
        if extent.constant is not None and extent.constant <= 0:
            return
        if extent.constant == 1:
            self.env[id(stmt.loop_var)] = low
            self.then(stmt.body)
            return
        bulk = find_bulk(stmt)
        if bulk is not None and not (bulk.source is not None and self.may_alias):
            self._bulk(bulk)
            return
        (first, _), (_, greatest), (_, most) = low.bounds("int64"), low.bounds("int64"), extent.bounds("int64")
        last = greatest + most - 1
        ctype = "int32" if INT32[0] <= first and last < INT32[1] else "int64"
        name = self.fresh(stmt.loop_var.name)
        end = self.arithmetic("Add", "int64", low, extent)
        self._open(f"for ({storage_type(ctype)} {name} = {cast_text(low, ctype).text if low.ctype != ctype else low.text}; {name} < {end.at(11)}; ++{name}) {{")
        bounded = INT32[0] <= first and last < 1 << 62
        self.env[id(stmt.loop_var)] = Value(name, PRIMARY, ctype, first if bounded else None, last if bounded else None)
        self.then(stmt.body, self._close)

    def _bulk(self, bulk: Bulk) -> None:
        """A copy or a fill in one call."""
        for loop in bulk.loops:
            self.env[id(loop.loop_var)] = self.evaluate(loop.min)
        self.pointer(bulk.store.buffer.data).written = True
        target = self.address(bulk.store.buffer, [self.evaluate(i) for i in bulk.store.indices])
        if bulk.source is None:
            self.emit(f"memset({target}, {bulk.byte}, {bulk.size});")
        else:
            self.emit(f"memcpy({target}, {self.address(bulk.source.buffer, [self.evaluate(i) for i in bulk.source.indices])}, {bulk.size});")

    def _while(self, stmt: st.While) -> None:
        self._open("for (;;) {")
        condition = self.evaluate(stmt.condition)
        self.emit(f"if (!({condition.text})) break;")
        self.then(stmt.body, self._close)


_METHODS: dict[type, Callable[[Statements, Any], None]] = {
    st.SeqStmt: Statements._seq, st.Evaluate: Statements._evaluate, st.BufferStore: Statements._store, st.LetStmt: Statements._let,
    st.AttrStmt: Statements._body, st.DeclBuffer: Statements._body, st.AssertStmt: Statements._assert, st.Allocate: Statements._allocate,
    st.AllocateConst: Statements._allocate_const, st.IfThenElse: Statements._if, st.For: Statements._for, st.While: Statements._while,
}
