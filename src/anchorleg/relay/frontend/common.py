"""What importers ask about expressions: their type, shape, channels and value."""
from __future__ import annotations

from typing import Any

from ...ir.expr import RelayExpr
from ...ir.module import IRModule
from ..function import Function
from ..transform.infer_type import infer_type as _infer


def infer_type(node: RelayExpr, mod: IRModule | None = None) -> RelayExpr:
    """The expression with its type."""
    return _infer(node, mod)


def infer_shape(inputs: RelayExpr, mod: IRModule | None = None) -> tuple[Any, ...]:
    """The shape of an expression: ints, and ``Any`` where it is not known."""
    return tuple(infer_type(inputs, mod).checked_type.dims)


def infer_channels(inputs: RelayExpr, transpose: bool = False) -> int:
    """How many output channels a convolution with that weight (OIHW; IOHW if ``transpose``) has."""
    return infer_shape(inputs)[1 if transpose else 0]


def infer_value(input_val: RelayExpr, params: Any, mod: IRModule | None = None) -> Any:
    """The value of an expression whose variables are all given in ``params``, as an NDArray."""
    from ..analysis import free_vars
    from ..backend.interpreter import Interpreter
    from ..transform.bind import bind_params_by_name
    from ...runtime.device import cpu

    variables = free_vars(input_val)
    func = bind_params_by_name(Function(variables, input_val), {k: v for k, v in dict(params).items() if k in {v.name_hint for v in variables}})
    return Interpreter(mod, cpu(0), "numpy").evaluate(func)()
