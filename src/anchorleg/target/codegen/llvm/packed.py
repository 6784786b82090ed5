"""The packed entry: unpacks and checks the arguments, then calls the fast entry.

``i32 symbol(ptr args, ptr type_codes, i32 num_args, ptr ret, ptr ret_type_code, ptr resource)``; a failed check leaves a text that
names the argument and says what was expected and what came, and returns -1.
"""
from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ....ir.expr import IntImm
from ....runtime.dtype import DataType
from ....tir import expr as tir
from ....tir.buffer import Buffer
from ....tir.dtypes import info
from .builder import FunctionBuilder
from .linear import Lin
from .statements import STATIC_SIZE, TASK_SIZE, Statements, Workspace
from .types import item_bytes, llvm_type

if TYPE_CHECKING:
    from .kernel import KernelEmitter

_FAIL = """define internal i32 @al_argument_error(ptr %format, i64 %got) #0 {
  %text = alloca [512 x i8], align 16
  %n = call i32 (ptr, i64, ptr, ...) @snprintf(ptr %text, i64 512, ptr %format, i64 %got)
  call void @TVMAPISetLastError(ptr %text)
  ret i32 -1
}"""
_POINTER_CODES = (3, 7, 13)  # opaque handle, DLTensor*, NDArray
_NUMBER_CODES = {"float": (2, 0, 15), "int": (0, 15), "handle": (3, 4, 7, 13, 11)}


class DLTensorLayout:
    """Offsets of the C structure's fields for 32- and 64-bit addresses."""

    def __init__(self, pointer_bytes: int) -> None:
        p = pointer_bytes
        self.device, self.ndim, self.dtype = p, p + 8, p + 12
        self.shape = p + 16
        self.strides = self.shape + p
        self.byte_offset = -(-(self.strides + p) // 8) * 8


class PackedEntry:
    """Writes the packed entry of one kernel."""

    def __init__(self, kernel: KernelEmitter) -> None:
        self.k, self.module = kernel, kernel.module
        self.b = FunctionBuilder(self.module.declarations)
        self.em = Statements(self.module, self.b, kernel.usage, kernel, Workspace(), in_parallel=True)
        self.layout = DLTensorLayout(kernel.cpu.pointer_bytes)
        self.bound: dict[int, str] = {}
        self.values: list[tuple[str, str]] = []
        self.tensors: dict[int, dict[str, str]] = {}

    # -- small pieces

    def check(self, condition: str, message: str, got: str = "0") -> None:
        """Returns -1 with the message (``%lld`` in it stands for ``got``) unless the condition holds."""
        if condition == "true":
            return
        self.b.declare("snprintf", "i32 @snprintf(ptr, i64, ptr, ...)")
        self.b.declare("TVMAPISetLastError", "void @TVMAPISetLastError(ptr)")
        self.module.helper("al_argument_error", _FAIL)
        good, bad = self.b.new_block("ok"), self.b.new_block("bad")
        self.b.line(f"br i1 {condition}, label %{good.label}, label %{bad.label}")
        name = self.b.fresh("e")
        bad.lines += [f"  {name} = call i32 @al_argument_error(ptr {self.module.string(self.k.symbol + ': ' + message)}, i64 {got})",
                      f"  ret i32 {name}"]
        self.b.continue_in(good)

    def field(self, base: str, offset: int, kind: str) -> str:
        """A field of a structure."""
        place = self.b.op(f"getelementptr i8, ptr {base}, i64 {offset}", base, cheap=True)
        return self.b.define(f"load {kind}, ptr {place}, align {1 if kind == 'i8' else 4}")

    def equal(self, kind: str, a: str, b: str) -> str:
        return self.b.op(f"icmp eq {kind} {a}, {b}", a, b)

    def either(self, conditions: list[str]) -> str:
        result = conditions[0]
        for c in conditions[1:]:
            result = self.b.op(f"or i1 {result}, {c}", result, c)
        return result

    def wide(self, value: str, kind: str) -> str:
        return value if kind == "i64" else self.b.op(f"sext {kind} {value} to i64", value)

    # -- the whole

    def emit(self) -> None:
        """Adds the entry to the module."""
        params, buffers = self.k.func.params, self.k.func.buffers
        count = len(params)
        self.check(self.equal("i32", "%num_args", str(count)), f"expected {count} arguments, got %lld", self.wide("%num_args", "i32"))
        for i, (var, buffer) in enumerate(zip(params, buffers)):
            self._argument(i, var, buffer)
        for i, buffer in enumerate(buffers):
            if buffer is not None:
                self._bind_shape(i, buffer)
        for i, buffer in enumerate(buffers):
            if buffer is not None:
                self._check_tensor(i, buffer)
        self._call()
        header = "ptr %args, ptr %codes, i32 %num_args, ptr %ret, ptr %ret_code, ptr %resource"
        self.module.functions.append(self.b.text(f"define i32 @{self.k.symbol}({header}) #0"))

    def _name(self, i: int, var: tir.Var, buffer: Buffer | None) -> str:
        return f"argument {i} ({buffer.name if buffer is not None else var.name})"

    def _argument(self, i: int, var: tir.Var, buffer: Buffer | None) -> None:
        slot = self.b.op(f"getelementptr i64, ptr %args, i64 {i}", cheap=True)
        code_at = self.b.op(f"getelementptr i32, ptr %codes, i64 {i}", cheap=True)
        code = self.b.define(f"load i32, ptr {code_at}, align 4")
        t = info(var.dtype)
        kind = "float" if t.is_float else "handle" if t.kind == "handle" else "int"
        codes = _POINTER_CODES if buffer is not None else _NUMBER_CODES[kind]
        expected = "a tensor" if buffer is not None else {"float": "a number", "int": "an integer", "handle": "an address"}[kind]
        self.check(self.either([self.equal("i32", code, str(c)) for c in codes]),
                   f"{self._name(i, var, buffer)}: expected {expected}, got type code %lld", self.wide(code, "i32"))
        if buffer is not None:
            self._tensor(i, var, buffer, slot)
        else:
            self._scalar(var, kind, slot, code)

    def _scalar(self, var: tir.Var, kind: str, slot: str, code: str) -> None:
        if kind == "handle":
            self.values.append(("ptr", self.b.define(f"load ptr, ptr {slot}, align 8")))
            return
        whole = self.b.define(f"load i64, ptr {slot}, align 8")
        if kind == "int":
            value = self.em.ar.cast(whole, "int64", var.dtype)
            self._know(var, value)
        else:
            real = self.b.define(f"load double, ptr {slot}, align 8")
            from_int = self.b.op(f"sitofp i64 {whole} to double", whole)
            is_float = self.equal("i32", code, "2")
            picked = self.b.op(f"select i1 {is_float}, double {real}, double {from_int}", is_float, real, from_int)
            value = self.em.ar.cast(picked, "float64", var.dtype)
        self.values.append((llvm_type(var.dtype), value))

    def _know(self, var: tir.Var, value: str) -> None:
        self.bound[id(var)] = value
        self.em.env[id(var)] = Lin(0, ((value, 1),)) if var.dtype == "int64" else value

    def _tensor(self, i: int, var: tir.Var, buffer: Buffer, slot: str) -> None:
        name, layout = self._name(i, var, buffer), self.layout
        tensor = self.b.define(f"load ptr, ptr {slot}, align 8")
        self.check(self.b.op(f"icmp ne ptr {tensor}, null", tensor), f"{name}: expected a tensor, got a null pointer")
        data = self.field(tensor, 0, "ptr")
        offset = self.field(tensor, layout.byte_offset, "i64")
        rank = self.field(tensor, layout.ndim, "i32")
        self.check(self.equal("i32", rank, str(len(buffer.shape))), f"{name}: expected rank {len(buffer.shape)}, got rank %lld", self.wide(rank, "i32"))
        if not isinstance(buffer.elem_offset, tir.Var):
            data = self.b.op(f"getelementptr i8, ptr {data}, i64 {offset}", data, offset)
        parts = {"tensor": tensor, "data": data, "offset": offset, "shape": self.field(tensor, layout.shape, "ptr"),
                 "strides": self.field(tensor, layout.strides, "ptr")}
        self.tensors[i] = parts
        self.values.append(("ptr", data))
        self._check_dtype(name, buffer, tensor)
        self._check_place(name, buffer, tensor, data)

    def _check_dtype(self, name: str, buffer: Buffer, tensor: str) -> None:
        t = DataType(buffer.dtype)
        wanted = int(t.type_code) | t.bits << 8 | t.lanes << 16
        got = self.field(tensor, self.layout.dtype, "i32")
        accepted = [self.equal("i32", got, str(wanted))]
        if t.is_bool:  # a bool tensor also comes as DLPack's own bool (code 6) or as 8 bits
            accepted += [self.equal("i32", got, str(6 | 8 << 8 | 1 << 16)), self.equal("i32", got, str(1 | 8 << 8 | 1 << 16))]
        self.check(self.either(accepted), f"{name}: expected dtype {buffer.dtype}, got a dtype with bits code + 256*bits + 65536*lanes = %lld",
                   self.b.op(f"zext i32 {got} to i64", got))

    def _check_place(self, name: str, buffer: Buffer, tensor: str, data: str) -> None:
        device = self.field(tensor, self.layout.device, "i32")
        self.check(self.equal("i32", device, "1"), f"{name}: expected a tensor on the host (device type 1), got device type %lld", self.wide(device, "i32"))
        align = item_bytes(buffer.dtype)
        if align > 1:
            address = self.b.op(f"ptrtoint ptr {data} to i64", data)
            low = self.b.op(f"and i64 {address}, {align - 1}", address)
            self.check(self.equal("i64", low, "0"), f"{name}: expected data aligned to {align} bytes, got an address %lld past that", low)

    # -- shapes

    def _element(self, array: str, position: int) -> str:
        place = self.b.op(f"getelementptr i64, ptr {array}, i64 {position}", array, cheap=True)
        return self.b.define(f"load i64, ptr {place}, align 8")

    def _bind_shape(self, i: int, buffer: Buffer) -> None:
        parts = self.tensors[i]
        for dim, extent in enumerate(buffer.shape):
            if isinstance(extent, tir.Var) and id(extent) not in self.bound:
                self._know(extent, self.em.ar.cast(self._element(parts["shape"], dim), "int64", extent.dtype))
        for dim, stride in enumerate(buffer.strides):
            if isinstance(stride, tir.Var) and id(stride) not in self.bound:
                self._know(stride, self.em.ar.cast(self._stride(i, buffer, dim), "int64", stride.dtype))
        if isinstance(buffer.elem_offset, tir.Var) and id(buffer.elem_offset) not in self.bound:
            size = item_bytes(buffer.dtype)
            self._know(buffer.elem_offset, self.b.op(f"sdiv i64 {parts['offset']}, {size}", parts["offset"]))

    def _stride(self, i: int, buffer: Buffer, dim: int) -> str:
        """The tensor's stride; when it has none, that of a compact tensor."""
        strides = self.tensors[i]["strides"]
        compact = "1"
        for d in range(dim + 1, len(buffer.shape)):
            extent = self._element(self.tensors[i]["shape"], d)
            compact = self.b.op(f"mul i64 {compact}, {extent}", compact, extent)
        missing = self.b.op(f"icmp eq ptr {strides}, null", strides)
        safe = self.b.op(f"select i1 {missing}, ptr {self.tensors[i]['shape']}, ptr {strides}", missing, strides)
        given = self._element(safe, dim) if buffer.shape else "1"
        return self.b.op(f"select i1 {missing}, i64 {compact}, i64 {given}", missing, compact, given)

    def _check_tensor(self, i: int, buffer: Buffer) -> None:
        name, parts = self._name(i, self.k.func.params[i], buffer), self.tensors[i]
        shape = ", ".join(str(e.value) if isinstance(e, IntImm) else getattr(e, "name", "?") for e in buffer.shape)
        got: list[str] = []
        for dim, extent in enumerate(buffer.shape):
            got.append(self._element(parts["shape"], dim))
            wanted = self._expected(extent)
            message = f"{name}: expected shape ({shape}), got %lld in dimension {dim}"
            self.check(self.equal("i64", got[dim], wanted) if got[dim] != wanted else "true", message, got[dim])
        for dim in range(len(buffer.shape)):
            self._check_stride(i, buffer, name, got, dim)

    def _expected(self, extent: Any) -> str:
        self.em.start_statement()
        value = self.em.evaluate(extent)
        return self.em.text(value) if extent.dtype == "int64" else self.wide(self.em.text(value), llvm_type(extent.dtype))

    def _check_stride(self, i: int, buffer: Buffer, name: str, shape: list[str], dim: int) -> None:
        """Strides must be those the kernel was compiled for; along dimensions of extent 1 or less they do not matter."""
        if buffer.strides:
            wanted = self._expected(buffer.strides[dim])
        else:
            wanted = "1"
            for extent in shape[dim + 1:]:
                wanted = self.b.op(f"mul i64 {wanted}, {extent}", wanted, extent)
        have = self._stride(i, buffer, dim)
        same = self.equal("i64", have, wanted) if have != wanted else "true"
        trivial = self.b.op(f"icmp slt i64 {shape[dim]}, 2", shape[dim])
        what = "a compact tensor" if not buffer.strides else f"stride {buffer.strides[dim]}"
        empty = self._is_empty(shape)
        fine = self.either([same, trivial, *empty]) if same != "true" else "true"
        self.check(fine, f"{name}: expected {what}, got stride %lld in dimension {dim}", have)

    def _is_empty(self, shape: list[str]) -> list[str]:
        return [self.equal("i64", extent, "0") for extent in shape]

    # -- the call

    def _call(self) -> None:
        k, b = self.k, self.b
        args = [*self.values, *((llvm_type(var.dtype), self.bound[id(var)]) for var, _ in k.implicit)]
        workspace = self._workspace()
        texts = [f"{kind} {value}" for kind, value in args] + [f"ptr {workspace}"]
        if k.usage.returns:
            texts.append("ptr %ret")
        status = b.define(f"call i32 @{k.symbol}__fast({', '.join(texts)})")
        if k.usage.returns:
            b.line(f"store i32 {k.return_kind}, ptr %ret_code, align 4")
        else:
            b.line("store i32 4, ptr %ret_code, align 4")
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
        self.check(b.op(f"icmp ne ptr {pointer}, null", pointer), "out of memory for the workspace of %lld bytes", size)
        return pointer


def emit_packed(kernel: KernelEmitter) -> None:
    """Adds the packed entry of ``kernel`` to its module."""
    PackedEntry(kernel).emit()
