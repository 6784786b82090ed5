"""The form of operator test cases: one table entry is a call, its inputs and numpy's answer."""
from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Callable, Sequence

import numpy as np

from anchorleg import relay
from anchorleg.ir import IRModule, TensorType
from anchorleg.relay.op.registry import evaluate


@dataclass(frozen=True)
class Case:
    """``build`` makes the call from one variable per input (a list of inputs stands for a tuple argument)."""

    name: str
    build: Callable[..., Any]
    inputs: Sequence[Any]
    want: Any  # an array, or a tuple of arrays

    def __repr__(self) -> str:
        return self.name


def case(name: str, build: Callable[..., Any], inputs: Sequence[Any], want: Any) -> Case:
    """A case whose inputs are made arrays."""
    return Case(name, build, [np.asarray(i) for i in inputs], want)


def module(each: Case) -> IRModule:
    """``main``, typed, that makes the call on parameters p0, p1, …"""
    params = [relay.var(f"p{i}", shape=x.shape, dtype=str(x.dtype)) for i, x in enumerate(each.inputs)]
    body = each.build(*params)
    body = body.astuple() if isinstance(body, relay.TupleWrapper) else body
    return relay.transform.InferType()(IRModule.from_expr(relay.Function(params, body)))


def check(got: Any, want: Any, result_type: Any) -> None:
    """Equal values, and exactly the declared shape and dtype."""
    if isinstance(want, tuple):
        assert isinstance(got, tuple) and len(got) == len(want) == len(result_type.fields)
        for g, w, t in zip(got, want, result_type.fields):
            check(g, w, t)
        return
    assert isinstance(result_type, TensorType) and str(got.dtype) == result_type.dtype
    assert len(result_type.dims) == got.ndim
    assert all(not isinstance(d, int) or d == n for d, n in zip(result_type.dims, got.shape)), (result_type.dims, got.shape)
    want = np.asarray(want)
    assert got.shape == want.shape
    np.testing.assert_allclose(got.astype(np.float64) if got.dtype.kind == "f" else got, want, rtol=1e-5, atol=1e-6)


def run_numpy_rule(each: Case) -> None:
    """Types the call, evaluates it by the numpy rules of its operators, and compares."""
    main = module(each)["main"]
    values = {p: x for p, x in zip(main.params, each.inputs)}
    check(_value(main.body, values), each.want, main.body.checked_type)


def _value(expr: Any, values: dict[Any, Any]) -> Any:
    if isinstance(expr, relay.Var):
        return values[expr]
    if isinstance(expr, relay.Constant):
        return expr.data.numpy()
    if isinstance(expr, relay.Tuple):
        return tuple(_value(f, values) for f in expr.fields)
    if isinstance(expr, relay.TupleGetItem):
        return _value(expr.tuple_value, values)[expr.index]
    return evaluate(expr.op, expr.attrs, [_value(a, values) for a in expr.args], expr.checked_type)
