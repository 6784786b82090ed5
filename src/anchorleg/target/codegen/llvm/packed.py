"""The packed entry: unpacks and checks the arguments, then calls the fast entry.

``i32 symbol(ptr args, ptr type_codes, i32 num_args, ptr ret, ptr ret_type_code, ptr resource)``; a failed check leaves a text that
names the argument and says what was expected and what came, and returns -1.  The checks themselves are functions of the
runtime (:mod:`anchorleg.runtime.arguments`), so that an entry is small whatever its arguments.
"""
from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ....ir.expr import IntImm
from ....runtime.arguments import SYMBOLS, arguments_text
from ....runtime.dtype import DataType
from ....tir import expr as tir
from ....tir.buffer import Buffer
from ....tir.dtypes import info
from .builder import FunctionBuilder
from .linear import Lin
from .statements import STATIC_SIZE, TASK_SIZE, Statements, Workspace
from .types import item_bytes, llvm_type
from .usage import size_variable

if TYPE_CHECKING:
    from .kernel import KernelEmitter

_NUMBER_CODES = {"float": (2, 0, 15), "int": (0, 15), "handle": (3, 4, 7, 13, 11)}
_EXPECTED = {"float": "a number", "int": "an integer", "handle": "an address"}


class PackedEntry:
    """Writes the packed entry of one kernel."""

    def __init__(self, kernel: KernelEmitter) -> None:
        self.k, self.module = kernel, kernel.module
        self.b = FunctionBuilder(self.module.declarations)
        self.em = Statements(self.module, self.b, kernel.usage, kernel, Workspace(), in_parallel=True)
        self.bound: dict[int, str] = {}
        self.values: list[tuple[str, str]] = []
        self.tensors: dict[int, str] = {}
        p = kernel.cpu.pointer_bytes
        self.shape_at, self.strides_at, self.offset_at = p + 16, 2 * p + 16, -(-(3 * p + 16) // 8) * 8

    def emit(self) -> None:
        """Adds the entry to the module."""
        params, buffers = self.k.func.params, self.k.func.buffers
        self._check_count(len(params))
        for i, (var, buffer) in enumerate(zip(params, buffers)):
            self._scalar(i, var) if buffer is None else self._tensor(i, var, buffer)
        tensors = [(i, b) for i, b in enumerate(buffers) if b is not None]
        for i, buffer in tensors:
            self._bind_shape(i, buffer)
        for i, buffer in tensors:
            self._check_shape(i, buffer)
        self._call()
        self._declare_checks()
        header = "ptr %args, ptr %codes, i32 %num_args, ptr %ret, ptr %ret_code, ptr %resource"
        section = self._section(self.k.symbol)
        self.module.functions.append(self.b.text(f"define i32 @{self.k.symbol}({header}) #1" + (f' section "{section}"' if section else "")))

    def _section(self, name: str) -> str:
        """On machines without a system, packed entries and what they call lie apart, so that linkers drop them where only the fast ones are called."""
        bare = not self.k.has_threads and any(kind in self.k.cpu.triple for kind in ("elf", "eabi"))
        return f".text.packed.{name}" if bare else ""

    def _declare_checks(self) -> None:
        if self.k.has_threads:
            self.b.declare(SYMBOLS[0], f"ptr @{SYMBOLS[0]}(ptr, ptr, i32, ptr)")
            self.b.declare(SYMBOLS[1], f"i32 @{SYMBOLS[1]}(ptr, ptr, ptr, ptr)")
        else:  # no runtime of ours on such machines: the functions come along
            self.module.helper("arguments", arguments_text(self.k.cpu.pointer_bytes, "TVMAPISetLastError" not in self.module.declarations,
                                                               self._section("arguments")))

    # -- small pieces

    def leave_unless(self, condition: str) -> None:
        """Returns -1 unless the condition holds; the error text has been left already."""
        good, bad = self.b.new_block("ok"), self.b.new_block("bad")
        self.b.line(f"br i1 {condition}, label %{good.label}, label %{bad.label}")
        bad.lines.append("  ret i32 -1")
        self.b.continue_in(good)

    def field(self, base: str, offset: int, kind: str) -> str:
        """A field of a structure."""
        place = self.b.op(f"getelementptr i8, ptr {base}, i64 {offset}", base, cheap=True)
        return self.b.define(f"load {kind}, ptr {place}, align 4")

    def _equal(self, kind: str, a: str, b: str) -> str:
        return self.b.op(f"icmp eq {kind} {a}, {b}", a, b)

    def _check_count(self, count: int) -> None:
        self.em.fail_unless(self._equal("i32", "%num_args", str(count)), f"expected {count} arguments")

    # -- scalars

    def _scalar(self, i: int, var: tir.Var) -> None:
        slot = self.b.op(f"getelementptr i64, ptr %args, i64 {i}", cheap=True)
        place = self.b.op(f"getelementptr i32, ptr %codes, i64 {i}", cheap=True)
        code = self.b.define(f"load i32, ptr {place}, align 4")
        t = info(var.dtype)
        kind = "float" if t.is_float else "handle" if t.kind == "handle" else "int"
        known = [self._equal("i32", code, str(c)) for c in _NUMBER_CODES[kind]]
        fits = known[0]
        for k in known[1:]:
            fits = self.b.op(f"or i1 {fits}, {k}", fits, k)
        self.em.fail_unless(fits, f"argument {i} ({var.name}): expected {_EXPECTED[kind]} ({var.dtype})")
        self.values.append((llvm_type(var.dtype), self._number(var, kind, slot, code)))

    def _number(self, var: tir.Var, kind: str, slot: str, code: str) -> str:
        if kind == "handle":
            return self.b.define(f"load ptr, ptr {slot}, align 8")
        whole = self.b.define(f"load i64, ptr {slot}, align 8")
        if kind == "int":
            value = self.em.ar.cast(whole, "int64", var.dtype)
            self._know(var, value)
            return value
        real = self.b.define(f"load double, ptr {slot}, align 8")
        from_int = self.b.op(f"sitofp i64 {whole} to double", whole)
        is_float = self._equal("i32", code, "2")
        picked = self.b.op(f"select i1 {is_float}, double {real}, double {from_int}", is_float, real, from_int)
        return self.em.ar.cast(picked, "float64", var.dtype)

    def _know(self, var: tir.Var, value: str) -> None:
        self.bound[id(var)] = value
        self.em.env[id(var)] = Lin(0, ((value, 1),)) if var.dtype == "int64" else value

    # -- tensors

    def _tensor(self, i: int, var: tir.Var, buffer: Buffer) -> None:
        tensor = self.b.define(f"call ptr @{SYMBOLS[0]}(ptr %args, ptr %codes, i32 {i}, ptr {self._descriptor(i, buffer)})")
        self.leave_unless(self.b.op(f"icmp ne ptr {tensor}, null", tensor))
        self.tensors[i] = tensor
        data = self.field(tensor, 0, "ptr")
        if not isinstance(buffer.elem_offset, tir.Var):
            offset = self.field(tensor, self.offset_at, "i64")
            data = self.b.op(f"getelementptr i8, ptr {data}, i64 {offset}", data, offset)
        self.values.append(("ptr", data))

    def _descriptor(self, i: int, buffer: Buffer) -> str:
        t = DataType(buffer.dtype)
        word = int(t.type_code) | t.bits << 8 | t.lanes << 16
        extents = [str(e.value) if isinstance(e, IntImm) else getattr(size_variable(e), "name", "?") for e in buffer.shape]
        shape = f"({', '.join(extents)}{',' if len(extents) == 1 else ''})"
        texts = [self.module.string(s) for s in (f"{self.k.symbol}: argument {i} ({buffer.name})", shape, buffer.dtype)]
        numbers = [len(buffer.shape), word, item_bytes(buffer.dtype), int(t.is_bool)]
        content = ", ".join([*(f"ptr {s}" for s in texts), *(f"i32 {n}" for n in numbers)])
        return self.module.constant("{ ptr, ptr, ptr, i32, i32, i32, i32 }", f"{{ {content} }}", 8)

    def _bind_shape(self, i: int, buffer: Buffer) -> None:
        for dim, extent in enumerate(buffer.shape):
            size = size_variable(extent)
            if size is not None and id(size) not in self.bound:
                self._know(size, self.em.ar.cast(self._extent(i, dim), "int64", size.dtype))
        for dim, stride in enumerate(buffer.strides):
            size = size_variable(stride)
            if size is not None and id(size) not in self.bound:
                self._know(size, self.em.ar.cast(self._stride(i, buffer, dim), "int64", size.dtype))
        if isinstance(buffer.elem_offset, tir.Var) and id(buffer.elem_offset) not in self.bound:
            offset = self.field(self.tensors[i], self.offset_at, "i64")
            self._know(buffer.elem_offset, self.b.op(f"sdiv i64 {offset}, {item_bytes(buffer.dtype)}", offset))

    def _element(self, array: str, position: int) -> str:
        place = self.b.op(f"getelementptr i64, ptr {array}, i64 {position}", array, cheap=True)
        return self.b.define(f"load i64, ptr {place}, align 8")

    def _extent(self, i: int, dim: int) -> str:
        return self._element(self.field(self.tensors[i], self.shape_at, "ptr"), dim)

    def _stride(self, i: int, buffer: Buffer, dim: int) -> str:
        """The tensor's stride; when it has none, that of a compact tensor."""
        compact = "1"
        for d in range(dim + 1, len(buffer.shape)):
            extent = self._extent(i, d)
            compact = self.b.op(f"mul i64 {compact}, {extent}", compact, extent)
        strides, shape = self.field(self.tensors[i], self.strides_at, "ptr"), self.field(self.tensors[i], self.shape_at, "ptr")
        missing = self.b.op(f"icmp eq ptr {strides}, null", strides)
        given = self._element(self.b.op(f"select i1 {missing}, ptr {shape}, ptr {strides}", missing, shape, strides), dim)
        return self.b.op(f"select i1 {missing}, i64 {compact}, i64 {given}", missing, compact, given)

    def _check_shape(self, i: int, buffer: Buffer) -> None:
        shape = self._numbers(buffer.shape)
        strides = self._numbers(buffer.strides) if buffer.strides else "null"
        arguments = f"ptr {self.tensors[i]}, ptr {self._descriptor(i, buffer)}, ptr {shape}, ptr {strides}"
        status = self.b.define(f"call i32 @{SYMBOLS[1]}({arguments})")
        self.leave_unless(self._equal("i32", status, "0"))

    def _numbers(self, extents: Any) -> str:
        """An array of the expected extents: constant, or filled here."""
        if all(isinstance(e, IntImm) for e in extents):
            content = ", ".join(f"i64 {e.value}" for e in extents)
            return self.module.constant(f"[{len(extents)} x i64]", f"[{content}]" if extents else "zeroinitializer", 8)
        array = self.b.alloca(f"[{len(extents)} x i64]", 8)
        for dim, extent in enumerate(extents):
            place = self.b.op(f"getelementptr i64, ptr {array}, i64 {dim}", array, cheap=True)
            self.b.line(f"store i64 {self._expected(extent)}, ptr {place}, align 8")
        return array

    def _expected(self, extent: Any) -> str:
        self.em.start_statement()
        value = self.em.operand(extent)
        return value if extent.dtype == "int64" else self.em.ar.cast(value, extent.dtype, "int64")

    # -- the call

    def _call(self) -> None:
        k, b = self.k, self.b
        args = [*self.values, *((llvm_type(var.dtype), self.bound[id(var)]) for var, _ in k.implicit)]
        workspace = self._workspace()
        texts = [f"{kind} {value}" for kind, value in args] + [f"ptr {workspace}"] + ["ptr %ret"] * k.usage.returns
        status = b.define(f"call i32 @{k.symbol}__fast({', '.join(texts)})")
        b.line(f"store i32 {k.return_kind if k.usage.returns else 4}, ptr %ret_code, align 4")
        if workspace != "null":
            b.declare("TVMBackendFreeWorkspace", "i32 @TVMBackendFreeWorkspace(i32, i32, ptr)")
            b.line(f"call i32 @TVMBackendFreeWorkspace(i32 1, i32 0, ptr {workspace})")
        b.line(f"ret i32 {status}")

    def _workspace(self) -> str:
        k, b = self.k, self.b
        if not k.static.size and not k.per_task:
            return "null"
        size = STATIC_SIZE
        if k.per_task:
            b.declare("al_num_threads", "i32 @al_num_threads()")
            threads = b.define("call i32 @al_num_threads()")
            wide = b.define(f"sext i32 {threads} to i64")
            size = b.define(f"add i64 {b.define(f'mul i64 {wide}, {TASK_SIZE}')}, {STATIC_SIZE}")
        b.declare("TVMBackendAllocWorkspace", "ptr @TVMBackendAllocWorkspace(i32, i32, i64, i32, i32)")
        pointer = b.define(f"call ptr @TVMBackendAllocWorkspace(i32 1, i32 0, i64 {size}, i32 2, i32 8)")
        self.em.fail_unless(b.op(f"icmp ne ptr {pointer}, null", pointer), "out of memory for the workspace")
        return pointer


def emit_packed(kernel: KernelEmitter) -> None:
    """Adds the packed entry of ``kernel`` to its module."""
    PackedEntry(kernel).emit()
