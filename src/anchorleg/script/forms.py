"""What the functions of the script language give besides expressions: descriptions of declarations and statements.

``T.allocate(...)``, ``T.grid(...)``, ``T.block(...)`` … do nothing themselves: each returns one of these descriptions, and the parser,
which sees where it stands (assigned to a name, in a ``with``, in a ``for``, alone on a line), makes it part of the program.
"""
from __future__ import annotations

from typing import Any, Mapping, NamedTuple, Sequence

from ..ir.expr import PrimExpr, as_dim_expr
from ..ir.type import PointerType, PrimType
from ..support.errors import ArgumentError
from ..tir import expr as tir
from ..tir.buffer import Buffer, decl_buffer
from ..tir.stmt import ForKind


class VarForm:
    """A variable that gets its name where it is assigned: ``n = T.int32()``, ``p = T.handle("float32")``."""

    def __init__(self, dtype: str, type_annotation: Any = None, is_size_var: bool = False) -> None:
        self.dtype, self.type_annotation, self.is_size_var = dtype, type_annotation, is_size_var

    def make(self, name: str) -> tir.Var:
        """The variable."""
        return (tir.SizeVar if self.is_size_var else tir.Var)(name, self.dtype, self.type_annotation)


class ThreadForm(NamedTuple):
    """``tx = T.env_thread("threadIdx.x")``."""

    tag: str

    def make(self, name: str) -> tir.IterVar:
        """The axis."""
        return tir.IterVar(None, tir.Var(name, "int32"), tir.IterVar.ThreadIndex, self.tag)


class BufferForm:
    """A buffer that gets its name where it is assigned or annotated."""

    def __init__(self, shape: Any, dtype: Any = "float32", data: Any = None, strides: Any = None, elem_offset: Any = None,
                 scope: str | None = None, align: int = 0, offset_factor: int = 0, buffer_type: str = "", axis_separators: Any = None) -> None:
        self.shape: tuple[Any, ...] = tuple(shape) if isinstance(shape, (tuple, list)) else (shape,)
        self.dtype, self.data, self.strides, self.elem_offset = dtype_text(dtype), data, tuple(strides or ()), elem_offset
        self.scope, self.align, self.offset_factor = scope, align, offset_factor
        self.buffer_type, self.axis_separators = buffer_type, axis_separators

    def make(self, name: str) -> Buffer:
        """The buffer."""
        scope = self.scope or getattr(getattr(self.data, "type_annotation", None), "storage_scope", "") or "global"
        shape, strides = ([_dim(d, name) for d in dims] for dims in (self.shape, self.strides))
        if strides and len(strides) != len(shape):
            raise ArgumentError(f"buffer {name!r} has {len(shape)} dimensions, but {len(strides)} strides")
        data = self.data if self.data is not None else tir.Var(name, "handle", PointerType(PrimType(self.dtype), scope))
        offset = None if self.elem_offset is None else _dim(self.elem_offset, name)
        return decl_buffer(shape, self.dtype, name, data, strides, offset, scope, self.align, self.offset_factor, self.buffer_type, self.axis_separators)


def _dim(value: Any, name: str) -> PrimExpr:
    """A dimension as an expression; a text names a variable of its own."""
    if isinstance(value, tir.IterVar):
        return value.var
    if isinstance(value, str):
        return tir.Var(value)
    if isinstance(value, bool) or not isinstance(value, (int, PrimExpr)):
        raise ArgumentError(f"buffer {name!r}: a dimension is an integer expression, got {type(value).__name__} {value!r}")
    return as_dim_expr(value)


def dtype_text(dtype: Any) -> str:
    """The dtype that a text, or a constructor such as ``T.float32``, names."""
    return str(getattr(dtype, "dtype", dtype)) or "void"


# ---------------------------------------------------------------- declarations: their value is a variable or a buffer


class MatchBuffer(NamedTuple):
    """``A = T.match_buffer(a, ...)``: the buffer behind a parameter, or a part of another buffer."""

    source: Any
    buffer: BufferForm


class Allocation(NamedTuple):
    """``p = T.allocate([n], "float32", "global")``."""

    extents: tuple[Any, ...]
    dtype: str
    scope: str
    condition: Any
    annotations: Mapping[str, Any]
    var: Any


class Constant(NamedTuple):
    """``p = T.allocate_const([…], "float32", [n])``."""

    data: Any
    dtype: str
    extents: tuple[Any, ...]
    annotations: Mapping[str, Any]
    var: Any


class Declaration(NamedTuple):
    """``B = T.decl_buffer(...)``."""

    buffer: BufferForm


class BlockAllocation(NamedTuple):
    """``B = T.alloc_buffer(...)``."""

    buffer: BufferForm


class Binding(NamedTuple):
    """``with T.LetStmt(value, var=v)`` and ``v = T.LetStmt(value)``."""

    value: Any
    var: Any


class Axis(NamedTuple):
    """``vi = T.axis.spatial(dom, value)``: one or several axes of a block."""

    kinds: tuple[int, ...]
    doms: tuple[Any, ...]
    values: tuple[Any, ...]


class Thread(NamedTuple):
    """``with T.launch_thread("threadIdx.x", 32) as tx``."""

    thread: Any
    extent: Any


class MetaVar(NamedTuple):
    """``x = T.meta_var(value)``: a name for a value that leaves no trace in the program."""

    value: Any


# ---------------------------------------------------------------- scopes: what stands in a ``with`` or alone, holding all that follows


class Attribute(NamedTuple):
    """``T.attr(node, key, value)``."""

    node: Any
    key: str
    value: Any


class Assertion(NamedTuple):
    """``T.Assert(condition, message)``."""

    condition: Any
    message: Any


class Realization(NamedTuple):
    """``T.realize(A[0:n], "global", condition)``."""

    region: Any
    scope: str
    condition: Any


class BlockScope(NamedTuple):
    """``T.block(name)``."""

    name: str
    no_realize: bool


class InitScope(NamedTuple):
    """``T.init()``."""


class Branch(NamedTuple):
    """``T.If(condition)``."""

    condition: Any


class BranchSide(NamedTuple):
    """``T.Then()`` and ``T.Else()``."""

    taken: bool


class Repeat(NamedTuple):
    """``T.While(condition)``."""

    condition: Any


class Loops(NamedTuple):
    """``for i, j in T.grid(n, m)``, ``for i in T.serial(n)``: one or several loops, from the outermost in."""

    bounds: tuple[tuple[Any, Any], ...]  # (first, end) of each; with ``by_extent`` (first, number of rounds)
    kind: ForKind
    thread: str | None
    annotations: Mapping[str, Any]
    by_extent: bool


# ---------------------------------------------------------------- facts about the enclosing function or block


class FunctionAttributes(NamedTuple):
    """``T.func_attr({...})``."""

    attrs: Mapping[str, Any]


class FunctionResult(NamedTuple):
    """``T.func_ret(type)``."""

    type: Any


class Where(NamedTuple):
    """``T.where(condition)``."""

    predicate: Any


class Accesses(NamedTuple):
    """``T.reads(...)`` and ``T.writes(...)``."""

    regions: tuple[Any, ...]
    writes: bool


class BlockAttributes(NamedTuple):
    """``T.block_attr({...})``."""

    attrs: Mapping[str, Any]


# ---------------------------------------------------------------- statements


class Store(NamedTuple):
    """``T.buffer_store(A, value, indices)``."""

    buffer: Buffer
    value: Any
    indices: Sequence[Any]


class Evaluation(NamedTuple):
    """``T.evaluate(value)``."""

    value: Any
