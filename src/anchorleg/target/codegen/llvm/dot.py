"""Dot products of four bytes: ``pack4x8`` puts bytes side by side in a 32-bit word, ``dot4_*`` multiplies two such words.

Bytes that lie next to one another in memory are loaded as words.  A dot product is one instruction where the processor has
it; elsewhere bytes are widened to 16 bits and multiplied in pairs, for which every vector unit has instructions.  All forms are
exact.
"""
from __future__ import annotations

from typing import TYPE_CHECKING, Any, Callable, Sequence

from ....tir import expr as tir
from ....tir.buffer import BufferLoad
from ....tir.dtypes import info, with_lanes
from .linear import Lin, VLin
from .types import vector_of

if TYPE_CHECKING:
    from .arith import Arith
    from .expressions import Expressions

_LITTLE_ENDIAN = ("x86_64", "i686", "aarch64", "arm", "riscv32", "riscv64", "wasm32")
PACK = "tir.pack4x8"


# -- words of four bytes


def loads_of(node: tir.Call) -> tuple[list[BufferLoad], int]:
    """The loads that a ``pack4x8`` packs and the lanes that each is spread over (1: as they are); none when it packs other values."""
    args, spread = list(node.args), 1
    if all(isinstance(a, tir.Broadcast) for a in args):
        spread = info(node.dtype).lanes
        args = [a.value for a in args]
    same = all(isinstance(a, BufferLoad) and a.buffer is args[0].buffer and len(a.indices) == len(args[0].indices) for a in args)
    return (args, spread) if same else ([], 1)


def emit_pack(em: Expressions, node: tir.Call) -> str:
    """Four bytes as a word, the first lowest."""
    loads, spread = loads_of(node)
    if loads:
        word = _word(em, loads)
        return em.ar.splat(word, "int32", spread) if spread > 1 else word
    return _joined(em, [em._operand_of(a) for a in node.args], node.args[0].dtype, node.dtype)


def _word(em: Expressions, loads: Sequence[BufferLoad]) -> str:
    """Four loaded bytes as a word: one load when they lie side by side."""
    places = [em._buffer_index(load.buffer, load.indices, [em._index_value(i) for i in load.indices]) for load in loads]
    buffer, dtype = loads[0].buffer, loads[0].dtype
    words = with_lanes("int32", info(dtype).lanes)
    if em.ar.cpu.arch in _LITTLE_ENDIAN and id(buffer.data) not in em.slots and _side_by_side(places):
        base = places[0].base if isinstance(places[0], VLin) else places[0]
        address = em.b.address(em.pointer(buffer.data), "i8", base)
        kind = vector_of("i32", info(dtype).lanes)
        return em.b.load(kind, address, 1, em._version(id(buffer.data)))
    return _joined(em, [em._load(load) for load in loads], dtype, words)


def _side_by_side(places: Sequence[Any]) -> bool:
    """Whether four (vectors of) places are bytes 0 to 3 of words; vectors must cover neighbouring words."""
    if all(isinstance(p, Lin) for p in places):
        return all(_ahead(places[0], p) == i for i, p in enumerate(places))
    if not all(isinstance(p, VLin) and p.stride == 4 and p.repeat == 1 for p in places):
        return False
    return all(_ahead(places[0].base, p.base) == i for i, p in enumerate(places))


def _ahead(first: Lin, other: Lin) -> int | None:
    difference = other.add(first, -1)
    return difference.const if difference.is_const else None


def _joined(em: Expressions, values: Sequence[str], dtype: str, words: str) -> str:
    unsigned = dtype.replace("uint", "int").replace("int", "uint")
    total = em.ar.const(0, words)
    for i, value in enumerate(values):
        wide = em.ar.cast(value, unsigned, words)
        total = em.ar.binary("bitwise_or", words, total, em.ar.shift(True, words, wide, em.ar.const(8 * i, words)) if i else wide)
    return total


# -- dot products


def dot_product(em: Expressions, signed: bool, dtype: str, a: str, b: str, total: str) -> str:
    """``total`` + the dot product, lane by lane, of the bytes in ``a`` (of that sign) and the signed ones in ``b``."""
    lanes, most = info(dtype).lanes, max(1, _lanes_of_dot(em.ar, signed))
    if most == 1 or lanes < 4 or lanes % 4:
        return _by_pairs(em.ar, signed, lanes, a, b, total)
    parts, start = [], 0
    while start < lanes:
        count = next(n for n in (16, 8, 4) if n <= min(most, lanes - start))
        cut = [_part(em.ar, v, lanes, start, count) for v in (a, b, total)]
        parts.append((_native(em, signed, count, *cut), count))
        start += count
    return _whole(em.ar, parts)


def _lanes_of_dot(ar: Arith, signed: bool) -> int:
    """Lanes of the widest instruction; 0 when the processor has none for these signs."""
    cpu = ar.cpu
    if cpu.arch in ("x86_64", "i686"):
        return 0 if signed else cpu.dot_bytes // 4
    if cpu.arch == "aarch64" and (signed or cpu.has_mixed_dot):
        return cpu.dot_bytes // 4
    return 0


def _native(em: Expressions, signed: bool, lanes: int, a: str, b: str, total: str) -> str:
    words, bytes_ = vector_of("i32", lanes), vector_of("i8", 4 * lanes)
    x, y = (em.ar.op(f"bitcast {words} {v} to {bytes_}", v) for v in (a, b))
    name = (f"llvm.aarch64.neon.{'sdot' if signed else 'usdot'}.v4i32.v16i8" if em.ar.cpu.arch == "aarch64"
            else f"llvm.x86.avx512.vpdpbusd.{32 * lanes}")
    return em.b.call(name, words, [(words, total), (bytes_, x), (bytes_, y)])


def _by_pairs(ar: Arith, signed: bool, lanes: int, a: str, b: str, total: str) -> str:
    """Even and odd bytes as 16-bit numbers, multiplied to 32 bits and added in pairs."""
    words = vector_of("i32", lanes)
    for x, y in zip(_halves(ar, a, lanes, signed), _halves(ar, b, lanes, True)):
        sums = _pair_sums(ar, x, y, lanes)
        total = ar.op(f"add {words} {total}, {sums}", total, sums)
    return total


def _halves(ar: Arith, value: str, lanes: int, signed: bool) -> tuple[str, str]:
    """The even and the odd bytes of words as 16-bit numbers."""
    kind = vector_of("i16", 2 * lanes)
    eight, low = (f"<{', '.join([f'i16 {n}'] * (2 * lanes))}>" for n in (8, 255))
    pairs = ar.op(f"bitcast {vector_of('i32', lanes)} {value} to {kind}", value)
    if not signed:
        return ar.op(f"and {kind} {pairs}, {low}", pairs), ar.op(f"lshr {kind} {pairs}, {eight}", pairs)
    top = ar.op(f"shl {kind} {pairs}, {eight}", pairs)
    return ar.op(f"ashr {kind} {top}, {eight}", top), ar.op(f"ashr {kind} {pairs}, {eight}", pairs)


def _pair_sums(ar: Arith, x: str, y: str, lanes: int) -> str:
    narrow, wide = vector_of("i16", 2 * lanes), vector_of("i32", 2 * lanes)
    a, b = (ar.op(f"sext {narrow} {v} to {wide}", v) for v in (x, y))
    product = ar.op(f"mul {wide} {a}, {b}", a, b)
    if lanes == 1:
        low, high = (ar.op(f"extractelement {wide} {product}, i64 {i}", product) for i in (0, 1))
    else:
        low, high = (ar.op(f"shufflevector {wide} {product}, {wide} poison, <{lanes} x i32> <{_mask(range(i, 2 * lanes, 2))}>", product)
                     for i in (0, 1))
    return ar.op(f"add {vector_of('i32', lanes)} {low}, {high}", low, high)


def _mask(indices: Sequence[int]) -> str:
    return ", ".join(f"i32 {i}" for i in indices)


def _part(ar: Arith, value: str, lanes: int, start: int, count: int) -> str:
    if count == lanes:
        return value
    kind = vector_of("i32", lanes)
    return ar.op(f"shufflevector {kind} {value}, {kind} poison, <{count} x i32> <{_mask(range(start, start + count))}>", value)


def _whole(ar: Arith, parts: Sequence[tuple[str, int]]) -> str:
    """Parts of a vector joined, pairs of equal width first."""
    value, have = parts[0]
    for part, count in parts[1:]:
        if count < have:
            kind = vector_of("i32", count)
            spread = ", ".join([f"i32 {i}" for i in range(count)] + ["i32 poison"] * (have - count))
            part = ar.op(f"shufflevector {kind} {part}, {kind} poison, <{have} x i32> <{spread}>", part)
        kind = vector_of("i32", have)
        value = ar.op(f"shufflevector {kind} {value}, {kind} {part}, <{have + count} x i32> <{_mask(range(have + count))}>", value, part)
        have += count
    return value


def emit_dot(signed: bool) -> Callable[[Any, tir.Call, list[str]], str]:
    """How a call of ``dot4_s8s8`` (``signed``) or ``dot4_u8s8`` is emitted."""
    return lambda em, node, args: dot_product(em, signed, node.dtype, *args)


DOTS = {"tir.dot4_u8s8": False, "tir.dot4_s8s8": True}

__all__ = ["DOTS", "PACK", "dot_product", "emit_dot", "emit_pack", "loads_of"]
