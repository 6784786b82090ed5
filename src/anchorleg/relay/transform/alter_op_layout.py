"""AlterOpLayout: operators move to the layouts that the target's kernels want, and their neighbours follow.

before::

    nn.relu(nn.conv2d(%x, %w))

after (weights that are constant fold)::

    %0 = nn.contrib_conv2d_NCHWc(layout_transform(%x, NCHW → NCHW16c), layout_transform(%w, OIHW → OIHW16i16o))
    layout_transform(nn.relu(%0), NCHW16c → NCHW)
"""
from __future__ import annotations

from typing import Any, Sequence

from ...ir.expr import Any as AnyDim, RelayExpr
from ...ir.module import IRModule
from ...ir.type import TensorType, TupleType
from ..expr import Call
from ..function import Function
from .common import declare_pass
from .fuse_ops import is_static
from .layout.rewrite import LayoutRewriter


def _placeholders(call: Call) -> list[Any]:
    """The call's tensor arguments as TE placeholders, which the altering functions take."""
    from ... import te

    found: list[Any] = []
    for arg in call.args:
        ty = arg.checked_type
        for t in ty.fields if isinstance(ty, TupleType) else (ty,):
            found.append(te.placeholder([te.size_var("any_dim", "int64") if isinstance(d, AnyDim) else d for d in t.dims], t.dtype))
    return found


def _alter(call: Call, args: Sequence[RelayExpr]) -> RelayExpr | None:
    fn = call.op.get_attr("FTVMAlterOpLayout")
    if fn is None:
        return None
    if not getattr(fn, "takes_unknown_sizes", False) and not all(is_static(a.checked_type) for a in (call, *call.args)):
        return None
    if not all(isinstance(a.checked_type, (TensorType, TupleType)) for a in call.args):
        return None
    return fn(call.attrs, list(args), _placeholders(call), call.checked_type)


def alter(func: Function, mod: IRModule, ctx: Any) -> Function:
    """Moves operators to the current target's preferred layouts."""
    from ..op.strategy import load_all

    load_all()
    return LayoutRewriter(_alter).rewrite(func)


AlterOpLayout = declare_pass("AlterOpLayout", 3, alter)
