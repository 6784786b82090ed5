"""Expressions of a script: syntax trees in, values out.

A value is an IR node, a form (``forms.py``), or whatever Python object the script refers to.  Python's operators work as Python's
where no IR node takes part.  ``and``, ``or``, ``not``, ``a if c else b`` and chained comparisons build nodes when one does.
"""
from __future__ import annotations

import ast
import operator
from typing import Any, Callable

from ..ir.expr import GlobalVar, PrimExpr
from ..ir.visit import Walker
from ..tir import expr as tir
from ..tir import op
from ..tir.block import BufferRegion
from ..tir.buffer import Buffer
from .errors import ScriptError
from .names import BUILTINS, FunctionNames, Names
from .regions import region_load, subscript
from .source import Source
from . import statements

_BINARY: dict[type, Callable[[Any, Any], Any]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv, ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod, ast.Pow: operator.pow, ast.LShift: operator.lshift, ast.RShift: operator.rshift, ast.BitAnd: operator.and_,
    ast.BitOr: operator.or_, ast.BitXor: operator.xor,
}
_COMPARE: dict[type, Callable[[Any, Any], Any]] = {
    ast.Eq: operator.eq, ast.NotEq: operator.ne, ast.Lt: operator.lt, ast.LtE: operator.le, ast.Gt: operator.gt, ast.GtE: operator.ge,
    ast.Is: operator.is_, ast.IsNot: operator.is_not, ast.In: lambda a, b: a in b, ast.NotIn: lambda a, b: a not in b,
}
_TIR_COMPARE: dict[type, Callable[[Any, Any], PrimExpr]] = {
    ast.Eq: op.equal, ast.NotEq: op.not_equal, ast.Lt: op.less, ast.LtE: op.less_equal, ast.Gt: op.greater, ast.GtE: op.greater_equal,
}
_TAKE_REGIONS = (statements.reads, statements.writes, statements.match_buffer, statements.realize)
_BY_PYTHON = (ast.Lambda, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp, ast.JoinedStr)


def is_ir(value: Any) -> bool:
    """Whether operators on a value build nodes."""
    return isinstance(value, (PrimExpr, tir.IterVar, BufferRegion))


def as_operand(value: Any) -> Any:
    """A value as an operator takes it: a region as a load, an axis as its variable."""
    if isinstance(value, BufferRegion):
        return region_load(value)
    return value.var if isinstance(value, tir.IterVar) else value


class Evaluator(Walker):
    """Evaluates expressions of one script."""

    def __init__(self, source: Source, names: Names, results: dict[int, str] | None = None) -> None:
        super().__init__()
        self.source, self.names = source, names
        self.results = results or {}  # id of a function's name → the dtype of its result
        self.at: ast.AST | None = None

    def remember(self, node: Any) -> bool:
        """Nothing: the same tree has another value once a name has."""
        return False

    def evaluate(self, node: ast.AST) -> Any:
        """The value of an expression."""
        if type(node) is ast.Constant:
            return node.value
        return self._run(node)

    def error(self, node: ast.AST, message: str) -> ScriptError:
        """An error at ``node``."""
        return self.source.error(node, message)

    def method_for(self, cls: type) -> Callable[[Any], Any]:
        """The rule for a class of syntax, which notes where evaluation is."""
        found = self._methods.get(cls)
        if found is None:
            rule = getattr(self, f"visit_{cls.__name__}", None) or (self._python if cls in _BY_PYTHON else self.visit_default)
            found = self._methods[cls] = self._noted(rule)
        return found

    def _noted(self, rule: Callable[[Any], Any]) -> Callable[[Any], Any]:
        def run(node: Any) -> Any:
            self.at = node
            return rule(node)

        return run

    def visit_default(self, node: Any) -> Any:
        raise self.error(node, f"{type(node).__name__} is no expression of the script language")

    # ------------------------------------------------------------ names and constants

    def visit_Constant(self, node: ast.Constant) -> Any:
        return node.value

    def visit_Name(self, node: ast.Name) -> Any:
        try:
            return self.names.find(node.id)
        except KeyError:
            raise self.error(node, f"the name {node.id!r} is not defined") from None

    def visit_Attribute(self, node: ast.Attribute) -> Any:
        value = yield node.value
        self.at = node
        if isinstance(value, FunctionNames):
            return value.find(node.attr)
        if node.attr.startswith("__") and node.attr.endswith("__"):
            raise self.error(node, f"the attribute {node.attr!r} is not for scripts")
        try:
            return getattr(value, node.attr)
        except AttributeError as error:
            raise self.error(node, str(error) or f"{_describe(value)} has no attribute {node.attr!r}") from None

    def visit_Tuple(self, node: ast.Tuple) -> Any:
        return tuple((yield from self._items(node.elts)))

    def visit_List(self, node: ast.List) -> Any:
        return (yield from self._items(node.elts))

    def visit_Set(self, node: ast.Set) -> Any:
        return set((yield from self._items(node.elts)))

    def _items(self, nodes: list[Any]) -> Any:
        """Values in order, starred ones spread out."""
        found: list[Any] = []
        for n in nodes:
            if isinstance(n, ast.Starred):
                found.extend((yield n.value))
            else:
                found.append((yield n))
        return found

    def visit_Dict(self, node: ast.Dict) -> Any:
        found: dict[Any, Any] = {}
        for key, value in zip(node.keys, node.values):
            if key is None:
                found.update((yield value))
            else:
                k = yield key
                found[k] = yield value
        return found

    def _python(self, node: Any) -> Any:
        """What makes functions and sequences is left to Python, with the script's names."""
        for inner in ast.walk(node):
            if isinstance(inner, ast.Attribute) and inner.attr.startswith("__"):
                raise self.error(inner, f"the attribute {inner.attr!r} is not for scripts")
        tree = ast.fix_missing_locations(ast.Expression(node))
        return eval(compile(tree, self.source.filename, "eval"), {"__builtins__": BUILTINS, **self.names.everything()})

    # ------------------------------------------------------------ operators

    def visit_BinOp(self, node: ast.BinOp) -> Any:
        a = as_operand((yield node.left))
        b = as_operand((yield node.right))
        self.at = node
        return _BINARY[type(node.op)](a, b)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> Any:
        a = as_operand((yield node.operand))
        self.at = node
        if isinstance(node.op, ast.Not):
            return op.logical_not(a) if is_ir(a) else not a
        if isinstance(node.op, ast.UAdd):
            return a
        return -a if isinstance(node.op, ast.USub) else ~a

    def visit_BoolOp(self, node: ast.BoolOp) -> Any:
        join, short = (op.logical_and, False) if isinstance(node.op, ast.And) else (op.logical_or, True)
        result: Any = None
        for i, n in enumerate(node.values):
            value = as_operand((yield n))
            self.at = node
            if i == 0:
                result = value
            elif is_ir(result) or is_ir(value):
                result = join(result, value)
            else:
                result = value
            if not is_ir(result) and bool(result) is short:
                return result
        return result

    def visit_Compare(self, node: ast.Compare) -> Any:
        left = as_operand((yield node.left))
        result: Any = True
        for sign, n in zip(node.ops, node.comparators):
            right = as_operand((yield n))
            self.at = node
            one = _compare(type(sign), left, right)
            result = one if result is True else op.logical_and(result, one) if is_ir(result) or is_ir(one) else result and one
            left = right
        return result

    def visit_IfExp(self, node: ast.IfExp) -> Any:
        condition = as_operand((yield node.test))
        if not is_ir(condition):
            return (yield node.body if condition else node.orelse)
        a = as_operand((yield node.body))
        b = as_operand((yield node.orelse))
        self.at = node
        return op.if_then_else(condition, a, b)

    # ------------------------------------------------------------ subscripts and calls

    def visit_Slice(self, node: ast.Slice) -> Any:
        parts = []
        for n in (node.lower, node.upper, node.step):
            parts.append(None if n is None else as_operand((yield n)))
        return slice(*parts)

    def visit_Subscript(self, node: ast.Subscript) -> Any:
        value = yield node.value
        index = yield node.slice
        self.at = node
        if isinstance(value, Buffer):
            return subscript(value, index)
        if isinstance(value, BufferRegion):
            raise self.error(node, "a region of a buffer has no subscripts")
        if isinstance(value, tir.Var):
            raise self.error(node, f"{value.name!r} is a pointer, not a buffer: name the buffer behind it, as in B = T.Buffer(shape, dtype, "
                                   f"data={value.name})")
        return value[index]

    def visit_Call(self, node: ast.Call) -> Any:
        function = yield node.func
        args = yield from self._items(node.args)
        keywords: dict[str, Any] = {}
        for k in node.keywords:
            value = yield k.value
            keywords.update(value if k.arg is None else {k.arg: value})
        self.at = node
        return self._call(node, function, args, keywords)

    def _call(self, node: ast.Call, function: Any, args: list[Any], keywords: dict[str, Any]) -> Any:
        if isinstance(function, GlobalVar):
            return self._call_function(function, args)
        if function is range and (keywords or any(is_ir(a) for a in args)):
            return statements.serial(*map(as_operand, args), **keywords)
        if not callable(function):
            raise self.error(node, f"{_describe(function)} cannot be called")
        if function not in _TAKE_REGIONS:
            args = [region_load(a) if isinstance(a, BufferRegion) else a for a in args]
        return function(*args, **keywords)

    def _call_function(self, function: GlobalVar, args: list[Any]) -> PrimExpr:
        """A call of another function of the module, of the result type it declares; buffers are handed over by pointer."""
        dtype = self.results.get(id(function), "int32")
        return tir.Call(dtype, function, [a.data if isinstance(a, Buffer) else op.convert(as_operand(a)) for a in args])


def _compare(sign: type, a: Any, b: Any) -> Any:
    if sign in _TIR_COMPARE and (is_ir(a) or is_ir(b)):
        return _TIR_COMPARE[sign](a, b)
    return _COMPARE[sign](a, b)


def _describe(value: Any) -> str:
    name = getattr(value, "__name__", None)
    return f"{type(value).__name__} {name!r}" if isinstance(name, str) else f"a value of type {type(value).__name__}"
