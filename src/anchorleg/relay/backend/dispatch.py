"""Kernels for sizes that are known only at run time: one for any size, and specialised ones for the sizes that occur often.

A kernel compiled for known sizes is tiled and unrolled for them; that pays for products and convolutions whose batch or length
varies little between calls.  ``ShapeDispatch`` starts with the general kernel, counts the sizes it is called with, and compiles a
specialised kernel for each that keeps coming back.
"""
from __future__ import annotations

import threading
from typing import Any, Callable, Iterable, Mapping, NamedTuple, Sequence

from ...ir.expr import Any as AnyDim
from ...ir.op import Op, OpPattern
from ...ir.type import TensorType, TupleType, Type
from ...ir.visit import post_order
from ...support.errors import ArgumentError, TypeMismatchError
from ..expr import Call, Var
from ..function import Function
from ..transform.bind import bind
from ..transform.infer_type import infer_type
from .kernels import expression_children
from .te_compiler import TECompiler
from .te_lowering import flatten_tensor_types

Sizes = tuple[int, ...]
Kernel = Callable[..., Any]


class Variant(NamedTuple):
    """A kernel and the sizes of the unknown dimensions it is for (None: any)."""

    sizes: Sizes | None
    kernel: Kernel


def unknown_dims(func: Function) -> list[Any]:
    """The dimensions of the parameters that are not known, each once, in order of appearance."""
    found: dict[int, Any] = {}
    for param in func.params:
        for ty in flatten_tensor_types(param.checked_type):
            found.update((id(d), d) for d in ty.dims if isinstance(d, AnyDim))
    return list(found.values())


def pays(func: Function) -> bool:
    """Whether kernels for known sizes are likely to be faster: some dimension is unknown, and a product or convolution is in it."""
    operators = [n.op for n in post_order(func.body, expression_children) if isinstance(n, Call) and isinstance(n.op, Op)]
    return bool(unknown_dims(func)) and any(op.get_attr("TOpPattern") == OpPattern.OUT_ELEMWISE_FUSABLE for op in operators)


def specialize(func: Function, sizes: Mapping[Any, int]) -> Function:
    """The function with unknown dimensions (the objects that ``unknown_dims`` gives) set to sizes, typed anew."""
    by_id = {id(d): s for d, s in sizes.items()} if isinstance(sizes, dict) else {}
    params = [Var(p.name_hint, _with_sizes(p.checked_type, by_id)) for p in func.params]
    body = bind(func.body, dict(zip(func.params, params)))
    return infer_type(Function(params, _untyped(body), None, (), func.attrs))  # type: ignore[return-value]


def _with_sizes(ty: Type, by_id: dict[int, int]) -> Type:
    if isinstance(ty, TupleType):
        return TupleType([_with_sizes(f, by_id) for f in ty.fields])
    if not isinstance(ty, TensorType):
        raise TypeMismatchError(f"a kernel's parameter is expected to be a tensor or a tuple of tensors, got {ty}")
    return TensorType([by_id.get(id(d), d) for d in ty.dims], ty.dtype)


def _untyped(body: Any) -> Any:
    """A copy without types: those of the general function say less."""
    from ..transform.common import rewrite_exprs

    return rewrite_exprs(body, lambda old, new: new.replace() if isinstance(new, Call) else new, keep_types=False)


class ShapeDispatch:
    """A primitive function as a callable that picks a kernel by the sizes it is called with.

    Parameters
    ----------
    func: a typed primitive function.
    target: what kernels are compiled for.
    sizes: sizes of the unknown dimensions (in the order of ``unknown_dims``) to compile kernels for at once.
    threshold: calls with the same sizes after which a kernel for them is compiled; None: never.
    limit: the most specialised kernels.

    Called like a kernel, with the inputs' and outputs' NDArrays.  Usable from several threads.
    """

    def __init__(self, func: Function, target: Any, sizes: Iterable[Sequence[int]] = (), threshold: int | None = 8, limit: int = 8,
                 compiler: TECompiler | None = None) -> None:
        self.func, self.target, self.threshold, self.limit = func, target, threshold, limit
        self.compiler = compiler or TECompiler()
        self.dims = unknown_dims(func)
        self._places = _places(func, self.dims)
        self.general = Variant(None, self.compiler.jit(func, target))
        self._special: dict[Sizes, Variant] = {}
        self._counts: dict[Sizes, int] = {}
        self._lock = threading.Lock()
        for each in sizes:
            self.add(each)

    def add(self, sizes: Sequence[int]) -> Variant:
        """Compiles a kernel for those sizes; ArgumentError when their number is wrong or the limit is reached."""
        key = tuple(int(s) for s in sizes)
        if len(key) != len(self.dims):
            raise ArgumentError(f"sizes of {len(self.dims)} dimensions are expected, got {len(key)}")
        if key not in self._special:
            if len(self._special) >= self.limit:
                raise ArgumentError(f"the limit of {self.limit} specialised kernels is reached")
            static = specialize(self.func, dict(zip(self.dims, key)))
            self._special[key] = Variant(key, self.compiler.jit(static, self.target))
        return self._special[key]

    @property
    def variants(self) -> list[Variant]:
        """The general kernel and the specialised ones."""
        return [self.general, *self._special.values()]

    def sizes_of(self, args: Sequence[Any]) -> Sizes:
        """The unknown dimensions' sizes in arguments."""
        return tuple(int(args[index].shape[axis]) for index, axis in self._places)

    def select(self, sizes: Sizes) -> Variant:
        """The kernel for sizes; counts them."""
        found = self._special.get(sizes)
        if found is not None:
            return found
        with self._lock:
            self._counts[sizes] = self._counts.get(sizes, 0) + 1
            due = self.threshold is not None and self._counts[sizes] >= self.threshold and len(self._special) < self.limit
            return self.add(sizes) if due and self.dims else self.general

    def __call__(self, *args: Any) -> Any:
        return self.select(self.sizes_of(args)).kernel(*args)


def _places(func: Function, dims: Sequence[Any]) -> list[tuple[int, int]]:
    """For each unknown dimension an argument and an axis where it can be read."""
    types = [t for p in func.params for t in flatten_tensor_types(p.checked_type)]
    first: dict[int, tuple[int, int]] = {}
    for index, ty in enumerate(types):
        for axis, dim in enumerate(ty.dims):
            first.setdefault(id(dim), (index, axis))
    return [first[id(d)] for d in dims]


__all__ = ["ShapeDispatch", "Variant", "pays", "specialize", "unknown_dims"]
