"""``Tensor``: an output of an operation, indexed to build expressions."""
from __future__ import annotations

import operator
from typing import Any, Callable, Iterator, Sequence

from ..ir.expr import INDEX_DTYPE, PrimExpr
from ..support.errors import ArgumentError, TypeMismatchError
from ..tir.buffer import ProducerLoad
from ..tir.expr import Cast, IntImm, IterVar

_INT_KINDS = ("int", "uint")


class Tensor:
    """Output ``value_index`` of operation ``op``: ``shape`` (PrimExprs) and ``dtype``.

    ``t[i, j]`` and ``t(i, j)`` build the load of one element; ``t[i]`` on a matrix is a :class:`TensorSlice`.
    Equal when both are the same output of the same operation.
    """

    __slots__ = ("op", "value_index", "shape", "dtype", "__weakref__")

    def __init__(self, op: Any, value_index: int, shape: Sequence[PrimExpr], dtype: str) -> None:
        self.op, self.value_index, self.shape, self.dtype = op, value_index, tuple(shape), str(dtype)

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        return len(self.shape)

    @property
    def axis(self) -> tuple[IterVar, ...]:
        """The output axes of the operation."""
        return self.op.axis

    @property
    def name(self) -> str:
        """The operation's name, with ``.v<index>`` when it has several outputs."""
        return self.op.name if self.op.num_outputs == 1 else f"{self.op.name}.v{self.value_index}"

    def __call__(self, *indices: Any) -> ProducerLoad:
        flat = [i for part in indices for i in (part if isinstance(part, (tuple, list)) else (part,))]
        if len(flat) != len(self.shape):
            raise ArgumentError(f"tensor {self.name} has {self.ndim} dimensions: expected {self.ndim} indices, got {len(flat)}")
        return ProducerLoad(self, [index_expr(i, self) for i in flat])

    def __getitem__(self, indices: Any) -> Any:
        given = indices if isinstance(indices, tuple) else (indices,)
        return self(*given) if len(given) == len(self.shape) else TensorSlice(self, given)

    def __iter__(self) -> Iterator[Any]:
        raise TypeMismatchError(f"tensor {self.name} cannot be iterated over: index it, inside te.compute")

    def __hash__(self) -> int:
        return hash((id(self.op), self.value_index))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Tensor) and self.op is other.op and self.value_index == other.value_index

    def same_as(self, other: object) -> bool:
        """Whether both are the same output of the same operation."""
        return self == other

    def __repr__(self) -> str:
        dims = ", ".join(str(d.value) if isinstance(d, IntImm) else getattr(d, "name", "?") for d in self.shape)
        return f"Tensor(shape=[{dims}], op.name={self.op.name})"


class TensorSlice:
    """A tensor with its leading indices given; index on to reach an element."""

    __slots__ = ("tensor", "indices")

    def __init__(self, tensor: Tensor, indices: Sequence[Any]) -> None:
        if len(indices) > tensor.ndim:
            raise ArgumentError(f"tensor {tensor.name} has {tensor.ndim} dimensions, got {len(indices)} indices")
        self.tensor, self.indices = tensor, tuple(indices)

    def __getitem__(self, indices: Any) -> Any:
        return self.tensor[self.indices + (indices if isinstance(indices, tuple) else (indices,))]

    @property
    def dtype(self) -> str:
        """The element type."""
        return self.tensor.dtype

    def asobject(self) -> ProducerLoad:
        """The load of the element; ArgumentError when indices are missing."""
        return self.tensor(*self.indices)


def index_expr(index: Any, tensor: Tensor) -> PrimExpr:
    """An index as an expression of the index type; TypeMismatchError for what is no integer."""
    if isinstance(index, IterVar):
        return index.var
    if isinstance(index, Tensor) and index.ndim == 0:
        index = index()
    if isinstance(index, PrimExpr):
        if index.dtype == INDEX_DTYPE:
            return index
        if isinstance(index, IntImm):
            return IntImm(INDEX_DTYPE, index.value)
        if index.dtype.startswith(_INT_KINDS) or index.dtype == "bool":
            return Cast(INDEX_DTYPE, index)
        raise TypeMismatchError(f"an index of tensor {tensor.name} is expected to be an integer, got dtype {index.dtype}")
    if isinstance(index, slice):
        raise TypeMismatchError(f"tensor {tensor.name} cannot be sliced with ':': use topi.strided_slice")
    return IntImm(INDEX_DTYPE, index.__index__() if hasattr(index, "__index__") else _whole(index, tensor))


def _whole(index: Any, tensor: Tensor) -> int:
    raise TypeMismatchError(f"an index of tensor {tensor.name} is expected to be an integer, got {type(index).__name__}")


_ARITHMETIC: dict[str, Callable[..., Any]] = {}


def register_tensor_arithmetic(table: dict[str, Callable[..., Any]]) -> None:
    """Says what ``a + b`` and so on mean for whole tensors; the operator library fills this in."""
    _ARITHMETIC.update(table)


def _binary(name: str, swapped: bool) -> Callable[[Any, Any], Any]:
    def method(self: Any, other: Any) -> Any:
        a, b = (_element(other), _element(self)) if swapped else (_element(self), _element(other))
        if not isinstance(a, Tensor) and not isinstance(b, Tensor):
            return getattr(operator, name)(a, b)
        if name not in _ARITHMETIC:
            raise TypeMismatchError(f"no arithmetic on whole tensors yet ({name}): import anchorleg.topi, or index the tensor")
        return _ARITHMETIC[name](a, b)

    return method


def _element(x: Any) -> Any:
    return x.asobject() if isinstance(x, TensorSlice) else x


def _install(cls: type) -> None:
    for dunder, name in (("add", "add"), ("sub", "sub"), ("mul", "mul"), ("truediv", "truediv"), ("floordiv", "floordiv"),
                         ("mod", "mod"), ("pow", "pow"), ("and", "and_"), ("or", "or_"), ("xor", "xor"), ("lshift", "lshift"),
                         ("rshift", "rshift")):
        setattr(cls, f"__{dunder}__", _binary(name, False))
        setattr(cls, f"__r{dunder}__", _binary(name, True))
    for name in ("lt", "le", "gt", "ge"):
        setattr(cls, f"__{name}__", _binary(name, False))
    setattr(cls, "__neg__", lambda self: _binary("mul", False)(self, -1))


_install(Tensor)
_install(TensorSlice)


def __getattr__(name: str) -> Any:
    """The operation classes, under the address users know from upstream."""
    if name in ("Operation", "PlaceholderOp", "ComputeOp", "ExternOp"):
        from . import operation

        return getattr(operation, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
