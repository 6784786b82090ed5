"""Operators applied one at a time: by their numpy rules, or by kernels compiled for the shapes at hand."""
from __future__ import annotations

from typing import Any

import numpy as np

from ...ir.attrs import DictAttrs
from ...ir.op import Op
from ...ir.type import TensorType, TupleType, Type
from ...runtime import ndarray
from ...runtime.dtype import dtype_name, numpy_dtype
from ...support.errors import ArgumentError, TypeMismatchError
from ..expr import Call, Var
from ..function import Function
from ..op.registry import evaluate
from ..transform.fuse_ops import is_static
from ..transform.infer_type import infer_type
from .te_compiler import TECompiler
from .te_lowering import flatten_tensor_types


def type_of(value: Any) -> Type:
    """The type of a numpy array or of a (nested) tuple of them."""
    if isinstance(value, tuple):
        return TupleType([type_of(v) for v in value])
    array = np.asarray(value)
    return TensorType(array.shape, dtype_name(array.dtype))


def flatten(value: Any) -> list[Any]:
    """The arrays inside a nested tuple, left to right."""
    found: list[Any] = []
    stack = [value]
    while stack:
        v = stack.pop()
        if isinstance(v, (tuple, list)):
            stack.extend(reversed(v))
        else:
            found.append(v)
    return found


def unflatten(values: list[Any], ty: Type) -> Any:
    """The arrays in the (nested) form of a type."""
    queue = iter(values)

    def take(t: Type) -> Any:
        return tuple(take(f) for f in t.fields) if isinstance(t, TupleType) else next(queue)

    return take(ty)


class NumpyRunner:
    """Applies operators by their numpy rules."""

    def __init__(self) -> None:
        self._types: dict[Any, Type] = {}

    def __call__(self, call: Call, args: list[Any]) -> Any:
        ty = self.result_type(call, args)
        if is_static(ty) and _is_empty(ty):
            return unflatten([np.empty(t.concrete_shape, numpy_dtype(t.dtype)) for t in flatten_tensor_types(ty)], ty)
        return evaluate(call.op, call.attrs, args, ty)

    def result_type(self, call: Call, args: list[Any]) -> Type:
        """The result's type for these very arguments."""
        if call._checked_type is not None and is_static(call._checked_type):
            return call._checked_type
        key = _key(call, args)
        if key not in self._types:
            self._types[key] = _typed_function(call, args).ret_type
        return self._types[key]


class JitRunner(NumpyRunner):
    """Applies operators by kernels compiled for ``target``; operators with no kernel, or whose result's shape depends on
    values, by their numpy rules."""

    def __init__(self, target: Any, compiler: TECompiler | None = None) -> None:
        super().__init__()
        self.target, self.compiler = target, compiler or TECompiler()
        self._kernels: dict[Any, tuple[Any, Type] | None] = {}

    def __call__(self, call: Call, args: list[Any]) -> Any:
        key = _key(call, args)
        if key not in self._kernels:
            self._kernels[key] = self._compile(call, args)
        found = self._kernels[key]
        if found is None:
            return super().__call__(call, args)
        kernel, ty = found
        outputs = [ndarray.empty(t.concrete_shape, t.dtype) for t in flatten_tensor_types(ty)]
        kernel(*[ndarray.aligned(ndarray.array(np.asarray(a))) for a in flatten(tuple(args))], *outputs)
        return unflatten([o.numpy() for o in outputs], ty)

    def _compile(self, call: Call, args: list[Any]) -> tuple[Any, Type] | None:
        func = _typed_function(call, args)
        if not is_static(func.ret_type) or _is_empty(func.ret_type) or not _has_strategy(call.op):  # type: ignore[arg-type]
            return None
        return self.compiler.jit(func, self.target), func.ret_type


def _is_empty(ty: Type) -> bool:
    """Whether a result has no elements, and needs no kernel."""
    return all(0 in t.concrete_shape for t in flatten_tensor_types(ty))


def _has_strategy(op: Op) -> bool:
    from ..op.strategy import load_all

    load_all()
    return op.has_attr("FTVMStrategy")


def _key(call: Call, args: list[Any]) -> Any:
    return call.op.name, repr(call.attrs), str([(a.shape, str(a.dtype)) for a in map(np.asarray, flatten(tuple(args)))])  # type: ignore[attr-defined]


def _typed_function(call: Call, args: list[Any]) -> Function:
    params = [Var(f"p{i}", type_of(a)) for i, a in enumerate(args)]
    func = Function(params, Call(call.op, params, call.attrs), None, (), DictAttrs({"Primitive": 1}))
    try:
        typed = infer_type(func)
    except TypeMismatchError as e:  # the types fitted as far as they were known, the values do not
        raise ArgumentError(f"{str(e).splitlines()[0]} (in {call.op.name}, given {', '.join(str(p.type_annotation) for p in params)})") from None
    return typed.replace(ret_type=typed.body.checked_type) if typed.ret_type is None else typed  # type: ignore[attr-defined,return-value]
