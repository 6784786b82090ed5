"""Intrinsic calls in C: one table from name to the function that writes it."""
from __future__ import annotations

from typing import TYPE_CHECKING, Any, Callable

from ....ir.expr import GlobalVar, IntImm
from ....ir.op import Op
from ....support.errors import UnsupportedOpError
from ....tir import expr as tir
from ....tir.buffer import BufferLoad
from ....tir.dtypes import info, scalar_of
from .helpers import short
from .types import NARROW_FLOATS, computed_dtype, value_type
from .values import PRIMARY, UNARY, Value, cast_text, integer

if TYPE_CHECKING:
    from .expressions import Expressions

Emit = Callable[["Expressions", tir.Call, "list[Value]"], Value]
_MATH = {n: n for n in "exp exp2 log log2 log10 log1p tan cos cosh acos acosh sin sinh asin asinh atan atanh tanh erf sqrt floor ceil trunc fabs "
                       "round atan2 hypot nextafter copysign fmod pow".split()} | {"nearbyint": "nearbyint", "rint": "rint"}
_EXTERN_MATH = {f"{n}{end}": n for n in _MATH for end in ("", "f")}


def emit_call(em: Expressions, node: tir.Call) -> Any:
    """The value of a call (a generator, as the expression methods are)."""
    if isinstance(node.op, GlobalVar):
        return _function(em, node, node.op.name_hint, node.args)
    name = node.op.name.removeprefix("tir.") if isinstance(node.op, Op) else str(node.op)
    if name == "if_then_else":
        return em.conditional(node)
    if name in ("likely", "assume"):
        return em.value(node.args[0])
    if name in ("call_extern", "call_pure_extern"):
        return _extern(em, node)
    if name == "address_of":
        return _address(em, node)
    if name == "shift_right":
        return _wide_shift(em, node)
    return _plain(em, node, name)


def _plain(em: Expressions, node: tir.Call, name: str) -> Any:
    args = []
    for arg in node.args:
        args.append((yield em.value(arg)))
    dtype = scalar_of(node.dtype)
    if name in _MATH and info(dtype).is_float:
        return em.rounded(em.math(_MATH[name], computed_dtype(dtype), *args), dtype)
    emit = _TABLE.get(name)
    if emit is None:
        raise UnsupportedOpError(f"{em.symbol}: intrinsic tir.{name} has no C form; there are: {', '.join(sorted({*_TABLE, *_MATH}))}")
    return emit(em, node, args)


def _function(em: Expressions, node: tir.Call, name: str, arguments: Any) -> Any:
    args = []
    for arg in arguments:
        args.append((yield em.value(arg)))
    result = "void" if node.dtype == "void" else value_type(node.dtype)
    kinds = ", ".join("void*" if a.dtype == "handle" else value_type(a.dtype) for a in arguments) or "void"
    if any(isinstance(a, tir.StringImm) for a in arguments):
        kinds = ", ".join("const char*" if isinstance(a, tir.StringImm) else k for a, k in zip(arguments, kinds.split(", ")))
    em.externs[name] = f"{result} {name}({kinds});"
    texts = [a.text if n.dtype == "handle" else cast_text(a, computed_dtype(n.dtype)).text for a, n in zip(args, arguments)]
    return Value(f"{name}({', '.join(texts)})", PRIMARY, scalar_of(node.dtype) if node.dtype != "void" else "void")


def _extern(em: Expressions, node: tir.Call) -> Any:
    first = node.args[0]
    if not isinstance(first, tir.StringImm):
        raise UnsupportedOpError(f"{em.symbol}: a call needs the function's name as its first argument, got {type(first).__name__}")
    known = _EXTERN_MATH.get(first.value)
    if known is None or not info(node.dtype).is_float:
        return (yield _function(em, node, first.value, node.args[1:]))
    args = []
    for arg in node.args[1:]:
        args.append((yield em.value(arg)))
    return em.math(known, computed_dtype(node.dtype), *args)


def _address(em: Expressions, node: tir.Call) -> Any:
    load = node.args[0]
    if not isinstance(load, BufferLoad):
        return (yield em.value(load))
    indices = []
    for index in load.indices:
        indices.append((yield em.value(index)))
    em.pointer(load.buffer.data).written = True
    return Value(em.address(load.buffer, indices), UNARY, "handle")


def _bits(symbol: str) -> Emit:
    def emit(em: Expressions, node: tir.Call, args: list[Value]) -> Value:
        dtype = scalar_of(node.dtype)
        if dtype == "bool":
            return Value(f"{args[0].at(UNARY)} {symbol} {args[1].at(UNARY)}", 6, "bool", 0, 1)
        a, b = args
        low = high = None
        if symbol == "&" and (a.bounds(dtype)[0] >= 0 or b.bounds(dtype)[0] >= 0):
            low, high = 0, min(v.bounds(dtype)[1] for v in args if v.bounds(dtype)[0] >= 0)
        a, b, ctype = em._common(dtype, a, b)
        return Value(f"{a.at(UNARY)} {symbol} {b.at(UNARY)}", 6, ctype, low, high)

    return emit


def _invert(em: Expressions, node: tir.Call, args: list[Value]) -> Value:
    dtype = scalar_of(node.dtype)
    if dtype == "bool":
        return Value(f"!{args[0].at(PRIMARY)}", UNARY, "bool", 0, 1)
    operand = cast_text(args[0], dtype)
    return cast_text(Value(f"~{operand.at(UNARY)}", UNARY, "int32" if info(dtype).bits < 32 else dtype), dtype)


def _wide_shift(em: Expressions, node: tir.Call) -> Any:
    """A shift to the right; the helper takes care of amounts out of range, as a program in doubt has written it: ``0 <= n < 32 ? n : 31``."""
    amount, bits = node.args[1], info(scalar_of(node.dtype)).bits
    if info(scalar_of(node.dtype)).kind == "int" and isinstance(amount, tir.Select) and _is_number(amount.false_value, bits - 1):
        if _asks_for_range(amount.condition, amount.true_value, bits):
            node = tir.Call(node.dtype, node.op, [node.args[0], amount.true_value])
    return _plain(em, node, "shift_right")


def _asks_for_range(condition: Any, x: Any, bits: int) -> bool:
    """Whether a condition is ``0 <= x and x < bits``."""
    if not isinstance(condition, tir.And):
        return False
    a, b = condition.a, condition.b
    low = isinstance(a, tir.GE) and a.a is x and _is_number(a.b, 0) or isinstance(a, tir.LE) and a.b is x and _is_number(a.a, 0)
    return low and isinstance(b, tir.LT) and b.a is x and _is_number(b.b, bits)


def _is_number(x: Any, value: int) -> bool:
    return isinstance(x, IntImm) and x.value == value


def _shift(left: bool) -> Emit:
    def emit(em: Expressions, node: tir.Call, args: list[Value]) -> Value:
        dtype = scalar_of(node.dtype)
        amount, count = args[1].constant, args[0].bounds(dtype)
        if amount is not None and 0 <= amount < info(dtype).bits:
            if left:
                return em.arithmetic("Mul", dtype, args[0], integer(1 << amount, "int64" if amount > 30 else dtype))
            value = args[0] if args[0].is_int else cast_text(args[0], dtype)
            return Value(f"{value.at(UNARY)} >> {amount}", 11, "int32" if value.is_int else dtype, count[0] >> amount, count[1] >> amount)
        helper = em.helper(f"al_{'shl' if left else 'shr'}_{short(dtype)}")
        return Value(f"{helper}({cast_text(args[0], dtype).text}, {cast_text(args[1], 'uint32').text})", PRIMARY, dtype)

    return emit


def _count(what: str) -> Emit:
    def emit(em: Expressions, node: tir.Call, args: list[Value]) -> Value:
        t = info(scalar_of(node.args[0].dtype))
        wide = "uint64" if t.bits == 64 else "uint32"
        exact = cast_text(args[0], f"uint{t.bits}") if t.bits < 32 else args[0]
        call = Value(f"{em.helper(f'al_{what}_{short(wide)}')}({cast_text(exact, wide).text})", PRIMARY, "int32", 0, 64)
        return em.arithmetic("Sub", "int64", call, integer(32 - t.bits, "int64")) if what == "clz" and t.bits < 32 else call

    return emit


def _reinterpret(em: Expressions, node: tir.Call, args: list[Value]) -> Value:
    source, target = scalar_of(node.args[0].dtype), scalar_of(node.dtype)
    s, t = info(source), info(target)
    if s.is_integer and t.is_integer:
        return cast_text(args[0]._replace(low=None, high=None), target)
    if source in NARROW_FLOATS or target in NARROW_FLOATS:
        if target in NARROW_FLOATS:
            return Value(f"{em.helper(f'al_{NARROW_FLOATS[target][1]}_to_f32')}({cast_text(args[0], 'uint16').text})", PRIMARY, "float32")
        bits = Value(f"{em.helper(f'al_f32_to_{NARROW_FLOATS[source][1]}')}({args[0].text})", PRIMARY, "uint16", 0, 65535)
        return cast_text(bits, target)
    integer_side = f"uint{t.bits}"
    if s.is_float:
        value = Value(f"{em.helper(f'al_bits_{short(source)}_{short(integer_side)}')}({args[0].text})", PRIMARY, integer_side)
        return cast_text(value, target)
    return Value(f"{em.helper(f'al_bits_{short(integer_side)}_{short(target)}')}({cast_text(args[0], integer_side).text})", PRIMARY, target)


def _classify(kind: str) -> Emit:
    def emit(em: Expressions, node: tir.Call, args: list[Value]) -> Value:
        if not info(node.args[0].dtype).is_float:
            return integer(int(kind == "isfinite"), "bool")
        em.uses_math = True
        return Value(f"{kind}({args[0].text}) != 0", 9, "bool", 0, 1)

    return emit


def _rsqrt(em: Expressions, node: tir.Call, args: list[Value]) -> Value:
    dtype, wide = scalar_of(node.dtype), computed_dtype(node.dtype)
    root = em.math("sqrt", wide, args[0])
    return em.rounded(em.arithmetic("Div", wide, em.float_constant(1.0, wide), root), dtype)


def _sigmoid(em: Expressions, node: tir.Call, args: list[Value]) -> Value:
    wide = computed_dtype(node.dtype)
    return em.rounded(Value(f"{em.helper(f'al_sigmoid_{short(wide)}')}({args[0].text})", PRIMARY, wide), scalar_of(node.dtype))


def _exp10(em: Expressions, node: tir.Call, args: list[Value]) -> Value:
    wide = computed_dtype(node.dtype)
    return em.rounded(em.math("pow", wide, em.float_constant(10.0, wide), args[0]), scalar_of(node.dtype))


def _abs(em: Expressions, node: tir.Call, args: list[Value]) -> Value:
    dtype = scalar_of(node.dtype)
    if info(dtype).kind == "uint":
        return args[0]
    return em.arithmetic("Max", dtype, args[0], em.arithmetic("Sub", dtype, integer(0, dtype), args[0]))


def _power(em: Expressions, node: tir.Call, args: list[Value]) -> Value:
    dtype = scalar_of(node.dtype)
    return Value(f"{em.helper(f'al_pow_{short(dtype)}')}({', '.join(cast_text(a, dtype).text for a in args)})", PRIMARY, dtype)


def _fma(em: Expressions, node: tir.Call, args: list[Value]) -> Value:
    dtype = scalar_of(node.dtype)
    if info(dtype).is_float:
        return em.rounded(em.math("fma", computed_dtype(dtype), *args), dtype)
    return em.arithmetic("Add", dtype, em.arithmetic("Mul", dtype, args[0], args[1]), args[2])


def _ldexp(em: Expressions, node: tir.Call, args: list[Value]) -> Value:
    dtype = scalar_of(node.dtype)
    return em.rounded(em.math("ldexp", computed_dtype(dtype), args[0], cast_text(args[1], "int32")), dtype)


def _as_int(value: Value) -> str:
    return value.text if value.is_int else cast_text(value, "int32").text


def _fixed_point(name: str) -> Emit:
    return lambda em, node, args: Value(f"{em.helper(f'al_{name}')}({', '.join(map(_as_int, args))})", PRIMARY, "int32")


def _large_uint(em: Expressions, node: tir.Call, args: list[Value]) -> Value:
    low, high = (int(a) for a in node.args if isinstance(a, IntImm))
    return integer((high << 32) + low, node.dtype)


def _nothing(em: Expressions, node: tir.Call, args: list[Value]) -> Value:
    return integer(0, "int32")


_TABLE: dict[str, Emit] = {
    "bitwise_and": _bits("&"), "bitwise_or": _bits("|"), "bitwise_xor": _bits("^"), "bitwise_not": _invert, "shift_left": _shift(True),
    "shift_right": _shift(False), "popcount": _count("popcount"), "clz": _count("clz"), "reinterpret": _reinterpret, "isnan": _classify("isnan"),
    "isinf": _classify("isinf"), "isfinite": _classify("isfinite"), "rsqrt": _rsqrt, "sigmoid": _sigmoid, "exp10": _exp10, "fabs": _abs, "abs": _abs,
    "pow": _power, "fma": _fma, "ldexp": _ldexp, "q_multiply_shift": _fixed_point("q_multiply_shift"),
    "q_multiply_shift_per_axis": _fixed_point("q_multiply_shift_per_axis"), "large_uint_imm": _large_uint, "prefetch": _nothing,
    "tvm_storage_sync": _nothing, "undef": _nothing, "type_annotation": _nothing,
}
