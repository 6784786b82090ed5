"""Commutative reducers: functions that, given an axis, make a ``Reduce`` and, given several values, combine them."""
from __future__ import annotations

from typing import Any, Callable, Sequence

from ..ir.expr import IntImm, PrimExpr
from ..support.errors import ArgumentError
from . import op
from .expr import CommReducer, IterVar, Reduce, Var

Combine = Callable[[Any, Any], Any]


def comm_reducer(fcombine: Combine, fidentity: Callable[..., Any], name: str = "reduce") -> Callable[..., Any]:
    """A reducer from how two values combine and what the neutral one is.

    ``fcombine(lhs, rhs)`` gets two expressions (two tuples, for a reduction of several values at once) and
    ``fidentity(dtype, ...)`` the dtypes.  The result is called as ``r(expr, axis=k, where=cond, init=...)`` to reduce, or as
    ``r(a, b, ...)`` to combine directly.
    """
    def reducer(expr: Any, axis: Any, where: Any = None, init: Any = None, *args: Any) -> Any:
        if isinstance(axis, (IterVar, list, tuple)) and not (isinstance(expr, (int, float)) and not isinstance(axis, IterVar)):
            return _reduce(fcombine, fidentity, expr, axis, where, init)
        result = expr
        for each in (axis, where, init, *args):
            if each is not None:
                result = fcombine(result, each)
        return result

    reducer.__name__ = reducer.__qualname__ = name
    reducer.__doc__ = f"The {name} of ``expr`` over ``axis`` where ``where`` holds; or, of several expressions, their {name}."
    return reducer


def _names(fcombine: Combine) -> tuple[str, str]:
    code = getattr(fcombine, "__code__", None)
    if code is None or code.co_argcount < 2:
        return "x", "y"
    return code.co_varnames[0], code.co_varnames[1]


def _reduce(fcombine: Combine, fidentity: Callable[..., Any], expr: Any, axis: Any, where: Any, init: Any) -> Any:
    several = isinstance(expr, (list, tuple))
    source = [_source(e) for e in (expr if several else [expr])]
    lname, rname = _names(fcombine)
    dtypes = [e.dtype for e in source]
    lhs = [Var(f"{lname}_{i}" if several else lname, d) for i, d in enumerate(dtypes)]
    rhs = [Var(f"{rname}_{i}" if several else rname, d) for i, d in enumerate(dtypes)]
    result = list(fcombine(lhs, rhs)) if several else [fcombine(lhs[0], rhs[0])]
    identity = list(fidentity(*dtypes)) if several else [fidentity(dtypes[0])]
    combiner = CommReducer(lhs, rhs, *(_typed(values, dtypes) for values in (result, identity)))
    axes = list(axis) if isinstance(axis, (list, tuple)) else [axis]
    inits = () if init is None else tuple(_typed(init if isinstance(init, (list, tuple)) else [init], dtypes))
    _check(axes, inits, source)
    condition = IntImm("bool", 1) if where is None else op.convert(where)
    outputs = tuple(Reduce(combiner, source, axes, condition, i, inits) for i in range(len(source)))
    return outputs if several else outputs[0]


def _source(value: Any) -> PrimExpr:
    return value if isinstance(value, PrimExpr) else op.const(value) if isinstance(value, (int, float)) else op.convert(value)


def _typed(values: Sequence[Any], dtypes: Sequence[str]) -> list[PrimExpr]:
    if len(values) != len(dtypes):
        raise ArgumentError(f"a reducer of {len(dtypes)} values gave {len(values)}: fcombine, fidentity and init must match the source")
    exprs = [v if not hasattr(v, "asobject") else v.asobject() for v in values]
    return [op.cast(v, d) if isinstance(v, PrimExpr) else op.const(v, d) for v, d in zip(exprs, dtypes)]


def _check(axes: Sequence[Any], init: Sequence[PrimExpr], source: Sequence[PrimExpr]) -> None:
    for a in axes:
        if not isinstance(a, IterVar):
            raise ArgumentError(f"a reduction axis is expected to be made by reduce_axis, got {type(a).__name__} {a!r}")
        if a.iter_type != IterVar.CommReduce:
            raise ArgumentError(f"axis {a.var.name} is not a reduction axis: make it with reduce_axis")


sum = comm_reducer(lambda x, y: op.add(x, y), lambda t: op.const(0, t), "sum")
min = comm_reducer(lambda x, y: op.minimum(x, y), lambda t: _least_neutral(t, "max"), "min")
max = comm_reducer(lambda x, y: op.maximum(x, y), lambda t: _least_neutral(t, "min"), "max")


def _least_neutral(dtype: str, side: str) -> PrimExpr:
    """The neutral element of min or max: an infinity where the type has one, so that reducing infinities is right."""
    if op.is_float(dtype) and op.scalar_of(dtype) != "e4m3_float8":
        return op.const(float("inf") if side == "max" else float("-inf"), dtype)
    return op.max_value(dtype) if side == "max" else op.min_value(dtype)
