"""``dyn.topk``: topk whose k is an input."""
from __future__ import annotations

from typing import Any

import numpy as np

from ....ir.expr import Any as AnyDim, RelayExpr
from ....ir.op import Op, OpPattern
from ....ir.type import Type
from ....support.errors import TypeMismatchError
from ...expr import Call, TupleWrapper
from ..algorithm.topk import TopkAttrs, topk_numpy, topk_type
from ..registry import declare
from ..transform.common import known, product, show, tensors


def _topk_rel(args: tuple[Type, ...], attrs: TopkAttrs, ctx: Any) -> Type | None:
    types = tensors(args, ("data", "k"))
    if types is None:
        return None
    if len(types[1].dims) > 1 or known(product(types[1].dims)) and product(types[1].dims) != 1:
        raise TypeMismatchError(f"k must be one number, got shape {show(types[1].dims)}")
    return topk_type(types[0], AnyDim(), attrs)


def _topk_numpy(attrs: TopkAttrs, args: list[np.ndarray], out_type: Type) -> Any:
    return topk_numpy(args[0], int(args[1].reshape(())), attrs)


declare("dyn.topk", inputs=("data", "k"), attrs=TopkAttrs, relation=_topk_rel, pattern=OpPattern.OPAQUE, numpy=_topk_numpy, level=6,
        doc="topk whose k is an input.")


def topk(data: RelayExpr, k: RelayExpr, axis: int = -1, ret_type: str = "both", is_ascend: bool = False, dtype: str = "int32") -> Any:
    """``topk`` whose ``k`` is a scalar, or a vector of one number."""
    call = Call(Op.get("dyn.topk"), [data, k], TopkAttrs(axis=int(axis), ret_type=ret_type, is_ascend=is_ascend, dtype=dtype))
    return TupleWrapper(call, 2) if ret_type == "both" else call


__all__ = ["topk"]
