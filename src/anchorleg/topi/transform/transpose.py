"""transpose and layout_transform: computes, and their attribute ``source_axis`` that blocked schedules go by."""
from __future__ import annotations

from typing import Any, Sequence

from ... import te
from ... import tir
from ...support.errors import TypeMismatchError
from ...te.tensor import Tensor
from ...tir.data_layout import BijectiveLayout, Layout
from ..tag import INJECTIVE
from ..utils import same_extent


def transpose(a: Tensor, axes: Sequence[int] | None = None, name: str = "T_transpose", tag: str = INJECTIVE) -> Tensor:
    """``a`` with its axes in the order ``axes`` (None or empty: reversed)."""
    order = [int(x) % a.ndim for x in axes] if axes else list(range(a.ndim))[::-1]
    if sorted(order) != list(range(a.ndim)):
        raise TypeMismatchError(f"transpose: axes {tuple(axes or ())} are no order of {a.ndim} axes")
    back = [order.index(i) for i in range(a.ndim)]
    shape = [a.shape[x] for x in order]
    attrs = {"source_axis": back[-1] if back else -1}  # the output axis along which the input is contiguous
    return te.compute(shape, lambda *i: a(*[i[b] for b in back]), name=name, tag=tag, attrs=attrs)


def layout_transform(array: Tensor, src_layout: str, dst_layout: str, schedule_rule: str = "None", name: str = "T_layout_trans",
                     tag: str = INJECTIVE) -> Tensor:
    """``array``, in layout ``src_layout``, laid out as ``dst_layout``; where a block reaches past the data it holds zeros."""
    if src_layout == dst_layout:
        return array
    way = BijectiveLayout(src_layout, dst_layout)
    shape = way.forward_shape(array.shape)
    inner = _source_axis(way.src_layout, way.dst_layout)

    def element(*i: Any) -> Any:
        where = way.backward_index(i)
        inside = [tir.op.less(w, d) for w, d, padded in zip(where, array.shape, way.backward_shape(shape)) if _grows(d, padded)]
        value = array(*where)
        return tir.if_then_else(tir.all(*inside), value, tir.const(0, array.dtype)) if inside else value

    return te.compute(shape, element, name=name, tag=tag, attrs={"source_axis": inner, "schedule_rule": schedule_rule})


def _grows(dim: Any, padded: Any) -> bool:
    """Whether an axis that was blocked is longer than the data; one that was not has the data's own size."""
    return not same_extent(dim, padded)


def _source_axis(src: Layout, dst: Layout) -> int:
    """The output axis along which the input is contiguous, -1 when there is none."""
    letter = src.axes[-1].primal if src.axes else ""
    same = [i for i, a in enumerate(dst.axes) if a.primal == letter]
    return same[-1] if same else -1


__all__ = ["transpose", "layout_transform"]
