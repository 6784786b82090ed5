"""The verifier of loop programs, to be run between passes: definitions, types, dimensions, and indices that are certainly wrong."""
from __future__ import annotations

from typing import Any, Sequence

from ..arith import Analyzer
from ..ir.expr import IntImm, PrimExpr, Range
from . import expr as tir
from . import intrin
from . import stmt as ts
from .buffer import Buffer, BufferLoad
from .dtypes import info
from .function import PrimFunc
from .functor import StmtVisitor, post_order


class _Verifier(StmtVisitor):
    def __init__(self, flat: bool) -> None:
        super().__init__()
        self.flat = flat
        self.problems: list[str] = []
        self.scope: dict[int, tir.Var] = {}
        self.analyzer = Analyzer()
        self.checked: set[int] = set()

    def report(self, text: str) -> None:
        if text not in self.problems:
            self.problems.append(text)

    # ------------------------------------------------------------ definitions

    def define(self, v: tir.Var) -> None:
        if id(v) in self.scope:
            self.report(f"variable {v.name!r} is defined again inside its own scope")
        self.scope[id(v)] = v

    def _within(self, v: tir.Var, body: ts.Stmt) -> Any:
        self.define(v)
        yield body
        self.scope.pop(id(v), None)

    # ------------------------------------------------------------ expressions

    def expr(self, e: PrimExpr) -> None:
        lets = [n.var for n in post_order(e) if isinstance(n, tir.Let)]
        for v in lets:
            self.scope[id(v)] = v
        lazy = self._lazily_evaluated(e)
        for n in post_order(e):
            if isinstance(n, tir.Var) and id(n) not in self.scope:
                self.report(f"variable {n.name!r} is used but not defined")
            elif isinstance(n, tir.BinaryExpr) and n.a.dtype != n.b.dtype:
                self.report(f"{type(n).__name__} has operands of dtypes {n.a.dtype} and {n.b.dtype}")
            elif isinstance(n, BufferLoad):
                self.access(n.buffer, n.indices, id(n) not in lazy)
            elif isinstance(n, tir.Reduce):
                self.report("a Reduce is left in the program; it must be lowered to loops")

    @staticmethod
    def _lazily_evaluated(e: PrimExpr) -> set[int]:
        """The nodes below the branches of an if_then_else, whose indices may be wrong where they are not evaluated."""
        found: set[int] = set()
        for n in post_order(e):
            if isinstance(n, tir.Call) and n.op is intrin.IF_THEN_ELSE:
                for branch in n.args[1:]:
                    found.update(id(x) for x in post_order(branch))
        return found

    def access(self, b: Buffer, indices: Sequence[PrimExpr], certain: bool) -> None:
        if id(b.data) not in self.scope:
            self.report(f"buffer {b.name!r} is accessed where its memory is not defined")
        if len(indices) != len(b.shape):
            self.report(f"buffer {b.name!r} has {len(b.shape)} dimensions, but is accessed with {len(indices)} indices")
            return
        if self.flat and len(indices) != 1:
            self.report(f"buffer {b.name!r} is not flat")
        for axis, (i, extent) in enumerate(zip(indices, b.shape)):
            if not info(i.dtype).is_integer:
                self.report(f"buffer {b.name!r}: the index on axis {axis} has dtype {i.dtype}, expected an integer")
            elif certain:
                self._in_bounds(b, axis, i, extent)

    def _in_bounds(self, b: Buffer, axis: int, i: PrimExpr, extent: PrimExpr) -> None:
        lanes = 1
        if isinstance(i, tir.Ramp) and isinstance(i.stride, IntImm) and i.stride.value >= 0:
            i, lanes = i.base, (i.lanes - 1) * i.stride.value + 1
        elif info(i.dtype).lanes > 1:
            return
        low, high = self.analyzer.bounds(i)
        if high < 0 or isinstance(extent, IntImm) and low + lanes - 1 >= extent.value:
            self.report(f"buffer {b.name!r}: the index on axis {axis} is certainly outside of [0, {_plain(extent)}): "
                        f"it lies in [{low}, {high + lanes - 1}]")

    # ------------------------------------------------------------ statements

    def visit_BufferStore(self, s: ts.BufferStore) -> None:
        for e in (s.value, *s.indices):
            self.expr(e)
        self.access(s.buffer, s.indices, True)
        lanes = max([info(i.dtype).lanes for i in s.indices], default=1) * info(s.buffer.dtype).lanes
        t = info(s.value.dtype)
        if t.scalar != info(s.buffer.dtype).scalar or t.lanes != lanes:
            self.report(f"buffer {s.buffer.name!r} of dtype {s.buffer.dtype} is stored a {s.value.dtype} at {lanes} places")

    def visit_For(self, s: ts.For) -> Any:
        self.expr(s.min)
        self.expr(s.extent)
        self.analyzer.bind(s.loop_var, Range.from_min_extent(s.min, s.extent))
        yield from self._within(s.loop_var, s.body)

    def visit_IfThenElse(self, s: ts.IfThenElse) -> Any:
        self.expr(s.condition)
        for c, body in ((s.condition, s.then_case), (tir.Not(s.condition), s.else_case)):
            if body is not None:
                saved = self.analyzer.enter_constraint(c)
                yield body
                self.analyzer.exit_constraint(saved)

    def visit_While(self, s: ts.While) -> Any:
        self.expr(s.condition)
        yield s.body

    def visit_LetStmt(self, s: ts.LetStmt) -> Any:
        self.expr(s.value)
        if s.var.dtype != s.value.dtype:
            self.report(f"variable {s.var.name!r} of dtype {s.var.dtype} is bound to a value of dtype {s.value.dtype}")
        yield from self._within(s.var, s.body)

    def visit_Allocate(self, s: ts.Allocate) -> Any:
        for e in (*s.extents, s.condition):
            self.expr(e)
        yield from self._within(s.buffer_var, s.body)

    def visit_AllocateConst(self, s: ts.AllocateConst) -> Any:
        yield from self._within(s.buffer_var, s.body)

    def visit_BufferRealize(self, s: ts.BufferRealize) -> Any:
        if self.flat:
            self.report(f"a BufferRealize (of {s.buffer.name!r}) is left in the program")
        for r in s.bounds:
            self.expr(r.min)
            self.expr(r.extent)
        yield from self._within(s.buffer.data, s.body)

    def visit_AttrStmt(self, s: ts.AttrStmt) -> Any:
        self.expr(s.value)
        v = s.node.var if isinstance(s.node, tir.IterVar) else s.node
        if s.attr_key in ("thread_extent", "virtual_thread") and id(v) not in self.scope:
            self.analyzer.bind(v, Range.from_min_extent(0, s.value))
            yield from self._within(v, s.body)
        else:
            yield s.body

    def run(self, func: PrimFunc) -> list[str]:
        for p, b in zip(func.params, func.buffers):
            self.scope[id(p)] = p
            if b is not None:
                self.scope[id(b.data)] = b.data
                for e in (*b.shape, *b.strides, b.elem_offset):
                    for v in post_order(e):
                        if isinstance(v, tir.Var):
                            self.scope[id(v)] = v
        self.visit(func.body)
        return self.problems


def _plain(e: PrimExpr) -> str:
    return str(e.value) if isinstance(e, IntImm) else repr(e)


def verify(func: PrimFunc, flat: bool = False) -> list[str]:
    """What is wrong with a function, one line each (none: it is well formed).

    ``flat`` also asks for the form after StorageFlatten: one-dimensional accesses, no BufferRealize.
    """
    return _Verifier(flat).run(func)


__all__ = ["verify"]
