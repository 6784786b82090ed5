"""DeadCodeElimination: removes ``let`` bindings whose variables nobody reads.

before::

    let %a = add(%x, %x); let %b = multiply(%x, %x); %b

after::

    let %b = multiply(%x, %x); %b

Bindings whose values write references, call stateful operators or call functions that may do so stay.
"""
from __future__ import annotations

from typing import Any

from ...ir.expr import RelayExpr
from ...ir.module import IRModule
from ...ir.node import Node
from ...ir.op import Op
from ...ir.transform import ModulePass, Pass, PassContext, PassInfo, register_pass
from ...ir.visit import Walker
from ..adt import Constructor
from ..analysis.variables import expr_children, exprs, free_vars_of_parts
from ..expr import Call, Let, RefCreate, RefRead, RefWrite, Var
from ..function import Function
from .common import carry_type, descends, map_functions


def with_effects(root: RelayExpr) -> set[int]:
    """The ids of the expressions under ``root`` whose evaluation others could notice (calls of unknown functions count).

    One walk answers for all of them: asking each binding's value by itself would take time quadratic in nested ones.
    """
    found: set[int] = set()
    for node in exprs(root):
        if not _pure_node(node) or any(id(c) in found for c in expr_children(node)):
            found.add(id(node))
    return found


def _pure_node(node: RelayExpr) -> bool:
    if isinstance(node, (RefCreate, RefRead, RefWrite)):
        return False
    if not isinstance(node, Call):
        return True
    if isinstance(node.op, Op):
        return not node.op.get_attr("TOpIsStateful")
    return isinstance(node.op, Function) or isinstance(node.op, Constructor)


def _readings(root: RelayExpr, kept: set[int]) -> dict[int, int]:
    """How often each variable is read by code that is itself needed.

    A binding's value is walked only once its variable turns out to be read, or when it is among ``kept``.
    """
    count: dict[int, int] = {}
    waiting: dict[int, RelayExpr] = {}
    seen: set[int] = set()
    stack: list[Node] = [root]
    while stack:
        node = stack.pop()
        if isinstance(node, Var):
            count[id(node)] = count.get(id(node), 0) + 1
            stack.extend([waiting.pop(id(node))] if id(node) in waiting else ())
            continue
        if id(node) in seen or not descends(node):
            continue
        seen.add(id(node))
        if not isinstance(node, Let):
            stack.extend(_reads(node))
            continue
        stack.append(node.body)
        if id(node.var) in count or id(node.value) in kept:
            stack.append(node.value)
        else:
            waiting[id(node.var)] = node.value
    return count


def _reads(node: Node) -> list[Node]:
    return [node.body] if isinstance(node, Function) else node.children()


class _Eliminator(Walker):
    def __init__(self, count: dict[int, int], kept: set[int], captured: set[int] | None) -> None:
        super().__init__()
        self.count, self.kept, self.captured = count, kept, captured

    def visit_Let(self, let: Let) -> Any:
        count = self.count.get(id(let.var), 0)
        movable = id(let.value) not in self.kept
        if count == 0 and movable:
            return (yield let.body)
        value = yield let.value
        if self._moves(let) and count == 1 and movable:
            self.memo[id(let.var)] = (let.var, value)
            return (yield let.body)
        body = yield let.body
        return carry_type(let, let.replace(value=value, body=body))

    def _moves(self, let: Let) -> bool:
        """Whether a value may move to its one reader: not into a function, which may run more often."""
        return self.captured is not None and id(let.var) not in self.captured and not isinstance(let.value, Function)

    def visit_default(self, node: Any) -> Any:
        if not descends(node):
            return node
        kids = node.children()
        results = yield kids
        table = {id(k): r for k, r in zip(kids, results)}
        return carry_type(node, node.map_children(lambda c: table[id(c)]))


def eliminate(expr: RelayExpr, inline_once: bool = False, ignore_impurity: bool = False) -> RelayExpr:
    """``expr`` without bindings that nobody reads."""
    kept: set[int] = set() if ignore_impurity else with_effects(expr)
    return _Eliminator(_readings(expr, kept), kept, _captured(expr) if inline_once else None).visit(expr)


def _captured(root: RelayExpr) -> set[int]:
    """The variables that inner functions take from around them."""
    free = free_vars_of_parts(root)
    return {id(v) for node in exprs(root) if isinstance(node, Function) and node is not root for v in free[id(node)]}


def DeadCodeElimination(inline_once: bool = False, ignore_impurity: bool = False) -> Pass:
    """Removes unread bindings; ``inline_once`` also moves values that are read once to their reader."""

    def run(mod: IRModule, ctx: PassContext) -> IRModule:
        return map_functions(mod, lambda f: eliminate(f, inline_once, ignore_impurity))  # type: ignore[arg-type,return-value]

    return ModulePass(run, PassInfo(1, "DeadCodeElimination", ["InferType"]))


register_pass("DeadCodeElimination", DeadCodeElimination)
