"""Reductions over axes."""
from __future__ import annotations

from typing import Callable

from .....ir.expr import RelayExpr
from ..context import NodeContext
from ..make import call, cast, reduce, where
from ..registry import op
from .elementwise import is_float

Step = Callable[[NodeContext, RelayExpr], RelayExpr]


def _square(n: NodeContext, x: RelayExpr) -> RelayExpr:
    return call("multiply", x, x)


def _abs(n: NodeContext, x: RelayExpr) -> RelayExpr:
    return call("abs", x)


def _through_float(fn: str) -> Step:
    def step(n: NodeContext, x: RelayExpr) -> RelayExpr:
        dtype = n.dtype(x)
        return call(fn, x) if is_float(dtype) else cast(call(fn, cast(x, "float64")), dtype)

    return step


# operator: (before the reduction, the reduction, after it)
_TABLE: dict[str, tuple[Step | None, str, Step | None]] = {
    "ReduceSum": (None, "sum", None), "ReduceMean": (None, "mean", None), "ReduceProd": (None, "prod", None),
    "ReduceMax": (None, "max", None), "ReduceMin": (None, "min", None), "ReduceL1": (_abs, "sum", None),
    "ReduceL2": (_square, "sum", _through_float("sqrt")), "ReduceLogSum": (None, "sum", _through_float("log")),
    "ReduceSumSquare": (_square, "sum", None),
}
_AXES_INPUT_SINCE = 18  # of ReduceSum: 13


def _axes(n: NodeContext, x: RelayExpr) -> list[int] | None:
    """The axes to reduce; None: all; an empty list: none."""
    rank = n.rank(x)
    if n.version >= (13 if n.op_type == "ReduceSum" else _AXES_INPUT_SINCE):
        found = n.known_ints(1, "axes")
    else:
        found = n.attr("axes", None)
    if not found:
        return [] if n.attr("noop_with_empty_axes", 0) else None
    return n.axes(found, rank)


def _reduction(n: NodeContext) -> RelayExpr:
    before, name, after = _TABLE[n.op_type]
    x = n.need(0)
    axes, keep = _axes(n, x), bool(n.attr("keepdims", 1))
    is_bool = n.dtype(x) == "bool"
    y = cast(x, "uint8") if is_bool else x
    y = before(n, y) if before else y
    if axes is None and n.rank(x) > 0 or axes:
        y = reduce(name, y, axes, keep)
    y = after(n, y) if after else y
    return cast(y, "bool") if is_bool else y


for _name in _TABLE:
    op(_name)(_reduction)


@op("ReduceLogSumExp")
def log_sum_exp(n: NodeContext) -> RelayExpr:
    """log(sum(exp(x))), shifted by the largest element against overflow."""
    x = n.need(0)
    dtype, axes, keep = n.dtype(x), _axes(n, x), bool(n.attr("keepdims", 1))
    if axes == [] or n.rank(x) == 0:
        return x
    y = x if is_float(dtype) else cast(x, "float64")
    top = reduce("max", y, axes, True)
    top = where(call("isfinite", top), top, n.like(0, top))
    total = call("log", reduce("sum", call("exp", call("subtract", y, top)), axes, keep))
    shift = top if keep else reduce("max", top, axes, False)  # a maximum over axes of size 1 drops them
    result = call("add", total, shift)
    return result if is_float(dtype) else cast(result, dtype)


def _arg(n: NodeContext) -> RelayExpr:
    """Where the largest (or smallest) element along an axis is."""
    x = n.need(0)
    axis = n.axis(n.attr("axis", 0), n.rank(x))
    x = cast(x, "uint8") if n.dtype(x) == "bool" else x
    found = call("argmax" if n.op_type == "ArgMax" else "argmin", x, axis=(axis,), keepdims=bool(n.attr("keepdims", 1)), exclude=False,
                 select_last_index=bool(n.attr("select_last_index", 0)))
    return n.to(found, "int64")


op("ArgMax", "ArgMin")(_arg)
