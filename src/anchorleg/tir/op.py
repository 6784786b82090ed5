"""Arithmetic and intrinsics on expressions: what user code and the compiler build trees with.

Importing this module installs the Python operators on ``PrimExpr`` (and on ``IterVar``, which stands for its variable):
``a + b``, ``a // b`` (floor), ``a % b`` (floor), ``a / b`` (floats only), comparisons, ``& | ^ ~ << >>``, unary minus.
Either side may be a Python number.

Types are matched as follows: equal types stay; two integers or two floats widen to the larger; an integer meets a float
as that float; signed meets unsigned of one width as signed.  A Python int takes the type of the other side (int32 at least,
so that ``x_uint8 + 300`` is what it says); a Python float takes the other side's float type, or float32.
"""
from __future__ import annotations

import builtins
import math
from typing import Any, Callable, Sequence

from ..ir.expr import INDEX_DTYPE, FloatImm, IntImm, PrimExpr
from ..ir.op import Op
from ..support.errors import ArgumentError, TypeMismatchError
from . import build, intrin
from . import expr as tir
from .dtypes import float_max, info, int_range, is_bool, is_float, is_integer, lanes_of, round_float, scalar_of, with_lanes, wrap

_Operand = Any  # PrimExpr, IterVar, a Python or numpy number, or anything with asobject()


# ---------------------------------------------------------------- constants and conversion


def const(value: Any, dtype: str | None = None, span: Any = None) -> PrimExpr:
    """A constant: of ``dtype``, or int32 (int64 when it does not fit), float32 (float64), bool by the Python type of ``value``.

    An integer that does not fit wraps to the dtype's width; ``tir.const`` refuses it.
    """
    if isinstance(value, PrimExpr):
        return value if dtype is None else build.cast(str(dtype), value)
    if dtype is None:
        dtype = _natural_dtype(value)
    return build.make_const(_plain(value), str(dtype))


def checked_const(value: Any, dtype: str | None = None, span: Any = None) -> PrimExpr:
    """A constant: of ``dtype``, or int32 (int64 when it does not fit), float32 (float64), bool by the Python type of ``value``.

    ArgumentError for a finite number beyond the range of ``dtype``.
    """
    if dtype is not None and not isinstance(value, PrimExpr):
        _check_range(_plain(value), str(dtype))
    return const(value, dtype)


def _check_range(value: Any, dtype: str) -> None:
    t = info(dtype)
    if t.kind in ("int", "uint"):
        low, high = int_range(t.scalar)
    elif t.kind == "float" and t.bits < 64 and math.isfinite(value):
        low, high = -float_max(t.scalar), float_max(t.scalar)
    else:
        return
    if not low <= value <= high:
        raise ArgumentError(f"a constant of dtype {dtype} is expected between {low} and {high}, got {value}")


def _natural_dtype(value: Any) -> str:
    own = getattr(value, "dtype", None)
    if own is not None:
        from ..runtime.dtype import dtype_name

        return dtype_name(own)
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, int):
        return "int32" if -(1 << 31) <= value < 1 << 31 else "int64"
    if isinstance(value, float):
        return "float32" if not math.isfinite(value) or builtins.abs(value) <= float_max("float32") else "float64"
    raise ArgumentError(f"expected a number for a constant, got {type(value).__name__} {value!r}")


def _plain(value: Any) -> Any:
    return value.item() if hasattr(value, "item") else value


def convert(value: Any, span: Any = None) -> Any:
    """An IR value from a Python one: numbers become constants (ints: indices), strings StringImm, sequences tuples."""
    if isinstance(value, PrimExpr):
        return value
    if isinstance(value, tir.IterVar):
        return value.var
    if isinstance(value, bool):
        return IntImm("bool", value)
    if isinstance(value, int):
        return build.make_const(value, INDEX_DTYPE)
    if isinstance(value, str):
        return tir.StringImm(value)
    if isinstance(value, (list, tuple)):
        return tuple(convert(v) for v in value)
    if hasattr(value, "asobject"):
        return value.asobject()
    return const(value) if isinstance(value, float) or hasattr(value, "item") else value


def _expr(value: Any) -> PrimExpr:
    result = convert(value)
    if not isinstance(result, PrimExpr):
        raise TypeMismatchError(f"expected an expression or a number, got {type(value).__name__} {value!r}")
    return result


def _number_beside(value: Any, dtype: str) -> PrimExpr:
    """The constant for a Python number that meets an operand of ``dtype``."""
    t = info(dtype)
    if t.is_float:
        return build.make_const(value, t.scalar)
    if isinstance(value, float):
        return FloatImm("float32", value)
    if t.kind == "bool":
        return IntImm("bool" if isinstance(value, bool) else "int32", int(value))
    if t.bits >= 32 and t.kind != "handle" and wrap(int(value), t.scalar) == int(value):
        return IntImm(t.scalar, int(value))
    return IntImm("int32" if wrap(int(value), "int32") == int(value) and t.bits <= 32 else "int64", int(value))


def _coerce(value: Any) -> Any:
    """An operand in one of the forms expression or Python number; None when it is neither."""
    if isinstance(value, (PrimExpr, int, float)):
        return value
    if isinstance(value, tir.IterVar):
        return value.var
    if hasattr(value, "asobject"):
        return value.asobject()
    if hasattr(value, "item") and getattr(value, "ndim", 1) == 0:
        return value.item()
    return None


def match_types(a: _Operand, b: _Operand) -> tuple[PrimExpr, PrimExpr]:
    """Both operands as expressions of one dtype; TypeMismatchError when they cannot meet."""
    x, y = _coerce(a), _coerce(b)
    if x is None or y is None:
        bad = a if x is None else b
        raise TypeMismatchError(f"expected an expression or a number, got {type(bad).__name__} {bad!r}")
    if not isinstance(x, PrimExpr):
        x = _number_beside(x, y.dtype) if isinstance(y, PrimExpr) else _expr(x)
    if not isinstance(y, PrimExpr):
        y = _number_beside(y, x.dtype)
    if x.dtype == y.dtype:
        return x, y
    dtype = common_dtype(x.dtype, y.dtype)
    return build.cast(dtype, x), build.cast(dtype, y)


def common_dtype(a: str, b: str) -> str:
    """The dtype in which operands of dtypes ``a`` and ``b`` meet."""
    ta, tb = info(a), info(b)
    if ta.lanes != tb.lanes and 1 not in (ta.lanes, tb.lanes) or (ta.kind == "handle") != (tb.kind == "handle"):
        raise TypeMismatchError(f"operands of dtype {a} and {b} cannot be combined")
    scalar = ta.scalar if ta.scalar == tb.scalar else _common_scalar(ta, tb)
    return with_lanes(scalar, builtins.max(ta.lanes, tb.lanes))


def _common_scalar(ta: Any, tb: Any) -> str:
    if ta.is_float != tb.is_float:
        return ta.scalar if ta.is_float else tb.scalar
    if ta.bits != tb.bits:
        return ta.scalar if ta.bits > tb.bits else tb.scalar
    return "float32" if ta.is_float else f"int{ta.bits}"


# ---------------------------------------------------------------- arithmetic


def _binary(builder: build.Builder, name: str) -> Callable[..., PrimExpr]:
    def fn(a: _Operand, b: _Operand, span: Any = None) -> PrimExpr:
        a, b = match_types(a, b)
        return builder(a, b)

    fn.__name__ = fn.__qualname__ = name
    fn.__doc__ = builder.__doc__
    return fn


def _integer_binary(int_builder: build.Builder, float_builder: build.Builder | None, name: str) -> Callable[..., PrimExpr]:
    def fn(a: _Operand, b: _Operand, span: Any = None) -> PrimExpr:
        a, b = match_types(a, b)
        if is_float(a.dtype):
            if float_builder is None:
                raise TypeMismatchError(f"{name} expects integer operands, got {a.dtype}")
            return float_builder(a, b)
        return int_builder(a, b)

    fn.__name__ = fn.__qualname__ = name
    fn.__doc__ = int_builder.__doc__
    return fn


def _float_floordiv(a: PrimExpr, b: PrimExpr) -> PrimExpr:
    return floor(build.float_div(a, b))


def _float_floormod(a: PrimExpr, b: PrimExpr) -> PrimExpr:
    return build.sub(a, build.mul(_float_floordiv(a, b), b))


add = _binary(build.add, "add")
subtract = _binary(build.sub, "subtract")
multiply = _binary(build.mul, "multiply")
floordiv = _integer_binary(build.floor_div, _float_floordiv, "floordiv")
floormod = _integer_binary(build.floor_mod, _float_floormod, "floormod")
truncdiv = _integer_binary(build.trunc_div, None, "truncdiv")
truncmod = _integer_binary(build.trunc_mod, None, "truncmod")
indexdiv = _integer_binary(build.floor_div, None, "indexdiv")
indexmod = _integer_binary(build.floor_mod, None, "indexmod")
div = _integer_binary(build.trunc_div, build.float_div, "div")
minimum = _binary(build.minimum, "minimum")
maximum = _binary(build.maximum, "maximum")
equal = _binary(build.equal, "equal")
not_equal = _binary(build.not_equal, "not_equal")
less = _binary(build.less, "less")
less_equal = _binary(build.less_equal, "less_equal")
greater = _binary(build.greater, "greater")
greater_equal = _binary(build.greater_equal, "greater_equal")


def divide(a: _Operand, b: _Operand) -> PrimExpr:
    """a / b of floats; TypeMismatchError for two integers, whose rounding must be said."""
    a, b = match_types(a, b)
    if not is_float(a.dtype):
        raise TypeMismatchError(f"'/' on integers ({a.dtype}) does not say how to round: use truncdiv (as in C), floordiv or '//'")
    return build.float_div(a, b)


def ceildiv(lhs: _Operand, rhs: _Operand, span: Any = None) -> PrimExpr:
    """The quotient of integers rounded up (``rhs`` positive)."""
    a, b = match_types(lhs, rhs)
    return build.floor_div(build.add(a, build.sub(b, build.make_const(1, b.dtype))), b)


def negative(x: _Operand) -> PrimExpr:
    """-x; of a float, the sign flipped (also of zero)."""
    x = _expr(x)
    if is_float(x.dtype):
        return build.mul(x, build.make_const(-1.0, x.dtype))
    return build.sub(build.zero_of(x), x)


def cast(value: _Operand, dtype: str) -> PrimExpr:
    """``value`` converted to ``dtype``."""
    return build.cast(str(dtype), _expr(value))


def _require_bool(what: str, x: PrimExpr) -> PrimExpr:
    if not is_bool(x.dtype):
        raise TypeMismatchError(f"{what} expects bool operands, got {x.dtype}")
    return x


def logical_and(a: _Operand, b: _Operand) -> PrimExpr:
    """a and b, both bool."""
    a, b = match_types(a, b)
    return build.logical_and(_require_bool("and", a), b)


def logical_or(a: _Operand, b: _Operand) -> PrimExpr:
    """a or b, both bool."""
    a, b = match_types(a, b)
    return build.logical_or(_require_bool("or", a), b)


def logical_not(a: _Operand) -> PrimExpr:
    """not a, of a bool."""
    return build.logical_not(_require_bool("not", _expr(a)))


def all(*args: Any, span: Any = None) -> PrimExpr:
    """The conjunction of conditions."""
    return _joined("all", logical_and, args)


def any(*args: Any, span: Any = None) -> PrimExpr:
    """The disjunction of conditions."""
    return _joined("any", logical_or, args)


def _joined(name: str, join: Callable[..., PrimExpr], args: Sequence[Any]) -> PrimExpr:
    if not args:
        raise ArgumentError(f"{name}: expected at least one condition")
    result = _require_bool(name, _expr(args[0]))
    for each in args[1:]:
        result = join(result, each)
    return result


# ---------------------------------------------------------------- calls


def call_intrin(dtype: str, func_name: str | Op, *args: Any, span: Any = None) -> PrimExpr:
    """A call of the intrinsic ``func_name`` (``"tir.exp"``) with result ``dtype``."""
    return tir.Call(dtype, func_name, [_expr(a) for a in args])


def _call(dtype: str, name: str, *args: PrimExpr) -> PrimExpr:
    return tir.Call(dtype, Op.get(f"tir.{name}"), args)


def call_extern(dtype: str, func_name: str, *args: Any, span: Any = None) -> PrimExpr:
    """A call of the C function ``func_name``, which may have effects."""
    return _call(dtype, "call_extern", tir.StringImm(func_name), *(_argument(a) for a in args))


def call_pure_extern(dtype: str, func_name: str, *args: Any, span: Any = None) -> PrimExpr:
    """A call of the C function ``func_name``, which has no effects."""
    return _call(dtype, "call_pure_extern", tir.StringImm(func_name), *(_argument(a) for a in args))


def call_packed(*args: Any, span: Any = None) -> PrimExpr:
    """A call of a registered function by name (first argument); buffers are handed over as arrays."""
    return _call("int32", "tvm_call_packed", *(_argument(a) for a in args))


def call_cpacked(*args: Any, span: Any = None) -> PrimExpr:
    """A call of a function with the packed C signature by symbol name (first argument)."""
    return _call("int32", "tvm_call_cpacked", *(_argument(a) for a in args))


def call_packed_lowered(*args: Any, span: Any = None) -> PrimExpr:
    """Like `call_packed`, with arguments already in place."""
    return _call("int32", "tvm_call_packed_lowered", *(_argument(a) for a in args))


def call_cpacked_lowered(*args: Any, span: Any = None) -> PrimExpr:
    """Like `call_cpacked`, with arguments already in place."""
    return _call("int32", "tvm_call_cpacked_lowered", *(_argument(a) for a in args))


def call_llvm_intrin(dtype: str, name: str, *args: Any, span: Any = None) -> PrimExpr:
    """A call of the LLVM intrinsic ``name`` (``"llvm.prefetch"``), which may have effects."""
    return _call(dtype, "call_llvm_intrin", _argument(name), *(_argument(a) for a in args))


def call_llvm_pure_intrin(dtype: str, name: str, *args: Any, span: Any = None) -> PrimExpr:
    """A call of the LLVM intrinsic ``name`` (``"llvm.fma"``) without effects."""
    return _call(dtype, "call_llvm_pure_intrin", _argument(name), *(_argument(a) for a in args))


def _argument(value: Any) -> PrimExpr:
    from .buffer import Buffer

    if isinstance(value, Buffer):
        return buffer_array(value)
    if isinstance(value, int) and not isinstance(value, bool):
        return build.make_const(value, "int32" if wrap(value, "int32") == value else "int64")
    return _expr(value)


def buffer_array(buffer: Any) -> PrimExpr:
    """``tvm_stack_make_array`` of a buffer: (data, shape, strides or 0, rank, a value of its dtype, element offset)."""
    shape = _call("handle", "tvm_stack_make_shape", *buffer.shape)
    strides = _call("handle", "tvm_stack_make_shape", *buffer.strides) if buffer.strides else IntImm("int32", 0)
    return _call("handle", "tvm_stack_make_array", buffer.data, shape, strides, IntImm("int32", len(buffer.shape)),
                 build.make_const(0, buffer.dtype), buffer.elem_offset)


def address_of(buffer_load: Any, span: Any = None) -> PrimExpr:
    """The address of a buffer's element (or of its first)."""
    from .buffer import Buffer, BufferLoad

    if isinstance(buffer_load, Buffer):
        buffer_load = BufferLoad(buffer_load, [0] * len(buffer_load.shape))
    return _call("handle", "address_of", buffer_load)


def tvm_access_ptr(ptype: PrimExpr, data: Any, offset: Any, extent: Any, rw_mask: int) -> PrimExpr:
    """A pointer into ``data`` at ``offset`` elements that touches ``extent`` elements; mask 1 reads, 2 writes."""
    return _call("handle", "tvm_access_ptr", ptype, data, _expr(offset), _expr(extent), IntImm("int32", rw_mask))


def type_annotation(dtype: str) -> PrimExpr:
    """A value that carries only a dtype."""
    return _call(dtype, "type_annotation")


def ret(val: Any, span: Any = None) -> PrimExpr:
    """Returns ``val`` from the function."""
    val = _expr(val)
    return _call(val.dtype, "ret", val)


def _opaque(name: str, dtype: str) -> Callable[..., PrimExpr]:
    def fn(*args: Any) -> PrimExpr:
        return _call(dtype, name, *(_argument(a) for a in args))

    fn.__name__ = fn.__qualname__ = name
    fn.__doc__ = f"A call of the intrinsic ``tir.{name}``."
    return fn


tvm_stack_make_shape = _opaque("tvm_stack_make_shape", "handle")
tvm_stack_make_array = _opaque("tvm_stack_make_array", "handle")
tvm_tuple = _opaque("tvm_tuple", "handle")
tvm_throw_last_error = _opaque("tvm_throw_last_error", "handle")
tvm_storage_sync = _opaque("tvm_storage_sync", "int32")
tvm_thread_allreduce = _opaque("tvm_thread_allreduce", "handle")
tvm_thread_invariant = _opaque("tvm_thread_invariant", "bool")
tvm_check_return = _opaque("tvm_check_return", "int32")
start_profile_intrinsic = _opaque("start_profile_intrinsic", "handle")
end_profile_intrinsic = _opaque("end_profile_intrinsic", "handle")
undef = _opaque("undef", "int32")
lookup_param = _opaque("lookup_param", "handle")
TVMBackendAllocWorkspace = _opaque("TVMBackendAllocWorkspace", "handle")
TVMBackendFreeWorkspace = _opaque("TVMBackendFreeWorkspace", "int32")


def vscale() -> PrimExpr:
    """How many times 128 bits a register of scalable vectors holds, known at run time only.

    Vectors of such a length (``Ramp``, ``Broadcast`` …) are refused: lanes are constants here.
    """
    return _call("int32", "vscale")


def tvm_stack_alloca(dtype_str: str, num: int) -> PrimExpr:
    """Stack space for ``num`` objects of a kind ("shape", "arg_value", "arg_tcode", "array")."""
    return _call("handle", "tvm_stack_alloca", tir.StringImm(dtype_str), _argument(num))


def tvm_struct_get(arr: Any, index: Any, field: int, dtype: str) -> PrimExpr:
    """A field of the ``index``-th structure behind ``arr``."""
    return _call(dtype, "tvm_struct_get", arr, _argument(index), IntImm("int32", int(field)))


def tvm_struct_set(arr: Any, index: Any, field: int, value: Any) -> PrimExpr:
    """Sets a field of the ``index``-th structure behind ``arr``."""
    return _call("int32", "tvm_struct_set", arr, _argument(index), IntImm("int32", int(field)), _argument(value))


def assume(cond: Any = None) -> PrimExpr:
    """States that a condition holds here."""
    return _call("bool", "assume", _expr(True if cond is None else cond))


def vectorlow(dtype: str, vec: PrimExpr) -> PrimExpr:
    """The lower half of a vector."""
    return _call(dtype, "vectorlow", vec)


def vectorhigh(dtype: str, vec: PrimExpr) -> PrimExpr:
    """The upper half of a vector."""
    return _call(dtype, "vectorhigh", vec)


def vectorcombine(dtype: str, vec1: PrimExpr, vec2: PrimExpr) -> PrimExpr:
    """Two vectors joined."""
    return _call(dtype, "vectorcombine", vec1, vec2)


def dp4a(vec1: PrimExpr, vec2: PrimExpr, acc: Any = 0) -> PrimExpr:
    """acc + the dot product of four 8-bit lanes each, in 32 bits."""
    signed = vec1.dtype == "int8x4" or vec2.dtype == "int8x4"
    return _call("int32" if signed else "uint32", "dp4a", vec1, vec2, _argument(acc))


def pack4x8(b0: PrimExpr, b1: PrimExpr, b2: PrimExpr, b3: PrimExpr) -> PrimExpr:
    """Four 8-bit integers as the bytes of an int32, the first lowest."""
    parts = [_expr(b) for b in (b0, b1, b2, b3)]
    kinds = {p.dtype for p in parts}
    if len(kinds) != 1 or scalar_of(parts[0].dtype) not in ("int8", "uint8"):
        raise TypeMismatchError(f"pack4x8: expected four values of int8 or of uint8, got {', '.join(p.dtype for p in parts)}")
    return _call(with_lanes("int32", lanes_of(parts[0].dtype)), "pack4x8", *parts)


def dot4(a: PrimExpr, b: PrimExpr, signed: bool, acc: Any = 0) -> PrimExpr:
    """acc + the products of the four bytes in ``a`` (``signed``, or not) with the four signed ones in ``b``, in int32."""
    words = [_expr(a), _expr(b), IntImm("int32", acc) if isinstance(acc, int) else acc]
    if {w.dtype for w in words} != {"int32"}:
        raise TypeMismatchError(f"dot4: expected words and a sum of int32, got {', '.join(w.dtype for w in words)}")
    return _call("int32", "dot4_s8s8" if signed else "dot4_u8s8", *words)


# ---------------------------------------------------------------- control


def if_then_else(cond: Any, t: Any, f: Any, span: Any = None) -> PrimExpr:
    """``t`` if ``cond`` else ``f``; only the taken side is evaluated, so the other may be out of bounds."""
    cond = _require_bool("if_then_else", _expr(cond))
    if lanes_of(cond.dtype) != 1:
        raise TypeMismatchError(f"if_then_else: expected a scalar condition, got {cond.dtype}; use Select for vectors")
    t, f = match_types(t, f)
    if isinstance(cond, IntImm):
        return t if cond.value else f
    return tir.Call(t.dtype, intrin.IF_THEN_ELSE, (cond, t, f))


def select(condition: Any, true_value: Any, false_value: Any) -> PrimExpr:
    """``true_value`` where ``condition`` holds, else ``false_value``; both sides are evaluated."""
    t, f = match_types(true_value, false_value)
    return build.select(_require_bool("select", _expr(condition)), t, f)


def likely(cond: Any, span: Any = None) -> PrimExpr:
    """``cond``, marked as nearly always true: loops are split so that their main part need not ask."""
    cond = _expr(cond)
    return cond if isinstance(cond, IntImm) else tir.Call(cond.dtype, intrin.LIKELY, (cond,))


# ---------------------------------------------------------------- limits


def min_value(dtype: str, span: Any = None) -> PrimExpr:
    """The least finite value of a dtype."""
    return build.make_const(-float_max(dtype) if is_float(dtype) else int_range(dtype)[0], dtype)


def max_value(dtype: str, span: Any = None) -> PrimExpr:
    """The greatest finite value of a dtype."""
    return build.make_const(float_max(dtype) if is_float(dtype) else int_range(dtype)[1], dtype)


def infinity(dtype: str, span: Any = None) -> PrimExpr:
    """Positive infinity of a floating-point dtype."""
    if not is_float(dtype) or scalar_of(dtype) == "e4m3_float8":
        raise ArgumentError(f"infinity: {dtype} has no infinity")
    return build.make_const(math.inf, dtype)


def nan(dtype: str) -> PrimExpr:
    """The quiet NaN of a floating-point dtype."""
    if not is_float(dtype):
        raise ArgumentError(f"nan: {dtype} has no NaN")
    return build.make_const(math.nan, dtype)


# ---------------------------------------------------------------- bits


def _bit_operands(name: str, x: Any, y: Any) -> tuple[PrimExpr, PrimExpr]:
    a, b = match_types(x, y)
    if not is_integer(a.dtype):
        raise TypeMismatchError(f"{name} expects integer operands, got {a.dtype}")
    return a, b


def _bitwise(name: str, fn: Callable[[int, int], int], on_bool: build.Builder) -> Callable[..., PrimExpr]:
    def op(x: _Operand, y: _Operand, span: Any = None) -> PrimExpr:
        a, b = _bit_operands(name, x, y)
        if is_bool(a.dtype):
            return on_bool(a, b)
        if isinstance(a, IntImm) and isinstance(b, IntImm):
            return build.make_const(fn(a.value, b.value), a.dtype)
        return _call(a.dtype, name, a, b)

    op.__name__ = op.__qualname__ = name
    op.__doc__ = f"The {name.replace('_', ' ')} of integers (of bools, the logical one)."
    return op


bitwise_and = _bitwise("bitwise_and", lambda x, y: x & y, build.logical_and)
bitwise_or = _bitwise("bitwise_or", lambda x, y: x | y, build.logical_or)
bitwise_xor = _bitwise("bitwise_xor", lambda x, y: x ^ y, build.not_equal)


def bitwise_not(x: _Operand, span: Any = None) -> PrimExpr:
    """All bits of an integer flipped (of a bool: not)."""
    x = _expr(x)
    if is_bool(x.dtype):
        return build.logical_not(x)
    if not is_integer(x.dtype):
        raise TypeMismatchError(f"bitwise_not expects an integer, got {x.dtype}")
    return build.make_const(~x.value, x.dtype) if isinstance(x, IntImm) else _call(x.dtype, "bitwise_not", x)


def _shift(name: str, fn: Callable[[int, int], int]) -> Callable[..., PrimExpr]:
    def op(x: _Operand, y: _Operand, span: Any = None) -> PrimExpr:
        a, b = _bit_operands(name, x, y)
        bits, amount = info(a.dtype).bits, build.const_value(b)
        if amount is not None and not 0 <= amount < bits:
            raise ArgumentError(f"{name}: expected a shift of 0 to {bits - 1} for {a.dtype}, got {amount}")
        if isinstance(b, IntImm):
            if b.value == 0:
                return a
            if isinstance(a, IntImm):
                return build.make_const(fn(a.value, b.value), a.dtype)
        return _call(a.dtype, name, a, b)

    op.__name__ = op.__qualname__ = name
    op.__doc__ = f"x {'<<' if name.endswith('left') else '>>'} y (to the right, a signed number keeps its sign)."
    return op


shift_left = _shift("shift_left", lambda x, y: x << y)
shift_right = _shift("shift_right", lambda x, y: x >> y)


def reinterpret(dtype: str, value: Any, span: Any = None) -> PrimExpr:
    """The bits of ``value`` read as ``dtype``, which must be as wide."""
    value = _expr(value)
    have, want = info(value.dtype), info(dtype)
    if have.bits * have.lanes != want.bits * want.lanes:
        raise TypeMismatchError(f"reinterpret: {value.dtype} and {dtype} differ in width")
    return value if value.dtype == dtype else _call(dtype, "reinterpret", value)


def popcount(x: Any) -> PrimExpr:
    """How many bits of an integer are set."""
    x = _expr(x)
    if isinstance(x, IntImm):
        return build.make_const(bin(x.value & (1 << info(x.dtype).bits) - 1).count("1"), x.dtype)
    return _call(x.dtype, "popcount", x)


def clz(x: Any) -> PrimExpr:
    """How many leading bits of an integer are zero, as int32 (its width for 0)."""
    x = _expr(x)
    return _call(with_lanes("int32", lanes_of(x.dtype)), "clz", x)


# ---------------------------------------------------------------- mathematics


def _float_arg(x: Any) -> PrimExpr:
    x = _expr(x) if not isinstance(x, int) else FloatImm("float32", x)
    return x if is_float(x.dtype) else build.cast(with_lanes("float32", lanes_of(x.dtype)), x)


_UNARY_DOC = {
    "exp": "e**x", "exp2": "2**x", "exp10": "10**x", "erf": "the error function", "tanh": "the hyperbolic tangent",
    "sigmoid": "1 / (1 + exp(-x))", "log": "the natural logarithm", "log2": "the logarithm to base 2", "log10": "the logarithm to base 10",
    "log1p": "log(1 + x), exact near 0", "tan": "the tangent", "cos": "the cosine", "cosh": "the hyperbolic cosine",
    "acos": "the arc cosine", "acosh": "the inverse hyperbolic cosine", "sin": "the sine", "sinh": "the hyperbolic sine",
    "asin": "the arc sine", "asinh": "the inverse hyperbolic sine", "atan": "the arc tangent", "atanh": "the inverse hyperbolic tangent",
    "sqrt": "the square root", "rsqrt": "1 / sqrt(x)",
}


def _unary(name: str) -> Callable[[Any], PrimExpr]:
    op_name = f"tir.{name}"

    def fn(x: Any) -> PrimExpr:
        x = _float_arg(x)
        return tir.Call(x.dtype, Op.get(op_name), (x,))

    fn.__name__ = fn.__qualname__ = name
    fn.__doc__ = f"{_UNARY_DOC[name]} (an integer argument is converted to float32)."
    return fn


exp, exp2, exp10, erf, tanh, sigmoid = map(_unary, ("exp", "exp2", "exp10", "erf", "tanh", "sigmoid"))
log, log2, log10, log1p, tan, cos, cosh = map(_unary, ("log", "log2", "log10", "log1p", "tan", "cos", "cosh"))
acos, acosh, sin, sinh, asin, asinh = map(_unary, ("acos", "acosh", "sin", "sinh", "asin", "asinh"))
atan, atanh, sqrt, rsqrt = map(_unary, ("atan", "atanh", "sqrt", "rsqrt"))


def _half_away(v: float) -> float:
    r = math.floor(math.fabs(v))
    return math.copysign(r + (math.fabs(v) - r >= 0.5), v)


def _integral(fn: Callable[[float], float]) -> Callable[[float], float]:
    return lambda v: math.copysign(float(fn(v)), v) if math.isfinite(v) else v


_ROUNDING: dict[str, tuple[Callable[[float], float], str]] = {
    "floor": (_integral(math.floor), "the greatest integer not above x"),
    "ceil": (_integral(math.ceil), "the least integer not below x"),
    "trunc": (_integral(math.trunc), "x without its fraction"),
    "round": (_integral(_half_away), "the nearest integer, halves away from zero"),
    "nearbyint": (_integral(lambda v: float(builtins.round(v))), "the nearest integer, halves to even"),
}


def _rounding(name: str) -> Callable[..., PrimExpr]:
    fold, doc = _ROUNDING[name]

    def fn(x: Any, span: Any = None) -> PrimExpr:
        x = _expr(x)
        if is_integer(x.dtype):
            return x
        if isinstance(x, FloatImm):
            return FloatImm(x.dtype, fold(round_float(x.value, x.dtype)))
        return _call(x.dtype, name, x)

    fn.__name__ = fn.__qualname__ = name
    fn.__doc__ = f"{doc} (still of its dtype; an integer is returned as it is)."
    return fn


floor, ceil, trunc, round, nearbyint = map(_rounding, ("floor", "ceil", "trunc", "round", "nearbyint"))


def abs(x: Any, span: Any = None) -> PrimExpr:
    """The absolute value."""
    x = _expr(x)
    kind = info(x.dtype).kind
    if kind in ("uint", "bool"):
        return x
    if kind == "int":
        if isinstance(x, IntImm):
            return build.make_const(builtins.abs(x.value), x.dtype)
        return build.select(build.greater_equal(x, build.zero_of(x)), x, negative(x))
    return FloatImm(x.dtype, math.fabs(x.value)) if isinstance(x, FloatImm) else _call(x.dtype, "fabs", x)


def isnan(x: Any, span: Any = None) -> PrimExpr:
    """Whether x is not a number (never, for integers)."""
    x = _expr(x)
    dtype = tir.bool_like(x.dtype)
    if not is_float(x.dtype):
        return build.make_const(False, dtype)
    return IntImm("bool", math.isnan(x.value)) if isinstance(x, FloatImm) else _call(dtype, "isnan", x)


def isinf(x: Any, span: Any = None) -> PrimExpr:
    """Whether x is infinite (never, for integers)."""
    x = _expr(x)
    if not is_float(x.dtype) or scalar_of(x.dtype) == "e4m3_float8":
        return build.make_const(False, tir.bool_like(x.dtype))
    return build.equal(abs(x), infinity(x.dtype))


def isfinite(x: Any, span: Any = None) -> PrimExpr:
    """Whether x is neither infinite nor NaN."""
    x = _expr(x)
    if not is_float(x.dtype):
        return build.make_const(True, tir.bool_like(x.dtype))
    if scalar_of(x.dtype) == "e4m3_float8":
        return build.logical_not(isnan(x))
    return build.less(abs(x), infinity(x.dtype))


def isnullptr(x: Any, span: Any = None) -> PrimExpr:
    """Whether a pointer is null."""
    return _call("bool", "isnullptr", _expr(x))


def _float_binary(name: str, doc: str) -> Callable[..., PrimExpr]:
    def fn(x1: Any, x2: Any, span: Any = None) -> PrimExpr:
        a, b = match_types(x1, x2)
        a, b = _float_arg(a), _float_arg(b)
        return _call(a.dtype, name, a, b)

    fn.__name__ = fn.__qualname__ = name
    fn.__doc__ = doc
    return fn


atan2 = _float_binary("atan2", "The angle of the point (x2, x1).")
hypot = _float_binary("hypot", "sqrt(x1² + x2²) without overflow on the way.")
nextafter = _float_binary("nextafter", "The float next to x1 in the direction of x2.")
copysign = _float_binary("copysign", "x1 with the sign of x2.")
fmod = _float_binary("fmod", "The remainder of the division cut towards zero, with the sign of x.")


def ldexp(x1: Any, x2: Any) -> PrimExpr:
    """x1 * 2**x2, with ``x2`` an integer."""
    x = _float_arg(x1)
    return _call(x.dtype, "ldexp", x, build.cast(with_lanes("int32", lanes_of(x.dtype)), _expr(x2)))


def power(x: Any, y: Any, span: Any = None) -> PrimExpr:
    """x**y (of integers: in integers, with ``y`` at least 0)."""
    a, b = match_types(x, y)
    if is_float(a.dtype) and build.const_value(b) == 1.0:
        return a
    if isinstance(a, IntImm) and isinstance(b, IntImm) and b.value >= 0:
        return build.make_const(pow_int(a.value, b.value, a.dtype), a.dtype)
    return _call(a.dtype, "pow", a, b)


def pow_int(x: int, y: int, dtype: str) -> int:
    """x**y wrapped to ``dtype``."""
    return wrap(builtins.pow(x, y, 1 << info(dtype).bits), dtype)


pow = power


def fma(a: Any, b: Any, c: Any) -> PrimExpr:
    """a * b + c with one rounding."""
    a, b = match_types(a, b)
    a, c = match_types(a, c)
    return _call(a.dtype, "fma", a, build.cast(a.dtype, b), c)


def q_multiply_shift(x: Any, y: Any, q: Any, s: Any) -> PrimExpr:
    """round(x * y * 2**-q * 2**s) for fixed-point ``y`` with ``q`` fraction bits, halves rounded up, in 64 bits inside."""
    x = _expr(x)
    rest = (build.cast("int32", _expr(v)) for v in (q, s))
    return _call(with_lanes("int32", lanes_of(x.dtype)), "q_multiply_shift", x, build.cast(x.dtype, _expr(y)), *rest)


def q_multiply_shift_per_axis(x: Any, y: Any, ls: Any, rs: Any, q: Any, is_lshift_required: Any, is_rshift_required: Any) -> PrimExpr:
    """Fixed-point multiplication with separate left and right shifts; the flags say which of them are needed."""
    x = _expr(x)
    ints = [build.cast("int32", _expr(v)) for v in (y, ls, rs, q)]
    flags = [build.cast("bool", _expr(v)) for v in (is_lshift_required, is_rshift_required)]
    return _call(x.dtype, "q_multiply_shift_per_axis", x, *ints, *flags)


# ---------------------------------------------------------------- Python's operators


def _install() -> None:
    arithmetic = {"add": build.add, "sub": build.sub, "mul": build.mul}
    public = {"truediv": divide, "floordiv": floordiv, "mod": floormod, "and": bitwise_and, "or": bitwise_or, "xor": bitwise_xor,
              "lshift": shift_left, "rshift": shift_right, "pow": power}
    compare = {"lt": build.less, "le": build.less_equal, "gt": build.greater, "ge": build.greater_equal}
    table = {n: _fast(b) for n, b in arithmetic.items()} | {n: _checked(f) for n, f in public.items()}
    for cls in (PrimExpr, tir.IterVar):
        for name, fn in table.items():
            setattr(cls, f"__{name}__", fn)
            setattr(cls, f"__r{name}__", _swapped(fn))
        for name, builder in compare.items():
            setattr(cls, f"__{name}__", _fast(builder))
        setattr(cls, "__neg__", negative)
        setattr(cls, "__invert__", bitwise_not)
    setattr(PrimExpr, "__eq__", _fast(build.equal))
    setattr(PrimExpr, "__ne__", _fast(build.not_equal))
    setattr(PrimExpr, "__bool__", _no_truth)
    setattr(PrimExpr, "astype", cast)
    setattr(FloatImm, "__bool__", lambda self: self.value != 0)
    setattr(tir.IterVar, "__eq__", _iter_var_eq)


def _fast(builder: build.Builder) -> Callable[[Any, Any], Any]:
    def op(a: Any, b: Any) -> Any:
        if isinstance(b, PrimExpr) and isinstance(a, PrimExpr) and a.dtype == b.dtype:
            return builder(a, b)
        if _coerce(b) is None:
            return NotImplemented
        return builder(*match_types(a, b))

    return op


def _checked(fn: Callable[..., Any]) -> Callable[[Any, Any], Any]:
    return lambda a, b: NotImplemented if _coerce(b) is None else fn(a, b)


def _swapped(fn: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    def op(a: Any, b: Any) -> Any:
        other = _coerce(b)
        if other is None:
            return NotImplemented
        return fn(other if isinstance(other, PrimExpr) else _number_beside(other, a.var.dtype if isinstance(a, tir.IterVar) else a.dtype), a)

    return op


def _no_truth(self: PrimExpr) -> bool:
    raise TypeMismatchError("the truth of an expression is not known while it is being built: use tir.all, tir.any, if_then_else or '&' "
                            "and '|' instead of 'and', 'or', 'if'")


def _iter_var_eq(self: tir.IterVar, other: Any) -> Any:
    if isinstance(other, (PrimExpr, int)):
        return equal(self, other)
    return self is other


_install()
