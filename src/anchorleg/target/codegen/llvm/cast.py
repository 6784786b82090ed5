"""Conversion between any two data types.

Float to integer saturates and NaN gives 0; integers wrap; anything to bool asks whether it differs from zero.  The small
floats that the processor cannot convert are taken apart with integer instructions.
"""
from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ....support.errors import UnsupportedOpError
from ....tir.dtypes import DTypeInfo, info, with_lanes
from .types import llvm_type, scalar_type, vector_of

if TYPE_CHECKING:
    from .arith import Arith


@dataclass(frozen=True)
class MiniFloat:
    """A small binary float: widths of its fields, its bias, and whether its top exponent holds infinities (else one NaN)."""

    exponent: int
    mantissa: int
    bias: int
    infinite: bool

    @property
    def bits(self) -> int:
        """Bits in all."""
        return 1 + self.exponent + self.mantissa

    @property
    def nan(self) -> int:
        """The quiet NaN without its sign."""
        top = ((1 << self.exponent) - 1) << self.mantissa
        return top | (1 << (self.mantissa - 1)) if self.infinite else top | ((1 << self.mantissa) - 1)

    @property
    def overflow(self) -> int:
        """What too large values become, without the sign."""
        return ((1 << self.exponent) - 1) << self.mantissa if self.infinite else self.nan


_MINI = {"float16": MiniFloat(5, 10, 15, True), "e4m3_float8": MiniFloat(4, 3, 7, False), "e5m2_float8": MiniFloat(5, 2, 15, True)}


def cast(ar: Arith, value: str, source: str, target: str) -> str:
    """``value`` of dtype ``source`` as ``target``."""
    if source == target:
        return value
    s, t = info(source), info(target)
    if s.kind == "handle" or t.kind == "handle":
        return _pointer(ar, value, source, target)
    if t.kind == "bool":
        return _to_bool(ar, value, source, s)
    if s.is_integer:
        return _integer(ar, value, source, target, s, t) if t.is_integer else _from_integer(ar, value, source, target, s, t)
    return _to_integer(ar, value, source, target, s, t) if t.is_integer else _float(ar, value, source, target, s, t)


def _convert(ar: Arith, verb: str, value: str, source: str, target: str) -> str:
    return ar.op(f"{verb} {llvm_type(source)} {value} to {llvm_type(target)}", value)


def _pointer(ar: Arith, value: str, source: str, target: str) -> str:
    if info(source).kind == info(target).kind:
        return value
    return _convert(ar, "ptrtoint" if info(source).kind == "handle" else "inttoptr", value, source, target)


def _to_bool(ar: Arith, value: str, source: str, s: DTypeInfo) -> str:
    return ar.compare("NE", source, value, ar.const(0, source))


def _integer(ar: Arith, value: str, source: str, target: str, s: DTypeInfo, t: DTypeInfo) -> str:
    if s.bits == t.bits:
        return value
    verb = "trunc" if t.bits < s.bits else "sext" if s.kind == "int" else "zext"
    return _convert(ar, verb, value, source, target)


def _from_integer(ar: Arith, value: str, source: str, target: str, s: DTypeInfo, t: DTypeInfo) -> str:
    wide = ar.widened(t)
    if s.kind == "bool":
        return ar.select(value, target, ar.const(1, target), ar.const(0, target), s.lanes)
    as_wide = _convert(ar, "sitofp" if s.kind == "int" else "uitofp", value, source, wide)
    return cast(ar, as_wide, wide, target)


def _to_integer(ar: Arith, value: str, source: str, target: str, s: DTypeInfo, t: DTypeInfo) -> str:
    wide = ar.widened(s)
    if wide != source:
        value = cast(ar, value, source, wide)
    from .arith import intrinsic_suffix

    # as numpy on 64-bit machines: small integers are cut out of wider ones, only the widest saturate
    if t.bits < 32 or t.kind == "uint" and t.bits == 32:
        middle = with_lanes("int32" if t.bits < 32 else "int64", t.lanes)
        return cast(ar, _to_integer(ar, value, wide, middle, info(wide), info(middle)), middle, target)
    if t.lanes > 1 and t.kind == "int" and ar.cpu.arch in ("x86_64", "i686"):
        return _saturated(ar, value, wide, target, t)
    kind, result = llvm_type(wide), llvm_type(target)
    name = f"llvm.fpto{'s' if t.kind == 'int' else 'u'}i.sat.{intrinsic_suffix(result)}.{intrinsic_suffix(kind)}"
    ar.b.declare(name, f"{result} @{name}({kind})")
    return ar.op(f"call {result} @{name}({kind} {value})", value)


def _saturated(ar: Arith, value: str, source: str, target: str, t: DTypeInfo) -> str:
    """``llvm.fptosi.sat`` of a vector, which LLVM takes apart for this family: a conversion, and the three cases it is not for."""
    limit, result = float(1 << t.bits - 1), _convert(ar, "fptosi", value, source, target)
    for name, bound, instead in (("GE", limit, (1 << t.bits - 1) - 1), ("LT", -limit, -(1 << t.bits - 1))):
        outside = ar.compare(name, source, value, ar.const(bound, source))
        result = ar.select(outside, target, ar.const(instead, target), result, t.lanes)
    return _zero_for_nan(ar, value, source, target, result, t.lanes)


def _zero_for_nan(ar: Arith, value: str, source: str, target: str, result: str, lanes: int) -> str:
    nan = ar.op(f"fcmp uno {llvm_type(source)} {value}, {ar.const(0.0, source)}", value)
    return ar.select(nan, target, ar.const(0, target), result, lanes)


def cast_bounded(ar: Arith, value: str, source: str, target: str) -> str:
    """:func:`cast` of floats that are NaN or within the range of int32 to an integer of 32 bits or fewer."""
    s, t = info(source), info(target)
    if s.scalar not in ("float32", "float64") or not t.is_integer or t.kind == "bool" or t.bits > 32 or s.lanes == 1:
        return cast(ar, value, source, target)
    middle = with_lanes("int32", t.lanes)
    whole = _zero_for_nan(ar, value, source, middle, _convert(ar, "fptosi", value, source, middle), t.lanes)
    return cast(ar, whole, middle, target)


def _float(ar: Arith, value: str, source: str, target: str, s: DTypeInfo, t: DTypeInfo) -> str:
    f32 = with_lanes("float32", s.lanes)
    if s.scalar == "float64":
        if t.scalar == "float32":
            return _convert(ar, "fptrunc", value, source, target)
        return cast(ar, _to_odd(ar, value, source, f32), f32, target)
    if t.scalar == "float64":
        return _convert(ar, "fpext", cast(ar, value, source, f32), f32, target)
    if s.scalar == "float32":
        return _from_float32(ar, value, target, t)
    as_float32 = _to_float32(ar, value, source, s)
    return as_float32 if t.scalar == "float32" else _from_float32(ar, as_float32, target, t)


def _to_odd(ar: Arith, value: str, source: str, f32: str) -> str:
    """float64 → float32 rounded to odd, so that rounding it once more gives what one rounding would."""
    lanes = info(source).lanes
    i32, ints, wide = with_lanes("int32", lanes), llvm_type(with_lanes("int32", lanes)), llvm_type(source)
    near = _convert(ar, "fptrunc", value, source, f32)
    back = _convert(ar, "fpext", near, f32, source)
    bits = ar.op(f"bitcast {llvm_type(f32)} {near} to {ints}", near)
    inexact = ar.op(f"fcmp one {wide} {back}, {value}", back, value)
    even = ar.op(f"icmp eq {ints} {ar.op(f'and {ints} {bits}, {ar.const(1, i32)}', bits)}, {ar.const(0, i32)}", bits)
    size_back, size = ar.intrinsic("fabs", wide, back), ar.intrinsic("fabs", wide, value)
    above = ar.op(f"fcmp ogt {wide} {size_back}, {size}", size_back, size)
    step = ar.select(above, i32, ar.const(-1, i32), ar.const(1, i32), lanes)
    moved = ar.op(f"add {ints} {bits}, {step}", bits, step)
    move = ar.op(f"and {vector_of('i1', lanes)} {inexact}, {even}", inexact, even)
    return ar.op(f"bitcast {ints} {ar.select(move, i32, moved, bits, lanes)} to {llvm_type(f32)}", moved, bits, move)


def _to_float32(ar: Arith, value: str, source: str, s: DTypeInfo) -> str:
    if s.kind == "bfloat":
        return _bfloat_to_float32(ar, value, s.lanes)
    if s.scalar == "float16" and ar.cpu.has_half_conversion:
        return _convert(ar, "fpext", value, source, with_lanes("float32", s.lanes))
    return _mini_to_float32(ar, value, source, s)


def _from_float32(ar: Arith, value: str, target: str, t: DTypeInfo) -> str:
    if t.kind == "bfloat":
        return _float32_to_bfloat(ar, value, t.lanes)
    if t.scalar == "float16" and ar.cpu.has_half_conversion:
        return _convert(ar, "fptrunc", value, with_lanes("float32", t.lanes), target)
    return _float32_to_mini(ar, value, target, t)


class _Bits:
    """Integer arithmetic on the bits of float32 lanes."""

    def __init__(self, ar: Arith, lanes: int) -> None:
        self.ar, self.lanes = ar, lanes
        self.i32, self.f32 = with_lanes("uint32", lanes), with_lanes("float32", lanes)
        self.kind, self.float_kind = llvm_type(self.i32), llvm_type(self.f32)

    def c(self, value: int) -> str:
        return self.ar.const(value, self.i32)

    def do(self, verb: str, a: str, b: str | int) -> str:
        b = self.c(b) if isinstance(b, int) else b
        return self.ar.op(f"{verb} {self.kind} {a}, {b}", a, b)

    def test(self, relation: str, a: str, b: int) -> str:
        return self.ar.op(f"icmp {relation} {self.kind} {a}, {self.c(b)}", a)

    def pick(self, condition: str, a: str | int, b: str) -> str:
        return self.ar.select(condition, self.i32, self.c(a) if isinstance(a, int) else a, b, self.lanes)

    def of_float(self, value: str) -> str:
        return self.ar.op(f"bitcast {self.float_kind} {value} to {self.kind}", value)

    def to_float(self, value: str) -> str:
        return self.ar.op(f"bitcast {self.kind} {value} to {self.float_kind}", value)

    def narrow(self, value: str, bits: int) -> str:
        return self.ar.op(f"trunc {self.kind} {value} to {vector_of(f'i{bits}', self.lanes)}", value)

    def widen(self, value: str, bits: int) -> str:
        return self.ar.op(f"zext {vector_of(f'i{bits}', self.lanes)} {value} to {self.kind}", value)


def _bfloat_to_float32(ar: Arith, value: str, lanes: int) -> str:
    n = _Bits(ar, lanes)
    return n.to_float(n.do("shl", n.widen(value, 16), 16))


def _float32_to_bfloat(ar: Arith, value: str, lanes: int) -> str:
    n = _Bits(ar, lanes)
    bits = n.of_float(value)
    odd = n.do("and", n.do("lshr", bits, 16), 1)
    rounded = n.do("lshr", n.do("add", n.do("add", bits, 0x7FFF), odd), 16)
    nan = ar.op(f"fcmp uno {n.float_kind} {value}, {value}", value)
    quiet = n.do("or", n.do("lshr", bits, 16), 0x40)
    return n.narrow(n.pick(nan, quiet, rounded), 16)


def _mini_to_float32(ar: Arith, value: str, source: str, s: DTypeInfo) -> str:
    form, n = _MINI.get(s.scalar), _Bits(ar, s.lanes)
    if form is None:
        raise UnsupportedOpError(f"{source} cannot be converted to float32")
    if scalar_type(s) == "half":
        value = ar.op(f"bitcast {llvm_type(source)} {value} to {vector_of('i16', s.lanes)}", value)
    bits = n.widen(value, form.bits)
    size = n.do("and", bits, (1 << (form.bits - 1)) - 1)
    sign = n.do("shl", n.do("lshr", bits, form.bits - 1), 31)
    shifted = n.do("shl", size, 23 - form.mantissa)
    normal = n.do("add", shifted, (127 - form.bias) << 23)
    as_float = ar.op(f"uitofp {n.kind} {size} to {n.float_kind}", size)
    scale = ar.const(2.0 ** (1 - form.bias - form.mantissa), n.f32)
    tiny = n.of_float(ar.op(f"fmul {n.float_kind} {as_float}, {scale}", as_float))
    result = n.pick(n.test("ult", size, 1 << form.mantissa), tiny, normal)
    if form.infinite:
        result = n.pick(n.test("uge", size, form.overflow), n.do("or", shifted, 0x7F800000), result)
    else:
        result = n.pick(n.test("eq", size, form.nan), 0x7FC00000, result)
    return n.to_float(n.do("or", result, sign))


def _float32_to_mini(ar: Arith, value: str, target: str, t: DTypeInfo) -> str:
    form, n = _MINI.get(t.scalar), _Bits(ar, t.lanes)
    if form is None:
        raise UnsupportedOpError(f"float32 cannot be converted to {target}")
    bits, shift = n.of_float(value), 23 - form.mantissa
    size = n.do("and", bits, 0x7FFFFFFF)
    sign = n.do("shl", n.do("lshr", bits, 31), form.bits - 1)
    odd = n.do("and", n.do("lshr", size, shift), 1)
    carried = n.do("add", n.do("add", size, (1 << (shift - 1)) - 1), odd)
    normal = n.do("sub", n.do("lshr", carried, shift), (127 - form.bias) << form.mantissa)
    magic_bits = (127 - form.bias + shift + 1) << 23
    magic, as_size = n.to_float(n.c(magic_bits)), n.to_float(size)
    tiny = n.do("sub", n.of_float(ar.op(f"fadd {n.float_kind} {as_size}, {magic}", as_size, magic)), magic_bits)
    result = n.pick(n.test("ult", size, (128 - form.bias) << 23), tiny, normal)
    if not form.infinite:  # rounding may carry past the one NaN
        result = n.pick(n.test("ugt", result, form.nan), form.nan, result)
    top = (1 << form.exponent) - (2 if form.infinite else 1)
    result = n.pick(n.test("uge", size, (127 - form.bias + top + 1) << 23), form.overflow, result)
    result = n.pick(n.test("ugt", size, 0x7F800000), form.nan, result)
    narrow = n.narrow(n.do("or", result, sign), form.bits)
    if scalar_type(t) != "half":
        return narrow
    return ar.op(f"bitcast {vector_of('i16', t.lanes)} {narrow} to {llvm_type(target)}", narrow)
