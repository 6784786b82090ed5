"""Buffers: typed, shaped memory, and the loads from them."""
from __future__ import annotations

from typing import Any, Sequence

from ..ir.expr import PrimExpr, as_dim_expr
from ..ir.node import CHILD, CHILDREN, DATA, Node
from ..ir.type import PointerType, PrimType
from ..support.errors import UnsupportedOpError
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

    def __init__(self, data: Var | None, dtype: str, shape: Sequence[Any], strides: Sequence[Any] = (),
                 elem_offset: PrimExpr | int = 0, name: str = "buffer", data_alignment: int = 64, scope: str = "global") -> None:
        self.data = data if data is not None else Var(name, "handle", PointerType(PrimType(dtype), scope))
        self.dtype, self.name, self.data_alignment, self.scope_name, self.span = str(dtype), name, data_alignment, scope, None
        self.shape = tuple(as_dim_expr(d) for d in shape)
        self.strides = tuple(as_dim_expr(d) for d in strides or ())
        self.elem_offset = as_dim_expr(elem_offset)

    READ, WRITE = 1, 2

    def scope(self) -> str:
        """The memory the buffer lies in."""
        return self.scope_name

    def vload(self, begin: Any, dtype: str | None = None) -> BufferLoad:
        """The element at ``begin``; with a vector ``dtype`` the vector of elements from there on, along the last dimension."""
        from .vector_access import vload

        return vload(self, begin, dtype)

    def vstore(self, begin: Any, value: PrimExpr) -> Any:
        """The statement that stores ``value`` (a vector: along the last dimension) from ``begin`` on."""
        from .vector_access import vstore

        return vstore(self, begin, value)

    def access_ptr(self, access_mask: int | str, ptr_type: str = "handle", content_lanes: int = 1, offset: Any = 0, extent: Any = None) -> PrimExpr:
        """A pointer to the elements from ``offset`` on, for reading (``"r"``, 1), writing (``"w"``, 2) or both, seen as vectors of
        ``content_lanes``; ``extent`` of them are touched (default: all)."""
        from .vector_access import access_ptr

        return access_ptr(self, access_mask, ptr_type, content_lanes, offset, extent)

    def offset_of(self, indices: Sequence[Any]) -> list[PrimExpr]:
        """Where the element at ``indices`` lies in the flat buffer."""
        from .vector_access import offset_of

        return offset_of(self, indices)

    def get_flattened_buffer(self) -> Buffer:
        """The same memory as a buffer of one dimension; the buffer itself when it is one."""
        from .vector_access import flattened

        return flattened(self)


class BufferLoad(PrimExpr):
    """The element (or, with a vector index in the last place, the vector) of ``buffer`` at ``indices``."""

    __slots__ = ("buffer", "indices")
    FIELDS = {"buffer": CHILD, "indices": CHILDREN}
    __hash__ = PrimExpr.__hash__

    def __init__(self, buffer: Buffer, indices: Sequence[PrimExpr], span: Any = None) -> None:
        self.buffer, self.indices, self.span = buffer, tuple(as_dim_expr(i) for i in indices), span
        self.dtype = load_dtype(buffer.dtype, self.indices)

    def replace(self, **changes: Any) -> BufferLoad:
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

    def __init__(self, producer: Any, indices: Sequence[PrimExpr], span: Any = None) -> None:
        self.producer, self.indices, self.span = producer, tuple(as_dim_expr(i) for i in indices), span
        self.dtype = producer.dtype

    def _reset_caches(self, copy: Node) -> None:
        copy.dtype = self.dtype  # type: ignore[attr-defined]


def decl_buffer(shape: Sequence[Any] | int, dtype: str = "float32", name: str = "buffer", data: Var | None = None,
                strides: Sequence[Any] = (), elem_offset: Any = None, scope: str = "global", data_alignment: int = 64,
                offset_factor: int = 0, buffer_type: str = "", axis_separators: Any = None) -> Buffer:
    """A new buffer of that shape.

    With an ``offset_factor``, and no ``elem_offset``, the offset is a variable.  UnsupportedOpError for buffers that broadcast by
    themselves (``buffer_type``) or flatten to several dimensions (``axis_separators``).
    """
    if buffer_type not in ("", "default"):
        raise UnsupportedOpError(f"a buffer of type {buffer_type!r}: only buffers without automatic broadcasting are supported")
    if axis_separators:
        raise UnsupportedOpError("axis_separators: only buffers that flatten to one dimension are supported")
    dims = (shape,) if isinstance(shape, (int, PrimExpr)) else shape
    if elem_offset is None:
        elem_offset = Var(f"{name}_elem_offset") if offset_factor else 0
    return Buffer(data, dtype, dims, strides or (), elem_offset, name, data_alignment if data_alignment > 0 else 64, scope or "global")
