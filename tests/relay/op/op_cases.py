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


def run_compute(each: Case) -> None:
    """Runs the call's first implementation (compute, schedule, lowering) under the definition of the loop language."""
    from anchorleg import te
    from anchorleg.relay.op.strategy import load_all
    from anchorleg.runtime.dtype import numpy_dtype
    from anchorleg.target.target import Target
    from anchorleg.te.lower.prim_func import schedule_to_prim_func
    from anchorleg.tir.interpreter import run_primfunc

    load_all()
    main = module(each)["main"]
    call, field = main.body, None
    if isinstance(call, relay.TupleGetItem):
        call, field = call.tuple_value, call.index
    values = {p: x for p, x in zip(main.params, each.inputs)}
    arrays = [x for a in call.args for x in _flat(_value(a, values))]
    types = [t for a in call.args for t in _flat_types(a.checked_type)]
    inputs = [te.placeholder(x.shape, t.dtype) for x, t in zip(arrays, types)]
    target = Target("llvm -mcpu=x86-64-v3")
    with target:
        implementation = call.op.get_attr("FTVMStrategy")(call.attrs, inputs, call.checked_type, target).implementations[0]
        outs = implementation.compute(call.attrs, inputs, call.checked_type)
        func = schedule_to_prim_func(implementation.schedule(call.attrs, outs, target), [*inputs, *outs])
    want = each.want if isinstance(each.want, tuple) and field is None else [each.want] * len(outs)
    results = [np.zeros(np.asarray(w).shape, numpy_dtype(t.dtype)) for w, t in zip(want, outs)]
    run_primfunc(func, *[np.array(x, order="C") for x in arrays], *results)
    got = results[field] if field is not None else tuple(results) if isinstance(each.want, tuple) else results[0]
    check(got, each.want, main.body.checked_type)


def _flat(value: Any) -> list[Any]:
    return list(value) if isinstance(value, tuple) else [value]


def _flat_types(t: Any) -> list[Any]:
    return list(t.fields) if hasattr(t, "fields") else [t]
