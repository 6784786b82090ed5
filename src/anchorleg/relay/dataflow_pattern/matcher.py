"""Whether an expression fits a pattern, and which part of it fits which part of the pattern.

The rules are written as generators (``ok = yield self.fits(...)`` is a call), so that patterns and programs of any depth are
fine.  A pattern object that occurs twice must fit the same expression both times.
"""
from __future__ import annotations

from typing import Any, Callable, Generator, Sequence

from ...ir.expr import RelayExpr
from ...ir.op import Op
from ...ir.structural import structural_equal
from ...ir.type import TensorType, Type
from ...ir.visit import trampoline
from ..expr import Call, Constant, If, Let, Tuple, TupleGetItem, Var
from ..function import Function
from .indexed_graph import IndexedGraph
from .pattern import (AltPattern, AttrPattern, CallPattern, ConstantPattern, DataTypePattern, DFPattern, DominatorPattern, ExprPattern,
                      FunctionPattern, IfPattern, LetPattern, ShapePattern, TupleGetItemPattern, TuplePattern, TypePattern, VarPattern,
                      WildcardPattern)

Steps = Generator[Any, Any, bool]
_COMMUTE = ("add", "multiply")


def match(pattern: DFPattern, expr: RelayExpr) -> bool:
    """Whether ``expr`` (as a whole) fits ``pattern``."""
    return Matcher(IndexedGraph(expr)).match(pattern, expr)


class Matcher:
    """Matches patterns in one graph.  ``found`` maps each pattern of the last match to the expressions that fit it."""

    def __init__(self, graph: IndexedGraph) -> None:
        self.graph = graph
        self.found: dict[DFPattern, list[RelayExpr]] = {}
        self._trail: list[DFPattern] = []
        self._one_each = True  # whether a pattern that has matched stands for that one expression

    def match(self, pattern: DFPattern, expr: RelayExpr) -> bool:
        """Whether ``expr`` fits ``pattern``."""
        self.found, self._trail, self._one_each = {}, [], True
        return trampoline(self.fits(pattern, expr))

    def fits(self, pattern: DFPattern, expr: RelayExpr) -> Steps:
        """Matches, and keeps what was found, or forgets what was found on the way."""
        if self._one_each and pattern in self.found:
            return self.found[pattern][0] is expr
        mark = len(self._trail)
        simple = _SIMPLE.get(type(pattern))
        ok = simple(pattern, expr) if simple is not None else (yield _RULES[type(pattern)](self, pattern, expr))
        if ok:
            self.found.setdefault(pattern, []).append(expr)
            self._trail.append(pattern)
        else:
            self._forget(mark)
        return ok

    def _forget(self, mark: int) -> None:
        for pattern in self._trail[mark:]:
            self.found.pop(pattern, None)
        del self._trail[mark:]

    def _all(self, patterns: Sequence[DFPattern] | None, exprs: Sequence[RelayExpr]) -> Steps:
        if patterns is None:
            return True
        if len(patterns) != len(exprs):
            return False
        mark = len(self._trail)
        for pattern, expr in zip(patterns, exprs):
            if not (yield self.fits(pattern, expr)):
                self._forget(mark)
                return False
        return True

    # ---------------------------------------------------------------------------------------------------------- the rules

    def wildcard(self, pattern: WildcardPattern, expr: RelayExpr) -> Steps:
        return True if pattern.pattern is None else (yield self.fits(pattern.pattern, expr))

    def alternative(self, pattern: AltPattern, expr: RelayExpr) -> Steps:
        return (yield self.fits(pattern.left, expr)) or (yield self.fits(pattern.right, expr))

    def call(self, pattern: CallPattern, expr: RelayExpr) -> Steps:
        if not isinstance(expr, Call):
            return False
        mark = len(self._trail)
        if (yield self.fits(pattern.op, expr.op)):
            if (yield self._all(pattern.args, expr.args)):
                return True
            turned = pattern.args is not None and _op_name(pattern) in _COMMUTE
            return turned and (yield self._all(pattern.args[::-1], expr.args))  # type: ignore[index]
        self._forget(mark)
        for other in _reassociated(pattern, expr):
            if (yield self.fits(other, expr)):
                return True
            self._forget(mark)
        return False

    def function(self, pattern: FunctionPattern, expr: RelayExpr) -> Steps:
        return (isinstance(expr, Function) and (yield self._all(pattern.params, expr.params))
                and (yield self.fits(pattern.body, expr.body)))

    def tuple(self, pattern: TuplePattern, expr: RelayExpr) -> Steps:
        return isinstance(expr, Tuple) and (yield self._all(pattern.fields, expr.fields))

    def projection(self, pattern: TupleGetItemPattern, expr: RelayExpr) -> Steps:
        return (isinstance(expr, TupleGetItem) and pattern.index in (None, -1, expr.index)
                and (yield self.fits(pattern.tuple, expr.tuple_value)))

    def condition(self, pattern: IfPattern, expr: RelayExpr) -> Steps:
        return isinstance(expr, If) and (yield self._all((pattern.cond, pattern.true_branch, pattern.false_branch),
                                                         (expr.cond, expr.true_branch, expr.false_branch)))

    def let(self, pattern: LetPattern, expr: RelayExpr) -> Steps:
        return isinstance(expr, Let) and (yield self._all((pattern.var, pattern.value, pattern.body), (expr.var, expr.value, expr.body)))

    def attributes(self, pattern: AttrPattern, expr: RelayExpr) -> Steps:
        return (yield self.fits(pattern.pattern, expr)) and _has_attributes(expr, pattern.attrs)

    def type(self, pattern: TypePattern, expr: RelayExpr) -> Steps:
        return structural_equal(pattern.type, _type_of(expr)) and (yield self.fits(pattern.pattern, expr))

    def dtype(self, pattern: DataTypePattern, expr: RelayExpr) -> Steps:
        kind = _type_of(expr)
        return isinstance(kind, TensorType) and kind.dtype == pattern.dtype and (yield self.fits(pattern.pattern, expr))

    def shape(self, pattern: ShapePattern, expr: RelayExpr) -> Steps:
        kind = _type_of(expr)
        return (isinstance(kind, TensorType) and structural_equal(TensorType(pattern.shape).dims, kind.dims)
                and (yield self.fits(pattern.pattern, expr)))

    def dominator(self, pattern: DominatorPattern, expr: RelayExpr) -> Steps:
        if not (yield self.fits(pattern.child, expr)):
            return False
        reached = yield self._path(pattern, expr)
        self._one_each = True
        return reached and (yield self._meets_parent(pattern, expr))

    def _path(self, pattern: DominatorPattern, expr: RelayExpr) -> Steps:
        """Whether every way up from ``expr`` leads over the path to the parent."""
        stack, seen = [expr], {expr}
        while stack:
            current = stack.pop()
            op = current.op if isinstance(current, Call) else None
            inputs = [n.expr for n in self.graph[current].inputs if n.expr is not op]
            if not inputs:
                return False
            for each in inputs:
                if each in seen:
                    continue
                seen.add(each)
                self._one_each = True
                if (yield self.fits(pattern.parent, each)):
                    continue
                self._one_each = False
                if not (yield self.fits(pattern.path, each)):
                    return False
                stack.append(each)
        return True

    def _meets_parent(self, pattern: DominatorPattern, expr: RelayExpr) -> Steps:
        """Whether ``expr`` post-dominates something that fits the parent."""
        stack = [self.graph[expr]]
        while stack:
            for node in stack.pop().dominated:
                if (yield self.fits(pattern.parent, node.expr)):
                    return True
                stack.append(node)
        return False


_RULES: dict[type, Callable[[Matcher, Any, RelayExpr], Steps]] = {
    WildcardPattern: Matcher.wildcard, AltPattern: Matcher.alternative, CallPattern: Matcher.call, FunctionPattern: Matcher.function,
    TuplePattern: Matcher.tuple, TupleGetItemPattern: Matcher.projection, IfPattern: Matcher.condition, LetPattern: Matcher.let,
    AttrPattern: Matcher.attributes, TypePattern: Matcher.type, DataTypePattern: Matcher.dtype, ShapePattern: Matcher.shape,
    DominatorPattern: Matcher.dominator,
}


def _is_expr(pattern: ExprPattern, expr: RelayExpr) -> bool:
    return pattern.expr is expr or (type(pattern.expr) is type(expr) and not isinstance(expr, Op) and structural_equal(pattern.expr, expr))


def _is_var(pattern: VarPattern, expr: RelayExpr) -> bool:
    return isinstance(expr, Var) and pattern.name in ("", expr.name_hint)


_SIMPLE: dict[type, Callable[[Any, RelayExpr], bool]] = {
    ExprPattern: _is_expr, VarPattern: _is_var, ConstantPattern: lambda p, e: isinstance(e, Constant),
}


def _op_name(pattern: Any) -> str:
    """The operator whose calls a pattern describes; empty for others."""
    if isinstance(pattern, CallPattern) and isinstance(pattern.op, ExprPattern) and isinstance(pattern.op.expr, Op):
        return pattern.op.expr.name
    return ""


def _calls(expr: RelayExpr, name: str) -> bool:
    return isinstance(expr, Call) and isinstance(expr.op, Op) and expr.op.name == name


def _reassociated(pattern: CallPattern, call: Call) -> list[CallPattern]:
    """``(a * b) / c`` also as ``a * (b / c)``, and the other way round, where the call at hand is of that form."""
    name, args = _op_name(pattern), pattern.args
    if args is None or len(args) != 2:
        return []
    if name == "divide" and _op_name(args[0]) == "multiply" and _calls(call, "multiply") and any(_calls(a, "divide") for a in call.args):
        product: Any = args[0]
        return [CallPattern(product.op, (product.args[1 - i], CallPattern(pattern.op, (product.args[i], args[1])))) for i in (0, 1)]
    if name == "multiply" and _calls(call, "divide") and any(_calls(a, "multiply") for a in call.args):
        found = []
        for i in (0, 1):
            quotient: Any = args[i]
            if _op_name(quotient) == "divide":
                product = CallPattern(pattern.op, (quotient.args[0], args[1 - i]))
                found.append(CallPattern(quotient.op, (product, quotient.args[1])))
        return found
    return []


def _has_attributes(expr: RelayExpr, wanted: dict[str, Any]) -> bool:
    if isinstance(expr, Op):
        return all(expr.has_attr(k) and structural_equal(expr.get_attr(k), v) for k, v in wanted.items())
    if not isinstance(expr, (Call, Function)):
        return False
    attrs = dict(expr.attrs.items()) if expr.attrs is not None else {}
    return all(k in attrs and structural_equal(attrs[k], v) for k, v in wanted.items())


def _type_of(expr: RelayExpr) -> Type:
    if expr._checked_type is not None:
        return expr._checked_type
    from ..transform.infer_type import InferTypeLocal

    return InferTypeLocal(expr)
