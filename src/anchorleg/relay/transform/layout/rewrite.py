"""The rewriting that carries layouts through a function."""
from __future__ import annotations

from typing import Any, Callable, Sequence

from ....ir.expr import RelayExpr
from ....ir.op import Op
from ....ir.type import TensorType, TupleType
from ....ir.visit import Walker
from ...expr import Call, Let, Tuple, TupleGetItem
from ...function import Function
from ..common import descends
from .place import Mover, Place, Plan, Value
from .rules import Request, rule_for

Alter = Callable[[Call, Sequence[RelayExpr]], "RelayExpr | None"]
Placed = Any  # Value, or a list of them for a tuple


class LayoutRewriter(Walker):
    """Rewrites one function; ``alter(old_call, args)`` may give a call of another operator or with other layouts.

    Where the altered call takes just the arguments it was offered, layouts are negotiated and carried on; otherwise it
    stands as it is, in the program's layouts.
    """

    def __init__(self, alter: Alter) -> None:
        super().__init__()
        self.alter, self.mover = alter, Mover()

    def rewrite(self, func: Function) -> Function:
        """The function with its results in the program's layouts."""
        return func.replace(body=self.plain(self.visit(func.body)))

    def plain(self, placed: Placed) -> RelayExpr:
        """A value as an expression in the program's layout."""
        if isinstance(placed, Value):
            return self.mover.restore(placed)
        if placed.whole is not None and not any(v.place is not None and v.place.moved for v in placed):
            return placed.whole
        return Tuple([self.mover.restore(v) for v in placed])

    def visit_Call(self, call: Call) -> Any:
        args = yield list(call.args)
        if not isinstance(call.op, Op):
            op = yield call.op
            return _unplaced(call.replace(op=self.plain(op), args=tuple(map(self.plain, args))), call)
        if not _tensor_arguments(call):
            return _unplaced(call.replace(args=tuple(map(self.plain, args))), call)
        return self._operator(call, args)

    def _operator(self, call: Call, args: list[Placed]) -> Placed:
        offered = [self.plain(a) for a in args]
        altered = self.alter(call, offered)
        attrs, op = call.attrs, call.op
        if altered is not None:
            same = isinstance(altered, Call) and len(altered.args) == len(offered) and all(a is b for a, b in zip(altered.args, offered))
            if not same:
                return _unplaced(altered, call)
            attrs, op = altered.attrs, altered.op
        values = [v for a in args for v in (a if isinstance(a, list) else [a])]
        rule = rule_for(op, attrs)
        plan = rule(Request(op, call.attrs, attrs, values, _out_dims(call))) if rule is not None else None
        if plan is None:
            return _unplaced(call.replace(op=op, args=tuple(offered), attrs=attrs), call)
        return self._planned(call, op, args, plan)

    def _planned(self, call: Call, op: Op, args: list[Placed], plan: Plan) -> Placed:
        wants = iter(plan.inputs)
        moved: list[RelayExpr] = []
        for arg in args:
            if isinstance(arg, list):
                moved.append(Tuple([self.mover.move(v, next(wants), plan.broadcasts) for v in arg]))
            else:
                moved.append(self.mover.move(arg, next(wants), plan.broadcasts))
        new = Call(op, moved, plan.attrs, call.type_args, call.span)
        return _placed(new, call, plan.outputs)

    def visit_Tuple(self, tup: Tuple) -> Any:
        fields = yield list(tup.fields)
        if all(isinstance(f, Value) for f in fields):
            return _Fields(fields)
        return _unplaced(tup.replace(fields=tuple(map(self.plain, fields))), tup)

    def visit_TupleGetItem(self, get: TupleGetItem) -> Any:
        source = yield get.tuple_value
        if isinstance(source, list):
            return source[get.index]
        return _unplaced(get.replace(tuple_value=self.plain(source)), get)

    def visit_Let(self, let: Let) -> Any:
        value = yield let.value
        self.memo[id(let.var)] = (let.var, _unplaced(let.var, let.var))
        body = yield let.body
        return _unplaced(let.replace(value=self.plain(value), body=self.plain(body)), let)

    def visit_default(self, node: Any) -> Any:
        if not descends(node):
            return _unplaced(node, node) if isinstance(node, RelayExpr) else node
        kids = node.children()
        results = yield kids
        table = {id(k): self.plain(r) if isinstance(k, RelayExpr) else r for k, r in zip(kids, results)}
        new = node.map_children(lambda c: table[id(c)])
        return _unplaced(new, node) if isinstance(node, RelayExpr) else new


class _Fields(list):
    """The fields of a tuple value; ``whole`` is the expression they are the fields of, when there is one."""

    whole: RelayExpr | None = None


def _tensor_arguments(call: Call) -> bool:
    return all(isinstance(a._checked_type, TensorType) or isinstance(a._checked_type, TupleType)
               and all(isinstance(f, TensorType) for f in a._checked_type.fields) for a in call.args)


def _out_dims(call: Call) -> tuple[Any, ...]:
    ty = call.checked_type
    return ty.dims if isinstance(ty, TensorType) else ()


def _placed(new: RelayExpr, old: RelayExpr, places: Sequence[Place | None]) -> Placed:
    ty = old._checked_type
    if isinstance(ty, TupleType):
        fields = _Fields(Value(TupleGetItem(new, i), p, f.dims) for i, (f, p) in enumerate(zip(ty.fields, places)))
        fields.whole = new
        return fields
    return Value(new, places[0], ty.dims if isinstance(ty, TensorType) else ())


def _unplaced(new: RelayExpr, old: RelayExpr) -> Placed:
    ty = old._checked_type
    if isinstance(ty, TupleType) and ty.fields and all(isinstance(f, TensorType) for f in ty.fields):
        return _placed(new, old, [None] * len(ty.fields))
    return Value(new, None, ty.dims if isinstance(ty, TensorType) else ())
