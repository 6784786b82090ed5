"""Programs of the graph language read from text, in upstream's format (version 0.0.5).

A recursive-descent parser written as generators, so that nesting costs no Python stack: ``x = yield self._expr()`` is a call.
Chains of ``let``, of graph variables (``%0 = …;``) and of infix operators are loops.

::

    module   := version (def | type | extern type)* metadata?
    expr     := (('let' %x (':' type)? '=' infix | %0 '=' infix | 'free_var' %x (':' type)? | infix | block) ';')* (infix | block)
    infix    := postfix (operator postfix)*
    postfix  := atom ('(' args ')' | '.' index)*
"""
from __future__ import annotations

from typing import Any, Callable, Generator, Mapping, NamedTuple

import numpy as np

from ...ir.attrs import Attrs, DictAttrs, make_node
from ...ir.expr import Any as AnyDim
from ...ir.expr import RelayExpr
from ...ir.module import IRModule
from ...ir.op import Op
from ...ir.span import Span
from ...ir.type import TypeVar
from ...ir.visit import trampoline
from ...support.errors import ArgumentError, UnsupportedOpError
from ..adt import (Clause, Constructor, Match, Pattern, PatternConstructor, PatternTuple, PatternVar, PatternWildcard, TypeData)
from ..expr import Call, Constant, If, Let, RefCreate, RefRead, RefWrite, Tuple, TupleGetItem, Var
from ..function import Function
from .attributes import attrs_name
from .cursor import Cursor
from .scopes import Globals, Scopes
from .tokens import Source, unquote
from .type_parser import TypeParser

VERSION = "0.0.5"
Steps = Generator[Any, Any, Any]


def parse(source: str, src_name: str = "from_string", init_module: IRModule | None = None,
          init_meta_table: Mapping[str, Any] | None = None) -> IRModule:
    """The module a text describes, with types inferred.

    ``init_module`` (left as it is) gives functions and types that the text may use and whose functions it may replace;
    ``init_meta_table`` adds entries behind those of the text's metadata section.  ParseError shows the place of a mistake.
    """
    from ..transform.infer_type import InferType

    return InferType()(parse_untyped(source, src_name, init_module, init_meta_table))


def parse_untyped(source: str, src_name: str = "from_string", init_module: IRModule | None = None,
                  init_meta_table: Mapping[str, Any] | None = None) -> IRModule:
    """The module a text describes, just as written: no types are inferred."""
    parser = Parser(Source(source, src_name), init_module, init_meta_table)
    return trampoline(parser.module())


def fromtext(source: str, source_name: str = "from_string") -> IRModule:
    """The module a text describes, with types inferred."""
    return parse(source, source_name)


def parse_expr(source: str, src_name: str = "string") -> RelayExpr:
    """The expression a text describes; the version line may be left out.  No types are inferred."""
    return trampoline(Parser(Source(source, src_name), None, None).whole_expr())


class _Infix(NamedTuple):
    """An infix operator; all associate to the left."""

    precedence: int
    op: str


_INFIX = {"*": _Infix(12, "multiply"), "/": _Infix(12, "divide"), "+": _Infix(10, "add"), "-": _Infix(10, "subtract"),
          "<": _Infix(8, "less"), "<=": _Infix(8, "less_equal"), ">": _Infix(8, "greater"), ">=": _Infix(8, "greater_equal"),
          "==": _Infix(7, "equal"), "!=": _Infix(7, "not_equal")}
_PLAIN = frozenset(("local", "graph", "number", "meta"))
_CONTINUES = frozenset((*_INFIX, "(", "field"))


class Parser:
    """One text being read: the cursor and what names mean."""

    def __init__(self, source: Source, module: IRModule | None, metadata: Mapping[str, Any] | None) -> None:
        self.at = Cursor(source, dict(metadata or {}))
        self.result = module.copy() if module is not None else IRModule()
        self.names = Globals(module)
        self.type_vars: Scopes[TypeVar] = Scopes()
        self.vars: Scopes[Var] = Scopes()
        self.free: dict[str, Var] = {}
        self.graph: dict[int, RelayExpr] = {}
        self.types = TypeParser(self.at, self.names, self.type_vars)

    # ------------------------------------------------------------------------------------------------- whole programs

    def module(self) -> Steps:
        """A module: its version, definitions and metadata."""
        self._version(required=True)
        types: list[TypeData] = []
        funcs: dict[str, Function] = {}
        while self.at.kind() != "end":
            kind = self.at.kind()
            if kind == "def":
                yield self._definition(funcs)
            elif kind in ("type", "extern"):
                types.append((yield self._type_definition()))
            else:
                self.at.fail("'def', 'type', 'extern' or the end of the text")
        for data in types:
            self.result.add_type_def(data.header, data)
        for name, func in funcs.items():
            self.result[self.names.function(name)] = func
        return self.result

    def whole_expr(self) -> Steps:
        """A text that is one expression."""
        self._version(required=False)
        found = yield self._expr()
        if self.at.kind() != "end":
            self.at.fail("';', an operator or the end of the text")
        return found

    def _version(self, required: bool) -> None:
        if self.at.kind() != "version":
            if required:
                self.at.fail_at(0, f'expected a version line, found {self.at.tokens.describe(0)}: begin with #[version = "{VERSION}"]')
            return
        text = self.at.expect("version").partition("=")[2].rstrip("]").strip()
        if text != f'"{VERSION}"':
            self.at.fail_at(self.at.index - 1, f'this reads version "{VERSION}" of the format, not {text}')

    def _definition(self, funcs: dict[str, Function]) -> Steps:
        self.at.expect("def")
        start = self.at.index
        name = _bare(self.at.expect("global"))
        if name in funcs:
            self.at.fail_at(start, f"the function @{name} is defined twice")
        self.names.function(name)
        funcs[name] = yield self._function(start)

    def _type_definition(self) -> Steps:
        extern = self.at.take("extern")
        self.at.expect("type")
        start = self.at.index
        header = self.names.type(self.at.expect("word"))
        if header in self.result.type_definitions:
            self.at.fail_at(start, f"the type {header.name_hint} is defined twice")
        self.type_vars.push()
        generics = self.types.generics()
        constructors: list[Constructor] = []
        if self.at.take("{"):
            if extern and self.at.kind() != "}":
                self.at.fail("'}': an external type has no constructors")
            while not self.at.take("}"):
                constructors.append((yield self._constructor(header)))
                if not self.at.take(","):
                    self.at.expect("}", "','")
                    break
        self.type_vars.pop()
        return TypeData(header, generics, constructors)

    def _constructor(self, header: Any) -> Steps:
        start = self.at.index
        name = self.at.expect("word")
        if name in self.names.constructors:
            self.at.fail_at(start, f"a constructor named {name} is already defined, by the type "
                                   f"{self.names.constructors[name].belong_to.name_hint}")
        inputs = (yield self.types.sequence("(", ")")) if self.at.kind() == "(" else []
        made = self.names.constructors[name] = Constructor(name, inputs, header)
        return made

    # ------------------------------------------------------------------------------------------------------ functions

    def _function(self, start: int) -> Steps:
        """``[A](%x: T, key=value) -> R { body }``, after ``fn`` or a definition's name."""
        self.vars.push()
        self.type_vars.push()
        generics = self.types.generics()
        params, attrs = yield self._parameters()
        result = (yield self.types.type()) if self.at.take("->") else None
        body = yield self._block()
        self.type_vars.pop()
        self.vars.pop()
        device = attrs.pop(_DEVICE, None)
        func = Function(params, body, result, generics, DictAttrs(attrs), self.at.span_from(start))
        func.virtual_device_ = self._device(device, start)
        return func

    def _parameters(self) -> Steps:
        self.at.expect("(")
        params: list[Var] = []
        attrs: dict[str, Any] = {}
        while not self.at.take(")"):
            if self._at_attribute():
                yield self._attribute(attrs)
            elif self.at.kind() == "local":
                params.append((yield self._bound_var()))
            else:
                self.at.fail("a parameter (%name), an attribute (key=value) or ')'")
            if not self.at.take(","):
                self.at.expect(")", "','")
                break
        return params, attrs

    def _bound_var(self) -> Steps:
        """``%name`` with an optional type, bound in the current scope."""
        start = self.at.index
        name, var = yield self._new_var(start)
        return self.vars.bind(name, var)

    def _new_var(self, start: int) -> Steps:
        """The name here, and a variable of that name with what stands behind it: a device, a type."""
        name = _bare(self.at.expect("local"))
        device = (yield self._var_device()) if self.at.kind() == "{" else None
        annotation = yield self.types.annotation()
        var = Var(name, annotation, self.at.span_from(start))
        var.virtual_device_ = device
        return name, var

    def _var_device(self) -> Steps:
        """``{virtual_device=…}`` behind a variable's name."""
        start = self.at.index
        self.at.expect("{")
        found: dict[str, Any] = {}
        yield self._attribute(found)
        self.at.expect("}")
        if list(found) != [_DEVICE]:
            self.at.fail_at(start + 1, f"expected {_DEVICE}=…, found {next(iter(found))}")
        return self._device(found[_DEVICE], start)

    def _device(self, found: Any, start: int) -> Any:
        """A virtual device from the metadata, None for one that leaves everything open."""
        from ...target.virtual_device import VirtualDevice

        if found is not None and not isinstance(found, VirtualDevice):
            self.at.fail_at(start, f"{_DEVICE} is expected to be a VirtualDevice of the metadata section, got {found!r}")
        return None if found is None or found.is_fully_unconstrained else found

    def _block(self) -> Steps:
        """``{ expr }`` in a scope of its own."""
        self.at.expect("{")
        self.vars.push()
        found = yield self._expr()
        self.vars.pop()
        self.at.expect("}", "';'")
        return found

    # ---------------------------------------------------------------------------------------------------- expressions

    def _expr(self) -> Steps:
        """Bindings and statements, then the value; lets are built from the last to the first."""
        first = self.at.index
        bindings: list[tuple[Var, RelayExpr, int]] = []
        scopes = 0
        while True:
            kind = self.at.kind()
            start = self.at.index
            if kind == "let":
                bindings.append((yield self._let_binding()))
                scopes += 1
                self.at.expect(";", "an operator")
                continue
            if kind == "graph" and self.at.kind(1) == "=":
                yield self._graph_binding()
                self.at.expect(";", "an operator")
                continue
            if kind == "free_var":
                yield self._free_var()
                self.at.expect(";")
                continue
            value = (yield self._block()) if kind == "{" else (yield self._infix())
            if not self.at.take(";"):
                break
            while self.at.take(";"):
                pass
            bindings.append((Var("_"), value, start))
        self.vars.pop(scopes)
        for var, bound, start in reversed(bindings):
            value = Let(var, bound, value, self.at.span_from(start))
        return value if bindings or value.span is not None else _placed(value, self.at, first)

    def _let_binding(self) -> Steps:
        start = self.at.index
        self.at.expect("let")
        self.vars.push()
        name, var = yield self._new_var(start + 1)
        self.at.expect("=", "':'")
        recursive = self.at.kind() == "fn" or self.vars.find(name) is None  # a function sees itself, other values what was before
        if recursive:
            self.vars.bind(name, var)
        value = yield self._infix()
        if not recursive:
            self.vars.bind(name, var)
        return var, value, start

    def _graph_binding(self) -> Steps:
        number = int(self.at.expect("graph")[1:])
        self.at.expect("=")
        self.graph[number] = yield self._infix()

    def _free_var(self) -> Steps:
        self.at.expect("free_var")
        start = self.at.index
        name = _bare(self.at.expect("local"))
        annotation = yield self.types.annotation()
        self.free[name] = Var(name, annotation, self.at.span_from(start))

    def _infix(self) -> Steps:
        """Operands joined by infix operators."""
        start = self.at.index
        first = self._plain_atom()
        if first is None:
            first = yield self._postfix()
        if self.at.kinds[self.at.index] not in _INFIX:
            return first
        operands: list[tuple[RelayExpr, int]] = [(first, start)]
        waiting: list[_Infix] = []
        while self.at.kinds[self.at.index] in _INFIX:
            rule = _INFIX[self.at.kinds[self.at.index]]
            self.at.index += 1
            self._reduce(operands, waiting, rule.precedence)
            waiting.append(rule)
            start = self.at.index
            operands.append(((yield self._postfix()), start))
        self._reduce(operands, waiting, 0)
        return operands[0][0]

    def _reduce(self, operands: list[tuple[RelayExpr, int]], waiting: list[_Infix], precedence: int) -> None:
        """Builds the calls of the operators that bind at least as tightly as what comes."""
        while waiting and waiting[-1].precedence >= precedence:
            rule = waiting.pop()
            right, _ = operands.pop()
            left, start = operands.pop()
            operands.append((Call(self._op(rule.op, start), [left, right], None, None, self.at.span_from(start)), start))

    def _plain_atom(self) -> RelayExpr | None:
        """A variable or a number that nothing follows on: the quick way through; None otherwise, with nothing read."""
        at = self.at
        if at.kinds[at.index] not in _PLAIN or at.kinds[at.index + 1] in _CONTINUES:
            return None
        return self._leaf()

    def _leaf(self) -> RelayExpr | None:
        """A variable, number, global name or metadata reference; None, with nothing read, when none stands here."""
        at = self.at
        start, kind = at.index, at.kinds[at.index]
        if kind == "local":
            return self._local()
        if kind == "graph":
            return self._graph_var()
        if kind == "global":
            at.index += 1
            return self.names.function(_bare(at.texts[start]))
        if kind == "number" or kind == "-":
            value = at.number()
            if value is None:
                at.fail_at(start, "expected a number after '-': of other expressions write negative(…)")
            return _constant(value, at.span_from(start))
        return at.meta_as(RelayExpr, "an expression") if kind == "meta" else None

    def _local(self) -> Var:
        start = self.at.index
        name = _bare(self.at.expect("local"))
        found = self.vars.find(name) or self.free.get(name)
        if found is None:
            known = ", ".join("%" + n for n in [*self.vars.names(), *self.free][:8]) or "none"
            self.at.fail_at(start, f"the variable %{name} is not defined here; known: {known}")
        return found

    def _graph_var(self) -> RelayExpr:
        start = self.at.index
        number = int(self.at.expect("graph")[1:])
        if number not in self.graph:
            self.at.fail_at(start, f"the graph variable %{number} has not been defined yet")
        return self.graph[number]

    def _postfix(self) -> Steps:
        """An atom, called and projected any number of times."""
        start = self.at.index
        value = self._leaf()
        if value is None:
            value = yield self._atom()
        while True:
            kind = self.at.kinds[self.at.index]
            if kind == "(":
                args, attrs = yield self._arguments(value)
                value = Call(value, args, attrs, None, self.at.span_from(start))
            elif kind == "field":
                index = int(self.at.expect("field")[1:])
                value = TupleGetItem(value, index, self.at.span_from(start))
            else:
                break
        if isinstance(value, Constructor) and not value.inputs:
            return Call(value, (), None, None, self.at.span_from(start))
        return value

    def _atom(self) -> Steps:
        start, kind = self.at.index, self.at.kind()
        if kind == "word":
            return self._word()
        rule = self._ATOMS.get(kind)
        if rule is None:
            self.at.fail("an expression")
        found = yield rule(self, start)
        return _placed(found, self.at, start)

    def _word(self) -> RelayExpr:
        start = self.at.index
        name = self.at.expect("word")
        if name in ("True", "False"):
            return _constant((name == "True", "bool"), self.at.span_from(start))
        return self.names.constructors.get(name) or self._op(name, start)

    def _op(self, name: str, start: int) -> Op:
        try:
            return Op.get(name)
        except UnsupportedOpError as exc:
            self.at.fail_at(start, f"{exc} (nor is it a constructor of a data type)")

    def _paren(self, start: int) -> Steps:
        """``()``, ``(e)``, ``(e,)`` or ``(e, f, …)``."""
        self.at.expect("(")
        fields: list[RelayExpr] = []
        comma = True
        while not self.at.take(")"):
            if not comma:
                self.at.fail("',' or ')'")
            fields.append((yield self._expr()))
            comma = self.at.take(",")
        if len(fields) == 1 and not comma:
            return fields[0]
        return Tuple(fields, self.at.span_from(start))

    def _fn(self, start: int) -> Steps:
        self.at.expect("fn")
        return (yield self._function(start))

    def _if(self, start: int) -> Steps:
        self.at.expect("if")
        self.at.expect("(")
        cond = yield self._expr()
        self.at.expect(")", "an operator")
        true = yield self._block()
        self.at.expect("else")
        false = (yield self._if(self.at.index)) if self.at.kind() == "if" else (yield self._block())
        return If(cond, true, false, self.at.span_from(start))

    def _ref(self, start: int) -> Steps:
        kind = self.at.text()
        self.at.index += 1
        self.at.expect("(")
        values = [(yield self._expr())]
        if kind == "ref_write":
            self.at.expect(",")
            values.append((yield self._expr()))
        self.at.expect(")")
        build: Callable[..., RelayExpr] = {"ref": RefCreate, "ref_read": RefRead, "ref_write": RefWrite}[kind]
        return build(*values, span=self.at.span_from(start))

    def _match(self, start: int) -> Steps:
        complete = self.at.text() == "match"
        self.at.index += 1
        data = yield self._postfix_of_match()
        self.at.expect("{")
        clauses: list[Clause] = []
        while not self.at.take("}"):
            clauses.append((yield self._clause()))
            if not self.at.take(","):
                self.at.expect("}", "','")
                break
        return Match(data, clauses, complete)

    def _postfix_of_match(self) -> Steps:
        value = self._leaf()
        return value if value is not None else (yield self._atom())

    def _clause(self) -> Steps:
        self.vars.push()
        pattern = yield self._pattern()
        self.at.expect("=>")
        body = yield self._expr()
        self.vars.pop()
        return Clause(pattern, body)

    def _pattern(self) -> Steps:
        kind = self.at.kind()
        if kind == "local":
            return PatternVar((yield self._bound_var()))
        if kind == "(":
            return PatternTuple((yield self._patterns()))
        if kind != "word":
            self.at.fail("a pattern: _, %name, a constructor or '('")
        start = self.at.index
        name = self.at.expect("word")
        if name == "_":
            return PatternWildcard()
        if name not in self.names.constructors:
            self.at.fail_at(start, f"no constructor is named {name}; to bind a variable write %{name}")
        return PatternConstructor(self.names.constructors[name], (yield self._patterns()) if self.at.kind() == "(" else ())

    def _patterns(self) -> Steps:
        self.at.expect("(")
        found: list[Pattern] = []
        while not self.at.take(")"):
            found.append((yield self._pattern()))
            if not self.at.take(","):
                self.at.expect(")", "','")
                break
        return found

    _ATOMS: dict[str, Callable[[Any, int], Steps]] = {
        "(": _paren, "fn": _fn, "if": _if, "match": _match, "match?": _match, "ref": _ref, "ref_read": _ref, "ref_write": _ref,
    }

    # ----------------------------------------------------------------------------------------- arguments and attributes

    def _at_attribute(self) -> bool:
        return self.at.kind() == "word" and self.at.kind(1) == "="

    def _arguments(self, op: RelayExpr) -> Steps:
        """``(a, b, key=value)``: the arguments, and the attributes in the operator's attribute class."""
        start = self.at.index
        self.at.expect("(")
        args: list[RelayExpr] = []
        raw: dict[str, Any] = {}
        whole: Attrs | None = None
        while not self.at.take(")"):
            if self._at_attribute():
                yield self._attribute(raw)
            elif self._at_meta_attrs():
                whole = self.at.meta()
            else:
                plain = self._plain_argument()
                args.append(plain if plain is not None else (yield self._expr()))
            if not self.at.take(","):
                self.at.expect(")", "','")
                break
        return args, whole if whole is not None else self._attrs(op, raw, start)

    def _plain_argument(self) -> RelayExpr | None:
        at = self.at
        if at.kinds[at.index] in _PLAIN and at.kinds[at.index + 1] in (",", ")"):
            return self._leaf()
        return None

    def _at_meta_attrs(self) -> bool:
        """Whether a metadata reference to attributes comes, as the last argument."""
        if self.at.kind() != "meta" or self.at.kind(1) != ")":
            return False
        start = self.at.index
        found = self.at.meta()
        self.at.index = start
        return isinstance(found, Attrs)

    def _attrs(self, op: RelayExpr, raw: dict[str, Any], start: int) -> Attrs | None:
        """The attribute object: of the operator's class, defaults filled in, or of the class that the text names."""
        key = raw.pop("attrs_type_key", None) or (attrs_name(op) if isinstance(op, Op) else "")
        if not key:
            if raw and isinstance(op, Op):
                self.at.fail_at(start, f"the operator {op.name} has no attributes; found {', '.join(raw)}")
            return DictAttrs(raw) if raw else None
        try:
            return make_node(key, **raw)
        except ArgumentError as exc:
            self.at.fail_at(start, str(exc))

    def _attribute(self, into: dict[str, Any]) -> Steps:
        start = self.at.index
        key = self.at.expect("word")
        if key in into:
            self.at.fail_at(start, f"the attribute {key} is given twice")
        self.at.expect("=")
        into[key] = yield self._attribute_value()

    def _attribute_value(self) -> Steps:
        kind = self.at.kind()
        if kind == "string":
            return unquote(self.at.expect("string"))
        if kind == "meta":
            return self.at.meta()
        if kind in ("[", "("):
            return (yield self._attribute_list("]" if kind == "[" else ")"))
        if kind == "word" and self.at.text() in _WORDS:
            return _WORDS[self.at.expect("word")]
        if kind == "global":
            return self.names.function(_bare(self.at.expect("global")))
        if self.at.take("?"):
            return AnyDim()
        number = self.at.number()
        if number is None:
            self.at.fail('an attribute value: a number, "text", True, False, None, ? or a list')
        return number[0]

    def _attribute_list(self, closing: str) -> Steps:
        self.at.index += 1
        found: list[Any] = []
        comma = True
        while not self.at.take(closing):
            if not comma:
                self.at.fail(f"',' or '{closing}'")
            found.append((yield self._attribute_value()))
            comma = self.at.take(",")
        return found[0] if closing == ")" and len(found) == 1 and not comma else tuple(found)


_DEVICE = "virtual_device"
_WORDS = {"True": True, "False": False, "None": None, "nullptr": None}


def _bare(token: str) -> str:
    """The name in ``%name``, ``@name`` or ``%"any name"``."""
    return unquote(token[1:]) if token[1] == '"' else token[1:]


def _constant(value: tuple[Any, str], span: Span) -> Constant:
    from ...runtime import ndarray

    return Constant(ndarray.array(np.array(value[0], dtype=value[1])), span)


def _placed(value: Any, at: Cursor, start: int) -> Any:
    """Gives a fresh expression its span; one that has a span already keeps it, and names are not changed."""
    if value.span is None and isinstance(value, (Tuple, Match)):
        value.span = at.span_from(start)
    return value
