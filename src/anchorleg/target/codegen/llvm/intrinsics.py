"""Intrinsic calls: one table from name to the function that emits it."""
from __future__ import annotations

from typing import TYPE_CHECKING, Any, Callable

from ....ir.expr import GlobalVar, IntImm
from ....ir.op import Op
from ....support.errors import UnsupportedOpError
from ....tir import expr as tir
from ....tir.buffer import BufferLoad
from ....tir.dtypes import info, with_lanes
from .calls import call_cpacked, call_packed, stack_array, stack_shape
from .dot import emit_dot, emit_pack
from .linear import Lin, VLin
from .math import FUNCTIONS, math_call
from .types import llvm_type, memory_scalar

if TYPE_CHECKING:
    from .expressions import Expressions

Emit = Callable[["Expressions", tir.Call, "list[str]"], Any]


def emit_call(em: Expressions, node: tir.Call) -> Any:
    """The value of a call whose arguments have been evaluated."""
    if isinstance(node.op, GlobalVar):
        return _call_global(em, node)
    name = node.op.name.removeprefix("tir.") if isinstance(node.op, Op) else str(node.op)
    lazy = _LAZY.get(name)
    if lazy is not None:
        return lazy(em, node)
    args = [em._operand_of(a) for a in node.args]
    if name in FUNCTIONS and info(node.dtype).is_float:
        if name == "pow":
            return _float_power(em, node, args)
        return math_call(em.ar, name, node.dtype, *args)
    emit = _TABLE.get(name)
    if emit is None:
        raise UnsupportedOpError(f"{em.module.name}: intrinsic tir.{name} has no spelling for the processor; it has: "
                                 f"{', '.join(sorted({*_TABLE, *_LAZY, *FUNCTIONS}))}")
    return emit(em, node, args)


# -- bits and tests


def _bitwise(name: str) -> Emit:
    return lambda em, node, args: em.ar.binary(name, node.dtype, *args)


def _index_bits(em: Expressions, node: tir.Call) -> Any:
    """Shifts and masks of indices by constants, in linear form: they stand for multiplication, division and remainder."""
    name = node.op.name.removeprefix("tir.")
    if node.dtype == "int64":
        a, b = em.lin(em._get(node.args[0])), em.lin(em._get(node.args[1]))
        if b.is_const and name == "bitwise_and" and b.const > 0 and b.const & (b.const + 1) == 0:
            return em._index_division("FloorMod", a, Lin(b.const + 1))
        if b.is_const and name != "bitwise_and" and 0 <= b.const < 63:
            return a.scaled(1 << b.const) if name == "shift_left" else em._index_division("FloorDiv", a, Lin(1 << b.const))
    emit = {"bitwise_and": _bitwise("bitwise_and"), "shift_left": _shift(True), "shift_right": _shift(False)}[name]
    return emit(em, node, [em._operand_of(a) for a in node.args])


def _not(em: Expressions, node: tir.Call, args: list[str]) -> str:
    ones = em.ar.const(1 if info(node.dtype).kind == "bool" else -1, node.dtype)
    return em.ar.op(f"xor {llvm_type(node.dtype)} {args[0]}, {ones}", args[0])


def _shift(left: bool) -> Emit:
    return lambda em, node, args: em.ar.shift(left, node.dtype, *args)


def _popcount(em: Expressions, node: tir.Call, args: list[str]) -> str:
    source = node.args[0].dtype
    counted = em.ar.intrinsic("ctpop", llvm_type(source), args[0])
    return em.ar.cast(counted, source, node.dtype)


def _clz(em: Expressions, node: tir.Call, args: list[str]) -> str:
    source = node.args[0].dtype
    counted = em.ar.intrinsic("ctlz", llvm_type(source), args[0], extra="i1 false")
    return em.ar.cast(counted, source.replace("uint", "int"), node.dtype)


def _reinterpret(em: Expressions, node: tir.Call, args: list[str]) -> str:
    source, target = llvm_type(node.args[0].dtype), llvm_type(node.dtype)
    if source == target:
        return args[0]
    if "ptr" in (source, target):
        return em.ar.cast(args[0], node.args[0].dtype, node.dtype)
    return em.ar.op(f"bitcast {source} {args[0]} to {target}", args[0])


def _classify(kind: str) -> Emit:
    def emit(em: Expressions, node: tir.Call, args: list[str]) -> str:
        source = node.args[0].dtype
        if not info(source).is_float:
            return em.ar.const(kind == "isfinite", node.dtype)

        def wide(dtype: str, x: str) -> str:
            t = llvm_type(dtype)
            if kind == "isnan":
                return em.ar.op(f"fcmp uno {t} {x}, {em.ar.const(0.0, dtype)}", x)
            size = em.ar.intrinsic("fabs", t, x)
            return em.ar.op(f"fcmp {'oeq' if kind == 'isinf' else 'olt'} {t} {size}, {em.ar.const(float('inf'), dtype)}", size)

        return em.ar.in_wide(wide, source, args[0], result="bool")

    return emit


def _isnullptr(em: Expressions, node: tir.Call, args: list[str]) -> str:
    return em.ar.op(f"icmp eq ptr {args[0]}, null", args[0])


def _likely(em: Expressions, node: tir.Call) -> Any:
    return em._get(node.args[0])


# -- numbers


def _float_power(em: Expressions, node: tir.Call, args: list[str]) -> str:
    """x**2 is a product; the rest is the general power."""
    exponent = node.args[1].value if isinstance(node.args[1], tir.Broadcast) else node.args[1]
    if isinstance(exponent, tir.FloatImm) and exponent.value == 2.0:
        return em.ar.binary("Mul", node.dtype, args[0], args[0])
    return math_call(em.ar, "pow", node.dtype, *args)


_INTEGER_POWER = """define internal {t} @al_pow_{t}({t} %base, {t} %exponent) #0 {{
entry:
  %none = icmp slt {t} %exponent, 1
  br i1 %none, label %out, label %loop
loop:
  %b = phi {t} [ %base, %entry ], [ %b2, %loop ]
  %e = phi {t} [ %exponent, %entry ], [ %e2, %loop ]
  %r = phi {t} [ 1, %entry ], [ %r2, %loop ]
  %low = and {t} %e, 1
  %odd = icmp ne {t} %low, 0
  %times = mul {t} %r, %b
  %r2 = select i1 %odd, {t} %times, {t} %r
  %b2 = mul {t} %b, %b
  %e2 = lshr {t} %e, 1
  %done = icmp eq {t} %e2, 0
  br i1 %done, label %out, label %loop
out:
  %result = phi {t} [ 1, %entry ], [ %r2, %loop ]
  ret {t} %result
}}"""


def _integer_power(em: Expressions, node: tir.Call, args: list[str]) -> str:
    scalar = llvm_type(info(node.dtype).scalar)
    if scalar == "i1":
        raise UnsupportedOpError(f"{em.module.name}: a power of bool is not defined")
    em.module.helper(f"al_pow_{scalar}", _INTEGER_POWER.format(t=scalar))
    call: Callable[..., str] = lambda x, y: em.ar.op(f"call {scalar} @al_pow_{scalar}({scalar} {x}, {scalar} {y})", x, y)
    return em.ar.per_lane(call, node.dtype, *((a, node.dtype) for a in args))


def _fma(em: Expressions, node: tir.Call, args: list[str]) -> str:
    if not info(node.dtype).is_float:
        return em.ar.binary("Add", node.dtype, em.ar.binary("Mul", node.dtype, args[0], args[1]), args[2])
    return em.ar.in_wide(lambda d, *a: em.ar.intrinsic("fma", llvm_type(d), *a), node.dtype, *args)


def _ldexp(em: Expressions, node: tir.Call, args: list[str]) -> str:
    exponent = node.args[1].dtype

    def wide(dtype: str, x: str) -> str:
        kind, symbol = llvm_type(info(dtype).scalar), "ldexp" if info(dtype).scalar == "float64" else "ldexpf"
        return em.ar.per_lane(lambda v, n: em.b.call(symbol, kind, [(kind, v), ("i32", n)]), dtype, (x, dtype), (args[1], exponent))

    return em.ar.in_wide(wide, node.dtype, args[0])


def _fixed_point(em: Expressions, node: tir.Call, args: list[str]) -> str:
    """(x · 2**max(s,0)) · y, then a rounding shift right by q - min(s,0), in 64 bits."""
    i64 = with_lanes("int64", info(node.dtype).lanes)
    x, y, q, s = (_widened(em, node, args, i) for i in range(4))
    zero = em.ar.const(0, i64)
    left, right = em.ar.binary("Max", i64, s, zero), em.ar.binary("Min", i64, s, zero)
    product = em.ar.binary("Mul", i64, em.ar.shift(True, i64, x, left), y)
    return em.ar.cast(_rounding_shift(em, i64, product, em.ar.binary("Sub", i64, q, right)), i64, node.dtype)


def _widened(em: Expressions, node: tir.Call, args: list[str], i: int) -> str:
    """Argument ``i`` as int64, with as many lanes as the call has."""
    have, lanes = info(node.args[i].dtype).lanes, info(node.dtype).lanes
    value = em.ar.cast(args[i], node.args[i].dtype, with_lanes("int64", have))
    return value if have == lanes else em.ar.splat(value, "int64", lanes)


def _rounding_shift(em: Expressions, i64: str, value: str, amount: str) -> str:
    one = em.ar.const(1, i64)
    half = em.ar.shift(True, i64, one, em.ar.binary("Sub", i64, amount, one))
    return em.ar.shift(False, i64, em.ar.binary("Add", i64, value, half), amount)


def _fixed_point_per_axis(em: Expressions, node: tir.Call, args: list[str]) -> str:
    lanes = info(node.dtype).lanes
    i64 = with_lanes("int64", lanes)
    x, y, left, right, q = (_widened(em, node, args, i) for i in range(5))
    flags = [a if info(n.dtype).lanes == lanes else em.ar.splat(a, "bool", lanes) for a, n in zip(args[5:7], node.args[5:7])]
    zero = em.ar.const(0, i64)
    shifted = em.ar.shift(True, i64, x, em.ar.select(flags[0], i64, left, zero, lanes))
    product = em.ar.binary("Mul", i64, shifted, y)
    amount = em.ar.binary("Add", i64, q, em.ar.select(flags[1], i64, right, zero, lanes))
    return em.ar.cast(_rounding_shift(em, i64, product, amount), i64, node.dtype)


def _dp4a(em: Expressions, node: tir.Call, args: list[str]) -> str:
    total = args[2]
    for i in range(4):
        lanes = [em.ar.cast(em.ar.lane(v, n.dtype, i), info(n.dtype).scalar, node.dtype) for v, n in zip(args[:2], node.args[:2])]
        total = em.ar.binary("Add", node.dtype, total, em.ar.binary("Mul", node.dtype, *lanes))
    return total


def _large_uint(em: Expressions, node: tir.Call) -> Any:
    low, high = (int(a) for a in node.args)
    return em.ar.const((high << 32) + low, node.dtype)


def _reduce(name: str) -> Emit:
    def emit(em: Expressions, node: tir.Call, args: list[str]) -> str:
        source = node.args[0].dtype
        values = [em.ar.lane(args[0], source, i) for i in range(info(source).lanes)]
        while len(values) > 1:
            pairs = [em.ar.binary(name, node.dtype, a, b) for a, b in zip(values[::2], values[1::2])]
            values = pairs + values[len(pairs) * 2:]
        return values[0]

    return emit


# -- parts of vectors


def _half(upper: bool) -> Emit:
    def emit(em: Expressions, node: tir.Call, args: list[str]) -> str:
        source, lanes = node.args[0].dtype, info(node.dtype).lanes
        start = lanes if upper else 0
        mask = ", ".join(f"i32 {start + i}" for i in range(lanes))
        kind = llvm_type(source)
        return em.ar.op(f"shufflevector {kind} {args[0]}, {kind} poison, <{lanes} x i32> <{mask}>", args[0])

    return emit


def _combine(em: Expressions, node: tir.Call, args: list[str]) -> str:
    lanes, kind = info(node.dtype).lanes, llvm_type(node.args[0].dtype)
    mask = ", ".join(f"i32 {i}" for i in range(lanes))
    return em.ar.op(f"shufflevector {kind} {args[0]}, {kind} {args[1]}, <{lanes} x i32> <{mask}>", *args)


# -- addresses


def _address_of(em: Expressions, node: tir.Call) -> str:
    load = node.args[0]
    if not isinstance(load, BufferLoad):
        return em._operand_of(load)
    index = em._buffer_index(load.buffer, load.indices, [em._index_value(i) for i in load.indices])
    base = index.base if isinstance(index, VLin) else em.lin(index)
    return em.b.address(em.pointer(load.buffer.data), memory_scalar(info(load.buffer.dtype)), base)


def _access_ptr(em: Expressions, node: tir.Call) -> str:
    element, data, offset = node.args[0].dtype, em._operand_of(node.args[1]), em.lin(em._get(node.args[2]))
    em.touch_all()
    return em.b.address(data, memory_scalar(info(element)), offset)


def _prefetch(em: Expressions, node: tir.Call, args: list[str]) -> str:
    """(address, 1 for writing, locality 0–3, 1 for data)"""
    numbers = [int(a) for a in node.args[1:4] if isinstance(a, IntImm)]
    write, locality, cache = [*numbers, *(0, 3, 1)[len(numbers):]]
    em.b.declare("llvm.prefetch.p0", "void @llvm.prefetch.p0(ptr, i32, i32, i32)")
    em.b.line(f"call void @llvm.prefetch.p0(ptr {args[0]}, i32 {write}, i32 {locality}, i32 {cache})")
    return "0"


def _fence(em: Expressions, node: tir.Call, args: list[str]) -> str:
    """No instruction: keeps LLVM from merging loads on both sides, which would hold them in registers for long."""
    em.b.line('fence syncscope("singlethread") acq_rel')
    em.touch_all()
    return "0"


# -- calls of other functions


def _call_c(pure: bool) -> Callable[[Any, tir.Call], Any]:
    def emit(em: Expressions, node: tir.Call) -> Any:
        name, args = _name_of(node), list(node.args[1:])
        values = [em._operand_of(a) for a in args]
        if pure and info(node.dtype).lanes > 1:
            scalar = info(node.dtype).scalar
            kinds = [llvm_type(info(a.dtype).scalar) for a in args]
            call: Callable[..., str] = lambda *row: em.b.call(name, llvm_type(scalar), list(zip(kinds, row)))
            return em.ar.per_lane(call, node.dtype, *((v, a.dtype) for v, a in zip(values, args)))
        if not pure:
            em.touch_all()
        result = em.b.call(name, llvm_type(node.dtype) if node.dtype != "void" else "void", [(llvm_type(a.dtype), v) for a, v in zip(args, values)], pure)
        return result or "0"

    return emit


def _name_of(node: tir.Call) -> str:
    if not isinstance(node.args[0], tir.StringImm):
        raise UnsupportedOpError(f"a call needs the function's name as its first argument, got {type(node.args[0]).__name__}")
    return node.args[0].value


def _call_llvm(pure: bool) -> Callable[[Any, tir.Call], Any]:
    def emit(em: Expressions, node: tir.Call) -> Any:
        name, args = _name_of(node), list(node.args[1:])
        if args and isinstance(args[0], IntImm) and args[0].dtype == "uint32" and args[0].value <= len(args) - 1:
            args = args[1:]  # the number of overloaded arguments, which the text form does not need
        values = [em._operand_of(a) for a in args]
        kinds = [llvm_type(a.dtype) for a in args]
        full = _mangled(name, llvm_type(node.dtype), kinds)
        if not pure:
            em.touch_all()
        return em.b.call(full, "void" if full.startswith("llvm.prefetch") else llvm_type(node.dtype), list(zip(kinds, values)), pure) or "0"

    return emit


_OVERLOADED_BY_FIRST = ("llvm.vector.reduce.", "llvm.prefetch")


def _mangled(name: str, result: str, kinds: list[str]) -> str:
    """The name with the types it is overloaded on; target intrinsics and full names stay as they are."""
    from .arith import intrinsic_suffix

    parts = name.split(".")
    if len(parts) > 1 and parts[1] in ("x86", "aarch64", "arm", "riscv", "nvvm", "amdgcn", "wasm") or _has_suffix(parts[-1]):
        return name
    by_first = name.startswith(_OVERLOADED_BY_FIRST)
    return f"{name}.{intrinsic_suffix(kinds[0] if by_first else result)}"


def _has_suffix(word: str) -> bool:
    return word.lstrip("v").lstrip("0123456789").lstrip("ifp").isdigit() and word[:1] in "vifp"


def _call_global(em: Expressions, node: tir.Call) -> Any:
    em.touch_all()
    args = [(llvm_type(a.dtype), em._operand_of(a)) for a in node.args]
    return em.b.call(node.op.name_hint, llvm_type(node.dtype), args, pure=False)


def _ret(em: Expressions, node: tir.Call, args: list[str]) -> str:
    em.return_value(args[0], node.args[0].dtype)
    return "0"


def _zero(em: Expressions, node: tir.Call) -> str:
    return "0"


_LAZY: dict[str, Callable[[Any, tir.Call], Any]] = {
    "likely": _likely, "bitwise_and": _index_bits, "shift_left": _index_bits, "shift_right": _index_bits, "large_uint_imm": _large_uint, "address_of": _address_of, "tvm_access_ptr": _access_ptr, "assume": _zero,
    "tvm_tuple": _zero, "start_profile_intrinsic": _zero, "end_profile_intrinsic": _zero, "tvm_static_handle": lambda em, node: "null",
    "undef": lambda em, node: "undef", "type_annotation": _zero, "call_extern": _call_c(False), "call_pure_extern": _call_c(True),
    "tvm_call_packed": call_packed, "tvm_call_cpacked": call_cpacked, "tvm_call_packed_lowered": call_packed,
    "tvm_call_cpacked_lowered": call_cpacked, "pack4x8": emit_pack, "call_llvm_intrin": _call_llvm(False), "call_llvm_pure_intrin": _call_llvm(True),
}
_TABLE: dict[str, Emit] = {
    "bitwise_or": _bitwise("bitwise_or"), "bitwise_xor": _bitwise("bitwise_xor"), "bitwise_not": _not,
    "popcount": _popcount, "clz": _clz, "reinterpret": _reinterpret,
    "isnan": _classify("isnan"), "isinf": _classify("isinf"), "isfinite": _classify("isfinite"), "isnullptr": _isnullptr,
    "pow": _integer_power, "fma": _fma, "ldexp": _ldexp, "q_multiply_shift": _fixed_point, "q_multiply_shift_per_axis": _fixed_point_per_axis,
    "dp4a": _dp4a, "dot4_u8s8": emit_dot(False), "dot4_s8s8": emit_dot(True), "vector_reduce_add": _reduce("Add"), "vector_reduce_max": _reduce("Max"), "vector_reduce_min": _reduce("Min"),
    "vectorlow": _half(False), "vectorhigh": _half(True), "vectorcombine": _combine, "prefetch": _prefetch, "tvm_storage_sync": _fence,
    "ret": _ret, "tvm_stack_make_shape": stack_shape, "tvm_stack_make_array": stack_array,
}
SUPPORTED = frozenset(_TABLE) | frozenset(_LAZY) | FUNCTIONS | {"if_then_else"}
