"""Inline, and the fuller inlining that executors without calls need.

before::

    def @f(%x) { add(%x, 1f) }      def @main(%y) { @f(%y) }

after::

    def @main(%y) { add(%y, 1f) }
"""
from __future__ import annotations

from typing import Any, Callable, Iterable

from ...ir.expr import GlobalVar, RelayExpr
from ...ir.module import IRModule
from ...ir.transform import ModulePass, Pass, PassContext, PassInfo, register_pass
from ...ir.visit import Walker
from ..analysis.variables import exprs
from ..expr import Call, Var
from ..function import Function
from .bind import bind_type_vars, substitute
from .common import carry_type, descends, is_primitive, map_functions, mentions, rewrite_exprs


def callees(func: Function) -> list[GlobalVar]:
    """The global functions a function mentions, in order of first mention."""
    found: dict[GlobalVar, None] = {}
    for node in exprs(func):
        if isinstance(node, GlobalVar):
            found.setdefault(node)
    return list(found)


def callees_first(mod: IRModule) -> tuple[list[GlobalVar], set[GlobalVar]]:
    """The functions ordered so that callees come before callers, and those that take part in recursion."""
    graph = {v: [c for c in callees(f) if c in mod.functions] for v, f in mod.functions.items() if isinstance(f, Function)}
    order: list[GlobalVar] = []
    recursive: set[GlobalVar] = set()
    state: dict[GlobalVar, int] = {}
    for root in graph:
        stack: list[tuple[GlobalVar, Iterable[GlobalVar]]] = []
        if root not in state:
            state[root] = 1
            stack.append((root, iter(graph[root])))
        while stack:
            var, rest = stack[-1]
            nxt = next(iter(rest), None)  # type: ignore[call-overload]
            if nxt is None:
                state[var] = 2
                order.append(var)
                stack.pop()
            elif nxt in graph and nxt not in state:
                state[nxt] = 1
                stack.append((nxt, iter(graph[nxt])))
            elif state.get(nxt) == 1:
                names = [v for v, _ in stack]
                recursive.update(names[names.index(nxt):])
    return order, recursive


def fresh_copy(func: Function) -> Function:
    """The function with variables of its own, so that its body can stand in several places."""
    memo: dict[int, Var] = {}

    def rule(old: Any, new: Any) -> RelayExpr:
        return memo.get(id(old), new)

    for var in _bound_inside(func):
        copy = memo[id(var)] = Var(var.name_hint, var.type_annotation, var.span)
        copy._checked_type = var._checked_type
    params = tuple(memo[id(p)] for p in func.params)
    body = rewrite_exprs(func.body, rule)
    result = func.replace(params=params, body=body)
    result._checked_type = func._checked_type
    return result


def _bound_inside(func: Function) -> list[Var]:
    from ..analysis.variables import bound_vars

    return bound_vars(func)


def apply(func: Function, call: Call) -> RelayExpr:
    """The body of ``func`` with the call's arguments for its parameters."""
    own = fresh_copy(func)
    body = substitute(own.body, dict(zip(own.params, call.args)))
    if func.type_params and call.type_args:
        body = bind_type_vars(body, dict(zip(func.type_params, call.type_args)))
    return body


class _Inliner(Walker):
    """Puts functions where they are called, callers first: what comes in is looked at in its turn, so nothing is copied twice."""

    def __init__(self, target_of: Callable[[RelayExpr], Function | None]) -> None:
        super().__init__()
        self.target_of = target_of

    def visit_GlobalVar(self, var: GlobalVar) -> Any:
        func = self.target_of(var)
        if func is None:
            return var
        return (yield fresh_copy(func))

    def visit_Call(self, node: Call) -> Any:
        func = self.target_of(node.op)
        if func is None or is_primitive(func):
            op, *args = yield [node.op, *node.args]
            return carry_type(node, node.replace(op=op, args=tuple(args)))
        args = yield list(node.args)
        return (yield apply(func, node.replace(args=tuple(args))))

    def visit_default(self, node: Any) -> Any:
        if not descends(node):
            return node
        kids = node.children()
        results = yield kids
        table = {id(k): r for k, r in zip(kids, results)}
        return carry_type(node, node.map_children(lambda c: table[id(c)]))


def inline_calls(mod: IRModule, wanted: Callable[[GlobalVar, Function], bool]) -> IRModule:
    """The module with the wanted, non-recursive global functions put where they are mentioned; they themselves go.

    Their calls become their bodies; primitive functions, and functions that are passed on as values, become literals.
    """
    if not mentions(mod, lambda n: isinstance(n, GlobalVar)):
        return mod
    _, recursive = callees_first(mod)
    mentioned = {c.name_hint for f in mod.functions.values() if isinstance(f, Function) for c in callees(f)}
    targets = {v: f for v, f in mod.functions.items()
               if isinstance(f, Function) and v not in recursive and v.name_hint in mentioned and wanted(v, f)}
    if not targets:
        return mod
    by_name = {v.name_hint: f for v, f in targets.items()}

    def target_of(var: RelayExpr) -> Function | None:
        return by_name.get(var.name_hint) if isinstance(var, GlobalVar) else None

    inliner = _Inliner(target_of)
    return mod.with_functions({v: inliner.visit(f) if isinstance(f, Function) and not is_primitive(f) else f
                               for v, f in mod.functions.items() if v not in targets})


def beta_reduce(func: Function) -> Function:
    """Calls of function literals replaced by the function's body."""
    if not any(isinstance(n, Function) and n is not func for n in exprs(func)):
        return func

    def rule(old: Any, new: Any) -> RelayExpr:
        if isinstance(new, Call) and isinstance(new.op, Function) and not is_primitive(new.op) and not new.op.attrs.keys():
            return apply(new.op, new)
        return new

    return rewrite_exprs(func, rule)  # type: ignore[return-value]


def Inline() -> Pass:
    """Replaces calls of the functions marked ``Inline=1``."""

    def run(mod: IRModule, ctx: PassContext) -> IRModule:
        return inline_calls(mod, lambda var, func: bool(func.get_attr("Inline")))

    return ModulePass(run, PassInfo(1, "Inline", []))


def InlineAll() -> Pass:
    """Replaces every call of a global function that is not recursive, and of function literals, for executors that can't call."""

    def run(mod: IRModule, ctx: PassContext) -> IRModule:
        return map_functions(inline_calls(mod, lambda var, func: not is_primitive(func)), beta_reduce)

    return ModulePass(run, PassInfo(0, "InlineAll", ["InferType"]))


register_pass("Inline", Inline)
register_pass("InlineAll", InlineAll)
