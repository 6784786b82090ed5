"""Programs of the graph language as text, in upstream's format (version 0.0.5).

An expression used once at the end of a scope is written in place; every other one becomes a line ``%n = …;`` of the
innermost scope.  Variables, constants, operators and names are always written in place.

The writer runs on generators driven by :func:`anchorleg.ir.visit.trampoline`, so that nesting costs no Python stack; operands of calls and tuples
are handled in one loop.
"""
from __future__ import annotations

import re
from typing import Any, Callable, Generator


from ...ir.expr import BaseFunc, GlobalVar, RelayExpr
from ...ir.module import IRModule
from ...ir.node import Node
from ...ir.op import Op
from ...ir.repr_hooks import register_module_printer, register_printer
from ...ir.serialize import save_json, type_key
from ...ir.span import Span
from ...ir.type import Type
from ...ir.visit import trampoline
from ..adt import (Constructor, Match, Pattern, PatternConstructor, PatternTuple, PatternVar, PatternWildcard, TypeData)
from ..analysis.variables import expr_children
from ..expr import Call, Constant, ExprWithOp, If, Let, RefCreate, RefRead, RefWrite, TempExpr, Tuple, TupleGetItem, Var
from ..function import Function
from .attributes import AttributeText
from .doc import NEWLINE, Indent, braced, joined, quoted, render
from .numbers import SCALAR_DTYPES, scalar_text
from .types import TypeText

VERSION = "0.0.5"
HEADER = f'#[version = "{VERSION}"]\n'
_OMITTED = ("\n/* For debugging purposes the metadata section has been omitted.\n"
            " * If you would like to see the full metadata section you can set the \n"
            " * option to `True` when invoking `astext`. \n */")
_IN_PLACE = (GlobalVar, Constant, Op, Var, Constructor)
_DATAFLOW = (Call, Tuple, TupleGetItem)
_EXPLAINED = (Constant, Call, Var, Function, Tuple, TupleGetItem)
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(?:/[A-Za-z0-9_]+)*\Z")

Doc = Any  # a str, or nested lists as in doc.py
Steps = Generator[Any, Any, Doc]
Annotate = Callable[[Any], str]


def astext(node: Any, show_meta_data: bool = True, annotate: Annotate | None = None) -> str:
    """The text of a module, expression, pattern or type, from which :func:`anchorleg.relay.parse` rebuilds it.

    ``show_meta_data`` false leaves out the section that holds tensor constants.  ``annotate`` gives, per expression, what to
    write behind it instead of its type and origin.
    """
    text, meta = _print(node, show_meta_data, annotate)
    if meta.entries:
        text += "\n#[metadata]\n" + save_json(meta.entries) if show_meta_data else _OMITTED
    return HEADER + text


def pretty_print(node: Any) -> str:
    """The text for a person: without version line and metadata section."""
    return _print(node, False, None)[0]


def _print(node: Any, full: bool, annotate: Annotate | None) -> tuple[str, Metadata]:
    """Prints in upstream's order; in strict order when sharing across scopes would put a use before its definition."""
    printer = Printer(full, annotate)
    text = printer.run(node)
    if printer.crossed_scopes and not _defined_before_use(text):
        printer = Printer(full, annotate, strict=True)
        text = printer.run(node)
    return text, printer.meta


_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|/\*.*?\*/|(free_var )?(%[A-Za-z0-9_/]+)( = )?', re.S)


def _defined_before_use(text: str) -> bool:
    """Whether every graph variable and every declared free variable appears first where it is defined."""
    free = {m.group(2) for m in _TOKEN.finditer(text) if m.group(1)}
    seen: set[str] = set()
    for match in _TOKEN.finditer(text):
        name = match.group(2)
        if name is None or not (name[1].isdigit() or name in free):
            continue
        if match.group(1) or (match.group(3) and name[1].isdigit()):
            seen.add(name)
        elif name not in seen:
            return False
    return True


class Metadata:
    """What the text refers to as ``meta[type key][index]``."""

    def __init__(self) -> None:
        self.entries: dict[str, list[Any]] = {}
        self.names: dict[int, str] = {}

    def name(self, value: Any) -> str:
        """The reference to ``value``, entered on first use."""
        found = self.names.get(id(value))
        if found is None:
            key = type_key(value)
            rows = self.entries.setdefault(key, [])
            found = self.names[id(value)] = f"meta[{key}][{len(rows)}]"
            rows.append(value)
        return found


class Printer:
    """One printing run: names given so far, texts by expression, and the lines of the open scopes."""

    def __init__(self, full: bool, annotate: Annotate | None = None, strict: bool = False) -> None:
        self.full, self.annotate, self.strict = full, annotate, strict
        self.meta = Metadata()
        self.types = TypeText(self.meta.name)
        self.attributes = AttributeText(self.meta.name, full)
        self.texts: dict[int, Doc] = {}
        self.declarations: dict[int, Doc] = {}  # of variables met free
        self.placed: set[int] = set()  # variables and expressions whose line is written
        self.explained: set[int] = set()
        self.names: dict[str, int] = {}
        self.scopes: list[list[Doc]] = []
        self.home: dict[int, list[Doc]] = {}  # the scope that holds an expression's line
        self.uses: dict[int, int] = {}
        self.typed = False
        self.counter = 0
        self.crossed_scopes = False

    def run(self, node: Any) -> str:
        """The text of ``node``, without header and metadata."""
        return render(trampoline(self._module(node) if isinstance(node, IRModule) else self._final(node)))

    # ------------------------------------------------------------------------------------------------ whole programs

    def _final(self, node: Any) -> Steps:
        if isinstance(node, RelayExpr) and not _foreign(node):
            self._count_uses(node)
            return (yield self._scope(node))
        if isinstance(node, Pattern):
            return (yield self._pattern(node))
        if isinstance(node, TypeData):
            return (yield self._type_data(node))
        return self.types.text(node) if isinstance(node, Type) else repr(node)

    def _module(self, mod: IRModule) -> Steps:
        parts: list[Doc] = []
        for _, data in sorted(mod.type_definitions.items(), key=lambda kv: kv[0].name_hint):
            parts.append([(yield self._type_data(data)), NEWLINE])
        for gvar, func in sorted(mod.functions.items(), key=lambda kv: kv[0].name_hint):
            if isinstance(func, Function):
                self._count_uses(func)
                parts.append([(yield self._function(f"def @{_name(gvar.name_hint)}", func)), NEWLINE])
            else:
                parts.append([f"@{_name(gvar.name_hint)} = {func!r}", NEWLINE])
        out: list[Doc] = []
        for i, part in enumerate(parts):
            out.append([NEWLINE, part] if i else part)
        return out

    def _type_data(self, data: TypeData) -> Steps:
        yield from ()
        params = f"[{', '.join(v.name_hint for v in data.type_vars)}]" if data.type_vars else ""
        lines = [self._constructor(c) for c in data.constructors]
        body = joined([[line, ","] for line in lines], NEWLINE) if lines else ""  # type: ignore[arg-type]
        return [f"type {data.header.name_hint}{params} ", braced(body)]

    def _constructor(self, ctor: Constructor) -> str:
        return ctor.name_hint + (f"({', '.join(map(self.types.text, ctor.inputs))})" if ctor.inputs else "")

    def _count_uses(self, root: RelayExpr) -> None:
        """How often each expression is referred to, and whether types have been inferred."""
        uses: dict[int, int] = {}
        seen: set[int] = {id(root)}
        stack: list[Node] = [root]
        self.typed = False
        while stack:
            node = stack.pop()
            if not isinstance(node, Constant) and getattr(node, "_checked_type", None) is not None:
                self.typed = True
            for child in () if _foreign(node) else _operands(node):
                uses[id(child)] = uses.get(id(child), 0) + 1
                if id(child) not in seen:
                    seen.add(id(child))
                    stack.append(child)
        self.uses = uses

    # ---------------------------------------------------------------------------------------------------- expressions

    def _scope(self, node: RelayExpr) -> Steps:
        """A new scope holding ``node``: its lines, then the expression itself."""
        lines: list[Doc] = []
        self.scopes.append(lines)
        doc = yield self._expr(node, True)
        self.scopes.pop()
        return [lines, doc] if lines else doc

    def _body(self, node: RelayExpr) -> Steps:
        return braced((yield self._scope(node)))

    def _expr(self, node: RelayExpr, try_inline: bool = False) -> Steps:
        """The text that stands for ``node`` here: itself, or the variable of its line."""
        in_place = isinstance(node, _IN_PLACE) or (try_inline and self.uses.get(id(node), 0) < 2)
        doc = self.texts.get(id(node))
        if doc is None:
            doc = yield self._visit(node)
        return self._finish(node, doc, in_place)

    def _ready(self, node: RelayExpr) -> Doc:
        """`_expr` for an expression that has been visited."""
        return self._finish(node, self.texts[id(node)], isinstance(node, _IN_PLACE))

    def _finish(self, node: RelayExpr, doc: Doc, in_place: bool) -> Doc:
        key = id(node)
        if isinstance(node, Var):
            self._declare_free(node)
            return self.texts[key]
        if not in_place and isinstance(node, Let) and key not in self.placed:
            doc = ["(", Indent([NEWLINE, doc]), NEWLINE, ")"]
        note = self._note(node)
        if note:
            doc = doc + note if isinstance(doc, str) else [doc, note]
        if in_place:
            self.texts[key] = doc
            return doc
        if key in self.placed:
            self._check_scope(key)
            return self.texts[key]
        self.placed.add(key)
        self.counter += 1
        name = self.texts[key] = f"%{self.counter - 1}"
        self._line(key, [name, " = ", doc, ";", NEWLINE])
        return name

    def _line(self, key: int, line: list[Doc]) -> None:
        self.scopes[-1].append(line)
        self.home[key] = self.scopes[-1]

    def _check_scope(self, key: int) -> None:
        """Notes a use outside the scope that holds the definition: it might come first in the text."""
        home = self.home.get(key)
        if home is not None and not any(scope is home for scope in self.scopes[:-5:-1]):
            self.crossed_scopes = self.crossed_scopes or not any(scope is home for scope in self.scopes)

    def _declare_free(self, var: Var) -> None:
        if id(var) in self.placed:
            self._check_scope(id(var))
            return
        self.placed.add(id(var))
        declaration = self.declarations.get(id(var))
        if declaration is not None and self.scopes:
            self._line(id(var), ["free_var ", declaration, ";", NEWLINE])

    def _visit(self, root: RelayExpr) -> Steps:
        """Gives ``root`` its text; operands of calls, tuples and projections are visited first, in one loop."""
        texts = self.texts
        stack: list[tuple[RelayExpr, bool]] = [(root, False)]
        while stack:
            node, ready = stack.pop()
            if id(node) in texts:
                continue
            if isinstance(node, _DATAFLOW):
                if not ready and not self.strict:
                    stack.append((node, True))
                    stack.extend((c, False) for c in reversed(_operands(node)) if id(c) not in texts)
                    continue
                doc = (yield self._strict_dataflow(node)) if self.strict else self._dataflow(node)
            else:
                doc = self._leaf(node)
                if doc is None:
                    doc = yield self._nested(node)
            texts.setdefault(id(node), doc)
        return texts[id(root)]

    def _dataflow(self, node: Any) -> Doc:
        """A call, tuple or projection whose operands have been visited."""
        if isinstance(node, Call):
            args = [self._ready(a) for a in node.args]
            return self._call_text(node, args, None if isinstance(node.op, Constructor) else self._ready_late(node.op))
        if isinstance(node, Tuple):
            return _tuple_text([self._ready(f) for f in node.fields])
        return joined([self._ready(node.tuple_value), f".{node.index}"], "")

    def _ready_late(self, op: RelayExpr) -> Callable[[], Doc]:
        return lambda: self._ready(op)

    def _strict_dataflow(self, node: Any) -> Steps:
        """The same, finishing each operand before the next is begun, so that lines come in order of use."""
        parts = [node.tuple_value] if isinstance(node, TupleGetItem) else node.args if isinstance(node, Call) else node.fields
        docs = []
        for part in parts:
            docs.append((yield self._expr(part)))
        if isinstance(node, TupleGetItem):
            return joined([docs[0], f".{node.index}"], "")
        if isinstance(node, Tuple):
            return _tuple_text(docs)
        if isinstance(node.op, Constructor):
            return self._call_text(node, docs, None)
        op = yield self._expr(node.op)
        return self._call_text(node, docs, lambda: op)

    def _call_text(self, node: Call, args: list[Doc], op: Callable[[], Doc] | None) -> Doc:
        args = args + self.attributes.of_call(node.attrs, node.op)
        if op is None:
            ctor: Any = node.op
            return joined([ctor.name_hint, "(", joined(args), ")"], "") if ctor.inputs else ctor.name_hint
        return joined([op(), "(", joined(args), ")"], "")

    def _leaf(self, node: RelayExpr) -> Doc | None:
        """The text of an expression without operands; None for the others."""
        if isinstance(node, Var):
            declared = self._new_var(node)
            self.declarations[id(node)] = declared
            return declared
        if isinstance(node, Op):
            return node.name
        if isinstance(node, Constant):
            return self._constant(node)
        if isinstance(node, GlobalVar):
            return f"@{_name(node.name_hint)}"
        if isinstance(node, Constructor):
            return node.name_hint
        return repr(node) if _foreign(node) else None

    def _constant(self, node: Constant) -> str:
        data = node.data
        if not data.shape and str(data.dtype) in SCALAR_DTYPES:
            return scalar_text(data.numpy()[()], str(data.dtype))
        return self.meta.name(node)

    def _nested(self, node: Any) -> Steps:
        """Expressions with scopes of their own, and references."""
        if isinstance(node, Function):
            return (yield self._function("fn ", node))
        if isinstance(node, Let):
            return (yield self._let(node))
        if isinstance(node, If):
            cond = yield self._expr(node.cond)
            true = yield self._body(node.true_branch)
            return ["if (", cond, ") ", true, " else ", (yield self._body(node.false_branch))]
        if isinstance(node, Match):
            return (yield self._match(node))
        if isinstance(node, RefWrite):
            ref = yield self._expr(node.ref)
            return joined(["ref_write(", ref, ", ", (yield self._expr(node.value)), ")"], "")
        if isinstance(node, RefRead):
            return joined(["ref_read(", (yield self._expr(node.ref)), ")"], "")
        if isinstance(node, RefCreate):
            return joined(["ref(", (yield self._expr(node.value)), ")"], "")
        return f"<{type(node).__name__}>"

    def _let(self, node: Let) -> Steps:
        """A chain of lets: each opens a scope whose lines stand between it and the next."""
        depth = len(self.scopes)
        rest: RelayExpr = node
        while isinstance(rest, Let):
            name = self._new_var(rest.var)
            value = yield self._expr(rest.value, True)
            if isinstance(rest.value, Let) and not isinstance(value, str):
                value = ["(", Indent([NEWLINE, value]), NEWLINE, ")"]
            self.scopes.append([["let ", name, " = ", value, ";", NEWLINE]])
            rest = rest.body
        body = yield self._scope(rest)
        chain: Doc = [self.scopes[depth:], body]
        del self.scopes[depth:]
        return chain

    def _match(self, node: Match) -> Steps:
        data = yield self._expr(node.data)
        clauses = []
        for clause in node.clauses:
            pattern = yield self._pattern(clause.lhs)
            body = yield self._scope(clause.rhs)
            clauses.append([pattern, " => ", braced(body), ","])
        inner: Doc = joined(clauses, NEWLINE)  # type: ignore[arg-type]
        return ["match", "" if node.complete else "?", " (", data, ") {", Indent([NEWLINE, inner]), NEWLINE, "}"]

    def _pattern(self, pattern: Pattern) -> Steps:
        if isinstance(pattern, PatternWildcard):
            return "_"
        if isinstance(pattern, PatternVar):
            return self._new_var(pattern.var)
        if not isinstance(pattern, (PatternConstructor, PatternTuple)):
            return repr(pattern)
        inner = []
        for each in pattern.patterns:
            inner.append((yield self._pattern(each)))
        if isinstance(pattern, PatternTuple):
            return ["(", joined(inner), ")"]
        return [pattern.constructor.name_hint, *(["(", joined(inner), ")"] if inner else [])]

    def _function(self, prefix: str, fn: Function) -> Steps:
        params: list[Doc] = [self._new_var(p) for p in fn.params]
        params.extend(f"{key}={self.attributes.value(value)}" for key, value in dict(fn.attrs or {}).items())
        if fn.virtual_device_ is not None:
            params.append(f"virtual_device={self.attributes.value(fn.virtual_device_)}")
        generics = f"[{', '.join(v.name_hint for v in fn.type_params)}]" if fn.type_params else ""
        result = f"-> {self.types.text(fn.ret_type)} " if fn.ret_type is not None else ""
        body = yield self._body(fn.body)
        return [prefix, generics, "(", joined(params), ") ", result, body]

    # ------------------------------------------------------------------------------------------------ names and notes

    def _new_var(self, var: Var) -> Doc:
        """Names a variable where it is bound; the text with its type."""
        if id(var) in self.texts:
            return f"{self.texts[id(var)]}-malformed-ir"
        hint = var.name_hint
        name = self._unique(hint if hint[:1].isascii() and hint[:1].isalpha() else "v" + hint)
        text = self.texts[id(var)] = f"%{_name(name)}"
        annotation = f": {self.types.text(var.type_annotation)}" if var.type_annotation is not None else ""
        if var.virtual_device_ is not None:
            annotation = f" {{virtual_device={self.attributes.value(var.virtual_device_)}}}{annotation}"
        return text + annotation + self._note(var)

    def _unique(self, name: str) -> str:
        base = name
        while name in self.names:
            self.names[base] += 1
            name = f"{base}{self.names[base]}"
        self.names[name] = 0
        return name

    def _note(self, node: RelayExpr) -> str:
        """What is written behind an expression the first time: type and origin, or the caller's annotation."""
        if id(node) in self.explained:
            return ""
        self.explained.add(id(node))
        if self.annotate is not None:
            return self.annotate(node) or ""
        if not isinstance(node, _EXPLAINED):
            return ""
        kind = node._checked_type if self.typed or not isinstance(node, Constant) else None
        if kind is None and node.span is None:
            return ""
        type_note = f" ty={self.types.text(kind)}" if kind is not None else ""
        return f" /*{type_note}{_span_note(node.span)} */"


def _span_note(span: Span | None) -> str:
    if span is None:
        return ""
    name = str(span.source_name.name).replace("*/", "* /").replace("/*", "/ *")
    return f" span={name}:{span.line}:{span.column}"


def _operands(node: Any) -> list[Any]:
    """What the writer visits under an expression; bound variables of patterns take no part."""
    if isinstance(node, Match):
        return [node.data, *(c.rhs for c in node.clauses)]
    return expr_children(node)


def _foreign(node: Any) -> bool:
    """Functions of other languages, and expressions that only live inside a pass."""
    return (isinstance(node, BaseFunc) and not isinstance(node, Function)) or isinstance(node, TempExpr)


def _tuple_text(fields: list[Doc]) -> Doc:
    return joined(["(", joined(fields), ",)" if len(fields) == 1 else ")"], "")


def _name(name: str) -> str:
    """A name as an identifier, or quoted when it is none."""
    return name if _NAME.match(name) else quoted(name)


def _module_text(mod: IRModule, show_meta_data: bool, annotate: Annotate | None) -> str | None:
    if mod.functions and all(_foreign(f) for f in mod.functions.values()):
        return None
    return astext(mod, show_meta_data, annotate)


def _method(self: Any, show_meta_data: bool = True, annotate: Annotate | None = None) -> str:
    """The text format; see :func:`anchorleg.relay.astext`."""
    return astext(self, show_meta_data, annotate)



RelayExpr.astext = _method  # type: ignore[attr-defined]
for _class in (ExprWithOp, Function, GlobalVar, Op, Constructor, Pattern, Type, IRModule):
    register_printer(_class, pretty_print)
register_module_printer(_module_text)
__all__ = ["astext", "pretty_print", "Printer", "VERSION"]
