"""A small language for kernels written as loop nests (``te.extern``): sorting, scattering, scanning and the like.

::

    def body(ins, outs):
        data, out = ins[0], outs[0]
        return loop(n, lambda i: out.store(i, data[i] + 1))

    result = extern([shape], [tensor], body, ["float32"], name="increment")

Tensors appear as :class:`View`: flat, row-major arrays.  All indices are int64.
"""
from __future__ import annotations

from typing import Any, Callable, Sequence

from .. import te
from ..ir.expr import INDEX_DTYPE, IntImm, PrimExpr, Range
from ..te.tensor import Tensor
from ..tir import op as T
from ..tir.buffer import Buffer, BufferLoad
from ..tir.expr import Var
from ..tir.stmt import BufferRealize, BufferStore, DeclBuffer, Evaluate, For, ForKind, IfThenElse, LetStmt, Stmt, seq
from .utils import prod, static_int

LANES = 16  # elements of one vector step of a copy


class View:
    """A buffer as a flat array: ``view[i]`` loads, ``view.store(i, value)`` stores."""

    def __init__(self, buffer: Buffer) -> None:
        size = prod(buffer.shape)
        self.shape, self.dtype, self.size = buffer.shape, buffer.dtype, size
        self.flat = Buffer(buffer.data, buffer.dtype, (size,), (), 0, f"{buffer.name}_flat", scope=buffer.scope())

    def __getitem__(self, index: Any) -> PrimExpr:
        return BufferLoad(self.flat, [_place(index)])

    def store(self, index: Any, value: Any) -> Stmt:
        """The statement that sets one element; the value is cast to the array's type."""
        return BufferStore(self.flat, T.cast(value, self.dtype), [_place(index)])


def _place(index: Any) -> Any:
    return T.cast(index, INDEX_DTYPE) if isinstance(index, PrimExpr) else index


class Cell:
    """A scalar that a kernel changes: ``cell.get()`` and ``cell.set(value)``."""

    def __init__(self, buffer: Buffer) -> None:
        self.buffer = buffer

    def get(self) -> PrimExpr:
        """Its value."""
        return BufferLoad(self.buffer, [0])

    def set(self, value: Any) -> Stmt:
        """The statement that gives it a value."""
        return BufferStore(self.buffer, T.cast(value, self.buffer.dtype), [0])


Body = Callable[[Any], Stmt]


def extern(shapes: Sequence[Sequence[Any]], inputs: Sequence[Tensor], body: Callable[[list[View], list[View]], Stmt],
           dtypes: Sequence[str], name: str, tag: str = "") -> list[Tensor]:
    """The tensors that ``body(inputs, outputs)``, given flat views, computes."""
    def build(ins: Sequence[Buffer], outs: Sequence[Buffer]) -> Stmt:
        views = [View(b) for b in ins], [View(b) for b in outs]
        stmt = body(*views)
        for view in (*views[0], *views[1]):
            stmt = DeclBuffer(view.flat, stmt)
        return stmt

    made = te.extern([tuple(s) for s in shapes], list(inputs), build, name=name, dtype=list(dtypes), tag=tag)
    return list(made) if isinstance(made, (list, tuple)) else [made]


def loop(extent: Any, body: Body, name: str = "i", parallel: bool = False, start: Any = 0) -> Stmt:
    """``body(i)`` for ``i`` from ``start``, ``extent`` times; nothing for a loop known to be empty, no loop around one turn."""
    turns = static_int(extent)
    if turns == 0:
        return Evaluate(0)
    if turns == 1:
        return body(T.convert(start) if isinstance(start, PrimExpr) else IntImm(INDEX_DTYPE, start))
    var = Var(name, INDEX_DTYPE)
    return For(var, start, T.cast(extent, INDEX_DTYPE), ForKind.PARALLEL if parallel else ForKind.SERIAL, body(var))


def rows(count: Any, body: Body, name: str = "row") -> Stmt:
    """Independent rows, spread over threads."""
    return loop(count, body, name, parallel=True)


def vectors(extent: Any, body: Body, name: str = "v") -> Stmt:
    """``body(i)`` for ``i`` below ``extent``, all independent and contiguous: in vector steps, then the rest one by one."""
    steps = T.floordiv(T.convert(extent) if isinstance(extent, PrimExpr) else IntImm(INDEX_DTYPE, extent), LANES)

    def step(block: Any) -> Stmt:
        lane = Var(f"{name}i", INDEX_DTYPE)
        return For(lane, 0, LANES, ForKind.VECTORIZED, body(block * LANES + lane))

    done = steps * LANES
    return seq(loop(steps, step, f"{name}o"), loop(extent - done, lambda i: body(i), f"{name}r", start=done))


def when(condition: Any, then: Stmt, otherwise: Stmt | None = None) -> Stmt:
    """A branch."""
    if isinstance(condition, IntImm):
        return then if condition.value else otherwise or Evaluate(0)
    return IfThenElse(condition, then, otherwise)


def let(value: Any, body: Body, name: str = "x") -> Stmt:
    """``body(v)`` with ``v`` the value, computed once."""
    value = T.convert(value)
    if isinstance(value, (IntImm, Var)):
        return body(value)
    var = Var(name, value.dtype)
    return LetStmt(var, value, body(var))


def scratch(size: Any, dtype: str, body: Callable[[View], Stmt], name: str = "scratch", scope: str = "global") -> Stmt:
    """``body(array)`` with an array of its own."""
    buffer = Buffer(None, dtype, (T.convert(size) if isinstance(size, PrimExpr) else int(size),), (), 0, name, scope=scope)
    view = View(buffer)
    view.flat = buffer
    return BufferRealize(buffer, [Range.from_min_extent(0, d) for d in buffer.shape], IntImm("bool", 1), body(view))


def cell(initial: Any, body: Callable[[Cell], Stmt], name: str = "cell", dtype: str | None = None) -> Stmt:
    """``body(c)`` with a scalar of its own that starts as ``initial``."""
    value = T.convert(initial) if isinstance(initial, PrimExpr) else T.const(initial, dtype or INDEX_DTYPE)
    buffer = Buffer(None, dtype or value.dtype, (1,), (), 0, name, scope="local")
    own = Cell(buffer)
    return BufferRealize(buffer, [Range.from_min_extent(0, 1)], IntImm("bool", 1), seq(own.set(value), body(own)))


def cells(initial: Sequence[Any], body: Callable[..., Stmt], names: Sequence[str]) -> Stmt:
    """``body(c0, c1, …)`` with several scalars."""
    made: list[Cell] = []

    def nest(k: int) -> Stmt:
        if k == len(initial):
            return body(*made)
        return cell(initial[k], lambda c: (made.append(c), nest(k + 1))[1], names[k])  # type: ignore[func-returns-value]

    return nest(0)


def smaller(a: Any, b: Any) -> PrimExpr:
    """The smaller of two."""
    return T.minimum(a, b)


def larger(a: Any, b: Any) -> PrimExpr:
    """The larger of two."""
    return T.maximum(a, b)


class Rows:
    """A tensor as rows along one axis: row ``r``, position ``k`` lies at ``base(r) + k * stride`` in the flat array."""

    def __init__(self, shape: Sequence[Any], axis: int) -> None:
        self.axis = int(axis) % max(len(shape), 1)
        self.length = shape[self.axis]
        self.stride = prod(shape[self.axis + 1:])
        self.outer = prod(shape[:self.axis])
        self.count = self.outer * self.stride

    def base(self, row: Any) -> Any:
        """Where the first element of a row lies."""
        if static_int(self.stride) == 1:
            return row * self.length
        return T.floordiv(row, self.stride) * (self.length * self.stride) + T.floormod(row, self.stride)


__all__ = ["View", "Cell", "extern", "loop", "rows", "vectors", "when", "let", "scratch", "cell", "cells", "smaller", "larger", "Rows", "seq"]
