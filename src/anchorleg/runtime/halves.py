"""Conversions to and from 16-bit floats, for processors without instructions for them.

LLVM calls these by the names of the compiler's support library, which not every system has in a fitting version.
Rounding is to nearest, ties to even; doubles go through a float rounded to odd, which keeps the second rounding exact.
"""

from __future__ import annotations

SYMBOLS = ("__truncsfbf2", "__truncdfbf2", "__truncsfhf2", "__truncdfhf2", "__extendhfsf2", "__extendhfdf2")


def conversions_text() -> str:
    """LLVM IR of the conversions; every symbol is weak."""
    return _TEXT


_TEXT = """
define internal float @al_round_to_odd(double %d) {
  %f = fptrunc double %d to float
  %b = bitcast float %f to i32
  %back = fpext float %f to double
  %da = call double @llvm.fabs.f64(double %d)
  %ba = call double @llvm.fabs.f64(double %back)
  %above = fcmp ogt double %ba, %da
  %below = fcmp olt double %ba, %da
  %inexact = or i1 %above, %below
  %low = and i32 %b, 1
  %even = icmp eq i32 %low, 0
  %fix = and i1 %inexact, %even
  %step = select i1 %above, i32 -1, i32 1
  %b2 = add i32 %b, %step
  %b3 = select i1 %fix, i32 %b2, i32 %b
  %r = bitcast i32 %b3 to float
  ret float %r
}
declare double @llvm.fabs.f64(double)

define weak bfloat @__truncsfbf2(float %x) {
  %b = bitcast float %x to i32
  %top = lshr i32 %b, 16
  %low = and i32 %top, 1
  %bias = add i32 %low, 32767
  %sum = add i32 %b, %bias
  %rounded = lshr i32 %sum, 16
  %quiet = or i32 %top, 64
  %nan = fcmp uno float %x, %x
  %r = select i1 %nan, i32 %quiet, i32 %rounded
  %h = trunc i32 %r to i16
  %v = bitcast i16 %h to bfloat
  ret bfloat %v
}

define weak bfloat @__truncdfbf2(double %x) {
  %f = call float @al_round_to_odd(double %x)
  %v = call bfloat @__truncsfbf2(float %f)
  ret bfloat %v
}

define weak half @__truncsfhf2(float %x) {
  %b = bitcast float %x to i32
  %high = lshr i32 %b, 16
  %sign = and i32 %high, 32768
  %a = and i32 %b, 2147483647
  ; not a number: keep the top of the payload, make it quiet
  %cut = lshr i32 %a, 13
  %payload = and i32 %cut, 1023
  %nan = or i32 %payload, 32256
  ; ordinary numbers: move the exponent's bias and round at bit 13
  %odd = and i32 %cut, 1
  %bias = add i32 %odd, 4095
  %up = add i32 %a, %bias
  %moved = sub i32 %up, 939524096
  %normal = lshr i32 %moved, 13
  ; small numbers: adding 0.5 rounds at 2^-24, the unit of the smallest halves
  %fa = bitcast i32 %a to float
  %fs = fadd float %fa, 5.000000e-01
  %bs = bitcast float %fs to i32
  %small = sub i32 %bs, 1056964608
  %is_small = icmp ult i32 %a, 947912704
  %is_big = icmp uge i32 %a, 1199566848
  %is_nan = icmp ugt i32 %a, 2139095040
  %r0 = select i1 %is_small, i32 %small, i32 %normal
  %r1 = select i1 %is_big, i32 31744, i32 %r0
  %r2 = select i1 %is_nan, i32 %nan, i32 %r1
  %r = or i32 %r2, %sign
  %h = trunc i32 %r to i16
  %v = bitcast i16 %h to half
  ret half %v
}

define weak half @__truncdfhf2(double %x) {
  %f = call float @al_round_to_odd(double %x)
  %v = call half @__truncsfhf2(float %f)
  ret half %v
}

define weak float @__extendhfsf2(half %x) {
  %h = bitcast half %x to i16
  %b = zext i16 %h to i32
  %a = and i32 %b, 32767
  %s = and i32 %b, 32768
  %sign = shl i32 %s, 16
  %wide = shl i32 %a, 13
  %normal = add i32 %wide, 939524096
  %special = or i32 %wide, 2139095040
  %fi = uitofp i32 %a to float
  %fs = fmul float %fi, 0x3E70000000000000
  %small = bitcast float %fs to i32
  %is_small = icmp ult i32 %a, 1024
  %is_special = icmp uge i32 %a, 31744
  %r0 = select i1 %is_small, i32 %small, i32 %normal
  %r1 = select i1 %is_special, i32 %special, i32 %r0
  %r = or i32 %r1, %sign
  %v = bitcast i32 %r to float
  ret float %v
}

define weak double @__extendhfdf2(half %x) {
  %f = call float @__extendhfsf2(half %x)
  %d = fpext float %f to double
  ret double %d
}
"""
