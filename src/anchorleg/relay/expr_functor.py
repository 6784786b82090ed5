"""Visitors over expressions for users to subclass: override ``visit_call`` and the like, call ``self.visit`` on what is inside.

The compiler's own passes use the engines of :mod:`anchorleg.ir.visit`.  These classes recurse, as their interface asks, but
``visit`` takes the operands of calls, tuples and conditions first once it is deep down, and the standard ``visit_let`` walks
along a chain, so that programs of any size pass at Python's default recursion limit.
"""
from __future__ import annotations

from typing import Any, Callable

from ..ir.expr import GlobalVar, RelayExpr
from ..ir.op import Op
from ..support.errors import ArgumentError
from .adt import Constructor, Match, Pattern, PatternConstructor, PatternTuple, PatternVar
from .expr import Call, Constant, If, Let, RefCreate, RefRead, RefWrite, Tuple, TupleGetItem, Var
from .function import Function

_METHODS: dict[type, str] = {
    Function: "visit_function", Call: "visit_call", Let: "visit_let", Var: "visit_var", GlobalVar: "visit_global_var", If: "visit_if",
    Tuple: "visit_tuple", TupleGetItem: "visit_tuple_getitem", Constant: "visit_constant", Op: "visit_op",
    RefCreate: "visit_ref_create", RefRead: "visit_ref_read", RefWrite: "visit_ref_write", Constructor: "visit_constructor",
    Match: "visit_match",
}
_FLAT = (Call, Tuple, TupleGetItem, If, RefCreate, RefRead, RefWrite)  # their parts are met in the scope they stand in
_DEEP = 100


class ExprFunctor:
    """Calls ``visit_<kind>`` for an expression, once per object."""

    def __init__(self) -> None:
        self.memo_map: dict[Any, Any] = {}
        self._depth = 0

    def visit(self, expr: RelayExpr) -> Any:
        """The result for ``expr``, remembered from the first visit."""
        if expr in self.memo_map:
            return self.memo_map[expr]
        if self._depth >= _DEEP:
            self._visit_operands(expr)
            if expr in self.memo_map:
                return self.memo_map[expr]
        return self._visit_now(expr)

    def _visit_now(self, expr: RelayExpr) -> Any:
        self._depth += 1
        try:
            result = self._method(expr)(expr)
        finally:
            self._depth -= 1
        self.memo_map[expr] = result
        return result

    def _method(self, expr: RelayExpr) -> Callable[[Any], Any]:
        for cls in type(expr).__mro__:
            if cls in _METHODS:
                return getattr(self, _METHODS[cls])
        raise ArgumentError(f"{type(self).__name__} cannot visit a {type(expr).__name__}: expected an expression of the graph language")

    def _visit_operands(self, root: RelayExpr) -> None:
        """Visits what lies under ``root`` in its own scope, innermost first, without recursion."""
        stack: list[tuple[Any, bool]] = [(c, False) for c in _flat_children(root)]
        while stack:
            node, ready = stack.pop()
            if node in self.memo_map:
                continue
            if ready or not isinstance(node, _FLAT):
                self._visit_now(node)
                continue
            stack.append((node, True))
            stack.extend((c, False) for c in reversed(_flat_children(node)))

    def visit_function(self, fn: Function) -> Any:
        """Called for functions."""
        raise NotImplementedError

    def visit_let(self, let: Let) -> Any:
        """Called for lets."""
        raise NotImplementedError

    def visit_call(self, call: Call) -> Any:
        """Called for calls."""
        raise NotImplementedError

    def visit_var(self, var: Var) -> Any:
        """Called for variables, where they are bound and where they are used."""
        raise NotImplementedError

    def visit_if(self, if_: If) -> Any:
        """Called for conditions."""
        raise NotImplementedError

    def visit_tuple(self, tup: Tuple) -> Any:
        """Called for tuples."""
        raise NotImplementedError

    def visit_tuple_getitem(self, op: TupleGetItem) -> Any:
        """Called for projections."""
        raise NotImplementedError

    def visit_global_var(self, gvar: GlobalVar) -> Any:
        """Called for names of functions."""
        raise NotImplementedError

    def visit_op(self, op: Op) -> Any:
        """Called for operators."""
        raise NotImplementedError

    def visit_constant(self, const: Constant) -> Any:
        """Called for constants."""
        raise NotImplementedError

    def visit_ref_create(self, ref: RefCreate) -> Any:
        """Called for new references."""
        raise NotImplementedError

    def visit_ref_write(self, ref: RefWrite) -> Any:
        """Called for writes to references."""
        raise NotImplementedError

    def visit_ref_read(self, ref: RefRead) -> Any:
        """Called for reads of references."""
        raise NotImplementedError

    def visit_constructor(self, con: Constructor) -> Any:
        """Called for constructors of data types."""
        raise NotImplementedError

    def visit_match(self, match: Match) -> Any:
        """Called for matches."""
        raise NotImplementedError


def _flat_children(node: Any) -> list[Any]:
    if isinstance(node, Call):
        return [node.op, *node.args]
    if not isinstance(node, _FLAT):
        return []
    return [c for c in node.children() if isinstance(c, RelayExpr)]


class ExprVisitor(ExprFunctor):
    """Visits every expression; override what you want to see, and call ``super()`` to go on inside."""

    def visit_tuple(self, tup: Tuple) -> None:
        for field in tup.fields:
            self.visit(field)

    def visit_call(self, call: Call) -> None:
        self.visit(call.op)
        for arg in call.args:
            self.visit(arg)

    def visit_var(self, var: Var) -> None:
        pass

    def visit_let(self, let: Let) -> None:
        if type(self).visit_let is not ExprVisitor.visit_let:
            self.visit(let.var)
            self.visit(let.value)
            self.visit(let.body)
            return
        rest: Any = let
        while isinstance(rest, Let) and (rest is let or rest not in self.memo_map):
            self.visit(rest.var)
            self.visit(rest.value)
            self.memo_map[rest] = None
            rest = rest.body
        self.visit(rest)

    def visit_function(self, fn: Function) -> None:
        for param in fn.params:
            self.visit(param)
        self.visit(fn.body)

    def visit_if(self, if_: If) -> None:
        self.visit(if_.cond)
        self.visit(if_.true_branch)
        self.visit(if_.false_branch)

    def visit_global_var(self, gvar: GlobalVar) -> None:
        pass

    def visit_constructor(self, con: Constructor) -> None:
        pass

    def visit_op(self, op: Op) -> None:
        pass

    def visit_constant(self, const: Constant) -> None:
        pass

    def visit_ref_create(self, ref: RefCreate) -> None:
        self.visit(ref.value)

    def visit_ref_read(self, ref: RefRead) -> None:
        self.visit(ref.ref)

    def visit_ref_write(self, ref: RefWrite) -> None:
        self.visit(ref.ref)
        self.visit(ref.value)

    def visit_tuple_getitem(self, op: TupleGetItem) -> None:
        self.visit(op.tuple_value)

    def visit_match(self, match: Match) -> None:
        self.visit(match.data)
        for clause in match.clauses:
            self.visit(clause.rhs)


class ExprMutator(ExprFunctor):
    """Rebuilds an expression from what the visits of its parts return; unchanged parts keep their identity."""

    def visit_function(self, fn: Function) -> RelayExpr:
        return fn.replace(params=tuple(self.visit(p) for p in fn.params), body=self.visit(fn.body))

    def visit_let(self, let: Let) -> RelayExpr:
        if type(self).visit_let is not ExprMutator.visit_let:
            return let.replace(var=self.visit(let.var), value=self.visit(let.value), body=self.visit(let.body))
        chain: list[tuple[Let, Any, Any]] = []
        rest: Any = let
        while isinstance(rest, Let) and rest not in self.memo_map:
            chain.append((rest, self.visit(rest.var), self.visit(rest.value)))
            rest = rest.body
        body = self.visit(rest)
        for link, var, value in reversed(chain):
            body = self.memo_map[link] = link.replace(var=var, value=value, body=body)
        return body

    def visit_call(self, call: Call) -> RelayExpr:
        return call.replace(op=self.visit(call.op), args=tuple(self.visit(a) for a in call.args))

    def visit_var(self, var: Var) -> RelayExpr:
        return var

    def visit_global_id(self, global_var: GlobalVar) -> RelayExpr:
        """An old name of ``visit_global_var``."""
        return global_var

    def visit_if(self, if_: If) -> RelayExpr:
        return if_.replace(cond=self.visit(if_.cond), true_branch=self.visit(if_.true_branch), false_branch=self.visit(if_.false_branch))

    def visit_tuple(self, tup: Tuple) -> RelayExpr:
        return tup.replace(fields=tuple(self.visit(f) for f in tup.fields))

    def visit_tuple_getitem(self, op: TupleGetItem) -> RelayExpr:
        return op.replace(tuple_value=self.visit(op.tuple_value))

    def visit_global_var(self, gvar: GlobalVar) -> RelayExpr:
        return gvar

    def visit_op(self, op: Op) -> RelayExpr:
        return op

    def visit_constant(self, const: Constant) -> RelayExpr:
        return const

    def visit_constructor(self, con: Constructor) -> RelayExpr:
        return con

    def visit_match(self, match: Match) -> RelayExpr:
        clauses = tuple(c.replace(lhs=self.visit_pattern(c.lhs), rhs=self.visit(c.rhs)) for c in match.clauses)
        return match.replace(data=self.visit(match.data), clauses=clauses)

    def visit_pattern(self, pattern: Pattern) -> Pattern:
        """A pattern with its variables visited."""
        if isinstance(pattern, PatternVar):
            return pattern.replace(var=self.visit(pattern.var))
        if isinstance(pattern, (PatternConstructor, PatternTuple)):
            return pattern.replace(patterns=tuple(self.visit_pattern(p) for p in pattern.patterns))
        return pattern

    def visit_ref_create(self, ref: RefCreate) -> RelayExpr:
        return ref.replace(value=self.visit(ref.value))

    def visit_ref_write(self, ref: RefWrite) -> RelayExpr:
        return ref.replace(ref=self.visit(ref.ref), value=self.visit(ref.value))

    def visit_ref_read(self, ref: RefRead) -> RelayExpr:
        return ref.replace(ref=self.visit(ref.ref))


class MixedModeVisitor(ExprVisitor):
    """A visitor that always meets operands of calls, tuples and projections before their user."""

    def visit(self, expr: RelayExpr) -> Any:
        if expr not in self.memo_map:
            self._visit_operands(expr)
        return self.memo_map[expr] if expr in self.memo_map else self._visit_now(expr)


class MixedModeMutator(ExprMutator):
    """A mutator for dataflow: override ``rewrite_call(pre, post)`` and the like, where ``post`` has its operands rewritten."""

    visit = MixedModeVisitor.visit  # type: ignore[assignment]

    def visit_call(self, call: Call) -> RelayExpr:
        return self.rewrite_call(call, super().visit_call(call))

    def visit_tuple(self, tup: Tuple) -> RelayExpr:
        return self.rewrite_tuple(tup, super().visit_tuple(tup))

    def visit_tuple_getitem(self, op: TupleGetItem) -> RelayExpr:
        return self.rewrite_tuple_getitem(op, super().visit_tuple_getitem(op))

    def rewrite_call(self, pre: Call, post: Any) -> RelayExpr:
        """What takes the place of a call; ``post`` is ``pre`` with its parts rewritten."""
        return post

    def rewrite_tuple(self, pre: Tuple, post: Any) -> RelayExpr:
        """What takes the place of a tuple."""
        return post

    def rewrite_tuple_getitem(self, pre: TupleGetItem, post: Any) -> RelayExpr:
        """What takes the place of a projection."""
        return post


__all__ = ["ExprFunctor", "ExprVisitor", "ExprMutator", "MixedModeVisitor", "MixedModeMutator"]
