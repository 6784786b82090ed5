"""Operators applied one at a time: by their numpy rules, or by kernels compiled for the shapes at hand."""
from __future__ import annotations

from typing import Any

import numpy as np

from ...ir.attrs import DictAttrs
from ...ir.op import Op
from ...ir.type import FuncType, TensorType, TupleType, Type
from ...runtime import ndarray
from ...runtime.dtype import dtype_name, numpy_dtype
from ...support.errors import AnchorlegError, ArgumentError, TypeMismatchError
from ..expr import Call, Var
from ..function import Function
from ..op.registry import evaluate
from ..op.shape_func.declared import declared
from ..transform.declared_shapes import shape_function
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
        if is_static(ty) and _is_empty(ty) and call.op.name not in _BY_RULE:  # type: ignore[attr-defined]
            return unflatten([np.empty(t.concrete_shape, numpy_dtype(t.dtype)) for t in flatten_tensor_types(ty)], ty)
        try:
            return evaluate(call.op, call.attrs, args, ty)
        except (ValueError, IndexError, ZeroDivisionError) as e:  # as numpy says it
            if isinstance(e, AnchorlegError):
                raise
            raise ArgumentError(f"{call.op.name} cannot be evaluated for these arguments: {e}") from e  # type: ignore[attr-defined]

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
        if declared(call) is not None and not is_static(call.checked_type):
            return self._sized(call, args)
        key = _key(call, args)
        if key not in self._kernels:
            self._kernels[key] = self._compile(call, args)
        found = self._kernels[key]
        return super().__call__(call, args) if found is None else self._run(*found, args)

    def _sized(self, call: Call, args: list[Any]) -> Any:
        """A call whose result's sizes the operator's declared shape function gives."""
        func = _typed_function(call, args)
        if is_static(func.ret_type):
            return self._run(self.compiler.jit(func, self.target), func.ret_type, args)
        found = declared(func.body)
        inputs = [v if elements else np.asarray(v.shape, np.int64) for a, elements in zip(args, found.reads_elements)  # type: ignore[union-attr]
                  for v in map(np.asarray, flatten(a))]
        shapes = shape_function(func.body, found)  # type: ignore[arg-type]
        sizes = flatten(self._run(self.compiler.jit(shapes, self.target), shapes.ret_type, inputs))
        sized = _with_sizes(func, sizes)
        return self._run(self.compiler.jit(sized, self.target), sized.ret_type, args)

    def _run(self, kernel: Any, ty: Type, args: list[Any]) -> Any:
        outputs = [ndarray.empty(t.concrete_shape, t.dtype) for t in flatten_tensor_types(ty)]
        kernel(*[ndarray.aligned(ndarray.array(np.asarray(a))) for a in flatten(tuple(args))], *outputs)
        return unflatten([o.numpy() for o in outputs], ty)

    def _compile(self, call: Call, args: list[Any]) -> tuple[Any, Type] | None:
        func = _typed_function(call, args)
        return (self.compiler.jit(func, self.target), func.ret_type) if _is_compiled(func, call.op, args) else None  # type: ignore[arg-type]


def _with_sizes(func: Function, sizes: list[np.ndarray]) -> Function:
    """A function of one operator with the sizes of its results in their types; ArgumentError where the types tell others."""
    types = []
    for ty, size in zip(flatten_tensor_types(func.ret_type), sizes):
        if any(isinstance(d, int) and d != n for d, n in zip(ty.dims, size)):
            raise ArgumentError(f"{func.body.op.name}: the declared shape function gives the sizes {size.tolist()}, the program's type is {ty}")  # type: ignore[attr-defined]
        types.append(TensorType([int(n) for n in size], ty.dtype))
    rest = iter(types)
    body = func.body.replace(args=func.params)
    body = Call(body.op, body.args, body.attrs)  # type: ignore[attr-defined]
    body._checked_type = map_tensor_types(func.ret_type, lambda _: next(rest))
    new = Function(func.params, body, body._checked_type, (), func.attrs)
    new._checked_type = FuncType([p.checked_type for p in func.params], body._checked_type)
    return new


def map_tensor_types(ty: Type, fn: Any) -> Type:
    """A (nested tuple) type with every tensor type replaced, left to right."""
    return TupleType([map_tensor_types(f, fn) for f in ty.fields]) if isinstance(ty, TupleType) else fn(ty)


def _is_empty(ty: Type) -> bool:
    """Whether a result has no elements, and needs no kernel."""
    return all(0 in t.concrete_shape for t in flatten_tensor_types(ty))


_BY_RULE = ("strided_set",)  # whose arguments must fit in ways that only their elements tell


def _is_compiled(func: Function, op: Op, args: list[Any]) -> bool:
    """Whether a call is computed by a kernel: its sizes are known and there is something to compute."""
    if not is_static(func.ret_type) or _is_empty(func.ret_type) or any(np.size(a) == 0 for a in flatten(tuple(args))):
        return False
    return op.name not in _BY_RULE and _has_strategy(op)


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
