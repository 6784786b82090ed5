"""Questions about loop programs: free variables, operation counts, what is read and written."""
from __future__ import annotations

from typing import Any, Iterable, NamedTuple

from ..ir.expr import IntImm, PrimExpr
from ..ir.module import IRModule
from ..ir.node import Node
from ..ir.op import Op
from . import expr as tir
from . import stmt as ts
from .block_access import block_access_regions
from .buffer import Buffer, BufferLoad
from .device_constraints import apply_prim_func_arg_and_result_memory_constraints, get_prim_func_arg_and_result_memory_constraints
from .dtypes import info
from .equal import expr_deep_equal
from .function import PrimFunc
from .functor import StmtVisitor, kids, post_order


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


class _PeakBytes(StmtVisitor):
    """The most bytes that nested allocations of a kind hold at once, each rounded up to the alignment."""

    def __init__(self, kind: type, alignment: int) -> None:
        super().__init__()
        self.kind, self.alignment, self.now, self.peak = kind, alignment, 0, 0

    def default(self, s: ts.Stmt) -> Any:
        size = _aligned_bytes(s, self.alignment) if isinstance(s, self.kind) else 0
        self.now += size
        self.peak = max(self.peak, self.now)
        for k in kids(s):
            if isinstance(k, ts.Stmt):
                yield k
        self.now -= size


def _aligned_bytes(s: Any, alignment: int) -> int:
    """Bytes of an allocation; 0 where its size is not known."""
    if not all(isinstance(e, IntImm) for e in s.extents):
        return 0
    t = info(s.dtype)
    size = (t.bits + 7) // 8 * t.lanes
    for e in s.extents:
        size *= e.value
    return -(-size // alignment) * alignment


def _peak_bytes(func: PrimFunc, kind: type, alignment: int) -> int:
    counter = _PeakBytes(kind, max(1, int(alignment)))
    counter.visit(func.body)
    return counter.peak


def calculate_workspace_bytes(func: PrimFunc, workspace_byte_alignment: int) -> int:
    """The most bytes that a function's allocations hold at once; each is rounded up to the alignment."""
    return _peak_bytes(func, ts.Allocate, workspace_byte_alignment)


def calculate_constant_bytes(func: PrimFunc, constant_byte_alignment: int) -> int:
    """The most bytes that a function's constants take at once; each is rounded up to the alignment."""
    return _peak_bytes(func, ts.AllocateConst, constant_byte_alignment)


def verify_well_formed(func: Any, assert_mode: bool = True) -> bool:
    """Whether a function (or all loop programs of a module) is well formed; with ``assert_mode`` an error says what is not."""
    from .verify import verify

    functions = [f for f in func.functions.values() if isinstance(f, PrimFunc)] if isinstance(func, IRModule) else [func]
    problems = [p for f in functions for p in verify(f)]
    if problems and assert_mode:
        from ..support.errors import InternalError

        raise InternalError("the loop program is not well formed:\n  " + "\n  ".join(problems))
    return not problems


__all__ = ["BufferAccess", "apply_prim_func_arg_and_result_memory_constraints", "block_access_regions", "buffer_access",
           "calculate_allocated_bytes", "calculate_constant_bytes", "calculate_workspace_bytes", "estimate_tir_flops", "expr_deep_equal",
           "get_prim_func_arg_and_result_memory_constraints", "undefined_vars", "verify_well_formed"]
