"""From a flat PrimFunc to the text of an LLVM module with its fast and its packed entry."""
from __future__ import annotations

from dataclasses import dataclass

from ....ir.expr import IntImm, PrimExpr
from ....ir.visit import post_order
from ....tir import expr as tir
from ....tir import stmt as st
from ....tir.buffer import Buffer, BufferLoad
from ....tir.function import PrimFunc
from ...cpu import CpuInfo, resolve_cpu
from ...target import Target
from .builder import FunctionBuilder
from .linear import Lin
from .module_text import ModuleText
from .statements import STATIC_SIZE, TASK_SIZE, Statements, Workspace
from .types import llvm_type
from .usage import Usage, bodies_of, expressions_of, operands, size_variable


@dataclass(frozen=True)
class Kernel:
    """A compiled-to-text kernel.

    ``symbol`` is the packed entry, ``symbol + "__fast"`` the fast one: ``i32 (pointers and scalars in parameter order, then the
    values of ``implicit``, then the workspace)``.  The workspace holds ``workspace_bytes`` + tasks × ``workspace_bytes_per_task``.
    ``arg_types`` has one entry for each parameter: ``"handle"`` or the scalar's dtype.  ``implicit`` names shape variables that are
    no parameters: (parameter index, ``"shape"``, ``"stride"`` or ``"offset"``, dimension).
    """

    symbol: str
    ir_text: str
    workspace_bytes: int
    workspace_bytes_per_task: int
    arg_types: tuple[str, ...]
    implicit: tuple[tuple[int, str, int], ...] = ()

    @property
    def fast_symbol(self) -> str:
        """The name of the fast entry."""
        return self.symbol + "__fast"


def emit_kernel(func: PrimFunc, target: Target | str | None = None) -> Kernel:
    """The LLVM module of a flat PrimFunc (attribute ``global_symbol`` names it) for ``target``.

    Raises UnsupportedOpError for what has no spelling on a processor, InternalError for a body that uses undefined variables.
    """
    symbol = (func.attrs.get("global_symbol") if func.attrs is not None else None) or "main"
    return KernelEmitter(func, str(symbol), resolve_cpu(target)).emit()


def emit_packed_entry(func: PrimFunc, symbol: str, workspace_bytes: int, cpu: CpuInfo) -> str:
    """The LLVM module of a kernel's packed entry alone; the fast entry ``<symbol>__fast`` is other code's."""
    return _EntryEmitter(func, symbol, cpu, workspace_bytes).emit().ir_text


class KernelEmitter:
    """Emits one kernel: the body, outlined parallel loops, the packed entry."""

    def __init__(self, func: PrimFunc, symbol: str, cpu: CpuInfo) -> None:
        self.func, self.symbol, self.cpu = func, symbol, cpu
        self.module = ModuleText(cpu, symbol)
        self.usage = Usage(func.body)
        self.static, self.per_task = Workspace(), 0
        self.return_kind = 0
        self.parallel_count = 0
        self.has_threads = _has_threads(cpu.triple)
        self.implicit = implicit_variables(func)

    def emit(self) -> Kernel:
        """The finished kernel."""
        from .packed import emit_packed

        self._emit_fast()
        emit_packed(self)
        text = self.module.text().replace(STATIC_SIZE, str(self.static.size)).replace(TASK_SIZE, str(self.per_task))
        return Kernel(self.symbol, text, self.static.size, self.per_task, tuple(p.dtype for p in self.func.params),
                      tuple(where for _, where in self.implicit))

    def parameters(self) -> list[tuple[str, str, tir.Var, Buffer | None]]:
        """(type, name, variable, buffer) of each parameter of the fast entry before the workspace."""
        found = []
        for i, (var, buffer) in enumerate(zip(self.func.params, self.func.buffers)):
            found.append((llvm_type(var.dtype), f"%a{i}", var, buffer))
        found.extend((llvm_type(var.dtype), f"%s{i}", var, None) for i, (var, _) in enumerate(self.implicit))
        return found

    def _emit_fast(self) -> None:
        builder = FunctionBuilder(self.module.declarations)
        body = Statements(self.module, builder, self.usage, self, self.static, in_parallel=False)
        texts = []
        for kind, name, var, buffer in self.parameters():
            texts.append(f"ptr noalias {name}" if kind == "ptr" and buffer is not None else f"{kind} {name}")
            bind_parameter(body, name, var, buffer)
        texts.append("ptr noalias %workspace")
        if self.usage.returns:
            texts.append("ptr noalias %retval")
        body.run(self.func.body)
        builder.line("ret i32 0")
        self.module.functions.append(builder.text(f"define i32 @{self.symbol}__fast({', '.join(texts)}) #0"))

    # -- parallel loops

    def emit_parallel(self, outer: Statements, loop: st.For, low: Lin, extent: Lin) -> None:
        """Outlines the loop's body into a function of a range of iterations and launches it over all threads."""
        number = self.parallel_count
        self.parallel_count += 1
        name = f"{self.symbol}__par{number}"
        captured = _captured(outer, loop)
        self._emit_range(name, outer, loop, captured, low)
        self._emit_task(name, captured, extent)
        self._emit_launch(name, outer, captured, low, extent)
        for key in self.usage.writes[id(loop)]:
            outer.touch(key)

    def _emit_range(self, name: str, outer: Statements, loop: st.For, captured: list[_Capture], low: Lin) -> None:
        builder = FunctionBuilder(self.module.declarations)
        workspace = Workspace()
        inner = Statements(self.module, builder, self.usage, self, workspace, in_parallel=True)
        for c in captured:
            c.bind(inner, outer)
        builder.ranges["%first"] = (outer.b.range_of(low)[0], None)
        inner.emit_loop(loop, Lin(0, (("%first", 1),)), Lin(0, (("%count", 1),)))
        inner.run_pending()
        builder.line("ret i32 0")
        self.per_task = max(self.per_task, workspace.size)
        texts = [f"{c.kind}{' noalias' if c.exclusive else ''} {c.inner}" for c in captured]
        header = ", ".join(["i64 %first", "i64 %count", *texts, "ptr noalias %workspace"])
        self.module.functions.append(builder.text(f"define internal i32 @{name}_range({header}) #0"))

    def _emit_task(self, name: str, captured: list[_Capture], extent: Lin) -> None:
        """The task function: its share of the iterations, its part of the workspace, the captured values."""
        slots = len(captured) + 3
        lines = ["entry:", "  %t = sext i32 %task to i64", "  %n = sext i32 %tasks to i64"]
        for i, (kind, value) in enumerate([("i64", "low"), ("i64", "extent"), ("ptr", "base"), *((c.kind, f"x{j}") for j, c in enumerate(captured))]):
            lines.append(f"  %p{i} = getelementptr [{slots} x i64], ptr %closure, i64 0, i64 {i}")
            lines.append(f"  %{value} = load {kind}, ptr %p{i}, align 8")
        lines += ["  %m0 = mul i64 %t, %extent", "  %from = udiv i64 %m0, %n", "  %t1 = add i64 %t, 1", "  %m1 = mul i64 %t1, %extent",
                  "  %to = udiv i64 %m1, %n", "  %count = sub i64 %to, %from", "  %first = add i64 %low, %from",
                  f"  %skip = mul i64 %t, {TASK_SIZE}", f"  %after = add i64 %skip, {STATIC_SIZE}",
                  "  %workspace = getelementptr i8, ptr %base, i64 %after"]
        args = ", ".join(["i64 %first", "i64 %count", *(f"{c.kind} %x{j}" for j, c in enumerate(captured)), "ptr %workspace"])
        lines += [f"  %r = call i32 @{name}_range({args})", "  ret i32 %r"]
        self.module.functions.append(f"define internal i32 @{name}_task(i32 %task, i32 %tasks, ptr %closure) #0 {{\n" + "\n".join(lines) + "\n}")

    def _emit_launch(self, name: str, outer: Statements, captured: list[_Capture], low: Lin, extent: Lin) -> None:
        b = outer.b
        count = outer.text(extent)
        closure = b.alloca(f"[{len(captured) + 3} x i64]", 16)
        values = [("i64", outer.text(low)), ("i64", count), ("ptr", "%workspace"), *((c.kind, c.outer) for c in captured)]
        for i, (kind, value) in enumerate(values):
            place = b.op(f"getelementptr i64, ptr {closure}, i64 {i}", closure, cheap=True)
            b.line(f"store {kind} {value}, ptr {place}, align 8")
        b.declare("al_parallel_launch", "i32 @al_parallel_launch(ptr, ptr, i32)")
        b.declare("al_num_threads", "i32 @al_num_threads()")
        threads = b.define("call i32 @al_num_threads()")
        wide = b.define(f"zext i32 {threads} to i64")
        fewer = b.define(f"icmp slt i64 {count}, {wide}")
        chosen = b.define(f"select i1 {fewer}, i64 {count}, i64 {wide}")
        tasks = b.define(f"trunc i64 {chosen} to i32")
        run, after = b.new_block("launch"), b.new_block("after")
        some = b.define(f"icmp sgt i64 {count}, 0")
        b.line(f"br i1 {some}, label %{run.label}, label %{after.label}")
        b.continue_in(run)
        status = b.define(f"call i32 @al_parallel_launch(ptr @{name}_task, ptr {closure}, i32 {tasks})")
        failed, good = b.new_block("bad"), b.new_block("ok")
        fine = b.define(f"icmp eq i32 {status}, 0")
        b.line(f"br i1 {fine}, label %{good.label}, label %{failed.label}")
        failed.lines.append(f"  ret i32 {status}")
        good.lines.append(f"  br label %{after.label}")
        b.continue_in(after)


class _EntryEmitter(KernelEmitter):
    """Emits the packed entry of a kernel whose body is elsewhere."""

    def __init__(self, func: PrimFunc, symbol: str, cpu: CpuInfo, workspace_bytes: int) -> None:
        super().__init__(func, symbol, cpu)
        self.static.size = workspace_bytes

    def _emit_fast(self) -> None:
        kinds = [*(kind for kind, *_ in self.parameters()), "ptr"]
        self.module.declarations[f"{self.symbol}__fast"] = f"i32 @{self.symbol}__fast({', '.join(kinds)})"


class _Capture:
    """A value of the enclosing function that a parallel body uses."""

    __slots__ = ("kind", "outer", "inner", "keys", "exclusive", "dtype")

    def __init__(self, kind: str, outer: str, inner: str, key: int, exclusive: bool, dtype: str) -> None:
        self.kind, self.outer, self.inner, self.keys, self.exclusive, self.dtype = kind, outer, inner, [key], exclusive, dtype

    def bind(self, inner: Statements, outer: Statements) -> None:
        """Makes the value known in the inner function."""
        for key in self.keys:
            if self.kind == "ptr":
                inner.pointers[key] = self.inner
            elif self.dtype == "int64":
                inner.env[key] = Lin(0, ((self.inner, 1),))
                inner.b.ranges[self.inner] = outer.b.range_of(outer.lin(outer.env[key]))
            else:
                inner.env[key] = self.inner


def _captured(outer: Statements, loop: st.For) -> list[_Capture]:
    """The variables and buffers of ``outer`` that the loop's body uses."""
    found: dict[str, _Capture] = {}
    used = _used_in(loop.body)
    for key, var in used.items():
        if key in outer.pointers:
            text, kind, dtype = outer.pointers[key], "ptr", "handle"
        elif key in outer.env:
            value = outer.env[key]
            if isinstance(value, Lin) and value.is_const:
                text, kind, dtype = str(value.const), "i64", "int64"
            else:
                text, dtype = outer.text(value), var.dtype
                kind = llvm_type(dtype)
        else:
            continue
        if text in found and found[text].kind == kind:
            found[text].keys.append(key)
        else:
            found[text] = _Capture(kind, text, f"%cap{len(found)}", key, kind == "ptr", dtype)
    return list(found.values())


def _used_in(root: st.Stmt) -> dict[int, tir.Var]:
    """Every variable (data variables of buffers included) in a statement."""
    found: dict[int, tir.Var] = {}
    stack = [root]
    while stack:
        stmt = stack.pop()
        stack.extend(bodies_of(stmt))
        if isinstance(stmt, st.BufferStore):
            _use_buffer(stmt.buffer, found)
        for e in expressions_of(stmt):
            _used_in_expression(e, found)
    return found


def _used_in_expression(root: PrimExpr, found: dict[int, tir.Var]) -> None:
    for node in post_order(root, operands):
        if isinstance(node, tir.Var):
            found[id(node)] = node
        elif isinstance(node, BufferLoad):
            _use_buffer(node.buffer, found)


def _use_buffer(buffer: Buffer, found: dict[int, tir.Var]) -> None:
    found[id(buffer.data)] = buffer.data
    for e in (*buffer.shape, *buffer.strides, buffer.elem_offset):
        if not isinstance(e, IntImm):
            _used_in_expression(e, found)


def bind_parameter(body: Statements, name: str, var: tir.Var, buffer: Buffer | None) -> None:
    """Makes a parameter known in the function's body."""
    if buffer is not None:
        body.pointers[id(buffer.data)] = body.pointers[id(var)] = name
    elif var.dtype == "handle":
        body.pointers[id(var)] = name
    elif var.dtype == "int64":
        body.env[id(var)] = Lin(0, ((name, 1),))
        if isinstance(var, tir.SizeVar):
            body.b.ranges[name] = (0, None)
    else:
        body.env[id(var)] = name


def implicit_variables(func: PrimFunc) -> list[tuple[tir.Var, tuple[int, str, int]]]:
    """Variables that only the parameters' shapes, strides and offsets define, with where to read them."""
    known = {id(p) for p in func.params}
    found: list[tuple[tir.Var, tuple[int, str, int]]] = []
    for i, buffer in enumerate(func.buffers):
        if buffer is None:
            continue
        places = [("shape", d, e) for d, e in enumerate(buffer.shape)] + [("stride", d, e) for d, e in enumerate(buffer.strides)]
        for what, dim, e in [*places, ("offset", 0, buffer.elem_offset)]:
            size = size_variable(e)
            if size is not None and id(size) not in known:
                known.add(id(size))
                found.append((size, (i, what, dim)))
    return found


def _has_threads(triple: str) -> bool:
    return any(system in triple for system in ("linux", "darwin", "macos", "freebsd", "windows", "android"))

