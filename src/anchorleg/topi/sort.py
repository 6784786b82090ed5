"""sort, argsort, topk and searchsorted, as loop nests.

A key is an integer image of the element whose order is the one wanted: NaN above every number, -0 equal to 0.  Short rows of
(key, index) pairs are sorted by bottom-up merging, longer ones digit by digit (radix sort, eight bits at a time); both are
stable, and neither branches on the data in its inner loop.
"""
from __future__ import annotations

from typing import Any, Callable

from .. import tir
from ..te.tensor import Tensor
from ..tir.dtypes import is_float
from .elemwise import scalar_cast
from .kernel import Rows, View, cell, cells, extern, let, loop, rows, scratch, seq, vectors, when
from .utils import static_int

MERGE_ROW = 96  # rows up to this length are merged; longer ones make up for the tables of a radix sort
DIGIT = 8  # bits of a radix sort's digits


def key_dtype(dtype: str) -> str:
    """The type of the keys of elements of ``dtype``."""
    if is_float(dtype):
        return "int64" if dtype == "float64" else "int32"
    return "uint8" if dtype == "bool" else dtype


def sort_key(x: Any) -> Any:
    """The key of an element: an integer with the element's order."""
    if not is_float(x.dtype):
        return tir.op.cast(x, key_dtype(x.dtype))
    wide = x if x.dtype in ("float32", "float64") else tir.op.cast(x, "float32")
    kind = key_dtype(wide.dtype)
    bits = tir.reinterpret(kind, wide)
    flipped = tir.op.select(tir.op.less(bits, 0), tir.bitwise_xor(bits, tir.max_value(kind)), bits)
    zero = tir.op.equal(wide, tir.const(0, wide.dtype))
    ordered = tir.op.select(zero, tir.const(0, kind), flipped)
    return tir.op.select(tir.isnan(wide), tir.max_value(kind), ordered)


def _before(a: Any, b: Any, ascending: bool) -> Any:
    """Whether an element comes before another one that stands behind it (equal ones keep their order)."""
    return tir.op.less_equal(a, b) if ascending else tir.op.greater_equal(a, b)


def _passes(n: Any) -> Any:
    """How many times runs are doubled until one run is all of ``n`` elements."""
    known = static_int(n)
    if known is not None:
        return max(known - 1, 0).bit_length()
    return tir.op.select(tir.op.less_equal(n, 1), 0, 64 - tir.op.cast(tir.clz(tir.op.maximum(n - 1, 1)), "int64"))


def sort_pairs(n: Any, load_key: Callable[[Any], Any], kind: str, ascending: bool, use: Callable[[View, View, Any], Any],
               capacity: Any = None) -> Any:
    """Sorts ``n`` keys of type ``kind`` and then runs ``use(keys, indices, offset)``: the order lies in both from ``offset`` on.

    The keys in the array are equal where the given ones are.  ``capacity`` bounds ``n`` where that is only known when the
    kernel runs.
    """
    room = n if capacity is None else capacity
    short = static_int(room) is not None and static_int(room) <= MERGE_ROW  # type: ignore[operator]
    method = _merge_sort if short else _radix_sort
    stored = kind if short else "u" + kind.lstrip("u")
    index = "int32" if static_int(room) is not None and static_int(room) < 2**30 else "int64"  # type: ignore[operator]
    return scratch(2 * room, stored, lambda keys: scratch(2 * room, index, lambda order: method(n, load_key, keys, order, ascending, use), "order"), "keys")


def _merge_sort(n: Any, load_key: Callable[[Any], Any], keys: View, order: View, ascending: bool, use: Callable[[View, View, Any], Any]) -> Any:
    fill = loop(n, lambda i: seq(keys.store(i, load_key(i)), order.store(i, i)), "fill")
    passes = _passes(n)

    def one_pass(p: Any) -> Any:
        width = tir.shift_left(tir.const(1, "int64"), p)
        source, target = tir.floormod(p, 2) * n, (1 - tir.floormod(p, 2)) * n
        blocks = tir.floordiv(n + 2 * width - 1, 2 * width)
        return let(width, lambda w: let(source, lambda s: let(target, lambda t: loop(
            blocks, lambda b: _merge(n, b * 2 * w, w, s, t, keys, order, ascending), "block"), "target"), "source"), "width")

    return seq(fill, loop(passes, one_pass, "pass"), use(keys, order, tir.floormod(passes, 2) * n))


def _radix_sort(n: Any, load_key: Callable[[Any], Any], keys: View, order: View, ascending: bool, use: Callable[[View, View, Any], Any]) -> Any:
    bits = int(keys.dtype.lstrip("uint"))
    passes = bits // DIGIT

    def image(key: Any) -> Any:
        """The key as an unsigned number that grows in the order wanted."""
        number = tir.op.cast(key, keys.dtype)
        if not key.dtype.startswith("u"):
            number = tir.bitwise_xor(number, tir.const(1 << (bits - 1), keys.dtype))
        return number if ascending else tir.bitwise_not(number)

    def digit(key: Any, p: Any) -> Any:
        shifted = tir.shift_right(key, tir.op.cast(p * DIGIT, keys.dtype))
        return tir.op.cast(tir.bitwise_and(shifted, tir.const((1 << DIGIT) - 1, keys.dtype)), "int64")

    def one_pass(p: Any, places: View) -> Any:
        source, target = tir.floormod(p, 2) * n, (1 - tir.floormod(p, 2)) * n

        def count(i: Any) -> Any:
            return let(digit(keys[source + i], p), lambda d: places.store(d, places[d] + 1), "digit")

        def to_place(total: Any) -> Any:
            def entry(d: Any) -> Any:
                return let(places[d], lambda c: seq(places.store(d, total.get()), total.set(total.get() + c)), "count")

            return loop(1 << DIGIT, entry, "d")

        def move(key: Any, i: Any) -> Any:
            def put(d: Any) -> Any:
                return let(places[d], lambda to: seq(places.store(d, to + 1), keys.store(target + to, key), order.store(target + to, order[source + i])), "to")

            return let(digit(key, p), put, "digit")

        clear = vectors(1 << DIGIT, lambda d: places.store(d, tir.const(0, "int64")), "clear")
        deal = loop(n, lambda i: let(keys[source + i], lambda key: move(key, i), "key"), "deal")
        return seq(clear, loop(n, count, "count"), cell(tir.const(0, "int64"), to_place, "total"), deal)

    fill = loop(n, lambda i: seq(keys.store(i, image(load_key(i))), order.store(i, i)), "fill")
    every = scratch(1 << DIGIT, "int64", lambda places: loop(passes, lambda p: one_pass(p, places), "pass"), "places", "local")
    return seq(fill, every, use(keys, order, (passes % 2) * n))


def _merge(n: Any, low: Any, width: Any, source: Any, target: Any, keys: View, order: View, ascending: bool) -> Any:
    """Merges two neighbouring runs of ``width`` elements from ``low`` on."""
    def run(low: Any, middle: Any, high: Any) -> Any:
        def merging(i: Any, j: Any) -> Any:
            def step(k: Any) -> Any:
                left, right = source + tir.op.minimum(i.get(), n - 1), source + tir.op.minimum(j.get(), n - 1)
                order_holds = tir.any(tir.op.greater_equal(j.get(), high), _before(keys[left], keys[right], ascending))
                take = tir.all(tir.op.less(i.get(), middle), order_holds)

                def move(from_left: Any) -> Any:
                    at = tir.op.select(from_left, left, right)
                    put = seq(keys.store(target + k, keys[at]), order.store(target + k, order[at]))
                    one = tir.op.cast(from_left, "int64")
                    return seq(put, let(one, lambda o: seq(i.set(i.get() + o), j.set(j.get() + (1 - o))), "one"))

                return let(take, move, "take")

            return loop(high - low, lambda k: step(low + k), "k")

        return cells([low, middle], merging, ("i", "j"))

    middle, high = tir.op.minimum(low + width, n), tir.op.minimum(low + 2 * width, n)
    return let(low, lambda a: let(middle, lambda m: let(high, lambda h: run(a, m, h), "high"), "middle"), "low")


def _sorted_rows(data: Tensor, axis: int, ascending: bool, name: str, shapes: list[Any], dtypes: list[str],
                 emit: Callable[[View, list[View], Any, Any, Any, Rows], Any], length: Tensor | None = None) -> list[Tensor]:
    """Sorts each row and has ``emit(data, outs, base, k, index, rows)`` store what stands at place ``k`` of the order."""
    lines = Rows(data.shape, axis)

    def body(ins: list[View], outs: list[View]) -> Any:
        source = ins[0]

        def row(r: Any) -> Any:
            base = lines.base(r)
            n = lines.length if length is None else tir.op.minimum(tir.op.maximum(tir.op.cast(ins[1][r], "int64"), 0), lines.length)

            def use(keys: View, order: View, offset: Any) -> Any:
                ordered = loop(n, lambda k: let(order[offset + k], lambda i: emit(source, outs, r, k, i, lines), "index"), "out")
                rest = loop(lines.length - n, lambda k: emit(source, outs, r, n + k, n + k, lines), "rest") if length is not None else None
                return seq(ordered, rest)

            return sort_pairs(n, lambda i: sort_key(source[base + i * lines.stride]), key_dtype(data.dtype), ascending, use, lines.length)

        return rows(lines.count, row)

    return extern(shapes, [data] if length is None else [data, length], body, dtypes, name, name)


def sort(data: Tensor, axis: int = -1, is_ascend: bool = True) -> Tensor:
    """``data`` in order along ``axis``."""
    def emit(source: View, outs: list[View], r: Any, k: Any, index: Any, lines: Rows) -> Any:
        base = lines.base(r)
        return outs[0].store(base + k * lines.stride, source[base + index * lines.stride])

    return _sorted_rows(data, axis, is_ascend, "sort_cpu", [data.shape], [data.dtype], emit)[0]


def argsort(data: Tensor, valid_count: Tensor | None = None, axis: int = -1, is_ascend: bool = True, dtype: str = "int32") -> Tensor:
    """The indices that put ``data`` in order along ``axis``; equal elements keep their order.

    ``valid_count`` (one number a row) says how many leading elements of each row are sorted; the others keep their place.
    """
    def emit(source: View, outs: list[View], r: Any, k: Any, index: Any, lines: Rows) -> Any:
        return outs[0].store(lines.base(r) + k * lines.stride, scalar_cast(index, dtype))

    return _sorted_rows(data, axis, is_ascend, "argsort_cpu", [data.shape], [dtype], emit, valid_count)[0]


def topk(data: Tensor, k: int = 1, axis: int = -1, ret_type: str = "both", is_ascend: bool = False, dtype: str = "int64") -> Any:
    """The ``k`` (below 1: all) largest, or smallest, elements along ``axis``, in order: values, indices or both."""
    at = int(axis) % data.ndim
    size = data.shape[at] if k < 1 else int(k)
    shape = [*data.shape[:at], size, *data.shape[at + 1:]]
    kinds = {"both": ["values", "indices"]}.get(ret_type, [ret_type])
    out_rows = Rows(shape, at)

    def emit(source: View, outs: list[View], r: Any, place: Any, index: Any, lines: Rows) -> Any:
        to = out_rows.base(r) + place * out_rows.stride
        stores = {"values": lambda out: out.store(to, source[lines.base(r) + index * lines.stride]),
                  "indices": lambda out: out.store(to, scalar_cast(index, dtype))}
        return seq(*[stores[kind](out) for kind, out in zip(kinds, outs)])

    shapes, dtypes = [shape] * len(kinds), [data.dtype if kind == "values" else dtype for kind in kinds]
    known = static_int(size)
    if known is not None and known <= _short_list(static_int(data.shape[at])):
        made = _selected_rows(data, at, known, is_ascend, shapes, dtypes, emit)
    else:
        made = _first_of_sorted(data, at, size, is_ascend, shapes, dtypes, emit)
    return made if ret_type == "both" else made[0]


def _short_list(n: int | None) -> int:
    """Up to which k an ordered list of the best elements beats sorting a row of ``n``, even where every element enters it."""
    return 16 if n is None else max(16, 4 * n.bit_length())


def _first_of_sorted(data: Tensor, at: int, size: Any, ascending: bool, shapes: list[Any], dtypes: list[str], emit: Any) -> list[Tensor]:
    lines = Rows(data.shape, at)

    def body(ins: list[View], outs: list[View]) -> Any:
        def row(r: Any) -> Any:
            base = lines.base(r)

            def use(keys: View, order: View, offset: Any) -> Any:
                return loop(size, lambda k: let(order[offset + k], lambda i: emit(ins[0], outs, r, k, i, lines), "index"), "out")

            return sort_pairs(lines.length, lambda i: sort_key(ins[0][base + i * lines.stride]), key_dtype(data.dtype), ascending, use)

        return rows(lines.count, row)

    return extern(shapes, [data], body, dtypes, "topk_cpu", "topk_cpu")


def _selected_rows(data: Tensor, at: int, k: int, ascending: bool, shapes: list[Any], dtypes: list[str], emit: Any) -> list[Tensor]:
    """Keeps the best ``k`` elements seen so far in an ordered list; most elements only meet its last entry."""
    lines, kind = Rows(data.shape, at), key_dtype(data.dtype)

    def better(a: Any, b: Any) -> Any:
        return tir.op.less(a, b) if ascending else tir.op.greater(a, b)

    def body(ins: list[View], outs: list[View]) -> Any:
        source = ins[0]

        def row(r: Any) -> Any:
            base = lines.base(r)

            def select(keys: View, order: View) -> Any:
                def insert(i: Any, key: Any) -> Any:
                    def shift(step: Any) -> Any:
                        p = k - 1 - step
                        q = tir.op.maximum(p - 1, 0)
                        after = tir.all(tir.op.greater(p, 0), tir.any(tir.op.greater_equal(q, i), better(key, keys[q])))
                        here = tir.any(tir.op.greater_equal(p, i), better(key, keys[p]))
                        moved = seq(keys.store(p, keys[q]), order.store(p, order[q]))
                        return when(after, moved, when(here, seq(keys.store(p, key), order.store(p, i))))

                    return loop(k, shift, "shift")

                def visit(i: Any) -> Any:
                    def meet(key: Any) -> Any:
                        return when(tir.any(tir.op.less(i, k), better(key, keys[k - 1])), insert(i, key))

                    return let(sort_key(source[base + i * lines.stride]), meet, "key")

                clear = loop(k, lambda p: seq(keys.store(p, 0), order.store(p, 0)), "clear")
                found = loop(k, lambda p: let(order[p], lambda i: emit(source, outs, r, p, i, lines), "index"), "out")
                return seq(clear, loop(lines.length, visit, "seen"), found)

            return scratch(k, kind, lambda keys: scratch(k, "int64", lambda order: select(keys, order), "order", "local"), "keys", "local")

        return rows(lines.count, row)

    return extern(shapes, [data], body, dtypes, "topk_cpu", "topk_cpu")


def searchsorted(sorted_sequence: Tensor, values: Tensor, right: bool = False, out_dtype: str = "int64") -> Tensor:
    """The position of each value that keeps its (row of the) ascending ``sorted_sequence`` sorted; NaN is the largest."""
    n, each = sorted_sequence.shape[-1], values.shape[-1]
    shared = sorted_sequence.ndim == 1
    steps = _passes(n + 1 if static_int(n) is None else static_int(n) + 1)  # type: ignore[operator]

    def body(ins: list[View], outs: list[View]) -> Any:
        keys, wanted = ins

        def find(i: Any) -> Any:
            base = 0 if shared else tir.floordiv(i, each) * n

            def search(x: Any) -> Any:
                def halving(low: Any, high: Any) -> Any:
                    def step(_: Any) -> Any:
                        def probe(middle: Any) -> Any:
                            key = sort_key(keys[base + tir.op.minimum(middle, n - 1)])
                            below = tir.op.less_equal(key, x) if right else tir.op.less(key, x)
                            return when(tir.op.less(low.get(), high.get()), when(below, low.set(middle + 1), high.set(middle)))

                        return let(tir.floordiv(low.get() + high.get(), 2), probe, "middle")

                    return seq(loop(steps, step, "step"), outs[0].store(i, scalar_cast(low.get(), out_dtype)))

                return cells([tir.const(0, "int64"), n], halving, ("low", "high"))

            return let(sort_key(wanted[i]), search, "key")

        return rows(wanted.size, find, "i")

    return extern([values.shape], [sorted_sequence, values], body, [out_dtype], "searchsorted", "searchsorted")[0]


__all__ = ["sort", "argsort", "topk", "searchsorted", "sort_key", "key_dtype", "sort_pairs"]
