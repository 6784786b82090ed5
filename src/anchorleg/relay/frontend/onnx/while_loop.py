"""A loop over values as a local function that calls itself, for layers with a number of steps that is known only at run time.

What a body uses and does not change is bound outside of the loop, so that it is computed once.
"""
from __future__ import annotations

from typing import Any, Callable, Sequence

from ....ir.expr import Any as AnyDim, RelayExpr
from ....ir.type import FuncType, TensorType, TupleType, Type, TypeCall
from ....ir.visit import post_order
from ....support.errors import ArgumentError, TypeMismatchError
from ...analysis.variables import bound_vars, expr_children
from ...expr import Call, Constant, If, Let, Tuple, TupleGetItem, Var
from ...function import Function
from ...op.type_relations import show
from ...transform.infer_type import infer_type
from .context import NodeContext
from .lists import as_list, is_list
from .make import call

Body = Callable[[list[Var]], "list[RelayExpr]"]
Condition = Callable[[list[Var]], RelayExpr]


class _Types:
    """The types of what a loop carries: those it begins with, weakened until a turn gives the same again.

    A size that is not known is still one certain size: it stays only where the next turn's value has the very same one.
    Otherwise it becomes one that nothing is known of.
    """

    def __init__(self, n: NodeContext, types: Sequence[Type]) -> None:
        self.n, self.types = n, list(types)
        self.open: dict[int, AnyDim] = {}

    def absorb(self, found: Sequence[Type]) -> bool:
        """Weakens the types to cover those after a turn; whether they did already."""
        joined = [self._join(a, b) for a, b in zip(self.types, found)]
        settled = all(a is b for a, b in zip(joined, self.types))
        self.types = joined
        return settled

    def _join(self, a: Type, b: Type) -> Type:
        if isinstance(a, TupleType) and isinstance(b, TupleType) and len(a.fields) == len(b.fields):
            fields = [self._join(x, y) for x, y in zip(a.fields, b.fields)]
            return a if all(x is y for x, y in zip(fields, a.fields)) else TupleType(fields)
        if isinstance(a, (TupleType, TypeCall)) and isinstance(b, (TupleType, TypeCall)):
            return self._join_sequences(a, b)
        if not isinstance(a, TensorType) or not isinstance(b, TensorType) or a.dtype != b.dtype or len(a.dims) != len(b.dims):
            raise TypeMismatchError(f"a value that a loop carries changes its type from {show(a)} to {show(b)}: only its sizes may change")
        dims = [self._join_dims(x, y) for x, y in zip(a.dims, b.dims)]
        return a if all(x is y for x, y in zip(dims, a.dims)) else TensorType(dims, a.dtype)

    def _join_sequences(self, a: Any, b: Any) -> Type:
        """Sequences of different lengths are lists."""
        elements = [*(a.fields if isinstance(a, TupleType) else a.args), *(b.fields if isinstance(b, TupleType) else b.args)]
        joined = elements[0]
        for each in elements[1:]:
            joined = self._join(joined, each)
        return a if isinstance(a, TypeCall) and joined is elements[0] else self.n.importer.lists.of(joined)

    def _join_dims(self, x: Any, y: Any) -> Any:
        if x is y or id(x) in self.open or isinstance(x, int) and isinstance(y, int) and x == y:
            return x
        fresh = AnyDim()
        self.open[id(fresh)] = fresh
        return fresh


def while_loop(n: NodeContext, condition: Condition, body: Body, initial: Sequence[RelayExpr], names: Sequence[str]) -> list[RelayExpr]:
    """The values carried by a loop when its condition fails; ``body`` gives those of the next turn."""
    initial = n.settled(*initial)
    types = _Types(n, [n.builder.type_of(e) for e in initial])
    for _ in range(64):  # each time at least one more size turns out to change
        params = [_var(name, ty) for name, ty in zip(names, types.types)]
        going = n.settled(condition(params))[0]
        following = n.settled(*body(params))
        if types.absorb([n.builder.type_of(e) for e in following]):
            following, initial = ([as_list(n, e, t) for e, t in zip(each, types.types)] if any(map(is_list, types.types)) else each
                                  for each in (following, initial))
            return _written(n, params, going, following, initial, types.types)
    raise ArgumentError("the types of what a loop carries do not settle")


def _var(name: str, ty: Type) -> Var:
    return infer_type(Var(name, ty))


def _written(n: NodeContext, params: list[Var], going: RelayExpr, following: list[RelayExpr], initial: Sequence[RelayExpr],
             types: list[Type]) -> list[RelayExpr]:
    result = TupleType(types)
    loop = _var("while", FuncType(types, result))
    scalar = going if not n.dims(going) else call("reshape", going, newshape=())
    again, done = Call(loop, following), Tuple(params)
    body: RelayExpr = If(scalar, again, done)
    outside = invariants(body, {id(v) for v in (*params, loop)})
    body, lets = _bound_outside(body, outside)
    whole: RelayExpr = Let(loop, Function(params, body, result), Call(loop, list(initial)))
    for var, value in reversed(lets):
        whole = Let(var, value, whole)
    whole = infer_type(whole)
    whole.span = n.builder.span
    return n.settled(*[TupleGetItem(whole, i) for i in range(len(types))])


def invariants(body: RelayExpr, inside: set[int]) -> list[RelayExpr]:
    """The largest parts of a loop's body that depend on nothing bound in it, constants and variables left out."""
    depends = _dependences(body, inside)
    found: dict[int, RelayExpr] = {}
    seen: set[int] = set()
    stack: list[Any] = [body]
    while stack:
        node = stack.pop()
        if id(node) in seen:
            continue
        seen.add(id(node))
        if not depends[id(node)]:
            if isinstance(node, (Call, TupleGetItem, If, Let)):
                found[id(node)] = node
            elif isinstance(node, Tuple):
                stack.extend(node.fields)
        elif not isinstance(node, Function):
            stack.extend(expr_children(node))
    return list(found.values())


def _dependences(body: RelayExpr, inside: set[int]) -> dict[int, int]:
    """For each expression the variables bound in the body that are free in it, as a bit set."""
    bit = {v: 1 << i for i, v in enumerate([*inside, *(id(v) for v in bound_vars(body) if id(v) not in inside)])}
    found: dict[int, int] = {}
    for node in post_order(body, expr_children):
        here = bit.get(id(node), 0)
        for c in expr_children(node):
            here |= found[id(c)]
        for v in (node.var,) if isinstance(node, Let) else node.params if isinstance(node, Function) else ():
            here &= ~bit.get(id(v), 0)
        found[id(node)] = here
    return found


def _bound_outside(body: RelayExpr, outside: list[RelayExpr]) -> tuple[RelayExpr, list[tuple[Var, RelayExpr]]]:
    """The body with its invariant parts replaced by variables, and those variables' values."""
    lets = [(_var(f"outer_{i}", e.checked_type), e) for i, e in enumerate(outside)]
    memo: dict[int, Any] = {id(e): v for v, e in lets}
    for node in post_order(body, lambda x: () if id(x) in memo else expr_children(x)):
        if id(node) in memo:
            continue
        if isinstance(node, (Var, Constant)):
            memo[id(node)] = node
            continue
        new = node.map_children(lambda c: memo.get(id(c), c))
        if new is not node:
            new._checked_type, new.span = node._checked_type, node.span
        memo[id(node)] = new
    return memo[id(body)], lets


__all__ = ["invariants", "while_loop"]
