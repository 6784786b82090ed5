"""yolo_reorg: the rearrangement of darknet's reorg layer."""
from __future__ import annotations

from typing import Any

import numpy as np

from ....ir.attrs import INT, Attrs, Field
from ....ir.expr import Any as AnyDim, RelayExpr
from ....ir.op import Op, OpPattern
from ....ir.type import TensorType, Type
from ....support.errors import TypeMismatchError
from ...expr import Call
from ..registry import declare
from ..transform.common import known, show
from ..type_relations import tensor


class YoloReorgAttrs(Attrs, name="relay.attrs.YoloReorgAttrs"):
    """Attributes of vision.yolo_reorg."""

    stride = Field(INT, 1, "The side of the blocks of pixels that become channels.")


def _reorg_rel(args: tuple[Type, ...], attrs: YoloReorgAttrs, ctx: Any) -> Type | None:
    data = tensor(args[0], "data")
    if data is None:
        return None
    s = attrs.stride
    if len(data.dims) != 4 or s < 1:
        raise TypeMismatchError(f"expects data of rank 4 and a stride of at least 1, got shape {show(data.dims)} and {s}")
    n, c, h, w = data.dims
    if known(c) and c % (s * s) or known(h) and h % s or known(w) and w % s:
        raise TypeMismatchError(f"shape {show(data.dims)} does not divide by stride {s} (channels by its square)")
    return TensorType((n, c * s * s if known(c) else AnyDim(), *(d // s if known(d) else AnyDim() for d in (h, w))), data.dtype)


def _reorg_numpy(attrs: YoloReorgAttrs, args: list[np.ndarray], out_type: Type) -> np.ndarray:
    n, c, h, w = args[0].shape
    s = attrs.stride
    view = args[0].reshape(n, c // (s * s), h, s, w, s)  # each plane of the result's memory, seen as s times larger ones
    return view.transpose(0, 3, 5, 1, 2, 4).reshape(n, c * s * s, h // s, w // s).copy()


declare("vision.yolo_reorg", attrs=YoloReorgAttrs, relation=_reorg_rel, pattern=OpPattern.INJECTIVE, numpy=_reorg_numpy, level=5,
        doc="Darknet's reorg layer: blocks of pixels become channels.")


def yolo_reorg(data: RelayExpr, stride: int) -> Call:
    """``data`` (n, c, h, w) as (n, c·stride², h / stride, w / stride), in darknet's order."""
    return Call(Op.get("vision.yolo_reorg"), [data], YoloReorgAttrs(stride=int(stride)))


__all__ = ["YoloReorgAttrs", "yolo_reorg"]
