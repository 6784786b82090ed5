"""Runs operator test cases through their strategies: compute, schedule, loop program, interpreter of the loop language."""
from __future__ import annotations

from typing import Any

import numpy as np

from anchorleg import relay, te
from anchorleg.driver.build_module import build
from anchorleg.relay.op.strategy import load_all
from anchorleg.runtime import ndarray
from anchorleg.runtime.dtype import numpy_dtype
from anchorleg.target import Target
from anchorleg.te.lower.prim_func import schedule_to_prim_func
from anchorleg.tir.interpreter import run_primfunc

from .op_cases import Case, check, module

TARGET = Target("llvm")


def scheduled(call: Any, target: Target = TARGET) -> tuple[list[te.Tensor], list[te.Tensor], te.Schedule]:
    """(inputs, outputs, schedule) of one operator call with typed arguments."""
    load_all()
    inputs = [te.placeholder(a.checked_type.dims, a.checked_type.dtype, f"p{i}") for i, a in enumerate(call.args)]
    with target:
        strategy = call.op.get_attr("FTVMStrategy")(call.attrs, inputs, call.checked_type, target)
        best = strategy.implementations[0]
        outputs = best.compute(call.attrs, inputs, call.checked_type)
        return inputs, outputs, best.schedule(call.attrs, outputs, target)


def run_call(call: Any, args: list[np.ndarray]) -> np.ndarray:
    """What the operator's scheduled kernel computes."""
    inputs, outputs, sch = scheduled(call)
    assert [t.dtype for t in outputs] == [call.checked_type.dtype]
    out = np.zeros([int(d) for d in call.checked_type.dims], numpy_dtype(call.checked_type.dtype))
    run_primfunc(schedule_to_prim_func(sch, [*inputs, *outputs], "kernel"), *args, out)
    return out


def run_compiled(call: Any, args: list[np.ndarray]) -> np.ndarray:
    """What the operator's compiled kernel computes, on this machine."""
    inputs, outputs, sch = scheduled(call)
    kernel = build(sch, [*inputs, *outputs], target=TARGET, name="kernel")["kernel"]
    out = ndarray.array(np.zeros([int(d) for d in call.checked_type.dims], numpy_dtype(call.checked_type.dtype)))
    kernel(*[ndarray.array(a) for a in args], out)
    return out.numpy()


def value_of(expr: Any, values: dict[Any, Any], run: Any = run_call) -> Any:
    """An expression's value, each operator run as a kernel of its own."""
    if isinstance(expr, relay.Var):
        return values[expr]
    if isinstance(expr, relay.Constant):
        return expr.data.numpy()
    if isinstance(expr, relay.Tuple):
        return tuple(value_of(f, values, run) for f in expr.fields)
    if isinstance(expr, relay.TupleGetItem):
        return value_of(expr.tuple_value, values, run)[expr.index]
    return run(expr, [value_of(a, values, run) for a in expr.args])


def run_kernels(each: Case, run: Any = run_call) -> None:
    """Types the case's expression, runs it by kernels (interpreted, or ``run_compiled``) and compares."""
    main = module(each)["main"]
    check(value_of(main.body, dict(zip(main.params, each.inputs)), run), each.want, main.body.checked_type)
