"""CanonicalizeCast: a widening cast read by several element-wise operators is repeated in front of each, so that it fuses.

before::

    %0 = cast(%x, int32); (add(%0, %y), multiply(%0, %z))       # %x: int8

after::

    (add(cast(%x, int32), %y), multiply(cast(%x, int32), %z))
"""
from __future__ import annotations

from typing import Any

from ...ir.expr import RelayExpr
from ...ir.module import IRModule
from ...ir.op import Op, OpPattern
from ...runtime.dtype import DataType
from ..expr import Call
from ..function import Function
from .common import declare_pass, is_op, rewrite_exprs, typed_replace


def _widening(arg: RelayExpr) -> bool:
    if not is_op(arg, "cast"):
        return False
    source = arg.args[0]._checked_type  # type: ignore[attr-defined]
    wanted = arg.attrs.dtype  # type: ignore[attr-defined]
    return source is not None and DataType(source.dtype).bits < DataType(wanted).bits


def canonicalize(func: Function, mod: IRModule, ctx: Any) -> Function:
    """Gives every element-wise reader of a widening cast a cast of its own."""
    from .fold_scale_axis import use_counts

    counts = use_counts(func)

    def rule(old: Any, new: Any) -> RelayExpr:
        if not isinstance(new, Call) or not isinstance(new.op, Op) or int(new.op.get_attr("TOpPattern", 8)) > OpPattern.BROADCAST:
            return new
        args = tuple(_own(n) if _widening(n) and counts.get(id(o), 0) > 1 else n for o, n in zip(old.args, new.args))
        return typed_replace(new, args=args)

    return rewrite_exprs(func, rule)  # type: ignore[return-value]


def _own(cast: RelayExpr) -> RelayExpr:
    copy = Call(cast.op, cast.args, cast.attrs, (), cast.span)  # type: ignore[attr-defined]
    copy._checked_type = cast._checked_type
    return copy


CanonicalizeCast = declare_pass("CanonicalizeCast", 3, canonicalize)
