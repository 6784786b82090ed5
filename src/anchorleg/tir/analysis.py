"""Questions about loop programs: free variables, operation counts, what is read and written."""
from __future__ import annotations

from typing import Any, Iterable, NamedTuple

from ..ir.expr import IntImm, PrimExpr
from ..ir.module import IRModule
from ..ir.node import Node
from ..ir.op import Op
from . import expr as tir
from . import stmt as ts
from .buffer import Buffer, BufferLoad
from .dtypes import info
from .equal import expr_deep_equal
from .function import PrimFunc
from .functor import kids, post_order


def undefined_vars(node: Node, defs: Iterable[tir.Var] = ()) -> list[tir.Var]:
    """The variables used under a statement, expression or function that nothing there defines, in order of first use.

    Pointers and shape variables of accessed buffers count as used.
    """
    from .functor import free_candidates

    known = {id(v) for v in defs}
    if isinstance(node, PrimFunc):
        known |= {id(p) for p in node.params}
        for b in node.buffers:
            if b is not None:
                known |= {id(v) for e in (b.data, *b.shape, *b.strides, b.elem_offset) for v in post_order(e)}
    for n in post_order(node):
        v = _defined_by(n)
        if v is not None:
            known.add(id(v))
    return [v for v in free_candidates(node) if id(v) not in known]


def _defined_by(n: Node) -> tir.Var | None:
    """The variable a node brings into scope."""
    if isinstance(n, ts.For):
        return n.loop_var
    if isinstance(n, (ts.LetStmt, tir.Let)):
        return n.var
    if isinstance(n, (ts.Allocate, ts.AllocateConst)):
        return n.buffer_var
    if isinstance(n, (ts.BufferRealize, ts.DeclBuffer)):
        return n.buffer.data
    if isinstance(n, ts.AttrStmt) and n.attr_key in ("thread_extent", "virtual_thread"):
        return n.node.var if isinstance(n.node, tir.IterVar) else n.node
    return None


class BufferAccess(NamedTuple):
    """The buffers a program reads and those it writes, in order of first access."""

    reads: list[Buffer]
    writes: list[Buffer]


def buffer_access(node: Node) -> BufferAccess:
    """Which buffers are read and which written under a node (accesses through pointers are not seen)."""
    reads: dict[int, Buffer] = {}
    writes: dict[int, Buffer] = {}
    for n in post_order(node):
        if isinstance(n, BufferLoad):
            reads.setdefault(id(n.buffer), n.buffer)
        elif isinstance(n, ts.BufferStore):
            writes.setdefault(id(n.buffer), n.buffer)
    return BufferAccess(list(reads.values()), list(writes.values()))


_COUNTED = (tir.Add, tir.Sub, tir.Mul, tir.Div, tir.Mod, tir.FloorDiv, tir.FloorMod, tir.Min, tir.Max, tir.CmpExpr, tir.And, tir.Or, tir.Not,
            tir.Select)
_FREE_CALLS = ("tir.likely", "tir.reinterpret", "tir.address_of", "tir.tvm_access_ptr", "tir.if_then_else")


def _expr_ops(e: PrimExpr) -> float:
    """Arithmetic operations on values in one evaluation; index arithmetic inside loads is not counted."""
    total, stack, seen = 0.0, [e], set()
    while stack:
        n = stack.pop()
        if id(n) in seen or isinstance(n, BufferLoad):
            continue
        seen.add(id(n))
        if isinstance(n, _COUNTED) or isinstance(n, tir.Call) and isinstance(n.op, Op) and n.op.name not in _FREE_CALLS:
            total += 2 * info(n.dtype).lanes if isinstance(n, tir.Call) and n.op.name == "tir.fma" else info(n.dtype).lanes
        stack.extend(kids(n))  # type: ignore[arg-type]
    return total


def estimate_tir_flops(program: Node | IRModule) -> float:
    """The arithmetic operations a program carries out (of a branch, the dearer side; unknown extents count once)."""
    if isinstance(program, IRModule):
        return sum(estimate_tir_flops(f) for f in program.functions.values() if isinstance(f, PrimFunc))
    counts: dict[int, float] = {}
    root = program.body if isinstance(program, PrimFunc) else program
    for n in post_order(root):
        if isinstance(n, ts.Stmt):
            counts[id(n)] = _stmt_ops(n, counts)
    return counts.get(id(root), 0.0) if isinstance(root, ts.Stmt) else _expr_ops(root)  # type: ignore[arg-type]


def _stmt_ops(s: ts.Stmt, counts: dict[int, float]) -> float:
    if isinstance(s, ts.For):
        return counts[id(s.body)] * (s.extent.value if isinstance(s.extent, IntImm) else 1)
    if isinstance(s, ts.IfThenElse):
        other = counts[id(s.else_case)] if s.else_case is not None else 0.0
        return _expr_ops(s.condition) + max(counts[id(s.then_case)], other)
    own = _expr_ops(s.value) if isinstance(s, (ts.BufferStore, ts.LetStmt, ts.Evaluate)) else 0.0
    return own + sum(counts[id(k)] for k in kids(s) if isinstance(k, ts.Stmt))


def calculate_allocated_bytes(func: PrimFunc) -> dict[str, int]:
    """Bytes of constant-size allocations by memory scope (all of them together; StorageRewrite makes them share)."""
    total: dict[str, int] = {}
    for n in post_order(func.body):
        if isinstance(n, ts.Allocate) and all(isinstance(e, IntImm) for e in n.extents):
            t = info(n.dtype)
            size = (t.bits + 7) // 8 * t.lanes
            for e in n.extents:
                size *= e.value  # type: ignore[attr-defined]
            scope = getattr(n.buffer_var.type_annotation, "storage_scope", "") or "global"
            total[scope] = total.get(scope, 0) + size
    return total


def verify_well_formed(func: Any, assert_mode: bool = True) -> bool:
    """Whether a function (or all loop programs of a module) is well formed; with ``assert_mode`` an error says what is not."""
    from .verify import verify

    functions = [f for f in func.functions.values() if isinstance(f, PrimFunc)] if isinstance(func, IRModule) else [func]
    problems = [p for f in functions for p in verify(f)]
    if problems and assert_mode:
        from ..support.errors import InternalError

        raise InternalError("the loop program is not well formed:\n  " + "\n  ".join(problems))
    return not problems


__all__ = ["BufferAccess", "buffer_access", "calculate_allocated_bytes", "estimate_tir_flops", "expr_deep_equal", "undefined_vars",
           "verify_well_formed"]
