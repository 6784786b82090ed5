"""What happens to expressions as they are built: types, constant parts, origins.

Each expression is typed and, where it depends on constants only, evaluated the moment its ONNX node has been converted;
only new expressions are looked at, so that an import takes time linear in the number of nodes.  An expression that has
been through this carries a span.
"""
from __future__ import annotations

import weakref
from typing import Any, Sequence

import numpy as np

from ....ir.expr import RelayExpr
from ....ir.node import Node
from ....ir.op import Op
from ....ir.span import Span
from ....ir.type import TensorType, TupleType, Type
from ....support.errors import AnchorlegError
from ...expr import Call, Constant, Tuple, TupleGetItem, Var
from ...op.registry import attrs_of
from ...transform.fold_constant import fold_node
from ...transform.infer_type import infer_type
from ...transform.type_solver import same_type
from .make import constant_of
from .partial import PartialValues, fully_known

_LEAVES = (Constant, Var, Op)


class Builder:
    """Types, folds and labels new expressions; answers what is known of their values."""

    def __init__(self) -> None:
        self.partial = PartialValues()
        self.span = Span("")  # of the node that is being converted
        self.params: dict[Var, Any] = {}  # values of parameters that are kept as variables
        self._folded: dict[Any, tuple[list[Any], Any]] = {}

    def type_of(self, expr: RelayExpr) -> Type:
        """The type of an expression, new or settled."""
        return typed(expr).checked_type

    def settle(self, exprs: Sequence[RelayExpr]) -> list[RelayExpr]:
        """The expressions typed, with constant parts evaluated and every new part labelled with the span of the node."""
        memo: dict[int, tuple[Node, RelayExpr]] = {}
        for root in exprs:
            stack: list[tuple[Any, bool]] = [(root, False)]
            while stack:
                node, ready = stack.pop()
                if id(node) in memo:
                    continue
                if node.span is not None or isinstance(node, _LEAVES) or not isinstance(node, RelayExpr):
                    memo[id(node)] = (node, node)
                elif not ready:
                    stack.append((node, True))
                    stack.extend((c, False) for c in node.children() if id(c) not in memo)
                else:
                    memo[id(node)] = (node, self._finish(node.map_children(lambda c: memo[id(c)][1])))
        return [memo[id(e)][1] for e in exprs]

    def value_of(self, expr: RelayExpr) -> np.ndarray | None:
        """The value of an expression when it is known now (do not write to it), else None."""
        if isinstance(expr, Constant):
            return expr.data.as_numpy_view()
        if isinstance(expr, Var):
            return self.params[expr].as_numpy_view() if expr in self.params else None
        if expr.span is None:
            found = self.settle([expr])[0]
            return found.data.as_numpy_view() if isinstance(found, Constant) else None
        return None

    def _finish(self, expr: RelayExpr) -> RelayExpr:
        folded = self._fold(typed(expr))
        if not isinstance(folded, _LEAVES) and folded.span is None:
            folded.span = self.span
        return folded

    def _fold(self, expr: RelayExpr) -> RelayExpr:
        key, refs = _key_of(expr)
        if key is not None:
            known = self._folded.get(key)
            if known is not None and all(r() is a for r, a in zip(known[0], refs)) and known[1]() is not None:
                return known[1]()
        folded = fold_node(expr)
        if key is not None and isinstance(folded, Constant):
            self._folded[key] = ([weakref.ref(a) for a in refs], weakref.ref(folded))
        return folded if isinstance(folded, Constant) else self._fold_in_part(folded)

    def _fold_in_part(self, expr: RelayExpr) -> RelayExpr:
        value = self.partial.learn(expr)
        if value is None or not fully_known(value) or not isinstance(expr.checked_type, TensorType):
            return expr
        return constant_of(value.astype(expr.checked_type.dtype))


class _AskInference(Exception):
    """Types are not plainly equal: let inference decide, and word the error."""


class _Exact:
    """The context of a type relation whose argument types are all known."""

    def unify(self, a: Type, b: Type) -> Type:
        """The type that both are."""
        if not same_type(a, b):
            raise _AskInference
        return a


_EXACT = _Exact()


def typed(expr: RelayExpr) -> RelayExpr:
    """The expression with its type set.  Where all parts have theirs, which is the rule, only the expression itself is looked at."""
    if expr._checked_type is None:
        try:
            found = _plain_type(expr)
        except (_AskInference, AnchorlegError):
            found = None
        if found is None:  # parts without types, free variables, errors: all that is rare
            return infer_type(expr)
        expr._checked_type = found
    return expr


def _plain_type(expr: RelayExpr) -> Type | None:
    if isinstance(expr, TupleGetItem):
        whole = expr.tuple_value._checked_type
        return whole.fields[expr.index] if isinstance(whole, TupleType) and expr.index < len(whole.fields) else None
    if isinstance(expr, Tuple):
        fields = [f._checked_type for f in expr.fields]
        return TupleType(fields) if None not in fields else None
    if not isinstance(expr, Call) or not isinstance(expr.op, Op) or expr.op.relation is None:
        return None
    types = tuple(a._checked_type for a in expr.args)
    if None in types or expr.op.num_inputs not in (-1, len(types)):
        return None
    found = expr.op.relation(types, attrs_of(expr.op, expr.attrs), _EXACT)
    return found if isinstance(found, (TensorType, TupleType)) else None


def _key_of(expr: RelayExpr) -> tuple[Any, list[Any]]:
    """What tells one evaluation from another: operator, attributes, constants; so that a weight used twice is made once."""
    if not isinstance(expr, Call) or not isinstance(expr.op, Op):
        return None, []
    args = [f for a in expr.args for f in (a.fields if isinstance(a, Tuple) else (a,))]
    if not args or not all(isinstance(a, Constant) for a in args):
        return None, []
    return (expr.op.name, repr(expr.attrs), tuple(id(a) for a in args)), args
