"""The rewriting that carries layouts through a function."""
from __future__ import annotations

from typing import Any, Callable, Iterable, Sequence

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

    Layouts are negotiated for the altered call's arguments: those it was offered are taken in whatever layout they are
    in, others are in the layouts of the program.  What is no call of an operator stands as it is.
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
        return placed.restored(self.mover)

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
        if altered is None:
            altered = call.replace(args=tuple(offered))
        if not isinstance(altered, Call) or not isinstance(altered.op, Op):
            return _unplaced(altered, call)
        placed = self._arguments(call, altered, offered, args)
        values = [v for a in placed for v in (a if isinstance(a, list) else [a])]
        rule = rule_for(altered.op, altered.attrs)
        plan = rule(Request(altered.op, call.attrs, altered.attrs, values, _out_dims(call))) if rule is not None else None
        if plan is None:
            return _unplaced(altered, call)
        return self._planned(call, altered, placed, plan)

    @staticmethod
    def _arguments(call: Call, altered: Call, offered: list[RelayExpr], args: list[Placed]) -> list[Placed]:
        """What is known of the altered call's arguments; of a new one, that it is shaped as the one in its place was."""
        known = {id(e): a for e, a in zip(offered, args)}
        found: list[Placed] = []
        for i, new in enumerate(altered.args):
            if id(new) in known:
                found.append(known[id(new)])
            else:
                found.append(_unplaced(new, call.args[i]) if i < len(call.args) else Value(new, None, ()))
        return found

    def _planned(self, call: Call, altered: Call, args: list[Placed], plan: Plan) -> Placed:
        wants = iter(plan.inputs)
        moved: list[RelayExpr] = []
        for arg in args:
            if isinstance(arg, list):
                moved.append(Tuple([self.mover.move(v, next(wants), plan.broadcasts) for v in arg]))
            else:
                moved.append(self.mover.move(arg, next(wants), plan.broadcasts))
        return _placed(altered.replace(args=tuple(moved), attrs=plan.attrs, span=altered.span or call.span), call, plan.outputs)

    def visit_Tuple(self, tup: Tuple) -> Any:
        fields = yield list(tup.fields)
        if all(isinstance(f, Value) for f in fields):
            return _Fields(fields, tup if all(f.expr is old for f, old in zip(fields, tup.fields)) else None)
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

    def __init__(self, fields: Iterable[Value], whole: RelayExpr | None = None) -> None:
        super().__init__(fields)
        self.whole = whole
        self._restored: RelayExpr | None = None

    def restored(self, mover: Mover) -> RelayExpr:
        """One tuple of the fields in the program's layouts, however often it is asked for."""
        if self._restored is None:
            self._restored = Tuple([mover.restore(v) for v in self])
        return self._restored


def _tensor_arguments(call: Call) -> bool:
    return all(isinstance(a._checked_type, TensorType) or isinstance(a._checked_type, TupleType)
               and all(isinstance(f, TensorType) for f in a._checked_type.fields) for a in call.args)


def _out_dims(call: Call) -> tuple[Any, ...]:
    ty = call.checked_type
    return ty.dims if isinstance(ty, TensorType) else ()


def _placed(new: RelayExpr, old: RelayExpr, places: Sequence[Place | None]) -> Placed:
    ty = old._checked_type
    if isinstance(ty, TupleType):
        return _Fields((Value(TupleGetItem(new, i), p, f.dims) for i, (f, p) in enumerate(zip(ty.fields, places))), new)
    return Value(new, places[0], ty.dims if isinstance(ty, TensorType) else ())


def _unplaced(new: RelayExpr, old: RelayExpr) -> Placed:
    ty = old._checked_type
    if isinstance(ty, TupleType) and ty.fields and all(isinstance(f, TensorType) for f in ty.fields):
        return _placed(new, old, [None] * len(ty.fields))
    return Value(new, None, ty.dims if isinstance(ty, TensorType) else ())
