"""Evaluating a Relay function by the operators' numpy rules: the definition of what a program means, without a compiler."""
from __future__ import annotations

from typing import Any, Mapping, Sequence

import numpy as np

from ...ir.module import IRModule
from ...ir.type import TensorType, TupleType
from ...runtime.dtype import numpy_dtype
from ...runtime.ndarray import NDArray
from ...support.errors import ArgumentError
from ..function import Function
from .evaluator import Evaluator
from .operator_runner import NumpyRunner


def evaluate(func: Function | IRModule, args: Sequence[Any] | Mapping[str, Any] = (), mod: IRModule | None = None) -> Any:
    """The result of calling a typed function on numpy arrays.

    Parameters
    ----------
    func: a function, or a module whose ``main`` is called.
    args: the arguments in order, or by the names of the parameters.
    mod: the module that global names refer to.

    Returns
    -------
    A numpy array, or a tuple of them.
    """
    if isinstance(func, IRModule):
        mod, func = func, func["main"]
    return Evaluator(mod or IRModule(), NumpyRunner()).call(func, _arguments(func, args))


def _arguments(func: Function, args: Sequence[Any] | Mapping[str, Any]) -> list[Any]:
    if isinstance(args, Mapping):
        names = [p.name_hint for p in func.params]
        if set(names) != set(args):
            raise ArgumentError(f"the function's parameters are {', '.join(names)}; got {', '.join(args) or 'none'}")
        args = [args[n] for n in names]
    if len(args) != len(func.params):
        raise ArgumentError(f"{len(func.params)} arguments are expected, got {len(args)}")
    return [_as_value(a, p.type_annotation) for a, p in zip(args, func.params)]


def _as_value(value: Any, t: Any) -> Any:
    if isinstance(value, NDArray):
        value = value.as_numpy_view()
    if isinstance(t, TupleType):
        return tuple(_as_value(v, f) for v, f in zip(value, t.fields))
    return np.asarray(value, dtype=numpy_dtype(t.dtype) if isinstance(t, TensorType) else None)
