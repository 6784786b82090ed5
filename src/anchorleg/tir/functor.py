"""Visitors and mutators of the loop language.

* :func:`post_order_visit`, :func:`post_order`, :func:`contains`: look at every node once, children first.
* :class:`ExprMutator`: rewrites expressions bottom-up.  A subclass defines ``mutate_<ClassName>(self, e)``, called with the node
  whose children are already rewritten, and ``enter_<ClassName>(self, e)``, called before descending (a result other than None
  stands for the whole subtree).  Results are remembered per node in ``self.memo``.
* :class:`StmtMutator`: the same for statements.  ``visit_<ClassName>(self, s)`` are generators: where a recursive visitor would call
  itself, they say ``body = yield s.body``.  Expressions inside go through ``self.expr(e)``, buffers through ``self.buffer(b)``.
* :func:`substitute`: replaces variables.

Small trees are walked by plain recursion, which is fastest; below a fixed depth an explicit stack takes over, so that depth is
bounded by memory alone.  Buffers are not descended into (their shapes are seen through ``self.buffer``).
"""
from __future__ import annotations

from types import GeneratorType
from typing import Any, Callable, Iterator, Mapping, Sequence

from ..ir.expr import FloatImm, IntImm, PrimExpr, Range
from ..ir.node import Node
from . import build, intrin
from . import expr as tir
from . import stmt as ts
from .block import Block, BlockRealize, BufferRegion, MatchBufferRegion
from .buffer import Buffer, BufferLoad, ProducerLoad
from .function import PrimFunc

_MAX_DEPTH = 100  # of plain recursion; deeper subtrees use the explicit stack

# ---------------------------------------------------------------- what a node holds

_BINARY = frozenset([*build.BUILDERS])
_LEAVES = frozenset([tir.Var, tir.SizeVar, IntImm, FloatImm, tir.StringImm, tir.Any])
_NONE: tuple[Node, ...] = ()


def _bounds(s: ts.BufferRealize) -> list[PrimExpr]:
    return [e for r in s.bounds for e in (r.min, r.extent)]


def _block_kids(s: Block) -> list[Node]:
    """The domains of a block's axes and the bounds of its regions, then its statements."""
    ranges = [a.dom for a in s.iter_vars]
    for r in (*s.reads, *s.writes, *(m.source for m in s.match_buffers)):
        ranges.extend(r.region)
    bounds = [e for r in ranges if r is not None for e in (r.min, r.extent)]
    return [*bounds, s.body] if s.init is None else [*bounds, s.init, s.body]


_KIDS: dict[type, Callable[[Any], Sequence[Node]]] = {
    **{cls: (lambda e: (e.a, e.b)) for cls in _BINARY},
    **{cls: (lambda e: _NONE) for cls in _LEAVES},
    tir.Not: lambda e: (e.a,),
    tir.Select: lambda e: (e.condition, e.true_value, e.false_value),
    tir.Cast: lambda e: (e.value,),
    tir.Ramp: lambda e: (e.base, e.stride),
    tir.Broadcast: lambda e: (e.value,),
    tir.Shuffle: lambda e: e.vectors,
    tir.Let: lambda e: (e.value, e.body),
    tir.Call: lambda e: e.args,
    BufferLoad: lambda e: e.indices,
    ProducerLoad: lambda e: e.indices,
    tir.Reduce: lambda e: (*e.source, e.condition, *e.init),
    Buffer: lambda b: _NONE,
    ts.For: lambda s: (s.min, s.extent, s.body),
    ts.While: lambda s: (s.condition, s.body),
    ts.SeqStmt: lambda s: s.seq,
    ts.Evaluate: lambda s: (s.value,),
    ts.BufferStore: lambda s: (s.value, *s.indices),
    ts.BufferRealize: lambda s: (*_bounds(s), s.condition, s.body),
    ts.Allocate: lambda s: (*s.extents, s.condition, s.body),
    ts.AllocateConst: lambda s: (*s.extents, s.body),
    ts.DeclBuffer: lambda s: (s.body,),
    ts.IfThenElse: lambda s: (s.condition, s.then_case) if s.else_case is None else (s.condition, s.then_case, s.else_case),
    ts.LetStmt: lambda s: (s.value, s.body),
    ts.AssertStmt: lambda s: (s.condition, s.message, s.body),
    ts.AttrStmt: lambda s: (s.value, s.body),
    Block: _block_kids,
    BlockRealize: lambda s: (*s.iter_values, s.predicate, s.block),
    PrimFunc: lambda f: (f.body,),
}


def kids(node: Node) -> Sequence[Node]:
    """The expressions and statements directly under a node (buffers, operators and bound variables left out)."""
    get = _KIDS.get(type(node))
    return node.children() if get is None else get(node)


def post_order(root: Node) -> Iterator[Node]:
    """Every expression and statement under ``root`` once, children first."""
    seen: set[int] = set()
    stack: list[tuple[Node, bool]] = [(root, False)]
    get_of = _KIDS.get
    while stack:
        node, ready = stack.pop()
        if ready:
            yield node
            continue
        key = id(node)
        if key in seen:
            continue
        seen.add(key)
        get = get_of(type(node))
        below = node.children() if get is None else get(node)
        if not below:
            yield node
            continue
        stack.append((node, True))
        for child in reversed(below):
            stack.append((child, False))


def post_order_visit(node: Node, fvisit: Callable[[Node], Any]) -> None:
    """Calls ``fvisit`` on every expression and statement under ``node`` once, children first."""
    for each in post_order(node):
        fvisit(each)


def contains(root: Node, predicate: Callable[[Node], bool]) -> bool:
    """Whether any expression or statement under ``root`` satisfies ``predicate`` (parents are asked first)."""
    seen: set[int] = set()
    stack = [root]
    while stack:
        node = stack.pop()
        if id(node) in seen:
            continue
        seen.add(id(node))
        if predicate(node):
            return True
        stack.extend(kids(node))
    return False


def uses_var(root: Node, variables: Any) -> bool:
    """Whether a variable occurs under ``root``: one of a set or mapping (by identity), a single Var, or by predicate.

    A variable that is the pointer of an accessed buffer counts.
    """
    if isinstance(variables, tir.Var):
        ids = {id(variables)}
    elif callable(variables):
        return contains(root, lambda n: isinstance(n, tir.Var) and variables(n) or _pointer_matches(n, variables))
    else:
        ids = {id(v) for v in variables}
    return contains(root, lambda n: id(n) in ids or isinstance(n, (BufferLoad, ts.BufferStore)) and id(n.buffer.data) in ids)


def _pointer_matches(n: Node, predicate: Callable[[Any], bool]) -> bool:
    return isinstance(n, (BufferLoad, ts.BufferStore)) and bool(predicate(n.buffer.data))


# ---------------------------------------------------------------- rebuilding expressions


def _rebuild_call(e: tir.Call, args: list[PrimExpr]) -> PrimExpr:
    if e.op is intrin.IF_THEN_ELSE and type(args[0]) is IntImm:
        return args[1] if args[0].value else args[2]
    if e.op is intrin.LIKELY and type(args[0]) is IntImm:
        return args[0]
    return tir.Call(e.dtype, e.op, args)


def _rebuild_reduce(e: tir.Reduce, new: list[PrimExpr]) -> PrimExpr:
    n = len(e.source)
    return tir.Reduce(e.combiner, new[:n], e.axis, new[n], e.value_index, new[n + 1:])


_REBUILD: dict[type, Callable[[Any, list[Any]], PrimExpr]] = {
    **{cls: (lambda e, n, make=make: make(n[0], n[1])) for cls, make in build.BUILDERS.items()},
    tir.Not: lambda e, n: build.logical_not(n[0]),
    tir.Select: lambda e, n: build.select(n[0], n[1], n[2]),
    tir.Cast: lambda e, n: build.cast(e.dtype, n[0]),
    tir.Ramp: lambda e, n: build.ramp(n[0], n[1], e.lanes),
    tir.Broadcast: lambda e, n: tir.Broadcast(n[0], e.lanes),
    tir.Shuffle: lambda e, n: tir.Shuffle(n, e.indices),
    tir.Let: lambda e, n: tir.Let(e.var, n[0], n[1]),
    tir.Call: _rebuild_call,
    BufferLoad: lambda e, n: BufferLoad(e.buffer, n),
    ProducerLoad: lambda e, n: ProducerLoad(e.producer, n),
    tir.Reduce: _rebuild_reduce,
}


def rebuild(e: PrimExpr, new: list[PrimExpr]) -> PrimExpr:
    """The expression with its :func:`kids` replaced by ``new``, folded where cheap; itself when they are the same."""
    for old, fresh in zip(kids(e), new):
        if old is not fresh:
            make = _REBUILD.get(type(e))
            if make is not None:
                return make(e, new)
            table = {id(o): f for o, f in zip(kids(e), new)}
            return e.map_children(lambda c: table.get(id(c), c))
    return e


class ExprMutator:
    """Rewrites expressions bottom-up; see the module's description.

    ``memo`` maps ``id(e)`` to ``(e, result)``; a subclass whose results depend on a scope clears it when the scope changes.
    """

    _has_pre = _maps_buffers = False
    _identity_exprs = True

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        names = dir(cls)
        cls._has_pre = any(n.startswith("enter_") for n in names)
        cls._maps_buffers = cls.buffer is not ExprMutator.buffer
        own = any(getattr(cls, n) is not getattr(ExprMutator, n) for n in ("expr", "_go", "_finish", "_enter", "_rebuilt"))
        cls._identity_exprs = not (own or cls._has_pre or cls._maps_buffers or any(n.startswith("mutate_") for n in names))

    def __init__(self) -> None:
        self.memo: dict[int, tuple[PrimExpr, PrimExpr]] = {}
        self._post: dict[type, Callable[[Any], PrimExpr] | None] = {}
        self._pre: dict[type, Callable[[Any], PrimExpr | None] | None] = {}

    def buffer(self, b: Buffer) -> Buffer:
        """The buffer that stands for ``b`` in the result (default: itself)."""
        return b

    def expr(self, e: PrimExpr) -> PrimExpr:
        """The rewritten expression."""
        return self._go(e, 0)

    __call__ = expr

    def _handler(self, prefix: str, cls: type, table: dict[type, Any]) -> Any:
        for c in cls.__mro__:
            found = getattr(self, f"{prefix}_{c.__name__}", None)
            if found is not None:
                table[cls] = found
                return found
        table[cls] = None
        return None

    def _finish(self, e: PrimExpr) -> PrimExpr:
        cls = type(e)
        try:
            handler = self._post[cls]
        except KeyError:
            handler = self._handler("mutate", cls, self._post)
        return e if handler is None else handler(e)

    def _enter(self, e: PrimExpr) -> PrimExpr | None:
        cls = type(e)
        try:
            handler = self._pre[cls]
        except KeyError:
            handler = self._handler("enter", cls, self._pre)
        return None if handler is None else handler(e)

    def _go(self, e: PrimExpr, depth: int) -> PrimExpr:
        cls = type(e)
        if cls in _LEAVES:
            return self._finish(e)
        hit = self.memo.get(id(e))
        if hit is not None:
            return hit[1]
        if self._has_pre:
            early = self._enter(e)
            if early is not None:
                self.memo[id(e)] = (e, early)
                return early
        if depth > _MAX_DEPTH:
            return self._deep(e)
        if cls in _BINARY:
            a, b = self._go(e.a, depth + 1), self._go(e.b, depth + 1)  # type: ignore[attr-defined]
            new = e if a is e.a and b is e.b else build.BUILDERS[cls](a, b)  # type: ignore[attr-defined]
        else:
            new = self._rebuilt(e, [self._go(k, depth + 1) for k in kids(e)])  # type: ignore[arg-type]
        result = self._finish(new)
        self.memo[id(e)] = (e, result)
        return result

    def _rebuilt(self, e: PrimExpr, new: list[PrimExpr]) -> PrimExpr:
        if self._maps_buffers and type(e) is BufferLoad:
            b = self.buffer(e.buffer)
            if b is not e.buffer:
                return BufferLoad(b, new)
        return rebuild(e, new)

    def _deep(self, root: PrimExpr) -> PrimExpr:
        """The same as ``_go``, on an explicit stack."""
        memo = self.memo
        stack: list[tuple[PrimExpr, bool]] = [(root, False)]
        while stack:
            e, ready = stack.pop()
            if id(e) in memo:
                continue
            if not ready:
                early = self._enter(e) if self._has_pre and e is not root else None
                if early is not None:
                    memo[id(e)] = (e, early)
                    continue
                stack.append((e, True))
                stack.extend((k, False) for k in reversed(kids(e)) if id(k) not in memo)  # type: ignore[misc]
                continue
            memo[id(e)] = (e, self._finish(self._rebuilt(e, [memo[id(k)][1] for k in kids(e)])))
        return memo[id(root)][1]


# ---------------------------------------------------------------- statements

_STMT_FIELDS: dict[type, tuple[tuple[str, ...], str, tuple[str, ...]]] = {
    # class: (expressions, tuple of expressions, statements)
    ts.For: (("min", "extent"), "", ("body",)),
    ts.While: (("condition",), "", ("body",)),
    ts.Evaluate: (("value",), "", ()),
    ts.BufferStore: (("value",), "indices", ()),
    ts.BufferRealize: (("condition",), "bounds", ("body",)),
    ts.Allocate: (("condition",), "extents", ("body",)),
    ts.AllocateConst: ((), "extents", ("body",)),
    ts.DeclBuffer: ((), "", ("body",)),
    ts.IfThenElse: (("condition",), "", ("then_case", "else_case")),
    ts.LetStmt: (("value",), "", ("body",)),
    ts.AssertStmt: (("condition",), "", ("body",)),
    ts.AttrStmt: (("value",), "", ("body",)),
    BlockRealize: (("predicate",), "iter_values", ("block",)),
}
_HOLDS_BUFFER = (ts.BufferStore, ts.BufferRealize, ts.DeclBuffer)


class StmtMutator(ExprMutator):
    """Rewrites statements (top-down through generator methods) and the expressions in them (bottom-up)."""

    def __init__(self) -> None:
        super().__init__()
        self._visits: dict[type, Callable[[Any], Any]] = {}

    def stmt(self, s: ts.Stmt) -> ts.Stmt:
        """The rewritten statement; the way in."""
        return self._run(s)

    def func(self, f: PrimFunc) -> PrimFunc:
        """The function with its body rewritten (the same object when nothing changed)."""
        return f.replace(body=self._run(f.body))

    def default(self, s: ts.Stmt) -> Any:
        """Rewrites a statement's expressions, then its statements; what a subclass's method falls back to:
        ``return (yield from self.default(s))``."""
        if type(s) is ts.SeqStmt:
            return (yield from _default_seq(s))
        return (yield from self._default_block(s)) if type(s) is Block else (yield from self._default_one(s))

    def _default_one(self, s: ts.Stmt) -> Any:
        exprs, many, stmts = _STMT_FIELDS[type(s)]
        changes: dict[str, Any] = {}
        if not self._identity_exprs:
            for name in exprs:
                old = getattr(s, name)
                new = self.expr(old)
                if new is not old:
                    changes[name] = new
            if many:
                self._change_many(s, many, changes)
            if self._maps_buffers and isinstance(s, _HOLDS_BUFFER):
                changes["buffer"] = self.buffer(s.buffer)
        for name in stmts:
            old = getattr(s, name)
            if old is not None:
                new = yield old
                if new is not old:
                    changes[name] = new
        return s.replace(**changes) if changes else s

    def _default_block(self, s: Block) -> Any:
        changes: dict[str, Any] = {}
        if not self._identity_exprs:
            changes = {"iter_vars": tuple(a if a.dom is None else a.replace(dom=self.range(a.dom)) for a in s.iter_vars),
                       "alloc_buffers": tuple(map(self.buffer, s.alloc_buffers)), "reads": tuple(map(self.region, s.reads)),
                       "writes": tuple(map(self.region, s.writes)), "match_buffers": tuple(map(self._match, s.match_buffers))}
        if s.init is not None:
            changes["init"] = yield s.init
        changes["body"] = yield s.body
        return s.replace(**changes)

    def region(self, r: BufferRegion) -> BufferRegion:
        """A region with its buffer and bounds rewritten."""
        return r.replace(buffer=self.buffer(r.buffer), region=tuple(map(self.range, r.region)))

    def _match(self, m: MatchBufferRegion) -> MatchBufferRegion:
        return m.replace(buffer=self.buffer(m.buffer), source=self.region(m.source))

    def _change_many(self, s: ts.Stmt, name: str, changes: dict[str, Any]) -> None:
        old = getattr(s, name)
        new = tuple(self.range(r) for r in old) if name == "bounds" else tuple(self.expr(e) for e in old)
        for a, b in zip(old, new):
            if a is not b:
                changes[name] = new
                return

    def range(self, r: Range) -> Range:
        """A range with its bounds rewritten."""
        return r.replace(min=self.expr(r.min), extent=self.expr(r.extent))

    def _method(self, cls: type) -> Callable[[Any], Any]:
        found = getattr(self, f"visit_{cls.__name__}", self.default)
        self._visits[cls] = found
        return found

    def _run(self, root: ts.Stmt) -> ts.Stmt:
        visits = self._visits
        stack: list[Any] = []
        wanted: Any = root
        while True:
            method = visits.get(type(wanted)) or self._method(type(wanted))
            value = method(wanted)
            if isinstance(value, GeneratorType):
                stack.append(value)
                value = None
            elif not stack:
                return value
            while True:
                try:
                    wanted = stack[-1].send(value)
                    break
                except StopIteration as stop:
                    stack.pop()
                    value = stop.value
                    if not stack:
                        return value


def _default_seq(s: ts.SeqStmt) -> Any:
    new = []
    changed = False
    for each in s.seq:
        result = yield each
        changed = changed or result is not each
        new.append(result)
    return ts.seq(*new) if changed else s


class StmtVisitor:
    """Walks statements with generator methods ``visit_<ClassName>(self, s)`` (``yield child`` descends); results are dropped.

    ``self.expr(e)`` is called with each expression met by the default methods (default: does nothing).
    """

    def __init__(self) -> None:
        self._visits: dict[type, Callable[[Any], Any]] = {}

    def expr(self, e: PrimExpr) -> None:
        """What to do with an expression of a statement."""

    def visit(self, s: ts.Stmt) -> None:
        """Walks the statement; the way in."""
        stack: list[Any] = [iter((s,))]
        while stack:
            try:
                wanted = next(stack[-1])
            except StopIteration:
                stack.pop()
                continue
            method = self._visits.get(type(wanted))
            if method is None:
                method = self._visits[type(wanted)] = getattr(self, f"visit_{type(wanted).__name__}", self.default)
            gen = method(wanted)
            if gen is not None:
                stack.append(gen)

    def default(self, s: ts.Stmt) -> Any:
        """Visits the expressions, then the statements, of ``s``."""
        below = kids(s)
        for k in below:
            if not isinstance(k, ts.Stmt):
                self.expr(k)  # type: ignore[arg-type]
        for k in below:
            if isinstance(k, ts.Stmt):
                yield k


# ---------------------------------------------------------------- substitution


class _Substitute(StmtMutator):
    def __init__(self, table: dict[int, PrimExpr]) -> None:
        super().__init__()
        self.table = table
        self._buffers: dict[int, tuple[Buffer, Buffer]] = {}

    def _finish(self, e: PrimExpr) -> PrimExpr:
        return self.table.get(id(e), e)

    def buffer(self, b: Buffer) -> Buffer:
        hit = self._buffers.get(id(b))
        if hit is None:
            hit = self._buffers[id(b)] = (b, self._remap(b))
        return hit[1]

    def _remap(self, b: Buffer) -> Buffer:
        data = self.table.get(id(b.data), b.data)
        return b.replace(data=data if isinstance(data, tir.Var) else b.data, shape=tuple(map(self.expr, b.shape)),
                         strides=tuple(map(self.expr, b.strides)), elem_offset=self.expr(b.elem_offset))

    def visit_DeclBuffer(self, s: ts.DeclBuffer) -> Any:
        return (yield from self.default(s))


def substitute(node: Any, vmap: Mapping[tir.Var, Any] | Callable[[tir.Var], Any]) -> Any:
    """``node`` (an expression or a statement) with variables replaced.

    ``vmap`` maps variables to expressions or Python numbers (or is a function that gives the replacement or None).
    Buffers whose pointer, shape or strides mention a replaced variable are replaced consistently.
    """
    if callable(vmap):
        found = {v: vmap(v) for v in free_candidates(node)}
        vmap = {v: e for v, e in found.items() if e is not None}
    if not vmap:
        return node
    table = {id(v): _value(v, e) for v, e in vmap.items()}
    mutator = _Substitute(table)
    return mutator.expr(node) if isinstance(node, PrimExpr) else mutator.stmt(node)


def _value(v: tir.Var, e: Any) -> PrimExpr:
    if isinstance(e, PrimExpr):
        return build.cast(v.dtype, e) if e.dtype != v.dtype and v.dtype != "handle" and e.dtype != "handle" else e
    return build.make_const(e, v.dtype)


def free_candidates(node: Node) -> list[tir.Var]:
    """Every variable that occurs under ``node``, the pointers and shapes of accessed buffers included, in order of occurrence."""
    found: dict[int, tir.Var] = {}
    for n in post_order(node):
        if isinstance(n, tir.Var):
            found.setdefault(id(n), n)
        elif isinstance(n, (BufferLoad, ts.BufferStore)):
            b = n.buffer
            for e in (b.data, *b.shape, *b.strides, b.elem_offset):
                for v in post_order(e):
                    if isinstance(v, tir.Var):
                        found.setdefault(id(v), v)
    return list(found.values())


def ir_transform(stmt: ts.Stmt, preorder: Callable[[Node], Any] | None, postorder: Callable[[Node], Any] | None,
                 only_enable: Sequence[str] | None = None) -> ts.Stmt:
    """Rewrites a statement with functions called before and after descending; each may return None to keep the node.

    ``only_enable`` names the classes they are called for (``"tir.For"``, ``"tir.Call"`` …; default: all).
    """
    names = None if only_enable is None else {n.rpartition(".")[2] for n in only_enable}
    return _Transform(preorder, postorder, names).stmt(stmt)


class _Transform(StmtMutator):
    def __init__(self, pre: Callable[[Node], Any] | None, post: Callable[[Node], Any] | None, names: set[str] | None) -> None:
        super().__init__()
        self.pre, self.post, self.names = pre, post, names
        self._has_pre, self._identity_exprs = pre is not None, False

    def _on(self, n: Node, fn: Callable[[Node], Any] | None) -> Any:
        return fn(n) if fn is not None and (self.names is None or type(n).__name__ in self.names) else None

    def _enter(self, e: PrimExpr) -> PrimExpr | None:
        return self._on(e, self.pre)

    def _finish(self, e: PrimExpr) -> PrimExpr:
        new = self._on(e, self.post)
        return e if new is None else new

    def default(self, s: ts.Stmt) -> Any:
        early = self._on(s, self.pre)
        if early is not None:
            return early
        new = yield from super().default(s)
        late = self._on(new, self.post)
        return new if late is None else late


__all__ = ["ExprMutator", "StmtMutator", "StmtVisitor", "contains", "ir_transform", "kids", "post_order", "post_order_visit",
           "rebuild", "substitute", "uses_var"]
