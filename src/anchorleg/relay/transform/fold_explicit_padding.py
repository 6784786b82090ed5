"""FoldExplicitPadding: ``nn.pad`` in front of a convolution or pool becomes that operator's own padding.

before::

    nn.conv2d(nn.pad(%x, 0f, pad_width=[[0, 0], [0, 0], [1, 1], [1, 1]]), %w)

after::

    nn.conv2d(%x, %w, padding=[1, 1, 1, 1])

Only where the padding is what the operator pads with: zeros for convolutions and averages that count them, the lowest
value for maxima.
"""
from __future__ import annotations

from typing import Any

import numpy as np

from ...ir.expr import RelayExpr
from ...ir.module import IRModule
from ...runtime.dtype import numpy_dtype
from ..expr import Call
from ..function import Function
from ..op.nn.utils import pad_pairs
from .common import declare_pass, is_op, rewrite_exprs, scalar_value, typed_replace

_CONVOLUTIONS = ("nn.conv1d", "nn.conv2d", "nn.conv3d")
_MAX_POOLS = ("nn.max_pool1d", "nn.max_pool2d", "nn.max_pool3d")
_AVG_POOLS = ("nn.avg_pool1d", "nn.avg_pool2d", "nn.avg_pool3d")


def _lowest(dtype: str) -> Any:
    kind = numpy_dtype(dtype)
    return np.iinfo(kind).min if kind.kind in "iu" else -np.inf


def _grown(pads: Any, layout: str, widths: Any) -> tuple[int, ...] | None:
    """The operator's padding with the widths added; None where an axis is padded that the operator can't pad."""
    if not layout.isalpha() or not layout.isupper() or len(layout) != len(widths):
        return None
    by_axis = dict(zip(layout, ((int(lo), int(hi)) for lo, hi in widths)))
    spatial = [c for c in layout if c in "DHW"]
    if any(lo < 0 or hi < 0 for lo, hi in by_axis.values()) or any(by_axis[c] != (0, 0) for c in layout if c not in spatial):
        return None
    own = dict(zip(spatial, pad_pairs(pads, len(spatial))))
    return (*(own[c][0] + by_axis[c][0] for c in spatial), *(own[c][1] + by_axis[c][1] for c in spatial))


def _fitting(node: Call, value: Any, dtype: str) -> dict[str, Any] | None:
    """What else changes in the attributes when padding by ``value`` is taken over; None when it can't be."""
    if is_op(node, *_CONVOLUTIONS):
        return {} if value == 0 else None
    if node.attrs.ceil_mode:
        return None
    if is_op(node, *_MAX_POOLS):
        return {} if value == _lowest(dtype) else None
    unpadded = not any(node.attrs.padding)
    return {"count_include_pad": True} if value == 0 and (unpadded or node.attrs.count_include_pad) else None


def _rule(old: Any, new: Any) -> RelayExpr:
    if not is_op(new, *_CONVOLUTIONS, *_MAX_POOLS, *_AVG_POOLS) or not is_op(new.args[0], "nn.pad"):
        return new
    pad = new.args[0]
    value = scalar_value(pad.args[1]) if len(pad.args) > 1 else None
    if value is None or pad.attrs.pad_mode != "constant":
        return new
    changes = _fitting(new, value, old.args[0].checked_type.dtype)
    layout = new.attrs.data_layout if is_op(new, *_CONVOLUTIONS) else new.attrs.layout
    pads = _grown(new.attrs.padding, layout, pad.attrs.pad_width)
    if changes is None or pads is None:
        return new
    return typed_replace(new, args=(pad.args[0], *new.args[1:]), attrs=new.attrs.replace(padding=pads, **changes))


def fold(func: Function, mod: IRModule, ctx: Any) -> Function:
    """Takes padding over into convolutions and pools."""
    return rewrite_exprs(func, _rule)  # type: ignore[return-value]


FoldExplicitPadding = declare_pass("FoldExplicitPadding", 0, fold)
