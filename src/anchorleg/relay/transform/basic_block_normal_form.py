"""ToBasicBlockNormalForm: what several blocks of a program share is bound where all of them can see it.

before::

    if (%c) { multiply(%0, %0) } else { %0 }          # %0 = add(%x, %x)

after::

    let %x_0 = add(%x, %x); if (%c) { multiply(%x_0, %x_0) } else { %x_0 }

A block is what is evaluated together: the body of a function, a branch, a clause, what follows a ``let``.
"""
from __future__ import annotations

from typing import Any

from ...ir.expr import GlobalVar, RelayExpr
from ...ir.module import IRModule
from ...ir.op import Op
from ...ir.transform import ModulePass, Pass, PassContext, PassInfo, register_pass
from ...ir.visit import Walker
from ..adt import Clause, Constructor, Match
from ..expr import Constant, If, Let, Var
from ..function import Function
from .common import carry_type, descends, is_primitive, map_functions
from .normal_forms import ScopeFinder

_STAY = (Var, Constant, GlobalVar, Op, Constructor)


class _Binder(Walker):
    """Rebuilds a program with the values that several blocks use bound in the block around them."""

    def __init__(self, finder: ScopeFinder) -> None:
        super().__init__()
        self.finder, self.count = finder, 0

    def bound(self, old: RelayExpr, new: RelayExpr) -> RelayExpr:
        """``new``, or a variable bound to it where ``old`` is used in several blocks."""
        if id(old) not in self.finder.spread or isinstance(old, _STAY) or is_primitive(old):
            return new
        var = Var(f"x_{self.count}", old._checked_type)
        var._checked_type = old._checked_type
        self.count += 1
        self.finder.scope_of[id(old)].bindings.append((var, new))
        return var

    def closed(self, node: Any, position: int, result: RelayExpr) -> RelayExpr:
        """A part of ``node`` with what is bound in its block around it."""
        return self.finder.scope_for(node, position).wrap(result)

    def visit_Function(self, node: Function) -> Any:
        if is_primitive(node):
            return node
        body = yield node.body
        return self.bound(node, carry_type(node, node.replace(body=self.closed(node, 0, body))))

    def visit_If(self, node: If) -> Any:
        cond = yield node.cond
        yes = yield node.true_branch
        no = yield node.false_branch
        new = node.replace(cond=cond, true_branch=self.closed(node, 1, yes), false_branch=self.closed(node, 2, no))
        return self.bound(node, carry_type(node, new))

    def visit_Match(self, node: Match) -> Any:
        data = yield node.data
        clauses: list[Clause] = []
        for i, clause in enumerate(node.clauses):
            rhs = yield clause.rhs
            clauses.append(clause.replace(rhs=self.closed(node, i + 1, rhs)))
        return self.bound(node, carry_type(node, node.replace(data=data, clauses=tuple(clauses))))

    def visit_Let(self, node: Let) -> Any:
        value = yield node.value
        body = yield node.body
        return self.bound(node, carry_type(node, node.replace(value=value, body=self.closed(node, 1, body))))

    def visit_default(self, node: Any) -> Any:
        if not descends(node):
            return node
        kids = [c for c in node.children() if isinstance(c, RelayExpr)]
        results = yield kids
        table = {id(k): r for k, r in zip(kids, results)}
        new = carry_type(node, node.map_children(lambda c: table.get(id(c), c)))
        return self.bound(node, new) if isinstance(node, RelayExpr) else new


def to_basic_block_normal_form(expr: RelayExpr) -> RelayExpr:
    """An expression (a function's body is a block of its own) in basic-block normal form."""
    finder = ScopeFinder(expr)
    if not finder.spread:
        return expr
    return finder.root_scope.wrap(_Binder(finder).visit(expr))


def ToBasicBlockNormalForm() -> Pass:
    """Binds what several blocks share; programs without control flow stay as they are."""

    def run(mod: IRModule, ctx: PassContext) -> IRModule:
        return map_functions(mod, to_basic_block_normal_form)  # type: ignore[arg-type]

    return ModulePass(run, PassInfo(1, "ToBasicBlockNormalForm", ["InferType"]))


register_pass("ToBasicBlockNormalForm", ToBasicBlockNormalForm)
