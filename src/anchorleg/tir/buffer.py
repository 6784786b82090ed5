"""Buffers: typed, shaped memory, and the loads from them."""
from __future__ import annotations

from typing import Any as _Any, Sequence

from ..ir.expr import PrimExpr, as_dim_expr
from ..ir.node import CHILD, CHILDREN, DATA, Node
from ..ir.type import PointerType, PrimType
from .expr import Var


class Buffer(Node):
    """Memory behind the pointer ``data``: element dtype, shape, strides in elements (empty: compact, row-major).

    ``elem_offset`` is where element 0 lies, in elements; ``scope`` the memory ("global": heap or caller's, "local": stack
    and registers of one task).  ``data_alignment`` in bytes.  Buffers compare by identity.
    """

    __slots__ = ("data", "dtype", "shape", "strides", "elem_offset", "name", "data_alignment", "scope_name")
    FIELDS = {"data": CHILD, "dtype": DATA, "shape": CHILDREN, "strides": CHILDREN, "elem_offset": CHILD, "name": DATA,
              "data_alignment": DATA, "scope_name": DATA}
    SHARED, LABELS = True, ("name",)

    def __init__(self, data: Var | None, dtype: str, shape: Sequence[_Any], strides: Sequence[_Any] = (),
                 elem_offset: PrimExpr | int = 0, name: str = "buffer", data_alignment: int = 64, scope: str = "global") -> None:
        self.data = data if data is not None else Var(name, "handle", PointerType(PrimType(dtype), scope))
        self.dtype, self.name, self.data_alignment, self.scope_name, self.span = str(dtype), name, data_alignment, scope, None
        self.shape = tuple(as_dim_expr(d) for d in shape)
        self.strides = tuple(as_dim_expr(d) for d in strides or ())
        self.elem_offset = as_dim_expr(elem_offset)

    def scope(self) -> str:
        """The memory the buffer lies in."""
        return self.scope_name


class BufferLoad(PrimExpr):
    """The element (or, with a vector index in the last place, the vector) of ``buffer`` at ``indices``."""

    __slots__ = ("buffer", "indices")
    FIELDS = {"buffer": CHILD, "indices": CHILDREN}
    __hash__ = PrimExpr.__hash__

    def __init__(self, buffer: Buffer, indices: Sequence[PrimExpr], span: _Any = None) -> None:
        self.buffer, self.indices, self.span = buffer, tuple(as_dim_expr(i) for i in indices), span
        self.dtype = load_dtype(buffer.dtype, self.indices)

    def replace(self, **changes: _Any) -> BufferLoad:
        new = super().replace(**changes)
        if new is not self:
            new.dtype = load_dtype(new.buffer.dtype, new.indices)
        return new


def load_dtype(dtype: str, indices: Sequence[PrimExpr]) -> str:
    """What a load of ``dtype`` elements gives: a vector when an index is one."""
    lanes = [i.dtype.rpartition("x")[2] for i in indices if "x" in i.dtype]
    return f"{dtype}x{lanes[-1]}" if lanes else dtype


class ProducerLoad(PrimExpr):
    """The element of a tensor (``producer``, te.Tensor) at ``indices``; only before lowering."""

    __slots__ = ("producer", "indices")
    FIELDS = {"producer": DATA, "indices": CHILDREN}
    __hash__ = PrimExpr.__hash__

    def __init__(self, producer: _Any, indices: Sequence[PrimExpr], span: _Any = None) -> None:
        self.producer, self.indices, self.span = producer, tuple(as_dim_expr(i) for i in indices), span
        self.dtype = producer.dtype

    def _reset_caches(self, copy: Node) -> None:
        copy.dtype = self.dtype  # type: ignore[attr-defined]


def decl_buffer(shape: Sequence[_Any] | int, dtype: str = "float32", name: str = "buffer", data: Var | None = None,
                strides: Sequence[_Any] = (), elem_offset: _Any = 0, scope: str = "global", data_alignment: int = 64) -> Buffer:
    """A new buffer of that shape."""
    dims = (shape,) if isinstance(shape, (int, PrimExpr)) else shape
    return Buffer(data, dtype, dims, strides, elem_offset, name, data_alignment, scope)
