"""What a function body does to its buffers: found in one walk before code is emitted.

* which buffers each loop and branch writes (their loads may not be reused across it);
* which local buffers are only ever indexed by constants once unrolled loops are unrolled: these live in registers and never
  touch memory, however LLVM is run.
"""
from __future__ import annotations

from typing import Any, Iterable, Iterator

from ....ir.expr import IntImm, PrimExpr
from ....ir.node import Node
from ....ir.op import Op
from ....ir.visit import post_order
from ....tir import expr as tir
from ....tir import stmt as st
from ....tir.buffer import BufferLoad
from ....tir.dtypes import lanes_of

MAX_SLOTS = 1024
_OPAQUE = frozenset("tir." + n for n in (
    "call_extern", "call_llvm_intrin", "tvm_call_packed", "tvm_call_cpacked", "tvm_call_packed_lowered", "tvm_call_cpacked_lowered",
    "tvm_call_trace_packed"))
_POINTERS = frozenset(("tir.address_of", "tir.tvm_access_ptr"))
Affine = "tuple[int, tuple[tuple[tir.Var, int], ...]]"


def unrolled_values(loop: st.For) -> range | None:
    """The values of a loop variable that is replaced by constants, or None when the loop stays a loop."""
    if not (isinstance(loop.min, IntImm) and isinstance(loop.extent, IntImm)):
        return None
    if loop.kind == st.ForKind.UNROLLED or loop.extent.value <= 1:
        return range(loop.min.value, loop.min.value + max(0, loop.extent.value))
    return None


def operands(node: Node) -> Iterable[Node]:
    """The expressions inside an expression (not the buffers it names)."""
    if isinstance(node, BufferLoad):
        return node.indices
    if isinstance(node, tir.Call):
        return node.args
    return node.children()


def expressions_of(stmt: st.Stmt) -> list[PrimExpr]:
    """The expressions a statement holds itself."""
    found = [getattr(stmt, name) for name, kind in type(stmt).FIELDS.items()
             if name in ("min", "extent", "value", "condition", "message") and getattr(stmt, name) is not None]
    found.extend(getattr(stmt, "indices", ()))
    found.extend(getattr(stmt, "extents", ()))
    return [e for e in found if isinstance(e, PrimExpr)]


def bodies_of(stmt: st.Stmt) -> list[st.Stmt]:
    """The statements inside a statement."""
    if isinstance(stmt, st.SeqStmt):
        return list(stmt.seq)
    if isinstance(stmt, st.IfThenElse):
        return [s for s in (stmt.then_case, stmt.else_case) if s is not None]
    body = getattr(stmt, "body", None)
    return [] if body is None else [body]


class BufferFacts:
    """How one buffer (by its data variable) is used."""

    __slots__ = ("static", "accesses", "levels", "escapes")

    def __init__(self) -> None:
        self.static, self.escapes = True, False
        self.accesses: list[tuple[bool, int, Any]] = []  # (whether it stores, lanes, affine form of the first index)
        self.levels: set[int] = set()

    def register_lanes(self) -> int:
        """The width of registers into which every access falls whole, or as a part of one; 0 when there is none."""
        lanes = max((n for store, n, _ in self.accesses if store), default=1)
        return lanes if all(_within(start, n, lanes) for _, n, start in self.accesses) else 0


class Usage:
    """The facts about one function body; data variables and statements are known by ``id``."""

    def __init__(self, body: st.Stmt) -> None:
        self.writes: dict[int, set[int]] = {}
        self.opaque: set[int] = set()
        self.buffers: dict[int, BufferFacts] = {}
        self.alloc_level: dict[int, int] = {}
        self.returns = False
        self._affine: dict[int, Any] = {}
        self._enclosing: list[int] = []
        self._unrolled: set[int] = set()
        self._level = 0
        self._walk(body)

    def promotable(self, data: tir.Var, size: int) -> int:
        """Lanes of the registers that can hold the local buffer of ``size`` elements; 0 when it needs memory."""
        facts = self.buffers.get(id(data))
        if facts is None:
            return 1
        if not facts.static or facts.escapes or facts.levels != {self.alloc_level[id(data)]}:
            return 0
        lanes = facts.register_lanes()
        return lanes if lanes and size % lanes == 0 and size // lanes <= MAX_SLOTS else 0

    # -- the walk

    def _walk(self, root: st.Stmt) -> None:
        stack: list[tuple[Any, bool]] = [(root, False)]
        while stack:
            stmt, leaving = stack.pop()
            if leaving:
                self._leave(stmt)
                continue
            self._enter(stmt)
            if isinstance(stmt, (st.For, st.IfThenElse, st.While)):
                stack.append((stmt, True))
            stack.extend((s, False) for s in reversed(bodies_of(stmt)))

    def _enter(self, stmt: st.Stmt) -> None:
        if isinstance(stmt, st.While):  # its condition is asked in every round
            self._enclosing.append(id(stmt))
            self.writes.setdefault(id(stmt), set())
        for e in expressions_of(stmt):
            self._expression(e)
        if isinstance(stmt, st.BufferStore):
            self._access(stmt.buffer, stmt.indices, stmt.value.dtype, True)
            for key in self._enclosing:
                self.writes[key].add(id(stmt.buffer.data))
        elif isinstance(stmt, st.Allocate):
            self.alloc_level[id(stmt.buffer_var)] = self._level
        elif isinstance(stmt, (st.For, st.IfThenElse)):
            self._enclosing.append(id(stmt))
            self.writes.setdefault(id(stmt), set())
            if isinstance(stmt, st.For):
                if unrolled_values(stmt) is not None:
                    self._unrolled.add(id(stmt.loop_var))
                elif stmt.kind == st.ForKind.PARALLEL:
                    self._level += 1

    def _leave(self, stmt: st.For | st.IfThenElse | st.While) -> None:
        self._enclosing.pop()
        if isinstance(stmt, st.For):
            if unrolled_values(stmt) is not None:
                self._unrolled.discard(id(stmt.loop_var))
            elif stmt.kind == st.ForKind.PARALLEL:
                self._level -= 1

    def _expression(self, root: PrimExpr) -> None:
        if isinstance(root, (IntImm, tir.Var)):
            return
        for node in post_order(root, operands):
            if isinstance(node, BufferLoad):
                self._access(node.buffer, node.indices, node.dtype)
            elif isinstance(node, tir.Call) and isinstance(node.op, Op):
                self._call(node)

    def _call(self, node: tir.Call) -> None:
        name = node.op.name
        if name in _OPAQUE:
            self.opaque.update(self._enclosing)
        self.returns |= name == "tir.ret"
        for arg in node.args:
            if name in _POINTERS and isinstance(arg, BufferLoad):
                self._facts(arg.buffer.data).escapes = True
            elif isinstance(arg, tir.Var) and arg.dtype == "handle":
                self._facts(arg).escapes = True

    def _facts(self, data: tir.Var) -> BufferFacts:
        facts = self.buffers.get(id(data))
        if facts is None:
            facts = self.buffers[id(data)] = BufferFacts()
        return facts

    def _access(self, buffer: Any, indices: tuple[PrimExpr, ...], dtype: str, store: bool = False) -> None:
        facts = self._facts(buffer.data)
        facts.levels.add(self._level)
        if not facts.static:
            return
        lanes = lanes_of(dtype)
        facts.static = len(indices) == 1 and self._is_static(indices[0], lanes)
        if facts.static:
            base = indices[0].base if lanes > 1 else indices[0]  # type: ignore[attr-defined]
            facts.accesses.append((store, lanes, self.affine(base)))

    def _is_static(self, index: PrimExpr, lanes: int) -> bool:
        if lanes > 1 and not (isinstance(index, tir.Ramp) and isinstance(index.stride, IntImm) and index.stride.value == 1):
            return False
        for node in post_order(index, operands):
            constant = id(node) in self._unrolled if isinstance(node, tir.Var) else _is_folded(node)
            if not constant or node.dtype != "int64" and not isinstance(node, tir.Ramp):  # type: ignore[attr-defined]
                return False
        return True

    # -- affine form

    def affine(self, root: PrimExpr) -> Any:
        """(constant, ((variable, coefficient), …)) of an int64 expression made of +, - and multiplication by constants, or None."""
        found = self._affine.get(id(root), self)
        if found is not self:
            return found
        for node in post_order(root, _affine_operands):
            if id(node) not in self._affine:
                self._affine[id(node)] = self._affine_node(node)
        return self._affine[id(root)]

    def _affine_node(self, node: Node) -> Any:
        if isinstance(node, IntImm):
            return (node.value, ())
        if isinstance(node, tir.Var):
            return (0, ((node, 1),)) if node.dtype == "int64" else None
        if not isinstance(node, _AFFINE) or node.dtype != "int64":
            return None
        a, b = self._affine[id(node.a)], self._affine[id(node.b)]
        if a is None or b is None:
            return None
        if isinstance(node, tir.Mul):
            a, b = (b, a) if not a[1] else (a, b)
            return None if b[1] else _scaled(a, b[0])
        return _plus(a, b if isinstance(node, tir.Add) else _scaled(b, -1))


def _within(start: Any, lanes: int, width: int) -> bool:
    """Whether ``lanes`` elements from ``start`` (affine, None: unknown) never cross a multiple of ``width``."""
    if lanes == 1 or width == 1:
        return lanes <= width
    if start is None:
        return False
    constant, terms = start
    if all(c % width == 0 for _, c in terms):
        return constant % width + lanes <= width
    return width % lanes == 0 and constant % lanes == 0 and all(c % lanes == 0 for _, c in terms)


_AFFINE = (tir.Add, tir.Sub, tir.Mul)
# what the emitter computes itself when the operands are constants
_FOLDED = (IntImm, tir.Ramp, *_AFFINE, tir.Div, tir.Mod, tir.FloorDiv, tir.FloorMod, tir.Min, tir.Max)


_FOLDED_CALLS = frozenset(("tir.shift_left", "tir.shift_right", "tir.bitwise_and"))


def _is_folded(node: Node) -> bool:
    return isinstance(node, _FOLDED) or isinstance(node, tir.Call) and isinstance(node.op, Op) and node.op.name in _FOLDED_CALLS


def _affine_operands(node: Node) -> Iterator[Node] | tuple[Node, ...]:
    return (node.a, node.b) if isinstance(node, _AFFINE) and node.dtype == "int64" else ()


def _scaled(a: Any, factor: int) -> Any:
    return (a[0] * factor, tuple((v, c * factor) for v, c in a[1])) if factor else (0, ())


def _plus(a: Any, b: Any) -> Any:
    if not b[1]:
        return (a[0] + b[0], a[1])
    table = {id(v): [v, c] for v, c in a[1]}
    for v, c in b[1]:
        table.setdefault(id(v), [v, 0])[1] += c
    return (a[0] + b[0], tuple((v, c) for v, c in table.values() if c))


def size_variable(e: Any) -> tir.Var | None:
    """The variable that a shape's entry is, directly or widened to the 64 bits of sizes."""
    if isinstance(e, tir.Cast) and e.dtype == "int64" and e.value.dtype.startswith("int"):
        e = e.value
    return e if isinstance(e, tir.Var) else None
