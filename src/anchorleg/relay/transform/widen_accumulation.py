"""WidenAccumulation: products of half precision are summed in float32 and rounded once.

before::

    nn.dense(%x, %w)                                            # float16

after::

    cast(nn.dense(%x, %w, out_dtype="float32"), dtype="float16")

Summed in their own precision, a thousand terms leave two correct digits; ONNX Runtime and the operators' numpy rules sum wide.
The cast joins the kernel as its last step.
"""
from __future__ import annotations

from typing import Any

from ...ir.expr import RelayExpr
from ...ir.op import Op
from ...ir.type import TensorType
from ..expr import Call
from ..function import Function
from ..op.registry import make_attrs
from .common import call, declare_pass, rewrite_exprs

NARROW = ("float16", "bfloat16")
SUMS = frozenset({"nn.conv1d", "nn.conv2d", "nn.conv3d", "nn.conv1d_transpose", "nn.conv2d_transpose", "nn.conv3d_transpose", "nn.deformable_conv2d",
                  "nn.dense", "nn.matmul", "nn.batch_matmul"})


def _is_narrow(node: Any) -> bool:
    if not (isinstance(node, Call) and isinstance(node.op, Op) and node.op.name in SUMS):
        return False
    types = [node._checked_type, *(a._checked_type for a in node.args)]
    return all(isinstance(t, TensorType) and t.dtype in NARROW for t in types)


def widen(func: Function, mod: Any, ctx: Any) -> Function:
    """Sums of half-precision products run in float32."""

    def rule(old: Any, new: Any) -> RelayExpr:
        if not _is_narrow(old):
            return new
        summed = new.replace(attrs=new.attrs.replace(out_dtype="float32"))
        rounded = call("cast", summed, attrs=make_attrs("cast", dtype=old.checked_type.dtype), span=new.span)
        return rounded

    return rewrite_exprs(func, rule)  # type: ignore[return-value]


WidenAccumulation = declare_pass("WidenAccumulation", 0, widen)
