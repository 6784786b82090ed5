"""Primitive functions taken apart again, where a size inside depends on more than the sizes of arguments and results.

Compiled code is given the sizes of the tensors it is handed, and no others.  Between operators that are not fused there are tensors,
whose sizes are known when they are there.

before::

    fn (%p: Tensor[(?, 64), float32], %s: Tensor[(3), int64], Primitive=1) { reshape(transpose(dyn.reshape(%p, %s)), newshape=[-1]) }(%x, %y)

after::

    let %0 = fn (…, Primitive=1) { dyn.reshape(…) }(%x, %y); let %1 = fn (…) { transpose(…) }(%0); fn (…) { reshape(…) }(%1)
"""
from __future__ import annotations

from typing import Any, Iterator

from ...ir.attrs import DictAttrs
from ...ir.expr import Any as AnyDim, RelayExpr
from ...ir.op import Op
from ...ir.type import FuncType
from ...ir.visit import post_order
from ..expr import Call, Constant, Tuple, TupleGetItem, Var
from ..function import Function
from ..op.shape_func.evaluate import children
from ..op.shape_func.registry import flatten_types


def has_open_sizes(func: Function) -> bool:
    """Whether a tensor inside the function has a size that no argument and no result has."""
    given = {id(d) for ty in (*(p.checked_type for p in func.params), func.ret_type) for d in _unknown(ty)}
    return any(id(d) not in given for node in post_order(func.body, children) if isinstance(node, Call) for d in _unknown(node.checked_type))


def _unknown(ty: Any) -> Iterator[AnyDim]:
    """The sizes of a type that are unknowns of their own (not formulas)."""
    return (d for t in flatten_types(ty) for d in t.dims if isinstance(d, AnyDim))


def one_by_one(call: Call) -> list[tuple[Var, Call]]:
    """Calls of primitive functions of one operator each, whose last one gives what ``call`` does; empty when there is but one operator."""
    func: Any = call.op
    steps = [n for n in post_order(func.body, children) if isinstance(n, Call) and isinstance(n.op, Op)]
    if len(steps) < 2 or steps[-1] is not func.body:
        return []
    values: dict[int, RelayExpr] = {id(p): a for p, a in zip(func.params, call.args)}
    done: list[tuple[Var, Call]] = []
    for step in steps:
        inner, outer = _own_parameters(step, values)
        body = step.replace(args=tuple(_rebuilt(a, inner) for a in step.args))
        body._checked_type = step.checked_type
        made = Call(_primitive(list(inner.values()), body), outer)
        var = Var("part")
        var._checked_type = made._checked_type = step.checked_type
        values[id(step)] = var
        done.append((var, made))
    return done


def _leaves(expr: RelayExpr) -> Iterator[RelayExpr]:
    """The tensors that an argument is made of."""
    stack = [expr]
    while stack:
        node = stack.pop()
        if isinstance(node, Tuple):
            stack.extend(reversed(node.fields))
        elif not isinstance(node, Constant):
            yield node


def _own_parameters(step: Call, values: dict[int, RelayExpr]) -> tuple[dict[int, Var], list[RelayExpr]]:
    """A parameter for each tensor that the operator takes (by id), and what is given for it."""
    inner: dict[int, Var] = {}
    outer: list[RelayExpr] = []
    for arg in step.args:
        for leaf in _leaves(arg):
            if id(leaf) in inner:
                continue
            inner[id(leaf)] = Var("p", leaf.checked_type)
            inner[id(leaf)]._checked_type = leaf.checked_type
            outer.append(_given(leaf, values))
    return inner, outer


def _given(leaf: RelayExpr, values: dict[int, RelayExpr]) -> RelayExpr:
    if id(leaf) not in values and isinstance(leaf, TupleGetItem):
        item = TupleGetItem(values[id(leaf.tuple_value)], leaf.index)
        item._checked_type = leaf.checked_type
        values[id(leaf)] = item
    return values[id(leaf)]


def _rebuilt(arg: RelayExpr, inner: dict[int, Var]) -> RelayExpr:
    if not isinstance(arg, Tuple):
        return inner.get(id(arg), arg)
    made = Tuple([_rebuilt(f, inner) for f in arg.fields])
    made._checked_type = arg.checked_type
    return made


def _primitive(params: list[Var], body: Call) -> Function:
    func = Function(params, body, body.checked_type, (), DictAttrs({"Primitive": 1}))
    func._checked_type = FuncType([p.checked_type for p in params], body.checked_type)
    return func


__all__ = ["has_open_sizes", "one_by_one"]
