"""CanonicalizeOps: ``nn.bias_add`` becomes ``add`` with the bias expanded, which layouts and fusion understand.

before::

    nn.bias_add(%x, %b)          # x: (1, 64, 56, 56), axis 1

after::

    add(%x, expand_dims(%b, axis=1, num_newaxis=2))
"""
from __future__ import annotations

from typing import Any

from ...ir.expr import RelayExpr
from ...ir.module import IRModule
from ..function import Function
from ..op.registry import make_attrs
from .common import call, declare_pass, is_op, rewrite_exprs
from .simplify_inference import vectors_fit


def _rule(old: Any, new: Any) -> RelayExpr:
    if not is_op(new, "nn.bias_add") or not vectors_fit(old):
        return new
    data, bias = new.args
    rank = len(old.args[0].checked_type.dims)
    trailing = rank - 1 - new.attrs.axis % rank
    if trailing:
        bias = call("expand_dims", bias, attrs=make_attrs("expand_dims", axis=1, num_newaxis=trailing))
    return call("add", data, bias, span=new.span)


def canonicalize(func: Function, mod: IRModule, ctx: Any) -> Function:
    """Rewrites bias_add as a broadcast add."""
    return rewrite_exprs(func, _rule)  # type: ignore[return-value]


CanonicalizeOps = declare_pass("CanonicalizeOps", 3, canonicalize)
