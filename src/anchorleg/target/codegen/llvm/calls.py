"""Calls of packed functions: registered ones by name (through the runtime), others by symbol."""
from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ....ir.expr import IntImm
from ....runtime.dtype import DataType
from ....support.errors import UnsupportedOpError
from ....tir import expr as tir
from ....tir.dtypes import info
from .types import item_bytes, llvm_type

if TYPE_CHECKING:
    from .expressions import Expressions

_TENSOR_BYTES = 48


def stack_shape(em: Expressions, node: tir.Call, args: list[str]) -> str:
    """An array of the arguments as 64-bit integers."""
    array = em.b.alloca(f"[{max(1, len(args))} x i64]", 8)
    for i, (value, arg) in enumerate(zip(args, node.args)):
        _store(em, array, 8 * i, "i64", em.ar.cast(value, arg.dtype, "int64"))
    return array


def stack_array(em: Expressions, node: tir.Call, args: list[str]) -> str:
    """A DLTensor of (data, shape, strides or 0, rank, a value of its dtype, element offset)."""
    if em.module.cpu.pointer_bytes != 8:
        raise UnsupportedOpError(f"{em.module.name}: calls with tensors need a 64-bit processor")
    dtype = node.args[4].dtype
    t = DataType(dtype)
    tensor = em.b.alloca(f"[{_TENSOR_BYTES} x i8]", 8)
    offset = em.ar.binary("Mul", "int64", em.ar.cast(args[5], node.args[5].dtype, "int64"), str(item_bytes(dtype)))
    strides = "null" if isinstance(node.args[2], IntImm) else args[2]
    word = int(t.type_code) | t.bits << 8 | t.lanes << 16
    fields = [(0, "ptr", args[0]), (8, "i32", "1"), (12, "i32", "0"), (16, "i32", em.ar.cast(args[3], node.args[3].dtype, "int32")),
              (20, "i32", str(word)), (24, "ptr", args[1]), (32, "ptr", strides), (40, "i64", offset)]
    for place, kind, value in fields:
        _store(em, tensor, place, kind, value)
    return tensor


def _store(em: Expressions, base: str, offset: int, kind: str, value: str) -> None:
    place = em.b.op(f"getelementptr i8, ptr {base}, i64 {offset}", base, cheap=True)
    em.b.line(f"store {kind} {value}, ptr {place}, align 4")


def _type_code(arg: tir.PrimExpr) -> int:
    if isinstance(arg, tir.StringImm):
        return 11
    if isinstance(arg, tir.Call) and getattr(arg.op, "name", "") == "tir.tvm_stack_make_array":
        return 7
    t = info(arg.dtype)
    return 2 if t.is_float else 3 if t.kind == "handle" else 0


def call_packed(em: Expressions, node: tir.Call) -> Any:
    """A call of the registered function that the first argument names."""
    return _call(em, node, by_name=True)


def call_cpacked(em: Expressions, node: tir.Call) -> Any:
    """A call of the packed function whose symbol the first argument names."""
    return _call(em, node, by_name=False)


def _call(em: Expressions, node: tir.Call, by_name: bool) -> Any:
    if not isinstance(node.args[0], tir.StringImm):
        raise UnsupportedOpError(f"{em.module.name}: a packed call needs the function's name as its first argument")
    name, args = node.args[0].value, list(node.args[1:])
    values, codes = em.b.alloca(f"[{max(1, len(args))} x i64]", 8), em.b.alloca(f"[{max(1, len(args))} x i32]", 8)
    for i, arg in enumerate(args):
        code = _type_code(arg)
        wide = {0: "int64", 2: "float64"}.get(code)
        value = em._operand_of(arg)
        _store(em, values, 8 * i, llvm_type(wide) if wide else "ptr", em.ar.cast(value, arg.dtype, wide) if wide else value)
        _store(em, codes, 4 * i, "i32", str(code))
    ret, ret_code = em.b.alloca("i64", 8), em.b.alloca("i32", 8)
    em.touch_all()
    tail = f"ptr {values}, ptr {codes}, i32 {len(args)}, ptr {ret}, ptr {ret_code}"
    if by_name:
        em.b.declare("al_call_packed", "i32 @al_call_packed(ptr, ptr, ptr, i32, ptr, ptr)")
        status = em.b.define(f"call i32 @al_call_packed(ptr {em.module.string(name)}, {tail})")
    else:
        em.b.declare(name, f"i32 @{name}(ptr, ptr, i32, ptr, ptr, ptr)")
        status = em.b.define(f"call i32 @{name}({tail}, ptr null)")
    _leave_on_failure(em, status)
    return _result(em, node.dtype, ret)


def _leave_on_failure(em: Expressions, status: str) -> None:
    good, bad = em.b.new_block("ok"), em.b.new_block("bad")
    fine = em.b.op(f"icmp eq i32 {status}, 0", status)
    em.b.line(f"br i1 {fine}, label %{good.label}, label %{bad.label}")
    bad.lines.append(f"  ret i32 {status}")
    em.b.continue_in(good)


def _result(em: Expressions, dtype: str, ret: str) -> str:
    t = info(dtype)
    wide = "float64" if t.is_float else "handle" if t.kind == "handle" else "int64"
    value = em.b.define(f"load {llvm_type(wide)}, ptr {ret}, align 8")
    return em.ar.cast(value, wide, dtype) if dtype != "void" else "0"
