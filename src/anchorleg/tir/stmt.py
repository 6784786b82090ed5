"""Statements of the loop language."""
from __future__ import annotations

import math
from enum import IntEnum
from typing import Any as _Any, Mapping, Sequence

import numpy as np

from ..ir.expr import PrimExpr, Range, as_dim_expr
from ..ir.node import ARRAY, BIND, CHILD, CHILDREN, DATA, Node
from ..support.errors import ArgumentError
from .buffer import Buffer
from .expr import IntImm, Var


class Stmt(Node):
    """Base of all statements."""

    __slots__ = ()


class ForKind(IntEnum):
    """How a loop's iterations run."""

    SERIAL = 0
    PARALLEL = 1
    VECTORIZED = 2
    UNROLLED = 3
    THREAD_BINDING = 4


class For(Stmt):
    """``for loop_var in [min, min + extent)``.  An UNROLLED loop is unrolled by the code generator."""

    __slots__ = ("loop_var", "min", "extent", "kind", "body", "thread_binding", "annotations")
    FIELDS = {"min": CHILD, "extent": CHILD, "loop_var": BIND, "kind": DATA, "body": CHILD, "thread_binding": CHILD,
              "annotations": DATA}

    def __init__(self, loop_var: Var, min: PrimExpr | int, extent: PrimExpr | int, kind: ForKind, body: Stmt,
                 thread_binding: _Any = None, annotations: Mapping[str, _Any] | None = None, span: _Any = None) -> None:
        self.loop_var, self.min, self.extent = loop_var, as_dim_expr(min), as_dim_expr(extent)
        self.kind, self.body, self.thread_binding = ForKind(kind), body, thread_binding
        self.annotations, self.span = dict(annotations or {}), span


class While(Stmt):
    """Repeats ``body`` while ``condition``, evaluated before each round, holds."""

    __slots__ = ("condition", "body")
    FIELDS = {"condition": CHILD, "body": CHILD}

    def __init__(self, condition: PrimExpr, body: Stmt, span: _Any = None) -> None:
        self.condition, self.body, self.span = condition, body, span


class SeqStmt(Stmt):
    """Statements in order."""

    __slots__ = ("seq",)
    FIELDS = {"seq": CHILDREN}

    def __init__(self, seq: Sequence[Stmt], span: _Any = None) -> None:
        self.seq, self.span = tuple(seq), span

    def __getitem__(self, index: int) -> Stmt:
        return self.seq[index]

    def __len__(self) -> int:
        return len(self.seq)


class Evaluate(Stmt):
    """Evaluates an expression for its effect (``Evaluate(0)`` does nothing)."""

    __slots__ = ("value",)
    FIELDS = {"value": CHILD}

    def __init__(self, value: PrimExpr | int, span: _Any = None) -> None:
        self.value, self.span = as_dim_expr(value), span


class BufferStore(Stmt):
    """Stores ``value`` into ``buffer`` at ``indices`` (a vector when the last index is one)."""

    __slots__ = ("buffer", "value", "indices")
    FIELDS = {"buffer": CHILD, "value": CHILD, "indices": CHILDREN}

    def __init__(self, buffer: Buffer, value: PrimExpr, indices: Sequence[PrimExpr], span: _Any = None) -> None:
        self.buffer, self.value, self.indices, self.span = buffer, value, tuple(as_dim_expr(i) for i in indices), span


class BufferRealize(Stmt):
    """``buffer`` exists, over ``bounds``, while ``body`` runs; only before buffers are flattened."""

    __slots__ = ("buffer", "bounds", "condition", "body")
    FIELDS = {"buffer": BIND, "bounds": CHILDREN, "condition": CHILD, "body": CHILD}

    def __init__(self, buffer: Buffer, bounds: Sequence[Range], condition: PrimExpr, body: Stmt, span: _Any = None) -> None:
        self.buffer, self.bounds, self.condition, self.body, self.span = buffer, tuple(bounds), condition, body, span


class Allocate(Stmt):
    """Memory for ``extents`` elements behind ``buffer_var`` while ``body`` runs (scope in the var's PointerType)."""

    __slots__ = ("buffer_var", "dtype", "extents", "condition", "body", "annotations")
    FIELDS = {"buffer_var": BIND, "dtype": DATA, "extents": CHILDREN, "condition": CHILD, "body": CHILD, "annotations": DATA}

    def __init__(self, buffer_var: Var, dtype: str, extents: Sequence[_Any], condition: PrimExpr, body: Stmt,
                 annotations: Mapping[str, _Any] | None = None, span: _Any = None) -> None:
        self.buffer_var, self.dtype, self.extents = buffer_var, str(dtype), tuple(as_dim_expr(e) for e in extents)
        self.condition, self.body, self.annotations, self.span = condition, body, dict(annotations or {}), span


class AllocateConst(Stmt):
    """Constant data behind ``buffer_var`` while ``body`` runs."""

    __slots__ = ("buffer_var", "dtype", "extents", "data", "body", "annotations")
    FIELDS = {"buffer_var": BIND, "dtype": DATA, "extents": CHILDREN, "data": ARRAY, "body": CHILD, "annotations": DATA}

    def __init__(self, buffer_var: Var, dtype: str, extents: Sequence[_Any], data_or_idx: _Any, body: Stmt,
                 annotations: Mapping[str, _Any] | None = None, span: _Any = None) -> None:
        self.buffer_var, self.dtype, self.extents = buffer_var, str(dtype), tuple(as_dim_expr(e) for e in extents)
        self.data, self.body, self.annotations, self.span = data_or_idx, body, dict(annotations or {}), span

    def values(self) -> _Any:
        """The data as a numpy array; ArgumentError when it has fewer elements than the extents say."""
        array = np.asarray(self.data.numpy() if hasattr(self.data, "numpy") else self.data)
        count = math.prod(e.value for e in self.extents if isinstance(e, IntImm))
        if array.size < count:
            raise ArgumentError(f"the constant {self.buffer_var.name!r} is expected to have {count} elements, got {array.size}")
        return array


class DeclBuffer(Stmt):
    """Declares ``buffer`` over memory that exists already."""

    __slots__ = ("buffer", "body")
    FIELDS = {"buffer": BIND, "body": CHILD}

    def __init__(self, buffer: Buffer, body: Stmt, span: _Any = None) -> None:
        self.buffer, self.body, self.span = buffer, body, span


class IfThenElse(Stmt):
    """A branch; ``else_case`` may be None."""

    __slots__ = ("condition", "then_case", "else_case")
    FIELDS = {"condition": CHILD, "then_case": CHILD, "else_case": CHILD}

    def __init__(self, condition: PrimExpr, then_case: Stmt, else_case: Stmt | None = None, span: _Any = None) -> None:
        self.condition, self.then_case, self.else_case, self.span = condition, then_case, else_case, span


class LetStmt(Stmt):
    """``var`` is ``value`` while ``body`` runs."""

    __slots__ = ("var", "value", "body")
    FIELDS = {"value": CHILD, "var": BIND, "body": CHILD}

    def __init__(self, var: Var, value: PrimExpr, body: Stmt, span: _Any = None) -> None:
        self.var, self.value, self.body, self.span = var, value, body, span


class AssertStmt(Stmt):
    """Fails the kernel with ``message`` unless ``condition`` holds, then runs ``body``."""

    __slots__ = ("condition", "message", "body")
    FIELDS = {"condition": CHILD, "message": CHILD, "body": CHILD}

    def __init__(self, condition: PrimExpr, message: PrimExpr, body: Stmt, span: _Any = None) -> None:
        self.condition, self.message, self.body, self.span = condition, message, body, span


class AttrStmt(Stmt):
    """An annotation ``attr_key`` (= ``value``) on ``node`` that holds while ``body`` runs."""

    __slots__ = ("node", "attr_key", "value", "body")
    FIELDS = {"node": DATA, "attr_key": DATA, "value": CHILD, "body": CHILD}

    def __init__(self, node: _Any, attr_key: str, value: PrimExpr | int, body: Stmt, span: _Any = None) -> None:
        self.node, self.attr_key, self.value, self.body, self.span = node, attr_key, as_dim_expr(value), body, span


def seq(*stmts: Stmt | None) -> Stmt:
    """Statements in order, flattened; no-ops dropped."""
    flat: list[Stmt] = []
    for s in stmts:
        if s is None or isinstance(s, Evaluate) and isinstance(s.value, IntImm):
            continue
        flat.extend(s.seq if isinstance(s, SeqStmt) else (s,))
    if not flat:
        return Evaluate(0)
    return flat[0] if len(flat) == 1 else SeqStmt(flat)
