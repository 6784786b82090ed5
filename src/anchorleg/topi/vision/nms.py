"""Non-maximum suppression as loop nests.

Boxes are visited in descending order of score; each is compared with those kept so far.
"""
from __future__ import annotations

from typing import Any, Callable

from ... import tir
from ...te.tensor import Tensor
from ..kernel import View, cell, extern, let, loop, rows, scratch, seq, vectors, when
from ..sort import key_dtype, sort_pairs, sort_key
from ..utils import get_const_int

T = tir.op


def overlap(boxes: View, a: Any, b: Any) -> Any:
    """Intersection over union of the boxes whose four coordinates start at ``a`` and ``b``; 0 for an empty union."""
    low_a, high_a = ([f(boxes[a + k], boxes[a + k + 2]) for k in range(2)] for f in (T.minimum, T.maximum))
    low_b, high_b = ([f(boxes[b + k], boxes[b + k + 2]) for k in range(2)] for f in (T.minimum, T.maximum))
    zero = tir.const(0, boxes.dtype)
    sides = [T.maximum(T.minimum(high_a[k], high_b[k]) - T.maximum(low_a[k], low_b[k]), zero) for k in range(2)]
    common = sides[0] * sides[1]
    union = (high_a[0] - low_a[0]) * (high_a[1] - low_a[1]) + (high_b[0] - low_b[0]) * (high_b[1] - low_b[1]) - common
    empty = T.less_equal(union, zero)
    return T.select(empty, zero, common / T.select(empty, tir.const(1, boxes.dtype), union))


def greedy(count: Any, candidate: Callable[[Any], Any], usable: Callable[[Any], Any], rivals: Callable[[Any, Any], Any], full: Callable[[Any], Any],
           keep: Callable[[Any, Any], Any], kept: View, total: Any) -> Any:
    """Visits ``candidate(0) …``, and keeps (``kept``, ``total``) those that are usable and lose against none kept before.

    ``rivals(a, b)`` tells whether ``a``, kept, suppresses ``b``; ``full(n)`` whether n kept are enough; ``keep(n, i)`` is what is done.
    """
    def visit(k: Any) -> Any:
        def consider(i: Any) -> Any:
            def against(alive: Any) -> Any:
                def meet(r: Any) -> Any:
                    return when(alive.get(), alive.set(T.logical_not(rivals(kept[r], i))))

                put = seq(kept.store(total.get(), i), keep(total.get(), i), total.set(total.get() + 1))
                return seq(loop(total.get(), meet, "rival"), when(alive.get(), put))

            return when(tir.all(T.logical_not(full(total.get())), usable(i)), cell(tir.const(True, "bool"), against, "alive", "bool"))

        return let(candidate(k), consider, "box")

    return loop(count, visit, "visit")


def get_valid_counts(data: Tensor, score_threshold: Tensor, id_index: int = 0, score_index: int = 1) -> list[Tensor]:
    """(count, boxes, indices): the boxes whose score exceeds the threshold, moved to the top; the rest is -1."""
    batch, n, width = data.shape[0], data.shape[1], get_const_int(data.shape[2])

    def body(ins: list[View], outs: list[View]) -> Any:
        source, threshold = ins
        counts, boxes, where = outs

        def entry(b: Any) -> Any:
            base = b * (n * width)

            def run(count: Any) -> Any:
                def visit(j: Any) -> Any:
                    at = base + j * width
                    valid = T.greater(source[at + score_index], T.cast(threshold[0], data.dtype))
                    if id_index >= 0:
                        valid = tir.all(valid, T.greater_equal(source[at + id_index], tir.const(0, data.dtype)))
                    copies = [boxes.store(base + count.get() * width + k, source[at + k]) for k in range(width)]
                    return when(valid, seq(*copies, where.store(b * n + count.get(), j), count.set(count.get() + 1)))

                return seq(loop(n, visit, "j"), counts.store(b, count.get()))

            clear = seq(vectors(n * width, lambda i: boxes.store(base + i, tir.const(-1, data.dtype))), loop(n, lambda j: where.store(b * n + j, -1)))
            return seq(clear, cell(tir.const(0, "int64"), run, "count"))

        return rows(batch, entry, "batch")

    return extern([(batch,), data.shape, (batch, n)], [data, score_threshold], body, ["int32", data.dtype, "int32"], "get_valid_counts")


def non_max_suppression(data: Tensor, valid_count: Tensor, indices: Tensor, max_output_size: Tensor, iou_threshold: Tensor,
                        force_suppress: bool = False, top_k: int = -1, coord_start: int = 2, score_index: int = 1, id_index: int = 0,
                        return_indices: bool = True, invalid_to_bottom: bool = False) -> list[Tensor]:
    """[indices, numbers], or [boxes]; see the Relay operator."""
    batch, n, width = data.shape[0], data.shape[1], get_const_int(data.shape[2])

    def body(ins: list[View], outs: list[View]) -> Any:
        source, counts, original, limit, threshold = ins

        def entry(b: Any) -> Any:
            base = b * (n * width)
            valid = T.minimum(T.maximum(T.cast(counts[b], "int64"), 0), n)

            def put(slot: Any, k: Any, i: Any) -> Any:
                """Box ``i``, which stands at place ``k`` of the order, is number ``slot`` of those kept."""
                if return_indices:
                    return outs[0].store(b * n + slot, original[b * n + i])
                to = base + (slot if invalid_to_bottom else k) * width
                return seq(*[outs[0].store(to + c, source[base + i * width + c]) for c in range(width)])

            def finish(total: Any) -> Any:
                return outs[1].store(b, total) if return_indices else None

            def everything() -> Any:
                return seq(loop(valid, lambda k: put(k, k, k), "all"), finish(valid))

            def suppressed(keys: View, order: View, offset: Any) -> Any:
                looked = T.select(T.greater(valid, top_k), top_k, valid) if top_k > 0 else valid

                def at(k: Any) -> Any:
                    return base + order[offset + k] * width

                def rivals(a: Any, k: Any) -> Any:
                    clash = T.greater_equal(overlap(source, at(a) + coord_start, at(k) + coord_start), T.cast(threshold[0], data.dtype))
                    if id_index < 0:
                        return clash
                    owner = source[at(a) + id_index]
                    same = [] if force_suppress else [T.equal(owner, source[at(k) + id_index])]
                    return tir.all(T.greater_equal(owner, tir.const(0, data.dtype)), *same, clash)

                def run(kept: View, total: Any) -> Any:
                    walk = greedy(looked, lambda k: k, lambda k: T.greater(source[at(k) + score_index], tir.const(0, data.dtype)), rivals,
                                  lambda count: T.equal(count, T.cast(limit[0], "int64")), lambda slot, k: put(slot, k, order[offset + k]), kept, total)
                    return seq(walk, finish(total.get()))

                return scratch(n, "int64", lambda kept: cell(tir.const(0, "int64"), lambda total: run(kept, total), "total"), "kept")

            clear = loop(n, lambda k: outs[0].store(b * n + k, -1)) if return_indices else vectors(n * width, lambda i: outs[0].store(base + i, tir.const(-1, data.dtype)))
            ordered = sort_pairs(valid, lambda k: sort_key(source[base + k * width + score_index]), key_dtype(data.dtype), False, suppressed, n)
            some = T.greater(threshold[0], tir.const(0, iou_threshold.dtype))
            return seq(clear, finish(tir.const(0, "int64")), when(some, when(T.greater(valid, 0), ordered), everything()))

        return rows(batch, entry, "batch")

    shapes = [(batch, n), (batch, 1)] if return_indices else [data.shape]
    dtypes = ["int32", "int32"] if return_indices else [data.dtype]
    return extern(shapes, [data, valid_count, indices, max_output_size, iou_threshold], body, dtypes, "non_max_suppression")


def all_class_non_max_suppression(boxes: Tensor, scores: Tensor, max_output_boxes_per_class: Tensor, iou_threshold: Tensor,
                                  score_threshold: Tensor, output_format: str = "onnx") -> list[Tensor]:
    """Suppression for each class by itself: first (in parallel) for each class, then the results are put together."""
    batch, classes, n = scores.shape
    chosen, numbers = _per_class(boxes, scores, max_output_boxes_per_class, iou_threshold, score_threshold)
    onnx = output_format == "onnx"
    each = classes * n

    def body(ins: list[View], outs: list[View]) -> Any:
        index, number, score = ins
        table = outs[0]

        def gather(b: Any, found: Any) -> Any:
            def of_class(c: Any) -> Any:
                line = b * classes + c

                def row(k: Any) -> Any:
                    box = index[line * n + k]
                    if onnx:
                        to = found.get() * 3
                        stores = [table.store(to, b), table.store(to + 1, c), table.store(to + 2, box)]
                    else:
                        to = b * each + found.get()
                        stores = [table.store(to * 2, c), table.store(to * 2 + 1, box), outs[1].store(to, score[line * n + box])]
                    return seq(*stores, found.set(found.get() + 1))

                return loop(number[line], row, "k")

            return loop(classes, of_class, "class")

        clear = [vectors(o.size, lambda i, o=o: o.store(i, tir.const(0, o.dtype))) for o in outs[:-1]]
        if onnx:
            every = cell(tir.const(0, "int64"), lambda f: seq(loop(batch, lambda b: gather(b, f), "batch"), outs[1].store(0, f.get())), "found")
        else:
            every = loop(batch, lambda b: cell(tir.const(0, "int64"), lambda f: seq(gather(b, f), outs[2].store(b, f.get())), "found"), "batch")
        return seq(*clear, every)

    shapes = [(batch * each, 3), (1,)] if onnx else [(batch, each, 2), (batch, each), (batch,)]
    dtypes = ["int64", "int64"] if onnx else ["int64", "float32", "int64"]
    return extern(shapes, [chosen, numbers, scores], body, dtypes, "collect_boxes")


def _per_class(boxes: Tensor, scores: Tensor, limit: Tensor, iou: Tensor, least: Tensor) -> list[Tensor]:
    """(kept boxes of each batch entry and class, best first; their numbers)."""
    batch, classes, n = scores.shape

    def body(ins: list[View], outs: list[View]) -> Any:
        corners, score, most, threshold, lowest = ins
        kept, number = outs

        def line(r: Any) -> Any:
            base = T.floordiv(r, classes) * (n * 4)

            def suppress(keys: View, order: View, offset: Any) -> Any:
                def run(mine: View, total: Any) -> Any:
                    def full(count: Any) -> Any:
                        return tir.all(T.greater(most[0], tir.const(0, limit.dtype)), T.greater_equal(count, T.cast(most[0], "int64")))

                    walk = greedy(n, lambda k: order[offset + k], lambda i: T.greater(score[r * n + i], T.cast(lowest[0], scores.dtype)),
                                  lambda a, i: T.greater_equal(overlap(corners, base + a * 4, base + i * 4), T.cast(threshold[0], boxes.dtype)),
                                  full, lambda slot, i: kept.store(r * n + slot, i), mine, total)
                    return seq(when(T.greater(threshold[0], tir.const(0, iou.dtype)), walk), number.store(r, total.get()))

                return scratch(n, "int64", lambda mine: cell(tir.const(0, "int64"), lambda total: run(mine, total), "total"), "kept")

            return seq(loop(n, lambda k: kept.store(r * n + k, 0)),
                       sort_pairs(n, lambda k: sort_key(score[r * n + k]), key_dtype(scores.dtype), False, suppress))

        return rows(batch * classes, line)

    return extern([(batch * classes, n), (batch * classes,)], [boxes, scores, limit, iou, least], body, ["int64", "int64"], "all_class_nms")


def regular_non_max_suppression(boxes: Tensor, scores: Tensor, max_detections_per_class: int, max_detections: int, num_classes: int,
                                iou_threshold: float, score_threshold: float) -> list[Tensor]:
    """(boxes, classes, scores, numbers) of the best boxes after suppression for each class."""
    batch, n, columns = scores.shape
    first, most = get_const_int(columns) - num_classes, int(max_detections)

    def body(ins: list[View], outs: list[View]) -> Any:
        corners, score = ins
        out_boxes, out_classes, out_scores, numbers = outs

        def entry(b: Any) -> Any:
            def insert(best: View, box: View, label: View, have: Any, i: Any, c: Any, value: Any) -> Any:
                """Puts a box into the ordered list of the best, behind equal ones."""
                def shift(step: Any) -> Any:
                    p = most - 1 - step
                    q = T.maximum(p - 1, 0)
                    after = tir.all(T.greater(p, 0), T.any(T.greater_equal(q, have.get()), T.greater(value, best[q]))) if most > 1 else tir.const(False, "bool")
                    here = T.any(T.greater_equal(p, have.get()), T.greater(value, best[p]))
                    moved = seq(best.store(p, best[q]), box.store(p, box[q]), label.store(p, label[q]))
                    return when(after, moved, when(here, seq(best.store(p, value), box.store(p, i), label.store(p, c))))

                return seq(loop(most, shift, "shift"), have.set(T.minimum(have.get() + 1, most)))

            def one_class(best: View, box: View, label: View, have: Any, c: Any) -> Any:
                def at(i: Any) -> Any:
                    return score[(b * n + i) * columns + (c + first)]

                def suppress(keys: View, order: View, offset: Any) -> Any:
                    def run(mine: View, total: Any) -> Any:
                        def keep(slot: Any, i: Any) -> Any:
                            return let(at(i), lambda v: insert(best, box, label, have, i, c, v), "score")

                        return greedy(n, lambda k: order[offset + k], lambda i: T.greater_equal(at(i), tir.op.const(score_threshold, scores.dtype)),
                                      lambda a, i: T.greater(overlap(corners, (b * n + a) * 4, (b * n + i) * 4), tir.op.const(iou_threshold, boxes.dtype)),
                                      lambda count: T.greater_equal(count, int(max_detections_per_class)), keep, mine, total)

                    return scratch(n, "int64", lambda mine: cell(tir.const(0, "int64"), lambda total: run(mine, total), "total"), "kept")

                return sort_pairs(n, lambda k: sort_key(at(k)), key_dtype(scores.dtype), False, suppress)

            def emit(best: View, box: View, label: View, have: Any) -> Any:
                def row(k: Any) -> Any:
                    to, used = b * most + k, T.less(k, have.get())
                    source = (b * n + T.select(used, box[k], 0)) * 4
                    corner = [out_boxes.store(to * 4 + d, T.select(used, T.cast(corners[source + d], "float32"), tir.const(0, "float32"))) for d in range(4)]
                    return seq(*corner, out_classes.store(to, T.select(used, T.cast(label[k], "float32"), tir.const(0, "float32"))),
                               out_scores.store(to, T.select(used, T.cast(best[k], "float32"), tir.const(0, "float32"))))

                return seq(loop(most, row, "out"), numbers.store(b, have.get()))

            def work(best: View, box: View, label: View) -> Any:
                clear = loop(most, lambda k: seq(best.store(k, tir.const(0, scores.dtype)), box.store(k, 0), label.store(k, 0)))
                return cell(tir.const(0, "int64"), lambda have: seq(
                    clear, loop(num_classes, lambda c: one_class(best, box, label, have, c), "class"), emit(best, box, label, have)), "have")

            return scratch(most, scores.dtype, lambda best: scratch(most, "int64", lambda box: scratch(
                most, "int64", lambda label: work(best, box, label), "label"), "box"), "best")

        return rows(batch, entry, "batch")

    shapes = [(batch, most, 4), (batch, most), (batch, most), (batch,)]
    return extern(shapes, [boxes, scores], body, ["float32", "float32", "float32", "int32"], "regular_nms")


__all__ = ["get_valid_counts", "non_max_suppression", "all_class_non_max_suppression", "regular_non_max_suppression"]
