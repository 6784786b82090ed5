"""multibox_prior and multibox_transform_loc."""
from __future__ import annotations

from typing import Any, Sequence

from ... import te
from ... import tir
from ...te.tensor import Tensor
from ..kernel import View, cell, cells, extern, loop, rows, seq, vectors, when
from ..tag import INJECTIVE

T = tir.op


def multibox_prior(rows_: int, columns: int, shapes: Sequence[tuple[float, float]], steps: tuple[float, float],
                   offsets: tuple[float, float], clip: bool, dtype: str) -> Tensor:
    """Boxes around each cell: ``shapes`` are half widths and heights, ``steps`` and ``offsets`` go down and across."""
    n = len(shapes)

    def pick(k: Any, which: int) -> Any:
        value = tir.const(shapes[-1][which], "float64")
        for i in reversed(range(n - 1)):
            value = T.select(T.equal(k, i), tir.const(shapes[i][which], "float64"), value)
        return value

    def element(_: Any, box: Any, side: Any) -> Any:
        place, k = T.floordiv(box, n), T.floormod(box, n)
        y = (T.cast(T.floordiv(place, columns), "float64") + tir.const(offsets[0], "float64")) * tir.const(steps[0], "float64")
        x = (T.cast(T.floormod(place, columns), "float64") + tir.const(offsets[1], "float64")) * tir.const(steps[1], "float64")
        across = T.equal(T.floormod(side, 2), 0)
        centre, half = T.select(across, x, y), T.select(across, pick(k, 0), pick(k, 1))
        value = T.select(T.less(side, 2), centre - half, centre + half)
        if clip:
            value = T.maximum(T.minimum(value, tir.const(1, "float64")), tir.const(0, "float64"))
        return T.cast(value, dtype)

    return te.compute((1, rows_ * columns * n, 4), element, name="multibox_prior", tag=INJECTIVE)


def multibox_transform_loc(cls_prob: Tensor, loc_pred: Tensor, anchor: Tensor, clip: bool = True, threshold: float = 0.01,
                           variances: Sequence[float] = (0.1, 0.1, 0.2, 0.2), keep_background: bool = False) -> list[Tensor]:
    """(boxes as class, score and corners, -1 past their number; numbers)."""
    batch, classes, n = cls_prob.shape
    dtype, first = cls_prob.dtype, 0 if keep_background else 1

    def body(ins: list[View], outs: list[View]) -> Any:
        scores, offsets, anchors = ins
        boxes, numbers = outs

        def entry(b: Any) -> Any:
            def run(count: Any) -> Any:
                def visit(j: Any) -> Any:
                    def best(label: Any, score: Any) -> Any:
                        def meet(c: Any) -> Any:
                            value = scores[(b * classes + (c + first)) * n + j]
                            return when(T.greater(value, score.get()), seq(label.set(c + first), score.set(value)))

                        start = score.set(scores[(b * classes + first) * n + j])
                        faint = when(T.less(score.get(), tir.const(threshold, dtype)), label.set(0))
                        to = (b * n + count.get()) * 6
                        head = seq(boxes.store(to, T.cast(label.get() - (0 if keep_background else 1), dtype)), boxes.store(to + 1, score.get()))
                        put = seq(head, _decode(boxes, to + 2, anchors, j * 4, offsets, (b * n + j) * 4, clip, variances, dtype), count.set(count.get() + 1))
                        return seq(start, loop(classes - first, meet, "class"), faint, put if keep_background else when(T.greater(label.get(), 0), put))

                    return cells([tir.const(first, "int64"), tir.const(0, dtype)], best, ("label", "score"))

                return seq(loop(n, visit, "anchor"), numbers.store(b, count.get()))

            clear = vectors(n * 6, lambda i: boxes.store(b * n * 6 + i, tir.const(-1, dtype)))
            return seq(clear, cell(tir.const(0, "int64"), run, "count"))

        return rows(batch, entry, "batch")

    return extern([(batch, n, 6), (batch,)], [cls_prob, loc_pred, anchor], body, [dtype, "int32"], "multibox_transform_loc")


def _decode(boxes: View, to: Any, anchors: View, a: Any, offsets: View, o: Any, clip: bool, variances: Sequence[float], dtype: str) -> Any:
    """Stores the corners of the box that the offsets at ``o`` make of the anchor at ``a``."""
    half = tir.const(0.5, dtype)
    stores = []
    for d in range(2):
        low, high = T.cast(anchors[a + d], dtype), T.cast(anchors[a + d + 2], dtype)
        centre = T.cast(offsets[o + d], dtype) * tir.const(variances[d], dtype) * (high - low) + (low + high) * half
        reach = tir.exp(T.cast(offsets[o + d + 2], dtype) * tir.const(variances[d + 2], dtype)) * (high - low) * half
        for k, value in ((d, centre - reach), (d + 2, centre + reach)):
            cut = T.maximum(T.minimum(value, tir.const(1, dtype)), tir.const(0, dtype)) if clip else value
            stores.append(boxes.store(to + k, cut))
    return seq(*stores)


__all__ = ["multibox_prior", "multibox_transform_loc"]
