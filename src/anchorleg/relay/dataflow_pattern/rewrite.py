"""Rewriting what fits a pattern, and cutting it out as functions.

Matches are looked for from the outputs towards the inputs; a part that was taken by one match is not taken by another, and a
part whose inner values are used elsewhere is left alone when taking it would make a circle.
"""
from __future__ import annotations

from typing import Any, Callable, Iterable, Mapping, Sequence

from ...ir.expr import RelayExpr
from ...ir.module import IRModule
from ...ir.op import Op
from ...ir.structural import structural_equal
from ...ir.type import Type
from ...ir.visit import post_order
from ...support.errors import ArgumentError
from ..adt import Constructor, Match
from ..analysis.variables import exprs, free_type_vars, free_vars
from ..expr import Call, Constant, If, Let, Tuple, TupleGetItem, Var
from ..function import Function
from .indexed_graph import IndexedGraph
from .matcher import Matcher
from .pattern import (AltPattern, CallPattern, ConstantPattern, DFPattern, DominatorPattern, ExprPattern, FunctionPattern, TuplePattern,
                      pattern_children)

MAX_ROUNDS = 100
PARTITIONED = "PartitionedFromPattern"


class DFPatternCallback:
    """A rewriting rule: subclass it, set ``self.pattern``, and say in ``callback`` what takes the place of what fits.

    Parameters
    ----------
    require_type: infer types before looking for matches.
    rewrite_once: stop after the first round that changed something.
    """

    def __init__(self, require_type: bool = False, rewrite_once: bool = False) -> None:
        self.pattern: DFPattern | None = None
        self.require_type, self.rewrite_once = require_type, rewrite_once

    def rewrite(self, expr: RelayExpr) -> RelayExpr:
        """``expr`` rewritten by this rule."""
        return rewrite(self, expr)

    def callback(self, pre: RelayExpr, post: RelayExpr, node_map: Mapping[DFPattern, Sequence[RelayExpr]]) -> RelayExpr:
        """What takes the place of ``pre``, the expression that fits; ``post`` is the same with what is above it rewritten.

        ``node_map`` maps each part of the pattern to the expressions (rewritten) that fit it.
        """
        raise NotImplementedError


class Group:
    """One match: its root, what fits what, and the part as a function with the arguments it is called with."""

    __slots__ = ("root", "found", "function", "args", "name")

    def __init__(self, root: RelayExpr, found: dict[DFPattern, list[RelayExpr]], function: Function, args: list[RelayExpr],
                 name: str) -> None:
        self.root, self.found, self.function, self.args, self.name = root, found, function, args, name


def rewrite(callbacks: DFPatternCallback | Iterable[DFPatternCallback], expr: RelayExpr, mod: IRModule | None = None) -> RelayExpr:
    """``expr`` rewritten by rules, in turn, until nothing changes; ArgumentError when it never settles.

    ``mod`` holds the functions and types that ``expr`` refers to.
    """
    rules = [callbacks] if isinstance(callbacks, DFPatternCallback) else list(callbacks)
    for rule in rules:
        if rule.pattern is None:
            raise ArgumentError(f"{type(rule).__name__} has no pattern: set self.pattern")
    done: set[int] = set()
    rounds = 0
    while True:
        before = expr
        for rule in rules:
            if id(rule) in done:
                continue
            rounds += 1
            if rounds > MAX_ROUNDS:
                raise ArgumentError(f"the program still changes after {MAX_ROUNDS} rounds of rewriting: do the rules undo each other?")
            changed = _apply(rule, expr, mod)
            if rule.rewrite_once and not _unchanged(expr, changed):
                done.add(id(rule))
            expr = changed
        if _unchanged(before, expr):
            return expr


def _unchanged(a: RelayExpr, b: RelayExpr) -> bool:
    return a is b or structural_equal(a, b)


def _apply(rule: DFPatternCallback, expr: RelayExpr, mod: IRModule | None) -> RelayExpr:
    if rule.require_type:
        expr = _typed(expr, mod)
    groups = Grouper().groups(rule.pattern, expr)  # type: ignore[arg-type]
    if not groups:
        return expr

    def at_root(pre: RelayExpr, post: RelayExpr, memo: Mapping[RelayExpr, RelayExpr]) -> RelayExpr:
        group = groups.get(pre)
        if group is None:
            return post
        node_map = {p: [post if e is pre else memo.get(e, e) for e in found] for p, found in group.found.items()}
        return rule.callback(pre, post, node_map)

    return _rebuild(expr, at_root)


def partition(pattern: DFPattern, expr: RelayExpr, attrs: Mapping[str, Any] | None = None,
              check: Callable[[RelayExpr], bool] = lambda x: True) -> RelayExpr:
    """``expr`` with every part that fits (and passes ``check``) turned into the call of a function holding it.

    The functions get ``attrs`` and an attribute ``PartitionedFromPattern`` that names their operators.
    """
    if isinstance(pattern, FunctionPattern):
        return expr  # a function that is not called cannot be cut out
    groups = Grouper().groups(pattern, expr)

    def at_root(pre: RelayExpr, post: RelayExpr, memo: Mapping[RelayExpr, RelayExpr]) -> RelayExpr:
        group = groups.get(pre)
        if group is None or not check(pre):
            return post
        function = group.function.with_attr({PARTITIONED: group.name, **dict(attrs or {})})
        return Call(function, [memo.get(a, a) for a in group.args])

    return _rebuild(expr, at_root) if groups else expr


def _typed(expr: RelayExpr, mod: IRModule | None) -> RelayExpr:
    """``expr`` with types inferred, as a function of a module that has what it refers to."""
    from ..transform.infer_type import InferType

    whole = mod.copy() if mod is not None else IRModule()
    name = "_tmp"
    while name in whole:
        name += "_"
    whole[name] = expr if isinstance(expr, Function) else Function(free_vars(expr), expr, None, free_type_vars(expr))
    func = InferType()(whole)[name]
    return func if isinstance(expr, Function) else func.body


def _rebuild(root: RelayExpr, at: Callable[[Any, Any, Mapping[Any, Any]], RelayExpr],
             memo: dict[Any, Any] | None = None) -> RelayExpr:
    """Rebuilds a program children first; ``at(pre, post, memo)`` says what each expression becomes."""
    memo = {} if memo is None else memo
    for pre in post_order(root, lambda n: [] if n in memo else _parts(n)):
        if pre not in memo:
            post = pre.map_children(lambda c: memo.get(c, c))
            memo[pre] = at(pre, post, memo) if isinstance(pre, RelayExpr) else post
    return memo[root]


def _parts(node: Any) -> list[Any]:
    if isinstance(node, (Type, Constructor, Var)):
        return []
    return [c for c in node.children() if not isinstance(c, Type)]


class Grouper:
    """Finds the matches of a pattern that can be taken together."""

    def __init__(self) -> None:
        self.taken: dict[RelayExpr, int] = {}
        self.count = 0

    def groups(self, pattern: DFPattern, expr: RelayExpr) -> dict[RelayExpr, Group]:
        """The matches by their root."""
        self.parts = list(post_order(pattern, pattern_children))
        self.graph = IndexedGraph(expr)
        self.matcher = Matcher(self.graph)
        found: dict[RelayExpr, Group] = {}
        closed: set[RelayExpr] = set()
        for node in reversed(self.graph.nodes):
            current = node.expr
            if current in self.taken:
                continue
            if isinstance(current, Function) and current.get_attr(PARTITIONED) is not None:
                closed.update((current, *exprs(current.body)))
            if current not in closed and self.matcher.match(pattern, current):
                group = self._group(current)
                if group is not None:
                    found[current] = group
        return found

    def _group(self, root: RelayExpr) -> Group | None:
        found = self.matcher.found
        self.matcher.found = {}
        inputs = self._inputs(found)
        name: list[str] = []
        memo: dict[Any, Any] = dict(inputs)

        def note(pre: RelayExpr, post: RelayExpr, memo_: Any) -> RelayExpr:
            name.append(_part_name(pre))
            return post

        body = _rebuild(root, note, memo)
        self.count += 1
        inside = [e for e in memo if isinstance(e, RelayExpr) and e not in inputs]
        if not self._can_take(root, inside, inputs):
            return None
        self.taken.update((e, self.count) for e in inside)
        return Group(root, found, Function(list(inputs.values()), body), list(inputs), "".join(name))

    def _inputs(self, found: dict[DFPattern, list[RelayExpr]]) -> dict[RelayExpr, Var]:
        """What fits the leaves of the pattern and so comes from outside, with the parameter that stands for it."""
        fuzzy = self._fuzzy(found)
        inputs: dict[RelayExpr, Var] = {}
        for part in self.parts:
            for expr in self._leaf_matches(part, found):
                if expr in fuzzy or expr in inputs or isinstance(expr, (Op, Function)) or self._embedded(expr, part):
                    continue
                inputs[expr] = Var(f"FunctionVar_{self.count}_{len(inputs)}")
        return inputs

    def _leaf_matches(self, part: Any, found: dict[DFPattern, list[RelayExpr]]) -> list[RelayExpr]:
        matches: list[Any] = found.get(part, [])
        if isinstance(part, TuplePattern) and part.fields is None:
            return [f for m in matches for f in m.fields]
        if isinstance(part, CallPattern) and part.args is None:
            return [a for m in matches for a in m.args]
        return [] if pattern_children(part) else matches

    def _fuzzy(self, found: dict[DFPattern, list[RelayExpr]]) -> set[RelayExpr]:
        """What lies on the paths of dominators and inside matched functions: part of the match, never an input."""
        inner: set[RelayExpr] = set()
        for part in self.parts:
            if isinstance(part, DominatorPattern):
                inner.update(found.get(part.parent, ()), found.get(part.path, ()))
            elif isinstance(part, FunctionPattern):
                for func in found.get(part, ()):
                    inner.update(exprs(func.body))  # type: ignore[attr-defined]
        return inner

    def _embedded(self, expr: RelayExpr, part: Any) -> bool:
        """Whether a constant stays inside the function, because the pattern asks for a constant there."""
        while isinstance(expr, Constant):
            if isinstance(part, AltPattern):
                part = part.left if Matcher(self.graph).match(part.left, expr) else part.right
                continue
            return isinstance(part, ConstantPattern) or (isinstance(part, ExprPattern) and isinstance(part.expr, Constant))
        return False

    def _can_take(self, root: RelayExpr, inside: list[RelayExpr], inputs: dict[RelayExpr, Var]) -> bool:
        """Not when another match has some of it, or when a value inside is needed by something that does not come back to the root."""
        members = set(inside)
        top = self.graph[root]
        for expr in inside:
            if isinstance(expr, (Op, Function, Constant)):
                continue
            if expr in self.taken:
                return False
            if expr is root or expr not in self.graph.by_expr:
                continue
            if any(out.expr not in members and not top.dominates(out) for out in self.graph[expr].outputs):
                return False
        return True


_PART_NAMES: dict[type, str] = {Tuple: "Tuple_", Function: "Function", Let: "Let_", If: "If_", Match: "Match_"}


def _part_name(expr: RelayExpr) -> str:
    if isinstance(expr, Call):
        return f"{expr.op.name}_" if isinstance(expr.op, Op) else "Call_"
    if isinstance(expr, TupleGetItem):
        return f"TupleGetItem{expr.index}_"
    return _PART_NAMES.get(type(expr), "")


__all__ = ["DFPatternCallback", "Group", "Grouper", "partition", "rewrite"]
