"""Writing loop programs statement by statement, for algorithms that are no ``te.compute``.

    ib = ir_builder.create()
    a, b = ib.buffer_ptr(in_buffer), ib.buffer_ptr(out_buffer)
    with ib.for_range(0, n, "i") as i:
        with ib.if_scope(a[i] > 0):
            b[i] = a[i]
        with ib.else_scope():
            b[i] = tir.const(0, "float32")
    body = ib.get()

Loop variables are int64, the index type, unless a dtype is given.
"""
from __future__ import annotations

from typing import Any, Callable, Sequence

from ..ir.expr import INDEX_DTYPE, IntImm, PrimExpr
from ..ir.type import PointerType, PrimType
from ..support.errors import ArgumentError, TypeMismatchError
from . import build, op
from . import expr as tir
from . import stmt as ts
from .buffer import Buffer, BufferLoad
from .dtypes import scalar_of

_KINDS = {"serial": ts.ForKind.SERIAL, "parallel": ts.ForKind.PARALLEL, "vectorize": ts.ForKind.VECTORIZED, "unroll": ts.ForKind.UNROLLED}
_Emitted = "ts.Stmt | Callable[[ts.Stmt], ts.Stmt]"


class WithScope:
    """A ``with`` block: gives ``value`` on entry, closes the statement on exit."""

    def __init__(self, value: Any, on_exit: Callable[[], None]) -> None:
        self._value, self._on_exit = value, on_exit

    def __enter__(self) -> Any:
        return self._value

    def __exit__(self, exc_type: Any, exc: Any, trace: Any) -> None:
        if exc_type is None:
            self._on_exit()


class BufferVar:
    """A buffer to be read and written by subscript; one subscript into several dimensions counts elements in row-major order."""

    def __init__(self, builder: IRBuilder, buffer: Buffer, content_type: str) -> None:
        self._builder, self._buffer, self._content_type = builder, buffer, content_type

    def asobject(self) -> tir.Var:
        """The pointer."""
        return self._buffer.data

    @property
    def dtype(self) -> str:
        """The dtype of its elements."""
        return self._content_type

    @property
    def buffer(self) -> Buffer:
        """The buffer itself."""
        return self._buffer

    def _indices(self, index: Any) -> list[PrimExpr]:
        found = [op.convert(i) for i in (index if isinstance(index, (tuple, list)) else (index,))]
        shape = self._buffer.shape
        if len(found) == 1 and len(shape) != 1:
            return unravel(found[0], shape)
        if len(found) != len(shape):
            raise ArgumentError(f"buffer {self._buffer.name!r} has {len(shape)} dimensions, but is accessed with {len(found)} indices")
        return found

    def __getitem__(self, index: Any) -> PrimExpr:
        return BufferLoad(self._buffer, self._indices(index))

    def __setitem__(self, index: Any, value: Any) -> None:
        value = op.cast(value, self._content_type) if not isinstance(value, PrimExpr) else value
        if scalar_of(value.dtype) != scalar_of(self._content_type):
            raise TypeMismatchError(f"buffer {self._buffer.name!r} holds {self._content_type}, but is assigned a {value.dtype}: cast it")
        self._builder.emit(ts.BufferStore(self._buffer, value, self._indices(index)))


def unravel(index: PrimExpr, shape: Sequence[PrimExpr]) -> list[PrimExpr]:
    """The position in each dimension of the ``index``-th element in row-major order."""
    index = build.cast(INDEX_DTYPE, index)
    out: list[PrimExpr] = []
    for d in reversed(shape[1:]):
        out.append(build.floor_mod(index, d))
        index = build.floor_div(index, d)
    return [index, *reversed(out)] if shape else []


class IRBuilder:
    """Collects statements; nested scopes are ``with`` blocks."""

    def __init__(self) -> None:
        self._scopes: list[list[Any]] = [[]]
        self._loops = 0

    # ------------------------------------------------------------ plumbing

    def emit(self, stmt: Any) -> None:
        """Appends a statement, an expression to evaluate, or a function that wraps all statements that follow in the scope."""
        if isinstance(stmt, tir.Call):
            stmt = ts.Evaluate(stmt)
        if not isinstance(stmt, ts.Stmt) and not callable(stmt):
            raise TypeMismatchError(f"expected a statement or a call, got {type(stmt).__name__}")
        self._scopes[-1].append(stmt)

    def _close(self) -> ts.Stmt:
        pending: list[ts.Stmt] = []
        for each in reversed(self._scopes.pop()):
            if callable(each):
                pending = [each(ts.seq(*reversed(pending)))]
            else:
                pending.append(each)
        return ts.seq(*reversed(pending))

    def _scope(self, value: Any, finish: Callable[[ts.Stmt], None]) -> WithScope:
        self._scopes.append([])
        return WithScope(value, lambda: finish(self._close()))

    # ------------------------------------------------------------ scopes

    def scope_attr(self, node: Any, attr_key: str, value: Any) -> None:
        """Annotates all that follows in the present scope."""
        node = tir.StringImm(node) if isinstance(node, str) else node.asobject() if isinstance(node, BufferVar) else node
        value = op.convert(value)
        if attr_key == "thread_extent":
            value = op.maximum(value, 1)
        self.emit(lambda body: ts.AttrStmt(node, attr_key, value, body))

    def for_range(self, begin: Any, end: Any, name: str = "i", dtype: str | None = None, kind: str = "serial") -> WithScope:
        """A loop over [begin, end); kinds: serial, parallel, vectorize, unroll."""
        if kind not in _KINDS:
            raise ArgumentError(f"for_range: expected a kind among {', '.join(_KINDS)}, got {kind!r}")
        if name == "i":
            name = "ijk"[self._loops] if self._loops < 3 else f"i_{self._loops - 3}"
            self._loops += 1
        dtype = dtype or INDEX_DTYPE
        low, high = (build.cast(dtype, op.convert(x)) for x in (begin, end))
        v = tir.Var(name, dtype)
        return self._scope(v, lambda body: self.emit(ts.For(v, low, build.sub(high, low), _KINDS[kind], body)))

    def while_loop(self, condition: PrimExpr) -> WithScope:
        """Repeats the block while the condition, evaluated anew each time, holds."""
        return self._scope(None, lambda body: self.emit(ts.While(condition, body)))

    def if_scope(self, cond: Any) -> WithScope:
        """The block runs when the condition holds."""
        condition = op.convert(cond)
        return self._scope(None, lambda body: self.emit(ts.IfThenElse(condition, body)))

    def else_scope(self) -> WithScope:
        """The block runs when the condition of the if_scope just before does not hold."""
        before = self._scopes[-1][-1] if self._scopes[-1] else None
        if not isinstance(before, ts.IfThenElse) or before.else_case is not None:
            raise ArgumentError("else_scope: expected an if_scope directly before it")
        self._scopes[-1].pop()
        return self._scope(None, lambda body: self.emit(ts.IfThenElse(before.condition, before.then_case, body)))

    def new_scope(self) -> WithScope:
        """A block whose allocations and annotations end with it."""
        return self._scope(None, self.emit)

    def let(self, var_name: str | tir.Var, value: Any) -> tir.Var:
        """A variable that is ``value`` in all that follows."""
        value = op.convert(value)
        v = tir.Var(var_name, value.dtype) if isinstance(var_name, str) else var_name
        self.emit(lambda body: ts.LetStmt(v, value, body))
        return v

    # ------------------------------------------------------------ memory

    def allocate(self, dtype: str, shape: Any, name: str = "buf", axis_separators: Any = None, scope: str = "") -> BufferVar:
        """Scratch memory in all that follows."""
        dims = list(shape) if isinstance(shape, (tuple, list)) else [shape]
        pointer = tir.Var(name, "handle", PointerType(PrimType(dtype), scope or "global"))
        buffer = Buffer(pointer, dtype, [build.cast(INDEX_DTYPE, op.convert(d)) for d in dims], (), 0, name, scope=scope or "global")
        extents = [op.convert(1)] if not dims else [buffer.shape[0]]
        for d in buffer.shape[1:]:
            extents = [build.mul(extents[0], d)]
        self.emit(lambda body: ts.Allocate(pointer, dtype, extents, IntImm("bool", 1), body))
        return BufferVar(self, buffer, dtype)

    def pointer(self, content_type: str, name: str = "ptr", scope: str = "") -> BufferVar:
        """A new pointer variable to memory of unknown size."""
        data = tir.Var(name, "handle", PointerType(PrimType(content_type), scope or "global"))
        size = tir.SizeVar(f"{name}_size", INDEX_DTYPE)
        return BufferVar(self, Buffer(data, content_type, [size], (), 0, name, scope=scope or "global"), content_type)

    def buffer_ptr(self, buf: Buffer, shape: Any = None) -> BufferVar:
        """Access to a buffer by subscript."""
        return BufferVar(self, buf, buf.dtype)

    def likely(self, expr: PrimExpr) -> PrimExpr:
        """A condition marked as nearly always true."""
        return op.likely(expr)

    def get(self) -> ts.Stmt:
        """The statement built so far; the builder is finished then."""
        if len(self._scopes) != 1:
            raise ArgumentError("get: a with block of the builder is still open")
        result = self._close()
        self._scopes = [[]]
        return result


def create() -> IRBuilder:
    """A new builder."""
    return IRBuilder()
