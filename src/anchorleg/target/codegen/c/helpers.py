"""Small C functions that generated code calls; a source holds those it uses, once, as ``static inline``.

Each defines a result where C does not: overflow wraps, x / 0 is 0, conversion of a float out of range saturates.
"""
from __future__ import annotations

import re
from typing import NamedTuple


class Helper(NamedTuple):
    """Text of a function and the helpers it calls."""

    text: str
    needs: tuple[str, ...] = ()
    math: bool = False


_INTS = {"i8": "int8_t", "i16": "int16_t", "i32": "int32_t", "i64": "int64_t", "u8": "uint8_t", "u16": "uint16_t", "u32": "uint32_t", "u64": "uint64_t"}
HELPERS: dict[str, Helper] = {}


def _add(name: str, text: str, *needs: str, math: bool = False) -> None:
    HELPERS[name] = Helper(text.strip() + "\n", needs, math)


def _function(name: str, result: str, params: str, body: str, *needs: str, math: bool = False) -> None:
    lines = "\n".join("    " + line for line in body.strip().split("\n"))
    _add(name, f"static inline {result} {name}({params}) {{\n{lines}\n}}", *needs, math=math)


for _s, _t in _INTS.items():
    _function(f"al_min_{_s}", _t, f"{_t} a, {_t} b", "return a < b ? a : b;")
    _function(f"al_max_{_s}", _t, f"{_t} a, {_t} b", "return a > b ? a : b;")
    if _s[0] == "u":
        _function(f"al_div_{_s}", _t, f"{_t} a, {_t} b", f"return b == 0 ? 0 : ({_t})(a / b);")
        _function(f"al_mod_{_s}", _t, f"{_t} a, {_t} b", f"return b == 0 ? a : ({_t})(a % b);")
        _function(f"al_shl_{_s}", _t, f"{_t} a, uint32_t n", f"return n < {_s[1:]}U ? ({_t})(a << n) : 0;")
        _function(f"al_shr_{_s}", _t, f"{_t} a, uint32_t n", f"return n < {_s[1:]}U ? ({_t})(a >> n) : 0;")
    else:
        _u, _bits = f"u{_t}", int(_s[1:])
        _function(f"al_div_{_s}", _t, f"{_t} a, {_t} b", f"if (b == 0) return 0;\nif (b == -1) return ({_t})(0 - ({_u})a);\nreturn ({_t})(a / b);")
        _function(f"al_mod_{_s}", _t, f"{_t} a, {_t} b", f"if (b == 0 || b == -1) return 0;\nreturn ({_t})(a % b);")
        _function(f"al_floordiv_{_s}", _t, f"{_t} a, {_t} b",
                  f"const {_t} q = al_div_{_s}(a, b), r = al_mod_{_s}(a, b);\nreturn r != 0 && (r < 0) != (b < 0) ? ({_t})(q - 1) : q;",
                  f"al_div_{_s}", f"al_mod_{_s}")
        _function(f"al_floormod_{_s}", _t, f"{_t} a, {_t} b",
                  f"const {_t} r = al_mod_{_s}(a, b);\nreturn r != 0 && (r < 0) != (b < 0) ? ({_t})(r + b) : r;", f"al_mod_{_s}")
        _function(f"al_shl_{_s}", _t, f"{_t} a, uint32_t n", f"return n < {_bits}U ? ({_t})(({_u})a << n) : 0;")
        _function(f"al_shr_{_s}", _t, f"{_t} a, uint32_t n", f"return ({_t})(a >> (n < {_bits}U ? n : {_bits - 1}U));")

for _s, _t in (("f32", "float"), ("f64", "double")):
    _function(f"al_max_{_s}", _t, f"{_t} a, {_t} b", "return a > b || a != a ? a : b;  /* a NaN on either side is the result */")
    _function(f"al_min_{_s}", _t, f"{_t} a, {_t} b", "return a < b || a != a ? a : b;")
    _function(f"al_at_least_{_s}", _t, f"{_t} x, {_t} limit", "return x < limit ? limit : x;  /* limit is no NaN */")
    _function(f"al_at_most_{_s}", _t, f"{_t} x, {_t} limit", "return x > limit ? limit : x;")
    _end = "f" if _s == "f32" else ""
    for _i, _bits in (("i32", 31), ("i64", 63)):
        _function(f"al_{_s}_to_{_i}", _INTS[_i], f"{_t} x",
                  f"if (x != x) return 0;\nif (x >= {float(1 << _bits)!r}{_end}) return INT{_bits + 1}_MAX;\n"
                  f"if (x < -{float(1 << _bits)!r}{_end}) return INT{_bits + 1}_MIN;\nreturn ({_INTS[_i]})x;")
    _function(f"al_{_s}_to_u64", "uint64_t", f"{_t} x",
              f"if (!(x > 0.0{_end})) return 0;\nreturn x >= {float(1 << 64)!r}{_end} ? UINT64_MAX : (uint64_t)x;")
    _function(f"al_sigmoid_{_s}", _t, f"{_t} x", f"return 1.0{_end} / (1.0{_end} + exp{_end}(-x));", math=True)
    _function(f"al_floormod_{_s}", _t, f"{_t} a, {_t} b", f"return a - floor{_end}(a / b) * b;", math=True)

for _s, _t in _INTS.items():
    _bits = int(_s[1:])
    _function(f"al_pow_{_s}", _t, f"{_t} base, {_t} exponent",
              f"uint64_t b = (uint64_t)base, r = 1;\n{_t} e = exponent;\nif (e < 1) return 1;\n"
              f"for (; e != 0; e = ({_t})(e / 2), b *= b) {{\n    if (e % 2 != 0) r *= b;\n}}\nreturn ({_t})r;")
for _s in ("u32", "u64"):
    _t, _bits = _INTS[_s], int(_s[1:])
    _function(f"al_popcount_{_s}", "int32_t", f"{_t} x", "int32_t n = 0;\nfor (; x != 0; x &= x - 1) ++n;\nreturn n;")
    _function(f"al_clz_{_s}", "int32_t", f"{_t} x", f"int32_t n = {_bits};\nfor (; x != 0; x >>= 1) --n;\nreturn n;")

for _from, _to, _a, _b in (("f32", "u32", "float", "uint32_t"), ("u32", "f32", "uint32_t", "float"), ("f64", "u64", "double", "uint64_t"),
                           ("u64", "f64", "uint64_t", "double")):
    _function(f"al_bits_{_from}_{_to}", _b, f"{_a} x", f"{_b} y;\nmemcpy(&y, &x, sizeof y);\nreturn y;")

_function("al_bf16_to_f32", "float", "uint16_t x", "return al_bits_u32_f32((uint32_t)x << 16);", "al_bits_u32_f32")
_function("al_f32_to_bf16", "uint16_t", "float x",
          "const uint32_t b = al_bits_f32_u32(x);\nif (x != x) return (uint16_t)((b >> 16) | 0x40U);\n"
          "return (uint16_t)((b + 0x7FFFU + ((b >> 16) & 1U)) >> 16);", "al_bits_f32_u32")
_function("al_f16_to_f32", "float", "uint16_t x",
          "const uint32_t sign = (uint32_t)(x >> 15) << 31, size = x & 0x7FFFU;\n"
          "if (size < 0x400U) return al_bits_u32_f32(al_bits_f32_u32((float)size * 5.9604644775390625e-08f) | sign);\n"
          "return al_bits_u32_f32(((size << 13) + (size >= 0x7C00U ? 0x70000000U : 0x38000000U)) | sign);",
          "al_bits_f32_u32", "al_bits_u32_f32")
_function("al_f32_to_f16", "uint16_t", "float x",
          "const uint32_t b = al_bits_f32_u32(x), size = b & 0x7FFFFFFFU;\nuint32_t r;\n"
          "if (size > 0x7F800000U) r = 0x7E00U;\nelse if (size >= 0x47800000U) r = 0x7C00U;\n"
          "else if (size < 0x38800000U) r = al_bits_f32_u32(al_bits_u32_f32(size) + 0.5f) - 0x3F000000U;\n"
          "else r = ((size + 0xFFFU + ((size >> 13) & 1U)) >> 13) - 0x1C000U;\n"
          "return (uint16_t)(r | ((b >> 16) & 0x8000U));", "al_bits_f32_u32", "al_bits_u32_f32")
for _s in ("f16", "bf16"):
    _function(f"al_round_{_s}", "float", "float x", f"return al_{_s}_to_f32(al_f32_to_{_s}(x));", f"al_{_s}_to_f32", f"al_f32_to_{_s}")

_function("al_q_multiply_shift", "int32_t", "int32_t x, int32_t y, int32_t q, int32_t s",
          "/* x * y * 2^(s - q), the nearest integer, halves up */\n"
          "const int32_t left = s > 0 ? s : 0, right = q - (s < 0 ? s : 0);\n"
          "const int64_t product = (int64_t)((uint64_t)(int64_t)x << left) * y;\n"
          "const int64_t half = right > 0 ? (int64_t)1 << (right - 1) : 0;\n"
          "return (int32_t)((product + half) >> right);")
_function("al_q_multiply_shift_per_axis", "int32_t", "int32_t x, int32_t y, int32_t left, int32_t right, int32_t q, int32_t has_left, int32_t has_right",
          "const int64_t product = (int64_t)((uint64_t)(int64_t)x << (has_left ? left : 0)) * y;\n"
          "const int32_t shift = q + (has_right ? right : 0);\n"
          "return (int32_t)((product + ((int64_t)1 << (shift - 1))) >> shift);")


def closure(names: set[str]) -> list[str]:
    """The helpers and all they call, callees first."""
    order: list[str] = []
    work = [(n, False) for n in sorted(names, reverse=True)]
    while work:
        name, ready = work.pop()
        if name in order:
            continue
        if ready:
            order.append(name)
            continue
        work.append((name, True))
        work.extend((n, False) for n in HELPERS[name].needs)
    return order


def short(dtype: str) -> str:
    """``int32`` → ``i32``: how helpers are named."""
    return re.sub(r"^(u?)int", lambda m: m[1] or "i", dtype).replace("float", "f").replace("bool", "u8")
