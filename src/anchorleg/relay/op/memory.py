"""Operators of explicit memory: the virtual machine's compiler puts them where values are made and die.

``alloc_storage(size, alignment)`` gives a block: ``size`` is its number of bytes, or a vector of dimensions of elements of
``dtype``.  ``alloc_tensor(storage, offset, shape)`` gives a tensor in a block.  ``kill(var)`` ends a variable's life.
"""
from __future__ import annotations

from typing import Any

from ...ir.attrs import OPT_INTS, RAW, Attrs, Field
from ...ir.expr import Any as AnyDim, RelayExpr
from ...ir.op import Op
from ...ir.type import GlobalTypeVar, TensorType, TupleType, Type, TypeCall, flatten_types
from ..expr import Call, Constant
from .attrs_common import OPT_DTYPE
from .registry import declare

STORAGE_TYPE = TypeCall(GlobalTypeVar("Storage"), ())


class AllocStorageAttrs(Attrs, name="relay.attrs.AllocStorageAttrs"):
    """Attributes of memory.alloc_storage."""

    dtype = Field(OPT_DTYPE, "", "The element type the block is meant for.")
    virtual_device = Field(RAW, None, "Where the block lies.")


class AllocTensorAttrs(Attrs, name="relay.attrs.AllocTensorAttrs"):
    """Attributes of memory.alloc_tensor."""

    dtype = Field(OPT_DTYPE, "", "The element type.")
    const_shape = Field(RAW, None, "The shape, where it is a constant.")
    assert_shape = Field(OPT_INTS, None, "What is known of the shape where it is not a constant.")


def _storage_rel(args: tuple[Type, ...], attrs: Any, ctx: Any) -> Type:
    return STORAGE_TYPE


def _tensor_rel(args: tuple[Type, ...], attrs: AllocTensorAttrs, ctx: Any) -> Type | None:
    if attrs.const_shape is not None:
        dims: list[Any] = [int(d) for d in attrs.const_shape.data.as_numpy_view().reshape(-1)]
    elif attrs.assert_shape is not None:
        dims = list(attrs.assert_shape)
    elif isinstance(args[2], TensorType) and isinstance(args[2].dims[0], int):
        dims = [AnyDim() for _ in range(args[2].dims[0])]
    else:
        return None
    return TensorType(dims, attrs.dtype)


def _kill_rel(args: tuple[Type, ...], attrs: Any, ctx: Any) -> Type:
    return TupleType([])


declare("memory.alloc_storage", inputs=("size", "alignment"), attrs=AllocStorageAttrs, relation=_storage_rel, num_inputs=-1, stateful=True,
        TNonComputational=True, doc="A block of memory.", level=10)
declare("memory.alloc_tensor", inputs=("storage", "offset", "shape"), attrs=AllocTensorAttrs, relation=_tensor_rel, stateful=True,
        TNonComputational=True, doc="A tensor in a block of memory.", level=10)
declare("memory.kill", inputs=("to_free",), relation=_kill_rel, stateful=True, TNonComputational=True, doc="Ends the life of a variable.",
        level=10)


def alloc_storage(size: RelayExpr, alignment: RelayExpr, virtual_device: Any = None, dtype_hint: str = "float32") -> Call:
    """A block of ``size`` bytes (or, for a vector, of so many elements of ``dtype_hint``)."""
    return Call(Op.get("memory.alloc_storage"), [size, alignment], AllocStorageAttrs(dtype=dtype_hint, virtual_device=virtual_device))


def alloc_tensor(storage: RelayExpr, offset: RelayExpr, shape: RelayExpr, dtype: str = "float32", assert_shape: Any = None) -> Call:
    """A tensor of ``shape`` (a vector) at ``offset`` bytes in ``storage``."""
    fixed = shape if isinstance(shape, Constant) else None
    return Call(Op.get("memory.alloc_tensor"), [storage, offset, shape],
                AllocTensorAttrs(dtype=dtype, const_shape=fixed, assert_shape=assert_shape))


def kill(to_free: RelayExpr) -> Call:
    """The end of a variable's life."""
    return Call(Op.get("memory.kill"), [to_free])


def flatten_tuple_type(ty: Type) -> list[TensorType]:
    """The tensors of a type, left to right."""
    return flatten_types(ty)


def from_tuple_type(ty: Type, expr: RelayExpr) -> list[RelayExpr]:
    """Expressions for the tensors inside an expression of type ``ty``."""
    from ..expr import TupleGetItem

    found: list[RelayExpr] = []
    stack: list[tuple[Type, RelayExpr]] = [(ty, expr)]
    while stack:
        t, e = stack.pop()
        if isinstance(t, TupleType):
            stack.extend((f, TupleGetItem(e, i)) for i, f in reversed(list(enumerate(t.fields))))
        else:
            found.append(e)
    return found


def to_tuple_type(ty: Type, exprs: list[RelayExpr]) -> RelayExpr:
    """Tensors put together to a value of type ``ty``."""
    from ..expr import Tuple

    rest = iter(exprs)

    def build(t: Type) -> RelayExpr:
        return Tuple([build(f) for f in t.fields]) if isinstance(t, TupleType) else next(rest)

    return build(ty)


__all__ = ["AllocStorageAttrs", "AllocTensorAttrs", "STORAGE_TYPE", "alloc_storage", "alloc_tensor", "flatten_tuple_type",
           "from_tuple_type", "kill", "to_tuple_type"]
