"""Mathematical functions, emitted inline for any number of lanes.

float32 is computed by argument reduction and minimax polynomials (fitted for this file by weighted least squares with the
coefficients rounded one after the other); NaN, infinities, signed zeros, overflow and subnormal results come out as in
IEEE 754.  Largest errors measured over all magnitudes against float64, in units in the last place, are in ``MAX_ULP``.
float64 calls the C library lane by lane; narrower floats go through float32.
"""
from __future__ import annotations

import math
import struct
from typing import Callable

from ....tir.dtypes import info, with_lanes
from .arith import Arith
from .types import llvm_type, vector_of

MAX_ULP = {"exp": 1.1, "exp2": 0.9, "exp10": 1.0, "log": 1.0, "log2": 1.0, "log10": 1.5, "log1p": 1.5, "tanh": 1.6, "sigmoid": 2.0, "erf": 1.5,
           "sin": 1.7, "cos": 1.7, "tan": 2.8, "asin": 2.0, "acos": 2.0, "atan": 1.5, "sinh": 2.0, "cosh": 1.7, "asinh": 2.2, "acosh": 2.2,
           "atanh": 2.2, "pow": 0.6, "sqrt": 0.5, "rsqrt": 1.6}

# polynomials, lowest degree first; the comment says of what, and the relative error of the whole function
_EXP = (0.4999999403953552, 0.1666652113199234, 0.04166825860738754, 0.00836866907775402, 0.0013821289176121354)  # (e^r-1-r)/r²: 2^-28.3
_EXP2 = (0.6931471824645996, 0.24022650718688965, 0.055504050105810165, 0.009618086740374565, 0.0013337967684492469, 0.0001545211998745799,
         1.432211047358578e-05)  # (2^r-1)/r: 2^-32.5
_EXP10 = (2.3025851249694824, 2.650949239730835, 2.034668207168579, 1.1712188720703125, 0.5402069091796875, 0.20875774323940277,
          0.049484800547361374)  # (10^r-1)/r: 2^-30.1
_LOG = (0.3333331346511841, -0.25000008940696716, 0.2000207155942917, -0.16667988896369934, 0.14220358431339264, -0.12406233698129654,
        0.11883548647165298, -0.11670097708702087, 0.06749267876148224)  # (log(1+f)-f+f²/2)/f³: 2^-30.3
_SIN = (-0.16666655242443085, 0.008332189172506332, -0.0001951828016899526)  # (sin r - r)/r³ in r²: 2^-27.9
_COS = (0.04166664555668831, -0.0013887310633435845, 2.4432561986031942e-05)  # (cos r - 1 + r²/2)/r⁴ in r²: 2^-33.0
_TAN = (0.33333155512809753, 0.13338831067085266, 0.0534089095890522, 0.024437928572297096, 0.003108208067715168,
        0.009391991421580315)  # (tan r - r)/r³ in r²: 2^-25.7
_ATAN = (-0.33333298563957214, 0.1999852955341339, -0.14264015853405, 0.10950880497694016, -0.08399306237697601, 0.05788138881325722,
         -0.031096987426280975, 0.01086869090795517, -0.0017828245181590319)  # (atan t - t)/t³ in t²: 2^-28.5
_ASIN = (0.16666752099990845, 0.07495306432247162, 0.045469772070646286, 0.02418077550828457, 0.04216640442609787)  # (asin s - s)/s³: 2^-27.6
_SINH = (0.1666666716337204, 0.00833331048488617, 0.00019842895562760532, 2.7822131869470468e-06)  # (sinh x - x)/x³ in x²: 2^-31.6
_TANH = (-0.33333298563957214, 0.13331936299800873, -0.05378471687436104, 0.02079862542450428,
         -0.005897966679185629)  # (tanh x - x)/x³ in x², |x| < 0.6: 2^-28.4
_ERF_SMALL = (0.12837915122509003, -0.37612488865852356, 0.11281731724739075, -0.026763014495372772, 0.004987447522580624,
              -0.0005960162379778922)  # erf(x)/x - 1 in x², |x| < 0.9297: 2^-25.8
_ERF_LARGE = (1.1286485195159912, 0.635151207447052, 0.10623703896999359, -0.023762183263897896, 0.003642505733296275, -0.0003228123241569847,
              1.123177025874611e-05)  # -log(1-erf(t))/t, t in [0.92, 3.95]: 2^-30.3
_MAGIC = 12582912.0  # 1.5·2²³: adding it rounds to an integer that stands in the low bits
_MAGIC64 = 6755399441055744.0
_LN2, _LOG2E = math.log(2.0), 1.0 / math.log(2.0)


def _f32(x: float) -> float:
    return struct.unpack("<f", struct.pack("<f", x))[0]


def _bits_of(x: float) -> int:
    return struct.unpack("<I", struct.pack("<f", x))[0]


def _split(x: float, parts: int, drop: int = 0) -> list[float]:
    """``x`` as a sum of float32 numbers, each with ``drop`` zero low bits but the last."""
    result = []
    for _ in range(parts - 1):
        head = struct.unpack("<f", struct.pack("<I", _bits_of(_f32(x)) & ~((1 << drop) - 1)))[0]
        result.append(head)
        x -= head
    return [*result, _f32(x)]


_PIO2_FMA = [_f32(math.pi / 2), _f32(-4.371139000186241e-08), _f32(-1.7151245100059e-15)]  # π/2 in three parts, full precision each
_PIO2_PLAIN = [1.5703125, 4.837512969970703125e-4, 7.549789954891882e-8]
_LN2_FMA, _LN2_PLAIN = _split(_LN2, 2), [0.693359375, -2.12194440054690583e-4]
_LG2_FMA, _LG2_PLAIN = _split(math.log10(2.0), 2), [0.301025390625, 4.605038981195214e-06]


class VectorMath:
    """The functions on float32 values of some number of lanes; operands and results are operand texts."""

    def __init__(self, ar: Arith, lanes: int) -> None:
        self.ar, self.lanes, self.fused = ar, lanes, ar.cpu.has_fma
        self.f32, self.i32 = with_lanes("float32", lanes), with_lanes("int32", lanes)
        self.ft, self.it, self.bt = llvm_type(self.f32), llvm_type(self.i32), vector_of("i1", lanes)

    # -- building blocks

    def c(self, x: float) -> str:
        return self.ar.const(x, self.f32)

    def ic(self, x: int) -> str:
        return self.ar.const(x, self.i32)

    def _f(self, verb: str, a: str, b: str) -> str:
        return self.ar.op(f"{verb} {self.ft} {a}, {b}", a, b)

    def add(self, a: str, b: str) -> str:
        return self._f("fadd", a, b)

    def sub(self, a: str, b: str) -> str:
        return self._f("fsub", a, b)

    def mul(self, a: str, b: str) -> str:
        return self._f("fmul", a, b)

    def div(self, a: str, b: str) -> str:
        return self._f("fdiv", a, b)

    def neg(self, a: str) -> str:
        return self.ar.op(f"fneg {self.ft} {a}", a)

    def fma(self, a: str, b: str, c: str) -> str:
        """a·b + c, with one rounding where the processor can."""
        if self.fused:
            return self.ar.intrinsic("fma", self.ft, a, b, c)
        return self.add(self.mul(a, b), c)

    def fn(self, name: str, *args: str) -> str:
        return self.ar.intrinsic(name, self.ft, *args)

    def test(self, relation: str, a: str, b: str) -> str:
        return self.ar.op(f"fcmp {relation} {self.ft} {a}, {b}", a, b)

    def pick(self, condition: str, a: str, b: str) -> str:
        return self.ar.select(condition, self.f32, a, b, self.lanes)

    def i(self, verb: str, a: str, b: str) -> str:
        return self.ar.op(f"{verb} {self.it} {a}, {b}", a, b)

    def bits(self, x: str) -> str:
        return self.ar.op(f"bitcast {self.ft} {x} to {self.it}", x)

    def value(self, bits: str) -> str:
        return self.ar.op(f"bitcast {self.it} {bits} to {self.ft}", bits)

    def at_least(self, x: str, bound: float) -> str:
        """max(x, bound); NaN stays."""
        return self.pick(self.test("ogt", self.c(bound), x), self.c(bound), x)

    def at_most(self, x: str, bound: float) -> str:
        """min(x, bound); NaN stays."""
        return self.pick(self.test("olt", self.c(bound), x), self.c(bound), x)

    def poly(self, coefficients: tuple[float, ...], x: str) -> str:
        """Horner's scheme."""
        result = self.c(coefficients[-1])
        for k in reversed(coefficients[:-1]):
            result = self.fma(result, x, self.c(k))
        return result

    def sign_of(self, size: str, x: str) -> str:
        return self.fn("copysign", size, x)

    def reduce(self, x: str, factor: float, parts: list[float]) -> tuple[str, str, str]:
        """(x - n·Σparts, n as a float, the integer n) for n the integer nearest to x·factor."""
        shifted = self.fma(x, self.c(factor), self.c(_MAGIC))
        n = self.sub(shifted, self.c(_MAGIC))
        for part in parts:
            x = self.fma(n, self.c(-part), x)
        return x, n, self.i("sub", self.bits(shifted), self.ic(_bits_of(_MAGIC)))

    def power_of_two(self, n: str) -> str:
        """2**n for an integer n with -127 < n < 128."""
        return self.value(self.i("shl", self.i("add", n, self.ic(127)), self.ic(23)))

    def scale(self, x: str, whole: str, n: str) -> str:
        """x·2**n, in two steps so that neither over- nor underflows before its time; ``whole`` is n as a float."""
        if self.ar.cpu.arch == "x86_64" and self.ar.cpu.vector_bytes == 64 and self.lanes == 16:
            return self._scale_avx512(x, whole)
        half = self.i("ashr", n, self.ic(1))
        return self.mul(self.mul(x, self.power_of_two(half)), self.power_of_two(self.i("sub", n, half)))

    def _scale_avx512(self, x: str, n: str) -> str:
        name, kind = "llvm.x86.avx512.mask.scalef.ps.512", self.ft
        self.ar.b.declare(name, f"{kind} @{name}({kind}, {kind}, {kind}, i16, i32)")
        return self.ar.op(f"call {kind} @{name}({kind} {x}, {kind} {n}, {kind} zeroinitializer, i16 -1, i32 4)", x, n)

    # -- exponentials

    def _ln2(self) -> list[float]:
        return _LN2_FMA if self.fused else _LN2_PLAIN

    def _expm1_reduced(self, r: str) -> str:
        return self.fma(self.poly(_EXP, r), self.mul(r, r), r)

    def exp(self, x: str, halvings: int = 0, careful: bool = False) -> str:
        """e**x / 2**halvings; ``careful``: within 0.6 ulp instead of 1"""
        x = self.at_most(self.at_least(x, -104.0), 89.0 + halvings)
        r, whole, n = self.reduce(x, _LOG2E, self._ln2())
        if halvings:
            whole, n = self.sub(whole, self.c(float(halvings))), self.i("sub", n, self.ic(halvings))
        return self.scale(self._exp_reduced(r) if careful else self.add(self._expm1_reduced(r), self.c(1.0)), whole, n)

    def _exp_reduced(self, r: str) -> str:
        """1 + r + r²·q with what 1 + r loses put back"""
        one = self.c(1.0)
        head = self.add(r, one)
        lost = self.add(self.sub(one, head), r)
        return self.add(head, self.fma(self.poly(_EXP, r), self.mul(r, r), lost))

    def exp2(self, x: str) -> str:
        x = self.at_most(self.at_least(x, -151.0), 129.0)
        r, whole, n = self.reduce(x, 1.0, [1.0])
        return self.scale(self.fma(self.poly(_EXP2, r), r, self.c(1.0)), whole, n)

    def exp10(self, x: str) -> str:
        x = self.at_most(self.at_least(x, -46.0), 39.0)
        r, whole, n = self.reduce(x, 1.0 / math.log10(2.0), _LG2_FMA if self.fused else _LG2_PLAIN)
        return self.scale(self.fma(self.poly(_EXP10, r), r, self.c(1.0)), whole, n)

    def sigmoid(self, x: str) -> str:
        """1/(1+e), or e/(1+e) for negative x, with e = e^-|x|, which does not overflow; what 1+e loses is put back"""
        one = self.c(1.0)
        e = self.exp(self.neg(self.fn("fabs", x)), careful=True)
        top = self.pick(self.test("oge", x, self.c(0.0)), one, e)
        bottom = self.add(e, one)
        lost = self.add(self.sub(one, bottom), e)
        quotient = self.div(top, bottom)
        correction = self.mul(lost, self.fma(e, self.c(-0.5), one))
        return self.fma(self.neg(quotient), correction, quotient)

    def tanh(self, x: str) -> str:
        """1 - 2/(e^2|x| + 1), and a polynomial where that would cancel"""
        size = self.fn("fabs", x)
        z = self.mul(x, x)
        small = self.fma(self.mul(size, z), self.poly(_TANH, z), size)
        bounded = self.at_most(size, 10.0)
        r, _, n = self.reduce(self.add(bounded, bounded), _LOG2E, self._ln2())
        s = self.power_of_two(n)
        bottom = self.fma(s, self._expm1_reduced(r), self.add(s, self.c(1.0)))
        large = self.sub(self.c(1.0), self.div(self.c(2.0), bottom))
        return self.sign_of(self.pick(self.test("olt", size, self.c(0.6)), small, large), x)

    def sinh(self, x: str) -> str:
        size = self.fn("fabs", x)
        z = self.mul(x, x)
        small = self.fma(self.mul(size, z), self.poly(_SINH, z), size)
        half = self.exp(size, halvings=1)
        large = self.sub(half, self.div(self.c(0.25), half))
        return self.sign_of(self.pick(self.test("olt", size, self.c(1.0)), small, large), x)

    def cosh(self, x: str) -> str:
        half = self.exp(self.fn("fabs", x), halvings=1)
        return self.add(half, self.div(self.c(0.25), half))

    def erf(self, x: str) -> str:
        size = self.at_most(self.fn("fabs", x), 4.0)
        z = self.mul(size, size)
        small = self.fma(size, self.poly(_ERF_SMALL, z), size)
        large = self.sub(self.c(1.0), self.exp(self.neg(self.mul(size, self.poly(_ERF_LARGE, size)))))
        return self.sign_of(self.pick(self.test("ogt", size, self.c(0.927)), large, small), x)

    # -- logarithms

    def _split_log(self, x: str) -> tuple[str, str, str]:
        """(e as a float, f, the integer e) with x = 2**e · (1+f), 1+f in [√½, √2)"""
        tiny = self.test("olt", x, self.c(1.1754943508222875e-38))
        bits = self.bits(self.pick(tiny, self.mul(x, self.c(8388608.0)), x))
        above = self.i("sub", bits, self.ic(0x3F3504F3))
        e = self.i("ashr", above, self.ic(23))
        f = self.sub(self.value(self.i("sub", bits, self.i("shl", e, self.ic(23)))), self.c(1.0))
        e = self.i("sub", e, self.ar.select(tiny, self.i32, self.ic(23), self.ic(0), self.lanes))
        return self.ar.op(f"sitofp {self.it} {e} to {self.ft}", e), f, e

    def _log_tail(self, f: str) -> tuple[str, str]:
        """(f², log(1+f) - f + f²/2)"""
        z = self.mul(f, f)
        return z, self.mul(self.mul(f, z), self.poly(_LOG, f))

    def _finish_log(self, result: str, x: str, pole: float) -> str:
        result = self.pick(self.test("oeq", x, self.c(math.inf)), x, result)
        result = self.pick(self.test("oeq", x, self.c(pole)), self.c(-math.inf), result)
        return self.pick(self.test("ult", x, self.c(pole)), self.c(math.nan), result)

    def _log_of(self, e: str, f: str) -> str:
        z, y = self._log_tail(f)
        y = self.fma(e, self.c(-2.12194440054690583e-4), y)
        y = self.add(f, self.fma(z, self.c(-0.5), y))
        return self.fma(e, self.c(0.693359375), y)

    def log(self, x: str) -> str:
        e, f, _ = self._split_log(x)
        return self._finish_log(self._log_of(e, f), x, 0.0)

    def log1p(self, x: str) -> str:
        """log of 1+x, where what the sum lost is put back into f"""
        one = self.c(1.0)
        u = self.add(x, one)
        back = self.sub(u, one)
        lost = self.add(self.sub(x, back), self.sub(one, self.sub(u, back)))
        e, f, n = self._split_log(u)
        smallest = self.ar.intrinsic("smin", self.it, n, self.ic(126))
        f = self.add(f, self.mul(lost, self.power_of_two(self.i("sub", self.ic(0), smallest))))
        result = self._finish_log(self._log_of(e, f), x, -1.0)
        return self.pick(self.test("oeq", x, self.c(0.0)), x, result)

    def _log_base(self, x: str, per_e: float, factor: float) -> str:
        """log(x)·factor with e·log(2)·factor = e·per_e, carried in two parts"""
        e, f, _ = self._split_log(x)
        z, y = self._log_tail(f)
        y = self.fma(z, self.c(-0.5), y)
        r = self.add(f, y)
        low = self.add(self.sub(f, r), y)
        high_k, low_k = self.c(_f32(factor)), self.c(factor - _f32(factor))
        t = self.mul(r, high_k)
        rest = self.add(self.fma(r, high_k, self.neg(t)), self.fma(low, high_k, self.mul(r, low_k)))
        whole, extra = (1.0, 0.0) if per_e == 1.0 else _LG2_PLAIN
        whole_part = self.mul(e, self.c(whole))
        total = self.add(whole_part, t)
        rest = self.add(self.sub(t, self.sub(total, whole_part)), rest)
        if extra:
            rest = self.fma(e, self.c(extra), rest)
        return self._finish_log(self.add(total, rest), x, 0.0)

    def log2(self, x: str) -> str:
        return self._log_base(x, 1.0, _LOG2E)

    def log10(self, x: str) -> str:
        return self._log_base(x, math.log10(2.0), 1.0 / math.log(10.0))

    def asinh(self, x: str) -> str:
        size = self.fn("fabs", x)
        z = self.mul(size, size)
        root = self.fn("sqrt", self.add(z, self.c(1.0)))
        near = self.log1p(self.add(size, self.div(z, self.add(root, self.c(1.0)))))
        far = self.add(self.log(size), self.c(_LN2))
        return self.sign_of(self.pick(self.test("ogt", size, self.c(1e9)), far, near), x)

    def acosh(self, x: str) -> str:
        t = self.sub(x, self.c(1.0))
        near = self.log1p(self.add(t, self.fn("sqrt", self.fma(t, t, self.add(t, t)))))
        far = self.add(self.log(x), self.c(_LN2))
        result = self.pick(self.test("ogt", x, self.c(1e9)), far, near)
        return self.pick(self.test("ult", x, self.c(1.0)), self.c(math.nan), result)

    def atanh(self, x: str) -> str:
        size = self.fn("fabs", x)
        inner = self.div(self.add(size, size), self.sub(self.c(1.0), size))
        return self.sign_of(self.mul(self.c(0.5), self.log1p(inner)), x)

    # -- circular functions

    def _quadrant(self, x: str) -> tuple[str, str]:
        """(x - n·π/2, the integer n)"""
        r, _, n = self.reduce(x, 2.0 / math.pi, _PIO2_FMA if self.fused else _PIO2_PLAIN)
        return r, n

    def _flip(self, x: str, n: str, bit: int) -> str:
        """x with its sign changed where bit ``bit`` of n is set."""
        mask = self.i("shl", self.i("and", n, self.ic(1 << bit)), self.ic(31 - bit))
        return self.value(self.i("xor", self.bits(x), mask))

    def _odd(self, n: str) -> str:
        low = self.i("and", n, self.ic(1))
        return self.ar.op(f"icmp ne {self.it} {low}, {self.ic(0)}", low)

    def _sin_cos(self, x: str, shift: int) -> str:
        r, n = self._quadrant(x)
        if shift:
            n = self.i("add", n, self.ic(shift))
        z = self.mul(r, r)
        sine = self.fma(self.mul(r, z), self.poly(_SIN, z), r)
        cosine = self.fma(self.mul(z, z), self.poly(_COS, z), self.fma(z, self.c(-0.5), self.c(1.0)))
        return self._flip(self.pick(self._odd(n), cosine, sine), n, 1)

    def _or_library(self, x: str, fast: str, name: str) -> str:
        """``fast``, but the C library's answer when some |x| is too large for the short reduction (or no number)."""
        limit = 70000.0 if self.fused else 8000.0
        far = self.test("ugt", self.fn("fabs", x), self.c(limit))
        return self.ar.where_any(far, self.lanes, lambda: library_call(self.ar, name, self.f32, x), fast, self.f32)

    def sin(self, x: str) -> str:
        near = self.pick(self.test("oeq", x, self.c(0.0)), x, self._sin_cos(x, 0))
        return self._or_library(x, near, "sin")

    def cos(self, x: str) -> str:
        return self._or_library(x, self._sin_cos(x, 1), "cos")

    def tan(self, x: str) -> str:
        r, n = self._quadrant(x)
        z = self.mul(r, r)
        t = self.fma(self.mul(r, z), self.poly(_TAN, z), r)
        near = self.pick(self._odd(n), self.div(self.c(-1.0), t), t)
        return self._or_library(x, self.pick(self.test("oeq", x, self.c(0.0)), x, near), "tan")

    def _asin_parts(self, x: str) -> tuple[str, str]:
        """(whether |x| > ½, asin of |x| or of √((1-|x|)/2))"""
        size = self.fn("fabs", x)
        large = self.test("ogt", size, self.c(0.5))
        folded = self.mul(self.sub(self.c(1.0), size), self.c(0.5))
        z = self.pick(large, folded, self.mul(size, size))
        s = self.pick(large, self.fn("sqrt", folded), size)
        return large, self.fma(self.mul(s, z), self.poly(_ASIN, z), s)

    def asin(self, x: str) -> str:
        large, p = self._asin_parts(x)
        return self.sign_of(self.pick(large, self._from_right_angle(self.add(p, p)), p), x)

    def _from_right_angle(self, angle: str) -> str:
        return self.add(self.sub(self.c(_f32(math.pi / 2)), angle), self.c(math.pi / 2 - _f32(math.pi / 2)))

    def acos(self, x: str) -> str:
        large, p = self._asin_parts(x)
        twice = self.add(p, p)
        straight = self.add(self.sub(self.c(_f32(math.pi)), twice), self.c(math.pi - _f32(math.pi)))
        outer = self.pick(self.test("olt", x, self.c(0.0)), straight, twice)
        return self.pick(large, outer, self._from_right_angle(self.sign_of(p, x)))

    def atan(self, x: str) -> str:
        size = self.fn("fabs", x)
        large = self.test("ogt", size, self.c(1.0))
        t = self.pick(large, self.div(self.c(1.0), size), size)
        z = self.mul(t, t)
        p = self.fma(self.mul(t, z), self.poly(_ATAN, z), t)
        return self.sign_of(self.pick(large, self._from_right_angle(p), p), x)

    def rsqrt(self, x: str) -> str:
        return self.div(self.c(1.0), self.fn("sqrt", x))

    def pow(self, x: str, y: str) -> str:
        return _Pow(self.ar, self.lanes).of(x, y)


class _Pow:
    """float32 powers through float64: 2**(y·log2|x|), rounded once at the end."""

    def __init__(self, ar: Arith, lanes: int) -> None:
        self.ar, self.lanes = ar, lanes
        self.f32, self.f64, self.i64 = (with_lanes(t, lanes) for t in ("float32", "float64", "int64"))
        self.single, self.dt, self.it = llvm_type(self.f32), llvm_type(self.f64), llvm_type(self.i64)
        self.bt = vector_of("i1", lanes)

    def c(self, x: float) -> str:
        return self.ar.const(x, self.f64)

    def f(self, verb: str, a: str, b: str) -> str:
        return self.ar.op(f"{verb} {self.dt} {a}, {b}", a, b)

    def i(self, verb: str, a: str, b: int | str) -> str:
        b = self.ar.const(b, self.i64) if isinstance(b, int) else b
        return self.ar.op(f"{verb} {self.it} {a}, {b}", a, b)

    def fma(self, a: str, b: str, c: str) -> str:
        if self.ar.cpu.has_fma:
            return self.ar.intrinsic("fma", self.dt, a, b, c)
        return self.f("fadd", self.f("fmul", a, b), c)

    def poly(self, coefficients: list[float], x: str) -> str:
        result = self.c(coefficients[-1])
        for k in reversed(coefficients[:-1]):
            result = self.fma(result, x, self.c(k))
        return result

    def cast(self, what: str, value: str, source: str, target: str) -> str:
        return self.ar.op(f"{what} {source} {value} to {target}", value)

    def pick(self, condition: str, dtype: str, a: str, b: str) -> str:
        return self.ar.select(condition, dtype, a, b, self.lanes)

    def test(self, relation: str, a: str, b: str, kind: str | None = None) -> str:
        return self.ar.op(f"fcmp {relation} {kind or self.dt} {a}, {b}", a, b)

    def log2(self, a: str) -> str:
        """Of a positive number."""
        bits = self.cast("bitcast", a, self.dt, self.it)
        above = self.i("sub", bits, 0x3FE6A09E667F3BCD)
        e = self.i("ashr", above, 52)
        m = self.cast("bitcast", self.i("sub", bits, self.i("shl", e, 52)), self.it, self.dt)
        magic = struct.unpack("<q", struct.pack("<d", _MAGIC64))[0]
        whole = self.f("fsub", self.cast("bitcast", self.i("add", e, magic), self.it, self.dt), self.c(_MAGIC64))
        s = self.f("fdiv", self.f("fadd", m, self.c(-1.0)), self.f("fadd", m, self.c(1.0)))
        z = self.f("fmul", s, s)
        series = self.poly([2 * _LOG2E / (2 * k + 1) for k in range(9)], z)
        return self.fma(s, series, whole)

    def exp2(self, w: str) -> str:
        for relation, bound in (("ogt", -200.0), ("olt", 200.0)):
            w = self.pick(self.test(relation, self.c(bound), w), self.f64, self.c(bound), w)
        shifted = self.f("fadd", w, self.c(_MAGIC64))
        r = self.f("fsub", w, self.f("fsub", shifted, self.c(_MAGIC64)))
        p = self.poly([_LN2 ** k / math.factorial(k) for k in range(11)], r)
        magic = struct.unpack("<q", struct.pack("<d", _MAGIC64))[0]
        n = self.i("sub", self.cast("bitcast", shifted, self.dt, self.it), magic)
        scale = self.cast("bitcast", self.i("shl", self.i("add", n, 1023), 52), self.it, self.dt)
        return self.f("fmul", p, scale)

    def of(self, x: str, y: str) -> str:
        wide_y, size = self.cast("fpext", y, self.single, self.dt), self.ar.intrinsic("fabs", self.single, x)
        a = self.cast("fpext", size, self.single, self.dt)
        log = self.log2(a)
        for special, value in ((0.0, -math.inf), (math.inf, math.inf)):
            log = self.pick(self.test("oeq", a, self.c(special)), self.f64, self.c(value), log)
        log = self.pick(self.test("uno", a, a), self.f64, self.c(math.nan), log)
        power = self.cast("fptrunc", self.exp2(self.f("fmul", wide_y, log)), self.dt, self.single)
        return self._ones(x, y, self._negative_base(x, y, size, power))

    def _negative_base(self, x: str, y: str, size: str, power: str) -> str:
        half, zero = self.ar.const(0.5, self.f32), self.ar.const(0.0, self.f32)
        whole = self.test("oeq", self.ar.intrinsic("trunc", self.single, y), y, self.single)
        halved = self.ar.op(f"fmul {self.single} {y}, {half}", y)
        even = self.test("oeq", self.ar.intrinsic("trunc", self.single, halved), halved, self.single)
        odd = self.ar.op(f"and {self.bt} {whole}, {self._not(even)}", whole, even)
        signed = self.pick(odd, self.f32, self.ar.intrinsic("copysign", self.single, power, x), power)
        below = self.test("olt", x, zero, self.single)
        finite = self.test("olt", size, self.ar.const(math.inf, self.f32), self.single)
        bad = self.ar.op(f"and {self.bt} {self.ar.op(f'and {self.bt} {below}, {finite}', below, finite)}, {self._not(whole)}",
                         below, finite, whole)
        return self.pick(bad, self.f32, self.ar.const(math.nan, self.f32), signed)

    def _not(self, condition: str) -> str:
        return self.ar.op(f"xor {self.bt} {condition}, {self.ar.const(1, with_lanes('bool', self.lanes))}", condition)

    def _ones(self, x: str, y: str, result: str) -> str:
        one = self.ar.const(1.0, self.f32)
        minus = self.test("oeq", x, self.ar.const(-1.0, self.f32), self.single)
        endless = self.test("oeq", self.ar.intrinsic("fabs", self.single, y), self.ar.const(math.inf, self.f32), self.single)
        both = self.ar.op(f"and {self.bt} {minus}, {endless}", minus, endless)
        for condition in (self.test("oeq", x, one, self.single), self.test("oeq", y, self.ar.const(0.0, self.f32), self.single), both):
            result = self.pick(condition, self.f32, one, result)
        return result


# what LLVM has for every float type, vectors included
_INTRINSICS = {"sqrt": "sqrt", "floor": "floor", "ceil": "ceil", "trunc": "trunc", "round": "round", "nearbyint": "rint", "fabs": "fabs",
               "copysign": "copysign"}
_INLINE = frozenset(("exp", "exp2", "exp10", "log", "log2", "log10", "log1p", "tanh", "sigmoid", "erf", "sin", "cos", "tan", "asin", "acos", "atan",
                     "sinh", "cosh", "asinh", "acosh", "atanh", "rsqrt", "pow"))
_LIBRARY = frozenset(("atan2", "hypot", "nextafter", "fmod", "exp", "exp2", "log", "log2", "log10", "log1p", "tanh", "erf", "sin", "cos", "tan", "asin",
                      "acos", "atan", "sinh", "cosh", "asinh", "acosh", "atanh", "pow"))
FUNCTIONS = frozenset(_INTRINSICS) | _INLINE | _LIBRARY


def library_call(ar: Arith, name: str, dtype: str, *args: str) -> str:
    """The C library's function on each lane of float32 or float64 values."""
    scalar = info(dtype).scalar
    kind = llvm_type(scalar)
    symbol = name + ("f" if scalar == "float32" else "")
    return ar.per_lane(lambda *row: ar.b.call(symbol, kind, [(kind, v) for v in row]), dtype, *((a, dtype) for a in args))


def math_call(ar: Arith, name: str, dtype: str, *args: str) -> str:
    """The function ``name`` (one of FUNCTIONS) of values of a floating dtype."""
    if name == "nextafter" and info(dtype).bits < 32:
        return _nextafter_narrow(ar, dtype, *args)
    return ar.in_wide(lambda d, *wide: _wide_call(ar, name, d, *wide), dtype, *args)


def _wide_call(ar: Arith, name: str, dtype: str, *args: str) -> str:
    if name in _INTRINSICS:
        return ar.intrinsic(_INTRINSICS[name], llvm_type(dtype), *args)
    if info(dtype).scalar == "float64":
        return _DOUBLE.get(name, library_call_named(name))(ar, dtype, *args)
    if name in _INLINE:
        return getattr(VectorMath(ar, info(dtype).lanes), name)(*args)
    return library_call(ar, name, dtype, *args)


def library_call_named(name: str) -> Callable[..., str]:
    """`library_call` of one function."""
    return lambda ar, dtype, *args: library_call(ar, name, dtype, *args)


def _double_rsqrt(ar: Arith, dtype: str, x: str) -> str:
    root = ar.intrinsic("sqrt", llvm_type(dtype), x)
    return ar.op(f"fdiv {llvm_type(dtype)} {ar.const(1.0, dtype)}, {root}", root)


def _double_sigmoid(ar: Arith, dtype: str, x: str) -> str:
    kind, lanes, one = llvm_type(dtype), info(dtype).lanes, ar.const(1.0, dtype)
    size = ar.intrinsic("fabs", kind, x)
    e = library_call(ar, "exp", dtype, ar.op(f"fneg {kind} {size}", size))
    positive = ar.op(f"fcmp oge {kind} {x}, {ar.const(0.0, dtype)}", x)
    top = ar.select(positive, dtype, one, e, lanes)
    return ar.op(f"fdiv {kind} {top}, {ar.op(f'fadd {kind} {one}, {e}', e)}", top, e)


def _double_exp10(ar: Arith, dtype: str, x: str) -> str:
    return library_call(ar, "pow", dtype, ar.const(10.0, dtype), x)


_DOUBLE: dict[str, Callable[..., str]] = {"rsqrt": _double_rsqrt, "sigmoid": _double_sigmoid, "exp10": _double_exp10}


def _nextafter_narrow(ar: Arith, dtype: str, x: str, y: str) -> str:
    """The neighbour in a 16-bit format, by stepping its bits."""
    t = info(dtype)
    ints, lanes = with_lanes(f"int{t.bits}", t.lanes), t.lanes
    it, ft = llvm_type(ints), llvm_type(dtype)
    as_bits: Callable[[str], str] = lambda v: v if ft == it else ar.op(f"bitcast {ft} {v} to {it}", v)
    bx, by = as_bits(x), as_bits(y)
    size = ar.op(f"and {it} {bx}, {ar.const((1 << (t.bits - 1)) - 1, ints)}", bx)
    is_zero = ar.op(f"icmp eq {it} {size}, {ar.const(0, ints)}", size)
    up, equal, unordered = ar.compare("LT", dtype, x, y), ar.compare("EQ", dtype, x, y), _unordered(ar, dtype, x, y)
    negative = ar.op(f"icmp slt {it} {bx}, {ar.const(0, ints)}", bx)
    away = ar.op(f"xor {vector_of('i1', lanes)} {up}, {negative}", up, negative)
    step = ar.select(away, ints, ar.const(1, ints), ar.const(-1, ints), lanes)
    moved = ar.op(f"add {it} {bx}, {step}", bx, step)
    sign = ar.op(f"and {it} {by}, {ar.const(-(1 << (t.bits - 1)), ints)}", by)
    least = ar.op(f"or {it} {sign}, {ar.const(1, ints)}", sign)
    result = ar.select(is_zero, ints, least, moved, lanes)
    result = ar.select(equal, ints, by, result, lanes)
    back = result if ft == it else ar.op(f"bitcast {it} {result} to {ft}", result)
    return ar.select(unordered, dtype, ar.binary("Add", dtype, x, y), back, lanes)


def _unordered(ar: Arith, dtype: str, x: str, y: str) -> str:
    return ar.in_wide(lambda d, a, b: ar.op(f"fcmp uno {llvm_type(d)} {a}, {b}", a, b), dtype, x, y, result="bool")

