"""Loop programs as script text that reads back as the same program.

The short text of ``tir/printer.py`` leaves out what a person can guess; this one states it: every buffer with its memory, variables
where their type is not evident, the dtype of constants that are arguments.  ``from_source(func.script())`` is structurally equal to
``func``.  A call is written by the name of its intrinsic where that name, given the arguments, builds this very call; else as
``T.call_intrin(dtype, name, ...)``.
"""
from __future__ import annotations

import keyword
from typing import Any, Callable, Iterable, Mapping

from ..ir.expr import FloatImm, GlobalVar, IntImm, PrimExpr, Range
from ..ir.module import IRModule
from ..ir.node import Node
from ..ir.op import Op
from ..ir.type import PointerType, PrimType, TupleType
from ..tir import expr as tir
from ..tir import stmt as ts
from ..tir.analysis import undefined_vars
from ..tir.block import Block, BlockRealize, BufferRegion, MatchBufferRegion
from ..tir.buffer import Buffer, BufferLoad
from ..tir.equal import expr_deep_equal
from ..tir.function import PrimFunc
from ..tir.functor import free_candidates, post_order
from ..tir.printer import _EXPRS, _LOW, Printer, _Piece
from .intrinsics import INTRINSICS
from .regions import extent_between

_RESERVED = {*keyword.kwlist, "T", "I", "cls", "Module", "range", "inf", "nan", "float", "int", "bool"}
_AXIS_KINDS = {tir.IterVar.DataPar: "spatial", tir.IterVar.CommReduce: "reduce", tir.IterVar.Ordered: "scan", tir.IterVar.Opaque: "opaque"}
_LOOPS = {ts.ForKind.SERIAL: "T.serial", ts.ForKind.PARALLEL: "T.parallel", ts.ForKind.VECTORIZED: "T.vectorized",
          ts.ForKind.UNROLLED: "T.unroll", ts.ForKind.THREAD_BINDING: "T.thread_binding"}


class ScriptPrinter(Printer):
    """Writes one function; ``callees`` says how functions of the same module are named and what dtype their calls have."""

    def __init__(self, callees: Mapping[str, tuple[str, str]] | None = None) -> None:
        super().__init__()
        self.callees = dict(callees or {})
        self.used = set(_RESERVED)
        self.owners: dict[int, Buffer] = {}  # id of a pointer → the buffer that it goes by
        self.known: set[int] = set()  # ids of variables and buffers that the text has defined
        self.waiting: dict[int, list[Buffer]] = {}  # id of a variable → buffers to state once it is defined
        self.mentioned: set[int] = set()  # ids of variables that body or attributes speak of
        self.tail = True  # whether nothing follows in the present scope

    # ------------------------------------------------------------ names

    def name(self, node: Any, hint: str) -> str:
        found = self.names.get(id(node))
        if found is None:
            found = self.names[id(node)] = self._fresh(hint)
            self.keep.append(node)
        return found

    def _fresh(self, hint: str) -> str:
        base = "".join(c if c.isascii() and (c.isalnum() or c == "_") else "_" for c in hint).lstrip("_") or "v"
        base = f"v_{base}" if base[0].isdigit() else base
        name, count = base, self.taken.get(base, 0)
        while name in self.used:
            count += 1
            name = f"{base}_{count}"
        self.taken[base] = count
        self.used.add(name)
        return name

    def var(self, v: tir.Var) -> str:
        owner = self.owners.get(id(v))
        return f"{self.name(owner, owner.name)}.data" if owner is not None else self.name(v, v.name)

    # ------------------------------------------------------------ definitions

    def define(self, *nodes: Node) -> None:
        """Notes what the text has defined; states the buffers that waited for it."""
        for n in nodes:
            self.known.add(id(n))
            for b in self.waiting.pop(id(n), ()):
                self._state_when_ready(b)

    def _state_when_ready(self, b: Buffer) -> None:
        """States a view of memory as soon as the pointer and the variables of its shape are defined."""
        for e in (b.data, *b.shape, *b.strides, b.elem_offset):
            for v in post_order(e):
                if isinstance(v, tir.Var) and id(v) not in self.known:
                    self.waiting.setdefault(id(v), []).append(b)
                    return
        if id(b) not in self.known:
            self.put(f"{self.name(b, b.name)} = T.Buffer({self.buffer_args(b, b.data)})")
            self.define(b)

    def buffer_args(self, b: Buffer, data: tir.Var | None) -> str:
        """The arguments of T.Buffer and its like; what is the default is left out."""
        shape = ", ".join(map(self.text, b.shape))
        parts = [f"({shape},)" if len(b.shape) == 1 else f"({shape})", f'"{b.dtype}"']
        if data is not None:
            parts.append(f"data={self.var(data)}")
        if b.strides:
            parts.append(f"strides=[{', '.join(self.text(s) for s in b.strides)}]")
        if not (isinstance(b.elem_offset, IntImm) and b.elem_offset.value == 0 and b.elem_offset.dtype == "int64"):
            parts.append(f"elem_offset={self.text(b.elem_offset)}")
        if b.scope_name != (pointer_scope(data) if data is not None else "global"):
            parts.append(f'scope="{b.scope_name}"')
        if b.data_alignment != 64:
            parts.append(f"align={b.data_alignment}")
        return ", ".join(parts)

    def _own(self, b: Buffer) -> bool:
        """Whether the buffer's pointer is one that making the buffer makes: of its type, and known by no other name."""
        return id(b.data) not in self.owners and id(b.data) not in self.known and _is_plain_pointer(b.data, b.dtype, b.scope_name)

    def declare_own(self, b: Buffer) -> tir.Var | None:
        """Prepares the statement that makes a buffer: its pointer to be stated (after it has been declared), or None if it comes with it."""
        if self._own(b):
            self.owners[id(b.data)] = b
            return None
        if id(b.data) not in self.known and id(b.data) not in self.owners:
            self.declare(b.data)
        return b.data

    def declare(self, v: tir.Var) -> None:
        """A variable by itself: ``x = T.int32()``."""
        self.put(f"{self.name(v, v.name)} = {type_text(v)}" + ("" if type_text(v).endswith(")") else "()"))
        self.define(v)

    # ------------------------------------------------------------ expressions

    def _int(self, e: IntImm) -> list[_Piece]:
        if e.dtype == "handle":
            return [f"T.handle({e.value})"]
        return super()._int(e)

    def _argument(self, e: Any) -> _Piece:
        """An argument whose type the callee does not tell."""
        return f"T.int64({e.value})" if isinstance(e, IntImm) and e.dtype == "int64" else (e, _LOW)

    def _slice(self, i: tir.Ramp) -> list[_Piece]:
        if isinstance(i.base, IntImm) and isinstance(i.stride, IntImm) and i.base.dtype == i.stride.dtype == "int64" and i.stride.value > 0 and i.lanes > 1:
            return super()._slice(i)
        return [(i, _LOW)]

    def _script_call(self, e: tir.Call) -> list[_Piece]:
        if isinstance(e.op, GlobalVar):
            return self._function_call(e)
        name = e.op.name.removeprefix("tir.") if isinstance(e.op, Op) else ""
        if name in ("if_then_else", "likely"):
            return self._call_pieces(f"T.{name}", e.args)
        args = [self._argument(a) for a in e.args]
        spelled = spelling(name, e)
        if spelled == "plain":
            return self._pieces_of(f"T.{name}", args)
        if spelled == "dtype":
            return self._pieces_of(f"T.{name}", [f'"{e.dtype}"', *args])
        return self._pieces_of("T.call_intrin", [f'"{e.dtype}"', f'"{e.op.name}"', *args])  # type: ignore[union-attr]

    def _function_call(self, e: tir.Call) -> list[_Piece]:
        name, dtype = self.callees.get(e.op.name_hint, ("", ""))  # type: ignore[attr-defined]
        args = [self._argument(a) for a in e.args]
        if name and dtype == e.dtype:
            return self._pieces_of(name, args)
        return self._pieces_of("T.call", [f'"{e.dtype}"', f"I.GlobalVar({quoted(e.op.name_hint)})", *args])  # type: ignore[attr-defined]

    def _pieces_of(self, head: str, args: list[_Piece]) -> list[_Piece]:
        pieces: list[_Piece] = [head, "("]
        for i, a in enumerate(args):
            pieces.extend([", ", a] if i else [a])
        return [*pieces, ")"]

    def _pieces(self, e: Any, outer: int) -> list[_Piece]:
        rule = _SCRIPT_EXPRS.get(type(e))
        return rule(self, e) if rule is not None else super()._pieces(e, outer)

    # ------------------------------------------------------------ statements

    def scoped(self, line: str, concise: str, body: ts.Stmt, *defined: Node) -> Any:
        """A statement that holds others: with them below it, or, where nothing follows, in front of them."""
        if self.tail:
            self.put(concise)
            self.define(*defined)
            yield body
            return
        self.put(f"with {line}:")
        self.indent += 1
        self.define(*defined)
        self.tail = True
        yield body
        self.tail = False
        self.indent -= 1

    def _nested(self, body: ts.Stmt, *defined: Node) -> Any:
        outer, self.tail = self.tail, True
        self.indent += 1
        self.define(*defined)
        yield body
        self.indent -= 1
        self.tail = outer

    def visit_SeqStmt(self, s: ts.SeqStmt) -> Any:
        outer = self.tail
        self.tail = False
        yield from s.seq[:-1]
        self.tail = outer
        if s.seq:
            yield s.seq[-1]

    def visit_For(self, s: ts.For) -> Any:
        plain = s.kind is ts.ForKind.SERIAL and not s.annotations
        arguments = self._loop_bounds(s, "range" if plain else "")
        if s.thread_binding is not None:
            arguments += f", thread={quoted(s.thread_binding.thread_tag)}"
        if s.annotations:
            arguments += f", annotations={self.literal(s.annotations)}"
        plain = plain and "extent=" not in arguments
        self.put(f"for {self.name(s.loop_var, s.loop_var.name)} in {'range' if plain else _LOOPS[s.kind]}({arguments}):")
        yield from self._nested(s.body, s.loop_var)

    def _loop_bounds(self, s: ts.For, head: str) -> str:
        low, extent = self.text(s.min), self.text(s.extent)
        if isinstance(s.min, IntImm) and s.min.value == 0 and (s.min.dtype == s.extent.dtype == s.loop_var.dtype):
            return extent
        stop = s.min + s.extent
        if expr_deep_equal(extent_between(s.min, stop), s.extent):
            return f"{low}, {self.text(stop)}"
        return f"{low}, extent={extent}"

    def visit_Evaluate(self, s: ts.Evaluate) -> None:
        bare = isinstance(s.value, tir.Call)
        self.put(self.text(s.value) if bare else f"T.evaluate({self.text(s.value)})")

    def visit_BufferRealize(self, s: ts.BufferRealize) -> Any:
        b = s.buffer
        if id(b) not in self.known:
            self._made(b, "T.Buffer", "")
        bounds = ", ".join(self._range_slice(r) for r in s.bounds)
        condition = "" if _is_true(s.condition) else f", condition={self.text(s.condition)}"
        line = f'T.realize({self.name(b, b.name)}[{bounds or "()"}], "{b.scope_name}"{condition})'
        yield from self.scoped(line, line, s.body)

    def _range_slice(self, r: Range) -> str:
        """A range as a slice, where reading that back gives the range."""
        stop = r.min + r.extent
        if expr_deep_equal(extent_between(r.min, stop), r.extent):
            return f"{self.text(r.min)}:{self.text(stop)}"
        return self._exact_range(r)

    def _exact_range(self, r: Range) -> str:
        return f"T.Range.from_min_extent({self.text(r.min)}, {self.text(r.extent)})"

    def visit_Allocate(self, s: ts.Allocate) -> Any:
        extra = "" if _is_true(s.condition) else f", condition={self.text(s.condition)}"
        extra += f", annotations={self.literal(s.annotations)}" if s.annotations else ""
        extents = ", ".join(self.text(e) for e in s.extents)
        return self._memory(s, "T.allocate", f'[{extents}], "{s.dtype}", "{pointer_scope(s.buffer_var)}"', extra)

    def visit_AllocateConst(self, s: ts.AllocateConst) -> Any:
        extra = f", annotations={self.literal(s.annotations)}" if s.annotations else ""
        values = s.data.as_numpy_view().reshape(-1).tolist()
        extents = ", ".join(self.text(e) for e in s.extents)
        return self._memory(s, "T.allocate_const", f'{values}, "{s.dtype}", [{extents}]', extra)

    def _memory(self, s: Any, head: str, arguments: str, extra: str) -> Any:
        v = s.buffer_var
        scope = "global" if isinstance(s, ts.AllocateConst) else pointer_scope(v)
        if not _is_plain_pointer(v, s.dtype, scope):
            self.declare(v)
            extra += f", var={self.name(v, v.name)}"
        name = self.name(v, v.name)
        call = f"{head}({arguments}{extra})"
        return self.scoped(f"{call} as {name}", f"{name} = {call}", s.body, v)

    def visit_DeclBuffer(self, s: ts.DeclBuffer) -> Any:
        b = s.buffer
        if id(b.data) not in self.known and id(b.data) not in self.owners:
            self.declare(b.data)
        call = f"T.decl_buffer({self.buffer_args(b, b.data)})"
        yield from self.scoped(f"{call} as {self.name(b, b.name)}", f"{self.name(b, b.name)} = {call}", s.body, b)

    def visit_LetStmt(self, s: ts.LetStmt) -> Any:
        value = self.text(s.value)
        if not self.tail:
            self.declare(s.var)
            line = f"T.LetStmt({value}, var={self.var(s.var)})"
            yield from self.scoped(line, line, s.body)
            return
        self.put(f"{self.name(s.var, s.var.name)}: {type_text(s.var)} = {value}")
        self.define(s.var)
        yield s.body

    def visit_AssertStmt(self, s: ts.AssertStmt) -> Any:
        condition, message = self.text(s.condition), self.text(s.message)
        yield from self.scoped(f"T.Assert({condition}, {message})", f"assert {condition}, {message}", s.body)

    def visit_AttrStmt(self, s: ts.AttrStmt) -> Any:
        line = f'T.attr({self._attr_node(s.node)}, "{s.attr_key}", {self.text(s.value)})'
        yield from self.scoped(line, line, s.body)

    def _attr_node(self, node: Any) -> str:
        if isinstance(node, tir.IterVar):
            dom = "None" if node.dom is None else self._range(node.dom)
            return f"T.iter_var({self.var(node.var)}, {dom}, {int(node.iter_type)}, {quoted(node.thread_tag)})"
        return self.literal(node)

    def _range(self, r: Range) -> str:
        stop = r.min + r.extent
        if isinstance(r.min, IntImm) and r.min.value == 0 or not expr_deep_equal(stop - r.min, r.extent):
            return self._exact_range(r)
        return f"T.Range({self.text(r.min)}, {self.text(stop)})"

    # ------------------------------------------------------------ blocks

    def visit_BlockRealize(self, s: BlockRealize) -> Any:
        return self._block(s.block, s.iter_values, None if _is_true(s.predicate) else s.predicate, "")

    def visit_Block(self, s: Block) -> Any:
        return self._block(s, (), None, ", no_realize=True")

    def _block(self, b: Block, values: Iterable[PrimExpr], predicate: PrimExpr | None, extra: str) -> Any:
        self.put(f"with T.block({quoted(b.name_hint)}{extra}):")
        outer, self.tail = self.tail, True
        self.indent += 1
        for axis, value in zip(b.iter_vars, values):
            self.put(f"{self.name(axis.var, axis.var.name)} = T.axis.{_AXIS_KINDS[axis.iter_type]}({self._domain(axis.dom)}, {self._axis_value(value)})")
            self.define(axis.var)
        if predicate is not None:
            self.put(f"T.where({self.text(predicate)})")
        for made in b.alloc_buffers:
            self._made(made, "T.alloc_buffer", "")
        for m in b.match_buffers:
            self._matched(m)
        for what, regions in (("reads", b.reads), ("writes", b.writes)):
            self.put(f"T.{what}({', '.join(map(self.region, regions))})")
        if b.annotations:
            self.put(f"T.block_attr({self.literal(b.annotations)})")
        if b.init is not None:
            self.put("with T.init():")
            yield from self._nested(b.init)
        yield b.body
        self.indent -= 1
        self.tail = outer

    def _axis_value(self, value: PrimExpr) -> str:
        return f"T.int64({value.value})" if isinstance(value, IntImm) and value.dtype == "int64" else self.text(value)

    def _domain(self, r: Range | None) -> str:
        if r is None:
            return "None"
        return self.text(r.extent) if isinstance(r.min, IntImm) and r.min.value == 0 and r.min.dtype == r.extent.dtype else self._range(r)

    def _made(self, b: Buffer, head: str, first: str) -> None:
        data = self.declare_own(b)
        self.put(f"{self.name(b, b.name)} = {head}({first}{self.buffer_args(b, data)})")
        self.define(b.data, b)

    def _matched(self, m: MatchBufferRegion) -> None:
        for e in (*m.buffer.strides, m.buffer.elem_offset):
            if isinstance(e, tir.Var) and id(e) not in self.known:
                self.declare(e)
        self._made(m.buffer, "T.match_buffer", f"{self.region(m.source)}, ")

    def region(self, r: BufferRegion) -> str:
        """A region as a subscript with slices."""
        parts = ", ".join(self.text(x.min) if _is_one(x.extent) else self._range_slice(x) for x in r.region)
        if r.region and all(_is_one(x.extent) for x in r.region):
            parts = ", ".join([*(self.text(x.min) for x in r.region[:-1]), self._range_slice(r.region[-1])])
        return f"{self.name(r.buffer, r.buffer.name)}[{parts or '()'}]"

    # ------------------------------------------------------------ plain values

    def literal(self, value: Any) -> str:
        """A value of attributes and annotations."""
        if isinstance(value, Buffer):
            return self.name(value, value.name)
        if isinstance(value, PrimExpr):
            return self.text(value)
        if isinstance(value, tir.CommReducer):
            return self._reducer(value)
        if isinstance(value, Mapping) or hasattr(value, "keys") and hasattr(value, "__getitem__"):
            return "{" + ", ".join(f"{self.literal(k)}: {self.literal(value[k])}" for k in value.keys()) + "}"
        if isinstance(value, tuple):
            return f"({', '.join(map(self.literal, value))}{',' if len(value) == 1 else ''})"
        if isinstance(value, list):
            return f"[{', '.join(map(self.literal, value))}]"
        if isinstance(value, str):
            return quoted(value)
        kind = getattr(value, "kind", None)
        return f"T.target({value.export()!r})" if kind is not None and hasattr(value, "export") else repr(value)

    def _reducer(self, r: tir.CommReducer) -> str:
        names = ", ".join(self.name(v, v.name) for v in (*r.lhs, *r.rhs))
        result = ", ".join(map(self.text, r.result))
        return f"T.comm_reducer(lambda {names}: ({result},), [{', '.join(map(self.text, r.identity_element))}])"

    # ------------------------------------------------------------ functions

    def func(self, f: PrimFunc, name: str | None = None) -> str:
        """The function as text."""
        symbol = f.get_attr("global_symbol")
        shown = name or str(symbol or "main")
        self.mentioned = {id(v) for v in (*_values_in(dict(f.attrs or {})), *free_candidates(f.body)) if isinstance(v, tir.Var)}
        self.put("@T.prim_func" if symbol is not None else "@T.prim_func(private=True)")
        parameters = ", ".join(self._parameter_text(p, b) for p, b in zip(f.params, f.buffers))
        self.put(f"def {shown}({parameters}){_result_text(f.ret_type)}:")
        self.indent += 1
        late = any(isinstance(n, (Buffer, PrimExpr)) for n in _values_in(dict(f.attrs or {})))
        if not late:
            self._attributes(f, shown)
        self._free_variables(f)
        for p, b in zip(f.params, f.buffers):
            if b is not None and not self._in_annotation(p, b):
                self._made(b, "T.match_buffer", f"{self.name(p, p.name)}, ")
        self._views(f)
        if late:
            self._attributes(f, shown)
        self.visit(f.body)
        self.indent -= 1
        return "\n".join(self.lines)

    def _in_annotation(self, p: tir.Var, b: Buffer) -> bool:
        """Whether the annotation of a parameter can state its buffer."""
        plain = not any(isinstance(n, tir.Var) for e in (*b.shape, *b.strides, b.elem_offset) for n in post_order(e))
        return plain and id(p) not in self.mentioned and type(p) is tir.Var and p.dtype == "handle" and p.type_annotation is None and self.owners.get(id(b.data)) is b

    def _parameter_text(self, p: tir.Var, b: Buffer | None) -> str:
        if b is not None and self._own(b):
            self.owners[id(b.data)] = b
            if self._in_annotation(p, b):
                self.define(b.data, b)
                return f"{self.name(b, b.name)}: T.Buffer({self.buffer_args(b, None)})"
            del self.owners[id(b.data)]
        self.define(p)
        return f"{self.name(p, p.name)}: {type_text(p)}"

    def _attributes(self, f: PrimFunc, shown: str) -> None:
        attrs = {k: v for k, v in dict(f.attrs or {}).items() if not (k == "global_symbol" and v == shown)}
        if attrs:
            self.put(f"T.func_attr({self.literal(dict(sorted(attrs.items())))})")

    def _free_variables(self, f: PrimFunc) -> None:
        """Variables that no statement defines by its form: of ``Let`` expressions and thread axes, sizes, and free ones."""
        found: dict[int, tir.Var] = {}
        for n in post_order(f.body):
            if isinstance(n, tir.Let):
                found.setdefault(id(n.var), n.var)
            elif isinstance(n, ts.AttrStmt) and isinstance(n.node, tir.IterVar):
                found.setdefault(id(n.node.var), n.node.var)
        for b in f.buffers:
            for e in () if b is None else (*b.shape, *b.strides, b.elem_offset):
                found.update((id(v), v) for v in post_order(e) if isinstance(v, tir.Var) and id(v) not in found)
        inside = _defined_inside(f)
        found.update((id(v), v) for v in undefined_vars(f.replace(buffers=(None,) * len(f.buffers))))
        owned = {id(b.data) for b in f.buffers if b is not None}
        for key, v in found.items():
            if key not in self.known and key not in owned and key not in inside:
                self.declare(v)

    def _views(self, f: PrimFunc) -> None:
        """Has every buffer that no statement makes stated as soon as its memory is there."""
        made = _made_inside(f)
        for b in (*_accessed(f), *(v for v in _values_in(dict(f.attrs or {})) if isinstance(v, Buffer))):
            if id(b) not in made and id(b) not in self.known:
                self._state_when_ready(b)


# ---------------------------------------------------------------- facts about programs


def _defined_inside(f: PrimFunc) -> set[int]:
    """The pointers of buffers that statements make."""
    return {id(b.data) for b in _made_inside(f).values()}


def _made_inside(f: PrimFunc) -> dict[int, Buffer]:
    """The buffers that statements of a function make, by id."""
    found: dict[int, Buffer] = {}
    for n in post_order(f.body):
        if isinstance(n, (ts.BufferRealize, ts.DeclBuffer)):
            found[id(n.buffer)] = n.buffer
        elif isinstance(n, Block):
            found.update((id(b), b) for b in (*n.alloc_buffers, *(m.buffer for m in n.match_buffers)))
    return found


def _accessed(f: PrimFunc) -> list[Buffer]:
    """The buffers a function's statements speak of, in order."""
    found: dict[int, Buffer] = {}
    for n in post_order(f.body):
        if isinstance(n, (BufferLoad, ts.BufferStore)):
            found.setdefault(id(n.buffer), n.buffer)
        elif isinstance(n, ts.AttrStmt):
            found.update((id(v), v) for v in _values_in(n.node) if isinstance(v, Buffer) and id(v) not in found)
        elif isinstance(n, Block):
            for r in (*n.reads, *n.writes, *(m.source for m in n.match_buffers)):
                found.setdefault(id(r.buffer), r.buffer)
    return list(found.values())


def spelling(name: str, e: tir.Call) -> str:
    """How ``T.name`` builds this very call: ``plain`` (from its arguments), ``dtype`` (from its dtype and arguments), or not at all ("")."""
    fn = INTRINSICS.get(name)
    if fn is None:
        return ""
    args = [a.value if isinstance(a, tir.StringImm) else a for a in e.args]
    for form, given in (("plain", args), ("dtype", [e.dtype, *args])):
        if _builds(fn, given, e):
            return form
    return ""


def _builds(fn: Callable[..., Any], args: list[Any], e: tir.Call) -> bool:
    try:
        made = fn(*args)
    except Exception:
        return False  # not a form of this function
    return isinstance(made, tir.Call) and made.op is e.op and made.dtype == e.dtype and len(made.args) == len(e.args) and all(
        a is b or type(a) is type(b) and isinstance(a, (IntImm, FloatImm, tir.StringImm)) and (a.dtype, a.value) == (b.dtype, b.value)
        for a, b in zip(made.args, e.args))


def _values_in(value: Any) -> list[Any]:
    """Everything inside attributes, nested containers laid out flat."""
    found: list[Any] = []
    stack = [value]
    while stack:
        each = stack.pop()
        if isinstance(each, Mapping):
            stack.extend([*each.keys(), *each.values()])
        elif isinstance(each, (list, tuple)):
            stack.extend(each)
        else:
            found.append(each)
    return found


def pointer_scope(v: tir.Var) -> str:
    """The memory a pointer points into."""
    return getattr(v.type_annotation, "storage_scope", "") or "global"


def _is_plain_pointer(v: tir.Var, dtype: str, scope: str) -> bool:
    return type(v) is tir.Var and v.dtype == "handle" and v.type_annotation == PointerType(PrimType(dtype), scope)


def type_text(v: tir.Var) -> str:
    """The type of a variable, as an annotation says it."""
    kind = v.type_annotation
    if isinstance(kind, PointerType) and isinstance(kind.element_type, PrimType):
        return f'T.handle("{kind.element_type.dtype}", "{kind.storage_scope}")'
    return f"T.{v.dtype}(is_size_var=True)" if isinstance(v, tir.SizeVar) else f"T.{v.dtype}"


def _result_text(t: Any) -> str:
    if isinstance(t, PrimType):
        return f" -> T.{t.dtype}"
    if isinstance(t, PointerType) and isinstance(t.element_type, PrimType):
        return f' -> T.handle("{t.element_type.dtype}", "{t.storage_scope}")'
    return "" if t is None or isinstance(t, TupleType) else f" -> {t}"


def _is_true(e: Any) -> bool:
    return isinstance(e, IntImm) and e.dtype == "bool" and e.value == 1


def _is_one(e: PrimExpr) -> bool:
    return isinstance(e, IntImm) and e.value == 1


def quoted(text: str) -> str:
    """A text in double quotes."""
    body = repr(text)
    return body if '"' in text else f'"{body[1:-1]}"'.replace("\\'", "'")


_SCRIPT_EXPRS: dict[type, Callable[[ScriptPrinter, Any], "list[_Piece]"]] = {
    IntImm: ScriptPrinter._int, tir.StringImm: lambda p, e: [quoted(e.value)], tir.Call: ScriptPrinter._script_call,
    tir.Shuffle: lambda p, e: ["T.Shuffle([", *[x for v in e.vectors for x in ((v, _LOW), ", ")], f"], {list(e.indices)})"],
    tir.Ramp: lambda p, e: p._pieces_of("T.Ramp", [p._argument(e.base), p._argument(e.stride), str(e.lanes)]),
    tir.Broadcast: lambda p, e: p._pieces_of("T.Broadcast", [p._argument(e.value), str(e.lanes)]),
    tir.Let: lambda p, e: ["T.Let(", p._argument(e.body), ", where={", p.var(e.var), ": ", p._argument(e.value), "})"],
    tir.Var: lambda p, e: [p.var(e)], tir.SizeVar: lambda p, e: [p.var(e)], tir.FloatImm: lambda p, e: _EXPRS[FloatImm](p, e),
}


def func_script(f: PrimFunc, name: str | None = None) -> str:
    """A function as script."""
    return ScriptPrinter().func(f, name)


def module_script(mod: IRModule) -> str:
    """A module of loop programs as script: one class."""
    functions = [(g.name_hint, f) for g, f in mod.functions.items() if isinstance(f, PrimFunc)]
    names = {n: _fresh_identifier(n) for n, _ in functions}
    callees = {n: (f"Module.{names[n]}", _call_dtype(f)) for n, f in functions}
    lines = ["# from tvm.script import ir as I", "# from tvm.script import tir as T", "", "@I.ir_module", "class Module:"]
    attrs = {k: mod.attrs[k] for k in mod.attrs.keys()} if mod.attrs else {}
    if attrs:
        lines.append(f"    I.module_attrs({ScriptPrinter().literal(attrs)})")
    if not functions and not attrs:
        lines.append("    pass")
    for i, (n, f) in enumerate(functions):
        text = ScriptPrinter(callees).func(f, names[n])
        lines.extend(([""] if i or attrs else []) + [f"    {line}" if line else "" for line in text.splitlines()])
    return "\n".join(lines)


def _fresh_identifier(name: str) -> str:
    """The name, which has to be one in Python too."""
    return name if name.isidentifier() and not keyword.iskeyword(name) else "f_" + "".join(c if c.isalnum() else "_" for c in name)


def _call_dtype(f: PrimFunc) -> str:
    return f.ret_type.dtype if isinstance(f.ret_type, PrimType) else "void"


def script(node: Any, name: str | None = None) -> str:
    """The script of a function or a module of loop programs, or the text of another node."""
    if isinstance(node, PrimFunc):
        return func_script(node, name)
    if isinstance(node, IRModule) and all(isinstance(f, PrimFunc) for f in node.functions.values()):
        return module_script(node)
    if isinstance(node, ts.Stmt):
        printer = ScriptPrinter()
        printer.visit(node)
        return "\n".join(printer.lines)
    return node.astext() if hasattr(node, "astext") else repr(node)
