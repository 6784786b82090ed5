"""Loop programs as text, in the manner of TVMScript; names are made unique and depend on nothing but the program.

    @T.prim_func
    def main(A: T.Buffer((50, 17), "float32"), C: T.Buffer((50,), "float32")):
        T.func_attr({"global_symbol": "main"})
        for i in T.parallel(50):
            C[i] = A[i * 17] + T.float32(1.0)

Integers without a type are int64, the index type.  The text is written piece by piece from an explicit stack, so its cost is linear.
"""
from __future__ import annotations

from typing import Any, Callable, Iterable, Mapping, Union

from ..ir.expr import FloatImm, IntImm, PrimExpr, Range
from ..ir.node import Node
from ..ir.op import Op
from ..ir.module import IRModule
from ..ir.repr_hooks import register_module_printer, register_printer
from . import expr as tir
from . import stmt as ts
from .buffer import Buffer, BufferLoad, ProducerLoad
from .functor import StmtVisitor, contains
from .function import PrimFunc

_LOW, _ATOM = 0, 20
_PRECEDENCE: dict[type, tuple[str, int]] = {
    tir.Or: ("or", 1), tir.And: ("and", 2), tir.EQ: ("==", 4), tir.NE: ("!=", 4), tir.LT: ("<", 4), tir.LE: ("<=", 4), tir.GT: (">", 4),
    tir.GE: (">=", 4), tir.Add: ("+", 6), tir.Sub: ("-", 6), tir.Mul: ("*", 7), tir.FloorDiv: ("//", 7), tir.FloorMod: ("%", 7),
}
_KINDS = {ts.ForKind.SERIAL: "range", ts.ForKind.PARALLEL: "T.parallel", ts.ForKind.VECTORIZED: "T.vectorized",
          ts.ForKind.UNROLLED: "T.unroll", ts.ForKind.THREAD_BINDING: "T.thread_binding"}
_Piece = Union[str, "tuple[PrimExpr, int]"]


class Printer(StmtVisitor):
    """Writes one program; ``lines`` gathers the text."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: list[str] = []
        self.indent = 0
        self.names: dict[int, str] = {}
        self.taken: dict[str, int] = {}
        self.keep: list[Any] = []
        self.same: dict[int, Any] = {}  # nodes that go by the name of another

    # ------------------------------------------------------------ names

    def name(self, node: Any, hint: str) -> str:
        """The name of a variable or buffer, given on first sight."""
        node = self.same.get(id(node), node)
        found = self.names.get(id(node))
        if found is None:
            base = "".join(c if c.isalnum() or c == "_" else "_" for c in hint) or "v"
            count = self.taken.get(base, -1) + 1
            self.taken[base] = count
            found = self.names[id(node)] = f"{base}_{count}" if count else base
            self.keep.append(node)
        return found

    def var(self, v: tir.Var) -> str:
        return self.name(v, v.name)

    # ------------------------------------------------------------ expressions

    def text(self, e: Any) -> str:
        """An expression as text."""
        out: list[str] = []
        stack: list[_Piece] = [(e, _LOW)]
        while stack:
            piece = stack.pop()
            if isinstance(piece, str):
                out.append(piece)
            else:
                stack.extend(reversed(self._pieces(*piece)))
        return "".join(out)

    def _pieces(self, e: Any, outer: int) -> list[_Piece]:
        infix = _PRECEDENCE.get(type(e))
        if infix is not None:
            if infix[0] in ("//", "%") and "float" in e.dtype:
                return self._call_pieces("T.floordiv" if infix[0] == "//" else "T.floormod", (e.a, e.b))
            sign, own = infix
            inner: list[_Piece] = [(e.a, own if own != 4 else 5), f" {sign} ", (e.b, own + 1)]
            return ["(", *inner, ")"] if own < outer else inner
        if type(e) is tir.Not:
            return ["(", "not ", (e.a, 3), ")"] if outer > 3 else ["not ", (e.a, 3)]
        rule = _EXPRS.get(type(e))
        return rule(self, e) if rule is not None else [f"<{type(e).__name__}>"]

    def _call_pieces(self, head: str, args: Iterable[Any], tail: str = "") -> list[_Piece]:
        pieces: list[_Piece] = [head, "("]
        for i, a in enumerate(args):
            if i:
                pieces.append(", ")
            pieces.append(a if isinstance(a, str) else (a, _LOW))
        return [*pieces, tail, ")"]

    def _int(self, e: IntImm) -> list[_Piece]:
        if e.dtype == "bool":
            return [f"T.bool({bool(e.value)})"]
        return [str(e.value) if e.value >= 0 else f"({e.value})"] if e.dtype == "int64" else [f"T.{e.dtype}({e.value})"]

    def _float(self, e: FloatImm) -> list[_Piece]:
        value = repr(e.value) if e.value == e.value and abs(e.value) != float("inf") else f'"{e.value!r}"'
        return [f"T.{e.dtype}({value})"]

    def _div(self, e: tir.Div) -> list[_Piece]:
        if "float" in e.dtype:
            return ["(", (e.a, 7), " / ", (e.b, 8), ")"]
        return self._call_pieces("T.truncdiv", (e.a, e.b))

    def _load(self, e: BufferLoad) -> list[_Piece]:
        return [self.name(e.buffer, e.buffer.name), *self._index_pieces(e.indices)]

    def _index_pieces(self, indices: Iterable[PrimExpr]) -> list[_Piece]:
        pieces: list[_Piece] = ["["]
        for k, i in enumerate(indices):
            if k:
                pieces.append(", ")
            pieces.extend(self._slice(i) if isinstance(i, tir.Ramp) else [(i, _LOW)])
        return [*pieces, "]"] if len(pieces) > 1 else ["[()]"]

    def _slice(self, i: tir.Ramp) -> list[_Piece]:
        """A ramp as base:base + lanes, with its step if that is not 1."""
        if isinstance(i.base, IntImm) and isinstance(i.stride, IntImm):
            step = i.stride.value
            ends = f"{i.base.value}:{i.base.value + i.lanes * step}"
            return [ends if step == 1 else f"{ends}:{step}"]
        if isinstance(i.stride, IntImm) and i.stride.value == 1:
            return [(i.base, 6), ":", (i.base, 6), f" + {i.lanes}"]
        return [(i, _LOW)]

    def _call(self, e: tir.Call) -> list[_Piece]:
        if not isinstance(e.op, Op):
            return self._call_pieces(f"T.call({getattr(e.op, 'name_hint', '?')!r}", e.args)
        name = e.op.name.removeprefix("tir.")
        if name in ("if_then_else", "likely", "tvm_access_ptr", "address_of", "isnan"):
            return self._call_pieces(f"T.{name}", e.args)
        same = any(a.dtype == e.dtype for a in e.args) and "call" not in name
        return self._call_pieces(f"T.{name}", e.args) if same else self._call_pieces(f"T.{name}", (f'"{e.dtype}"', *e.args))

    def _reduce(self, e: tir.Reduce) -> list[_Piece]:
        axes = ", ".join(self.var(a.var) for a in e.axis)
        return self._call_pieces(f"T.reduce[{e.value_index}]", e.source, f", axis=[{axes}]")

    # ------------------------------------------------------------ statements

    def put(self, line: str) -> None:
        self.lines.append("    " * self.indent + line)

    def _nested(self, body: ts.Stmt) -> Any:
        self.indent += 1
        size = len(self.lines)
        yield body
        if len(self.lines) == size:
            self.put("pass")
        self.indent -= 1

    def visit_SeqStmt(self, s: ts.SeqStmt) -> Any:
        yield from s.seq

    def visit_For(self, s: ts.For) -> Any:
        low, extent = self.text(s.min), self.text(s.extent)
        ends = extent if low == "0" else f"{low}, {self.text(s.min + s.extent)}"
        notes = f", annotations={{{', '.join(f'{k!r}: {_plain(v)}' for k, v in s.annotations.items())}}}" if s.annotations else ""
        self.put(f"for {self.var(s.loop_var)} in {_KINDS[s.kind]}({ends}{notes}):")
        yield from self._nested(s.body)

    def visit_While(self, s: ts.While) -> Any:
        self.put(f"while {self.text(s.condition)}:")
        yield from self._nested(s.body)

    def visit_Evaluate(self, s: ts.Evaluate) -> None:
        self.put(f"T.evaluate({self.text(s.value)})" if not isinstance(s.value, tir.Call) else self.text(s.value))

    def visit_BufferStore(self, s: ts.BufferStore) -> None:
        at = "".join(p if isinstance(p, str) else self._sub(p) for p in self._index_pieces(s.indices))
        self.put(f"{self.name(s.buffer, s.buffer.name)}{at} = {self.text(s.value)}")

    def _sub(self, piece: tuple[PrimExpr, int]) -> str:
        text = self.text(piece[0])
        own = _PRECEDENCE.get(type(piece[0]), ("", _ATOM))[1]
        return f"({text})" if own < piece[1] else text

    def visit_BufferRealize(self, s: ts.BufferRealize) -> Any:
        bounds = ", ".join(f"{self.text(r.min)}:{self.text(r.min + r.extent)}" for r in s.bounds)
        scope = f", {s.buffer.scope_name!r}".replace("'", '"')
        self.put(f"with T.realize({self.name(s.buffer, s.buffer.name)}[{bounds}]{scope}, {self._shape(s.buffer)}):")
        yield from self._nested(s.body)

    def visit_Allocate(self, s: ts.Allocate) -> Any:
        scope = getattr(s.buffer_var.type_annotation, "storage_scope", "") or "global"
        extents = ", ".join(self.text(e) for e in s.extents)
        self.put(f'{self._memory_name(s.buffer_var)} = T.allocate([{extents}], "{s.dtype}", "{scope}")')
        yield s.body

    def _memory_name(self, v: tir.Var) -> str:
        return self.var(v)

    def visit_AllocateConst(self, s: ts.AllocateConst) -> Any:
        extents = ", ".join(self.text(e) for e in s.extents)
        self.put(f'{self._memory_name(s.buffer_var)} = T.allocate_const([{extents}], "{s.dtype}")')
        yield s.body

    def visit_DeclBuffer(self, s: ts.DeclBuffer) -> Any:
        self.put(f"{self.name(s.buffer, s.buffer.name)} = T.decl_buffer({self._shape(s.buffer)}, data={self.var(s.buffer.data)})")
        yield s.body

    def visit_IfThenElse(self, s: ts.IfThenElse) -> Any:
        self.put(f"if {self.text(s.condition)}:")
        yield from self._nested(s.then_case)
        if s.else_case is not None:
            self.put("else:")
            yield from self._nested(s.else_case)

    def visit_LetStmt(self, s: ts.LetStmt) -> Any:
        value = self.text(s.value)
        self.put(f"{self.var(s.var)}: T.{s.var.dtype} = {value}")
        yield s.body

    def visit_AssertStmt(self, s: ts.AssertStmt) -> Any:
        self.put(f"assert {self.text(s.condition)}, {self.text(s.message)}")
        yield s.body

    def visit_AttrStmt(self, s: ts.AttrStmt) -> Any:
        self.put(f'with T.attr({self._attr_node(s.node)}, "{s.attr_key}", {self.text(s.value)}):')
        yield from self._nested(s.body)

    def _attr_node(self, node: Any) -> str:
        if isinstance(node, tir.IterVar):
            return self.var(node.var) + (f' = T.env_thread("{node.thread_tag}")' if node.thread_tag else "")
        if isinstance(node, Buffer):
            return self.name(node, node.name)
        return self.var(node) if isinstance(node, tir.Var) else repr(node)

    # ------------------------------------------------------------ functions

    def _shape(self, b: Buffer) -> str:
        dims = "".join(self.text(d) + ", " for d in b.shape)
        dims = dims[:-2] if len(b.shape) != 1 else dims[:-1]
        strides = f", strides=[{', '.join(self.text(d) for d in b.strides)}]" if b.strides else ""
        offset = "" if isinstance(b.elem_offset, IntImm) and b.elem_offset.value == 0 else f", elem_offset={self.text(b.elem_offset)}"
        return f'({dims}), "{b.dtype}"{strides}{offset}'

    def _parameter(self, p: tir.Var, b: Buffer | None) -> str:
        if b is None:
            return f"{self.var(p)}: T.{p.dtype}"
        return f"{self.name(b, b.name)}: T.Buffer({self._shape(b)})"

    def func(self, f: PrimFunc, name: str | None = None) -> str:
        """A function as text."""
        self._alias_flat_buffers(f)
        symbol = name or str(f.get_attr("global_symbol", "func"))
        params = ", ".join(self._parameter(p, b) for p, b in zip(f.params, f.buffers))
        self.put("@T.prim_func")
        self.put(f"def {symbol}({params}):")
        self.indent += 1
        attrs = {k: _plain(v) for k, v in dict(f.attrs or {}).items()}
        if attrs:
            self.put("T.func_attr({" + ", ".join(f'"{k}": {v}' for k, v in sorted(attrs.items())) + "})")
        self.visit(f.body)
        self.indent -= 1
        return "\n".join(self.lines)

    def _alias_flat_buffers(self, f: PrimFunc) -> None:
        """A buffer over the memory of a parameter or allocation goes by that memory's name when it is its only view."""
        views: dict[int, list[Buffer]] = {}
        mapped = {id(b.data): b for b in f.buffers if b is not None}
        seen: set[int] = set()

        def collect(n: Node) -> bool:
            if isinstance(n, (BufferLoad, ts.BufferStore)) and id(n.buffer) not in seen:
                seen.add(id(n.buffer))
                views.setdefault(id(n.buffer.data), []).append(n.buffer)
            return False

        contains(f.body, collect)
        for data, found in views.items():
            owner = mapped.get(data)
            for b in found:
                if owner is not None and b is not owner and b.dtype == owner.dtype:
                    self.same[id(b)] = owner
                elif owner is None and len(found) == 1 and not _realized(f, b):
                    self.same[id(b)] = b.data
                self.keep.append(b)


def _realized(f: PrimFunc, b: Buffer) -> bool:
    return contains(f.body, lambda n: isinstance(n, (ts.BufferRealize, ts.DeclBuffer)) and n.buffer is b)


def _plain(v: Any) -> str:
    if isinstance(v, IntImm):
        return str(bool(v.value)) if v.dtype == "bool" else str(v.value)
    if isinstance(v, (tir.StringImm, str)):
        text = v if isinstance(v, str) else v.value
        return f'"{text}"'
    return str(v)


_EXPRS: dict[type, Callable[[Printer, Any], "list[_Piece]"]] = {
    IntImm: Printer._int, FloatImm: Printer._float, tir.Var: lambda p, e: [p.var(e)], tir.SizeVar: lambda p, e: [p.var(e)],
    tir.StringImm: lambda p, e: [f'"{e.value}"'], tir.Any: lambda p, e: ["?"], tir.Div: Printer._div,
    tir.Mod: lambda p, e: p._call_pieces("T.truncmod", (e.a, e.b)), tir.Min: lambda p, e: p._call_pieces("T.min", (e.a, e.b)),
    tir.Max: lambda p, e: p._call_pieces("T.max", (e.a, e.b)), tir.Cast: lambda p, e: p._call_pieces("T.Cast", (f'"{e.dtype}"', e.value)),
    tir.Select: lambda p, e: p._call_pieces("T.Select", (e.condition, e.true_value, e.false_value)),
    tir.Ramp: lambda p, e: p._call_pieces("T.Ramp", (e.base, e.stride, str(e.lanes))),
    tir.Broadcast: lambda p, e: p._call_pieces("T.Broadcast", (e.value, str(e.lanes))),
    tir.Shuffle: lambda p, e: p._call_pieces("T.Shuffle", e.vectors, f", {list(e.indices)}"),
    tir.Let: lambda p, e: ["T.Let(", (e.body, _LOW), ", where={", p.var(e.var), ": ", (e.value, _LOW), "})"],
    BufferLoad: Printer._load, ProducerLoad: lambda p, e: [getattr(e.producer, "name", "tensor"), *p._index_pieces(e.indices)],
    tir.Call: Printer._call, tir.Reduce: Printer._reduce,
}


def expr_text(e: PrimExpr) -> str:
    """An expression as text."""
    return Printer().text(e)


def stmt_text(s: ts.Stmt) -> str:
    """A statement as text."""
    p = Printer()
    p.visit(s)
    return "\n".join(p.lines)


def func_text(f: PrimFunc, name: str | None = None) -> str:
    """A function as text; the same program always gives the same text."""
    return Printer().func(f, name)


def module_text(functions: Mapping[str, PrimFunc]) -> str:
    """Several functions as text, by name."""
    return "\n\n".join(func_text(f, name) for name, f in sorted(functions.items()))


def _module_text(mod: IRModule, show_meta_data: bool, annotate: Any) -> str | None:
    """The text of a module of loop programs; None for any other module."""
    if not mod.functions or not all(isinstance(f, PrimFunc) for f in mod.functions.values()):
        return None
    return module_text({g.name_hint: f for g, f in mod.functions.items()})  # type: ignore[misc]


def _buffer_text(b: Buffer) -> str:
    return f"T.Buffer({Printer()._shape(b)}) {b.name}"


def _iter_var_text(iv: tir.IterVar) -> str:
    dom = "" if iv.dom is None else f", {_range_text(iv.dom)}"
    return f"T.iter_var({iv.var.name}{dom}, {iv.iter_type}, \"{iv.thread_tag}\")"


def _range_text(r: Range) -> str:
    return f"T.Range({expr_text(r.min)}, {expr_text(r.min + r.extent)})"


register_printer(PrimExpr, expr_text)
register_printer(ts.Stmt, stmt_text)
register_printer(PrimFunc, func_text)
register_printer(Buffer, _buffer_text)
register_printer(tir.IterVar, _iter_var_text)
register_printer(Range, _range_text)
register_module_printer(_module_text)
