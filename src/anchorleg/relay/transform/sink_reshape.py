"""SinkReshape: element-wise operators move before the reshape of a product's result, so that they fuse with the product.

before::

    %0 = nn.dense(%x, %w)                       # (128, 768)
    add(reshape(%0, newshape=[1, 128, 768]), %bias)

after::

    reshape(add(nn.dense(%x, %w), %bias), newshape=[1, 128, 768])

The reshape must keep the last axis, or what else the operator takes be scalars; otherwise this must be scalars, vectors along the last
axis, or results reshaped alike.  Sizes that are not known are no obstacle, as long as they need not be compared.
"""
from __future__ import annotations

from typing import Any, NamedTuple

from ...ir.expr import RelayExpr
from ...ir.module import IRModule
from ...ir.op import Op, OpPattern
from ...ir.type import TensorType
from ..expr import Call
from ..function import Function
from ..op.registry import make_attrs
from .common import call, declare_pass, is_op, mentions, rewrite_exprs

_PRODUCTS = ("nn.dense", "nn.matmul", "nn.contrib_dense_pack", "nn.batch_matmul")
_RESHAPES = ("reshape", "reshape_like")
_MOST_CORRECTIONS = 3  # of a product, before its reshape
_WITH_ATTRIBUTES = frozenset({"cast", "clip"})


class _Reshaped(NamedTuple):
    """A reshape that may sink: the call (kept alive), what it reshapes, the dims before and after, and the first reshape of its kind."""

    call: Call
    source: RelayExpr
    before: tuple[Any, ...]
    after: tuple[Any, ...]
    root: Call

    @property
    def last(self) -> int | None:
        """The size of the last axis, where it is known and kept."""
        kept = self.before and self.after and isinstance(self.after[-1], int) and self.before[-1] == self.after[-1]
        return self.after[-1] if kept else None

    def alike(self, other: _Reshaped) -> bool:
        """Whether both reshape tensors of one shape in one way."""
        return self.root is other.root or _known(*self.before, *self.after) and (self.before, self.after) == (other.before, other.after)


class _Sinking:
    def __init__(self) -> None:
        self.reshapes: dict[int, _Reshaped] = {}

    def rule(self, old: Any, new: Any) -> RelayExpr:
        """The rule of one rewriting."""
        if is_op(new, *_RESHAPES):
            self._note(old, new)
        elif _is_elementwise(new) and isinstance(old._checked_type, TensorType):
            return self._sunk(old, new)
        return new

    def _note(self, old: Call, new: Call) -> None:
        before, after = old.args[0]._checked_type, old._checked_type
        if _of_product(new.args[0]) and isinstance(before, TensorType) and isinstance(after, TensorType):
            self.reshapes[id(new)] = _Reshaped(new, new.args[0], tuple(before.dims), tuple(after.dims), new)

    def _sunk(self, old: Call, new: Call) -> RelayExpr:
        found = [self.reshapes.get(id(a)) for a in new.args]
        lead = next((f for f in found if f is not None), None)
        if lead is None or len(old._checked_type.dims) != len(lead.after):
            return new
        for arg, each in zip(old.args, found):
            if (each is None or not each.alike(lead)) and not _runs_along_last(arg._checked_type, lead.last):
                return new
        inner = Call(new.op, [a if f is None else f.source for a, f in zip(new.args, found)], new.attrs, new.type_args, new.span)
        outer = lead.call.replace(args=(inner, *lead.call.args[1:]), span=new.span)
        if lead.root.op.name == "reshape" and _known(*lead.after):
            outer = call("reshape", inner, attrs=make_attrs("reshape", newshape=list(lead.after)), span=new.span)
        self.reshapes[id(outer)] = lead._replace(call=outer, source=inner)
        return outer


def _of_product(expr: Any) -> bool:
    """Whether this is a product, perhaps with sums added to it or taken from it, as products of integers are corrected."""
    for _ in range(_MOST_CORRECTIONS):
        if not is_op(expr, "add", "subtract"):
            break
        expr = expr.args[0]
    return is_op(expr, *_PRODUCTS)


def _known(*dims: Any) -> bool:
    return all(isinstance(d, int) for d in dims)


def _runs_along_last(ty: Any, last: int | None) -> bool:
    """Whether an argument is a scalar, or broadcasts along the last axis alone."""
    return isinstance(ty, TensorType) and (not ty.dims or len(ty.dims) == 1 and isinstance(ty.dims[0], int) and ty.dims[0] in (1, last))


def _is_elementwise(expr: Any) -> bool:
    if not isinstance(expr, Call) or not isinstance(expr.op, Op) or not expr.args:
        return False
    if int(expr.op.get_attr("TOpPattern", OpPattern.OPAQUE)) > OpPattern.BROADCAST or expr.op.get_attr("TOpIsStateful", False):
        return False
    return expr.attrs is None or not expr.attrs.keys() or expr.op.name in _WITH_ATTRIBUTES


def sink(func: Function, mod: IRModule, ctx: Any) -> Function:
    """Moves element-wise operators before reshapes of products."""
    if not mentions(mod, lambda e: is_op(e, *_RESHAPES) and _of_product(e.args[0])):
        return func
    return rewrite_exprs(func, _Sinking().rule)  # type: ignore[return-value]


SinkReshape = declare_pass("SinkReshape", 3, sink)
