"""Arithmetic on values of any dtype and lanes: the instructions for each operation, by table.

float16, bfloat16 and the 8-bit floats are computed in float32 and rounded back after each operation, as numpy does.
"""
from __future__ import annotations

from typing import Callable

from ....support.errors import UnsupportedOpError
from ....tir.dtypes import DTypeInfo, info, with_lanes
from ...cpu import CpuInfo
from .builder import FunctionBuilder
from .types import constant_text, llvm_type, scalar_type, splat_text, vector_of

_INT = {"Add": "add", "Sub": "sub", "Mul": "mul", "bitwise_and": "and", "bitwise_or": "or", "bitwise_xor": "xor"}
_FLOAT = {"Add": "fadd contract", "Sub": "fsub contract", "Mul": "fmul contract", "Div": "fdiv", "Mod": "frem"}
_COMPARE = {"EQ": ("eq", "eq", "oeq"), "NE": ("ne", "ne", "une"), "LT": ("slt", "ult", "olt"), "LE": ("sle", "ule", "ole"),
            "GT": ("sgt", "ugt", "ogt"), "GE": ("sge", "uge", "oge")}
_WIDE = ("float32", "float64")


def intrinsic_suffix(type_text: str) -> str:
    """How LLVM names a type in an intrinsic: ``<16 x float>`` → ``v16f32``."""
    short = {"half": "f16", "float": "f32", "double": "f64", "bfloat": "bf16", "ptr": "p0"}
    if not type_text.startswith("<"):
        return short.get(type_text, type_text)
    lanes, scalar = type_text[1:-1].split(" x ")
    return f"v{lanes}{short.get(scalar, scalar)}"


class Arith:
    """Emits operations on values; ``dtype`` always is that of the operands, lanes included."""

    def __init__(self, builder: FunctionBuilder, cpu: CpuInfo) -> None:
        self.b, self.cpu = builder, cpu

    # -- small helpers

    def op(self, text: str, *operands: str) -> str:
        """A pure instruction."""
        return self.b.op(text, *operands)

    def intrinsic(self, name: str, type_text: str, *args: str, extra: str = "") -> str:
        """A call of an overloaded intrinsic on operands of one type."""
        full = f"llvm.{name}.{intrinsic_suffix(type_text)}"
        tail = f", {extra}" if extra else ""
        kinds = ", ".join([type_text] * len(args)) + (", " + extra.split(" ")[0] if extra else "")
        self.b.declare(full, f"{type_text} @{full}({kinds})")
        return self.b.op(f"call {type_text} @{full}({', '.join(f'{type_text} {a}' for a in args)}{tail})", *args)

    def const(self, value: float | int, dtype: str) -> str:
        """A constant."""
        return constant_text(value, dtype)

    def select(self, condition: str, dtype: str, a: str, b: str, condition_lanes: int = 1) -> str:
        """``condition ? a : b``"""
        if condition in ("true", "false"):
            return a if condition == "true" else b
        if a == b:
            return a
        t = llvm_type(dtype)
        return self.op(f"select {vector_of('i1', condition_lanes)} {condition}, {t} {a}, {t} {b}", condition, a, b)

    def splat(self, value: str, dtype: str, lanes: int) -> str:
        """A scalar of ``dtype`` in every lane."""
        scalar = llvm_type(dtype)
        if not value.startswith("%"):
            return splat_text(scalar, value, lanes)
        kind = vector_of(scalar, lanes)
        first = self.op(f"insertelement {kind} poison, {scalar} {value}, i64 0", value)
        return self.op(f"shufflevector {kind} {first}, {kind} poison, <{lanes} x i32> zeroinitializer", first)

    def lane(self, vector: str, dtype: str, index: int) -> str:
        """One lane of a vector."""
        return self.op(f"extractelement {llvm_type(dtype)} {vector}, i64 {index}", vector)

    def from_lanes(self, values: list[str], dtype: str) -> str:
        """A vector of the scalars ``values``; ``dtype`` is that of the vector."""
        kind, scalar = llvm_type(dtype), llvm_type(info(dtype).scalar)
        result = "poison"
        for i, value in enumerate(values):
            result = self.op(f"insertelement {kind} {result}, {scalar} {value}, i64 {i}", result, value)
        return result

    def per_lane(self, fn: Callable[..., str], result_dtype: str, *args: tuple[str, str]) -> str:
        """``fn`` on the scalars of each lane; ``args`` are (value, dtype)."""
        lanes = info(result_dtype).lanes
        if lanes == 1:
            return fn(*(v for v, _ in args))
        rows = [[self.lane(v, d, i) for v, d in args] for i in range(lanes)]
        return self.from_lanes([fn(*row) for row in rows], result_dtype)

    def where_any(self, condition: str, lanes: int, rare: Callable[[], str], usual: str, dtype: str) -> str:
        """``usual``, or what ``rare()`` emits when the condition holds in any lane; only then is it run."""
        if lanes > 1:
            kind = vector_of("i1", lanes)
            name = f"llvm.vector.reduce.or.v{lanes}i1"
            self.b.declare(name, f"i1 @{name}({kind})")
            condition = self.op(f"call i1 @{name}({kind} {condition})", condition)
        start, branch, join = self.b.block, self.b.new_block("rare"), self.b.new_block("join")
        self.b.open_scope(branch, True)
        value = rare()
        end = self.b.close_scope()
        self.b.terminate(start, f"br i1 {condition}, label %{branch.label}, label %{join.label}")
        self.b.terminate(end, f"br label %{join.label}")
        self.b.continue_in(join)
        return self.b.define(f"phi {llvm_type(dtype)} [ {usual}, %{start.label} ], [ {value}, %{end.label} ]")

    # -- floating point that is computed wider

    def widened(self, t: DTypeInfo) -> str:
        """The dtype in which ``t`` is computed."""
        return with_lanes("float64" if t.scalar == "float64" else "float32", t.lanes)

    def in_wide(self, fn: Callable[..., str], dtype: str, *args: str, result: str | None = None) -> str:
        """``fn(wide dtype, *args)`` with operands widened and (unless ``result`` names its dtype) the result rounded back."""
        t = info(dtype)
        if t.scalar in _WIDE:
            return fn(dtype, *args)
        wide = self.widened(t)
        value = fn(wide, *(self.cast(a, dtype, wide) for a in args))
        return value if result is not None else self.cast(value, wide, dtype)

    # -- binary operations

    def binary(self, name: str, dtype: str, a: str, b: str) -> str:
        """Add, Sub, Mul, Div, Mod, FloorDiv, FloorMod, Min, Max or a bitwise operation."""
        t = info(dtype)
        if t.is_float:
            return self.in_wide(lambda d, x, y: self._float_binary(name, d, x, y), dtype, a, b)
        if name in _INT:
            kind = llvm_type(dtype)
            return self.op(f"{self._bool_name(name) if t.kind == 'bool' else _INT[name]} {kind} {a}, {b}", a, b)
        if name in ("Min", "Max"):
            return self.intrinsic(("s" if t.kind == "int" else "u") + name.lower(), llvm_type(dtype), a, b)
        return self.divide(name, dtype, a, b)

    def _bool_name(self, name: str) -> str:
        return {"Add": "or", "Mul": "and", "Sub": "xor"}.get(name, _INT.get(name, "xor"))

    def _float_binary(self, name: str, dtype: str, a: str, b: str) -> str:
        if name in ("Min", "Max"):
            return self._float_extreme(name, dtype, a, b)
        if name == "FloorDiv":
            return self.intrinsic("floor", llvm_type(dtype), self._float_binary("Div", dtype, a, b))
        if name == "FloorMod":
            q = self._float_binary("FloorDiv", dtype, a, b)
            return self._float_binary("Sub", dtype, a, self._float_binary("Mul", dtype, q, b))
        if name not in _FLOAT:
            raise UnsupportedOpError(f"{name} of {dtype} cannot be compiled: it is defined for integers only")
        return self.op(f"{_FLOAT[name]} {llvm_type(dtype)} {a}, {b}", a, b)

    def _float_extreme(self, name: str, dtype: str, a: str, b: str) -> str:
        """A NaN on either side gives NaN.  ``constant > x ? constant : x`` needs no more than the comparison."""
        relation = "ogt" if name == "Max" else "olt"
        kind, lanes = llvm_type(dtype), info(dtype).lanes
        if _is_plain_constant(b):
            a, b = b, a
        first = self.op(f"fcmp {relation} {kind} {a}, {b}", a, b)
        picked = self.select(first, dtype, a, b, lanes)
        if _is_plain_constant(a):
            return picked
        nan = self.op(f"fcmp uno {kind} {a}, {splat_text(scalar_type(info(dtype)), '0x0000000000000000', lanes)}", a)
        return self.select(nan, dtype, a, picked, lanes)

    # -- integer division, defined for every operand (x / 0 = 0, x % 0 = 0, as numpy)

    def divide(self, name: str, dtype: str, a: str, b: str, non_negative: bool = False) -> str:
        """Div, Mod (cut towards zero), FloorDiv or FloorMod of integers; ``non_negative``: both operands are known to be so."""
        t = info(dtype)
        if t.kind == "bool":
            wide = with_lanes("uint8", t.lanes)
            return self.cast(self.divide(name, wide, self.cast(a, dtype, wide), self.cast(b, dtype, wide)), wide, dtype)
        constant = _constant_of(b)
        if t.kind == "uint" or non_negative:
            return self._unsigned_division(name, dtype, a, b, constant)
        if name in ("FloorDiv", "FloorMod") and constant and constant > 0 and constant & (constant - 1) == 0:
            return self._shifted_division(name, dtype, a, constant)
        return self._signed_division(name, dtype, a, b, constant)

    def _shifted_division(self, name: str, dtype: str, a: str, divisor: int) -> str:
        kind = llvm_type(dtype)
        if name == "FloorDiv":
            return self.op(f"ashr {kind} {a}, {self.const(divisor.bit_length() - 1, dtype)}", a)
        return self.op(f"and {kind} {a}, {self.const(divisor - 1, dtype)}", a)

    def _compare_const(self, relation: str, dtype: str, a: str, value: int) -> str:
        return self.op(f"icmp {relation} {llvm_type(dtype)} {a}, {self.const(value, dtype)}", a)

    def _unsigned_division(self, name: str, dtype: str, a: str, b: str, constant: int | None) -> str:
        kind, lanes = llvm_type(dtype), info(dtype).lanes
        verb = "udiv" if name in ("Div", "FloorDiv") else "urem"
        if constant:
            return self.op(f"{verb} {kind} {a}, {b}", a)
        zero = self._compare_const("eq", dtype, b, 0)
        safe = self.select(zero, dtype, self.const(1, dtype), b, lanes)
        value = self.op(f"{verb} {kind} {a}, {safe}", a, safe)
        return self.select(zero, dtype, self.const(0, dtype), value, lanes) if verb == "udiv" else value

    def _signed_division(self, name: str, dtype: str, a: str, b: str, constant: int | None) -> str:
        kind, lanes = llvm_type(dtype), info(dtype).lanes
        guarded = constant is None or constant in (0, -1)
        safe = b
        if guarded:
            zero, minus = self._compare_const("eq", dtype, b, 0), self._compare_const("eq", dtype, b, -1)
            either = self.op(f"or {vector_of('i1', lanes)} {zero}, {minus}", zero, minus)
            safe = self.select(either, dtype, self.const(1, dtype), b, lanes)
        if name in ("Mod", "FloorMod"):
            rest = self.op(f"srem {kind} {a}, {safe}", a, safe)
            return rest if name == "Mod" else self._floored_rest(dtype, rest, safe)
        quotient = self.op(f"sdiv {kind} {a}, {safe}", a, safe)
        if name == "FloorDiv":
            quotient = self._floored_quotient(dtype, a, quotient, safe)
        if not guarded:
            return quotient
        negated = self.op(f"sub {kind} {self.const(0, dtype)}, {a}", a)
        return self.select(zero, dtype, self.const(0, dtype), self.select(minus, dtype, negated, quotient, lanes), lanes)

    def _crosses(self, dtype: str, rest: str, divisor: str) -> str:
        """Whether a non-zero remainder has the other sign than the divisor."""
        kind, lanes = llvm_type(dtype), info(dtype).lanes
        mixed = self.op(f"xor {kind} {rest}, {divisor}", rest, divisor)
        differs, nonzero = self._compare_const("slt", dtype, mixed, 0), self._compare_const("ne", dtype, rest, 0)
        return self.op(f"and {vector_of('i1', lanes)} {differs}, {nonzero}", differs, nonzero)

    def _floored_rest(self, dtype: str, rest: str, divisor: str) -> str:
        kind, lanes = llvm_type(dtype), info(dtype).lanes
        moved = self.op(f"add {kind} {rest}, {divisor}", rest, divisor)
        return self.select(self._crosses(dtype, rest, divisor), dtype, moved, rest, lanes)

    def _floored_quotient(self, dtype: str, a: str, quotient: str, divisor: str) -> str:
        kind, lanes = llvm_type(dtype), info(dtype).lanes
        product = self.op(f"mul {kind} {quotient}, {divisor}", quotient, divisor)
        rest = self.op(f"sub {kind} {a}, {product}", a, product)
        lower = self.op(f"add {kind} {quotient}, {self.const(-1, dtype)}", quotient)
        return self.select(self._crosses(dtype, rest, divisor), dtype, lower, quotient, lanes)

    # -- shifts, defined for every amount

    def shift(self, left: bool, dtype: str, a: str, amount: str) -> str:
        """a << amount or a >> amount; from the width on, 0 (or the sign, to the right)."""
        t, kind = info(dtype), llvm_type(dtype)
        verb = "shl" if left else "ashr" if t.kind == "int" else "lshr"
        constant = _constant_of(amount)
        if constant is not None and 0 <= constant < t.bits:
            return self.op(f"{verb} {kind} {a}, {amount}", a)
        if verb == "ashr":
            bounded = self.intrinsic("umin", kind, amount, self.const(t.bits - 1, dtype))
            return self.op(f"ashr {kind} {a}, {bounded}", a, bounded)
        inside = self._compare_const("ult", dtype, amount, t.bits)
        bounded = self.select(inside, dtype, amount, self.const(0, dtype), t.lanes)
        shifted = self.op(f"{verb} {kind} {a}, {bounded}", a, bounded)
        return self.select(inside, dtype, shifted, self.const(0, dtype), t.lanes)

    # -- comparison

    def compare(self, name: str, dtype: str, a: str, b: str) -> str:
        """EQ, NE, LT, LE, GT or GE, as i1 lanes."""
        t = info(dtype)
        signed, unsigned, ordered = _COMPARE[name]
        if t.is_float:
            return self.in_wide(lambda d, x, y: self.op(f"fcmp {ordered} {llvm_type(d)} {x}, {y}", x, y), dtype, a, b, result="bool")
        return self.op(f"icmp {signed if t.kind == 'int' else unsigned} {llvm_type(dtype)} {a}, {b}", a, b)

    # -- conversion (the rules are in cast.py)

    def cast(self, value: str, source: str, target: str) -> str:
        """``value`` of dtype ``source`` as ``target`` (same lanes)."""
        from .cast import cast

        return cast(self, value, source, target)

    def cast_bounded(self, value: str, source: str, target: str) -> str:
        """:meth:`cast` of a float that is NaN or within the range of int32."""
        from .cast import cast_bounded

        return cast_bounded(self, value, source, target)


def _is_plain_constant(text: str) -> bool:
    """Whether the operand is a constant other than NaN."""
    return not text.startswith("%") and "0x7FF8" not in text and "0xFFF8" not in text


def _constant_of(text: str) -> int | None:
    """The integer of a constant operand (of all its lanes)."""
    if text == "zeroinitializer":
        return 0
    body = text.rpartition(" ")[2].rstrip(")") if text.startswith("splat") else text
    try:
        return int(body)
    except ValueError:
        return None


