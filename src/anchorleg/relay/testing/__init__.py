"""Networks to try things on, and helpers for tests of passes."""
from __future__ import annotations

import importlib
from typing import Any

import numpy as np

from ...ir.expr import RelayExpr
from ...ir.module import IRModule
from ...ir.op import Op
from ...ir.transform import Pass
from ...ir.visit import post_order
from ...support.errors import ArgumentError
from ..expr import Call
from ..function import Function
from .nat import count, make_nat_expr, make_nat_value
from .init import Constant, Initializer, Xavier, create_workload
from .temp_op_attr import TempOpAttr

_NETWORKS = ("mlp", "resnet", "mobilenet", "vgg", "squeezenet", "synthetic", "byoc", "dqn", "layers", "dcgan", "densenet", "lstm", "inception_v3")


def __getattr__(name: str) -> Any:
    if name in _NETWORKS:
        return importlib.import_module(f"{__name__}.{name}")
    if name == "check_grad":
        return importlib.import_module(f"{__name__}.gradients").check_grad
    if name == "Prelude":
        from ..prelude import Prelude

        return Prelude
    if name == "enabled_targets":
        from ...testing.targets import enabled_targets

        return enabled_targets
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def run_opt_pass(expr: RelayExpr, opt_pass: Pass, import_prelude: bool = False) -> RelayExpr:
    """``expr`` after type inference and ``opt_pass``: a function if it was one, else the body of what it became."""
    from ..transform import InferType

    if not isinstance(opt_pass, Pass):
        raise ArgumentError(f"run_opt_pass expects a pass, got {type(opt_pass).__name__}")
    mod = IRModule.from_expr(expr)
    if import_prelude:
        from ..prelude import Prelude

        Prelude(mod)
    main = InferType()(opt_pass(InferType()(mod)))["main"]
    return main if isinstance(expr, Function) else main.body


def run_infer_type(expr: RelayExpr) -> RelayExpr:
    """``expr`` with its types."""
    from ..transform import InferType

    return run_opt_pass(expr, InferType())


def count_ops(expr: RelayExpr) -> dict[str, int]:
    """How often each operator is called."""
    found: dict[str, int] = {}
    for node in post_order(expr):
        if isinstance(node, Call) and isinstance(node.op, Op):
            found[node.op.name] = found.get(node.op.name, 0) + 1
    return found


def rand(dtype: str, *shape: int) -> Any:
    """An NDArray of random numbers in [0, 1)."""
    from ...runtime import ndarray

    return ndarray.array(np.random.rand(*shape).astype(dtype))


__all__ = ["Constant", "Initializer", "TempOpAttr", "Xavier", "check_grad", "count", "count_ops", "create_workload", "make_nat_expr", "make_nat_value", "rand", "run_infer_type", "run_opt_pass"]
