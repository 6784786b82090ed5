"""Functions that the virtual machine lets Python evaluate: by the operators' numpy rules, for the sizes at hand."""
from __future__ import annotations

from typing import Any, Callable

import numpy as np

from ...ir.module import IRModule
from ...runtime.registry import register_func
from ..function import Function


def host_payload(func: Function) -> str:
    """A primitive function as text that an executable carries."""
    from ...ir.serialize import save_json

    return save_json(func)


def evaluator_of(func: Function) -> Callable[[list[np.ndarray]], list[np.ndarray]]:
    """A callable from arrays (tuples flattened) to the list of results."""
    from ..op.shape_func.registry import flatten_types
    from .evaluator import Evaluator
    from .operator_runner import NumpyRunner, flatten, unflatten

    evaluator = Evaluator(IRModule(), NumpyRunner())

    def run(arrays: list[np.ndarray]) -> list[np.ndarray]:
        args, at = [], 0
        for p in func.params:
            ty = p.checked_type
            count = len(flatten_types(ty))
            args.append(unflatten(arrays[at:at + count], ty))
            at += count
        return flatten(evaluator.call(func, args))

    return run


def _made(payload: Any) -> Callable[[list[np.ndarray]], list[np.ndarray]]:
    from ...ir.serialize import load_json
    from ..transform.infer_type import infer_type

    func = load_json(payload) if isinstance(payload, str) else payload
    return evaluator_of(infer_type(func))


register_func("relay.vm.host_function", _made, override=True)
__all__ = ["evaluator_of", "host_payload"]
