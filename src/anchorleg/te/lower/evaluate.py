"""Evaluates compute bodies: substitutes axes, inlines producers, and folds what the bounds of the axes decide.

One walk on an explicit stack does all of it.  Values of the index type are kept as sums (:class:`Lin`), so index expressions come
out in one canonical form; everything else is rebuilt.  Results are remembered per node and substitution: an expression shared
in the input is shared in the output, and a producer inlined twice at the same indices is one expression.
"""
from __future__ import annotations

from typing import Any, Callable, Sequence

from ...ir.expr import INDEX_DTYPE, FloatImm, IntImm, PrimExpr
from ...tir import build
from ...tir import expr as tir
from ...tir.buffer import BufferLoad, ProducerLoad
from ...tir.intrin import IF_THEN_ELSE, LIKELY
from ..operation import ComputeOp
from ..tensor import Tensor
from .affine import Affine, Lin

Env = dict[int, Lin]
OnLoad = Callable[[Tensor, "list[Lin]"], PrimExpr]
_TRUE, _FALSE = IntImm("bool", 1), IntImm("bool", 0)


class _Frame:
    """One substitution (axis variable → value) and the results under it."""

    __slots__ = ("env", "memo")

    def __init__(self, env: Env) -> None:
        self.env = env
        self.memo: dict[int, Any] = {}


class Evaluator:
    """``on_load(tensor, indices)`` gives the expression of a load; ``inline(tensor)`` the operation to substitute, or None.

    The expressions evaluated must outlive the evaluator.
    """

    def __init__(self, ctx: Affine, on_load: OnLoad, inline: Callable[[Tensor], ComputeOp | None] = lambda t: None) -> None:
        self.ctx, self.on_load, self.inline = ctx, on_load, inline
        self._frames: dict[Any, _Frame] = {}

    def run(self, roots: Sequence[PrimExpr], env: Env) -> list[PrimExpr]:
        """The values of ``roots`` with each variable of ``env`` (by id) replaced."""
        frame = self._frames.get(id(env))
        if frame is None or frame.env is not env:
            frame = self._frames[id(env)] = _Frame(env)
        self._evaluate(frame, roots)
        return [self._as_expr(frame.memo[id(r)]) for r in roots]

    def run_index(self, roots: Sequence[PrimExpr], env: Env) -> list[Lin]:
        """The same for index expressions, as sums."""
        frame = _Frame(env)
        self._evaluate(frame, roots)
        return [self._as_lin(frame.memo[id(r)]) for r in roots]

    def _evaluate(self, frame: _Frame, roots: Sequence[PrimExpr]) -> None:
        stack: list[tuple[_Frame, Any]] = [(frame, r) for r in reversed(roots)]
        while stack:
            frame, node = stack[-1]
            memo = frame.memo
            if id(node) in memo:
                stack.pop()
                continue
            cls = type(node)
            pending = [(frame, k) for k in _kids(cls, node) if id(k) not in memo]
            if pending:
                stack.extend(reversed(pending))
                continue
            if cls is ProducerLoad:
                wanted = self._load(frame, node)
                if wanted is not None:
                    stack.append(wanted)
                    continue
            else:
                memo[id(node)] = self._apply(cls, node, frame)
            stack.pop()

    def _apply(self, cls: type, node: Any, frame: _Frame) -> Any:
        rule = _RULES.get(cls)
        if rule is not None:
            return rule(self, node, frame.memo, frame.env)
        for base in cls.__mro__:
            if base in _RULES:
                _RULES[cls] = _RULES[base]
                return _RULES[base](self, node, frame.memo, frame.env)
        return _other(self, node, frame.memo, frame.env)

    def _load(self, frame: _Frame, node: ProducerLoad) -> tuple[_Frame, PrimExpr] | None:
        """Enters the load in the memo; or says what must be evaluated first: the body of an inlined producer."""
        indices = [self._as_lin(frame.memo[id(i)]) for i in node.indices]
        op = self.inline(node.producer)
        if op is None:
            frame.memo[id(node)] = self.on_load(node.producer, indices)
            return None
        key = (id(op), *(i.key for i in indices))
        inner = self._frames.get(key)
        if inner is None:
            inner = self._frames[key] = _Frame({id(iv.var): i for iv, i in zip(op.axis, indices)})
        body = op.body[node.producer.value_index]
        if id(body) not in inner.memo:
            return inner, body
        frame.memo[id(node)] = inner.memo[id(body)]
        return None

    def _as_expr(self, value: Any) -> PrimExpr:
        return self.ctx.expr(value) if type(value) is Lin else value

    def _as_lin(self, value: Any) -> Lin:
        return value if type(value) is Lin else self.ctx.opaque(value)


def _kids(cls: type, node: Any) -> Any:
    if cls is IntImm or cls is FloatImm or cls is tir.Var or cls is tir.StringImm:
        return ()
    if issubclass(cls, tir.BinaryExpr):
        return (node.a, node.b)
    if cls is tir.Call:
        return [a for a in node.args if isinstance(a, PrimExpr)]
    if cls is ProducerLoad or cls is BufferLoad:
        return node.indices
    if cls is tir.Let:
        return (node.value, node.body)
    return [k for k in node.children() if isinstance(k, PrimExpr)] if not issubclass(cls, tir.Var) else ()


Rule = Callable[[Evaluator, Any, "dict[int, Any]", Env], Any]


def _int_imm(ev: Evaluator, node: IntImm, memo: dict[int, Any], env: Env) -> Any:
    return ev.ctx.const(node.value) if node.dtype == INDEX_DTYPE else node


def _var(ev: Evaluator, node: tir.Var, memo: dict[int, Any], env: Env) -> Any:
    found = env.get(id(node))
    if found is not None:
        return found if node.dtype == INDEX_DTYPE else build.cast(node.dtype, ev.ctx.expr(found))
    return ev.ctx.var(node) if node.dtype == INDEX_DTYPE else node


def _index_rule(method: Callable[[Affine, Lin, Lin], Lin]) -> Rule:
    def rule(ev: Evaluator, node: Any, memo: dict[int, Any], env: Env) -> Any:
        a, b = memo[id(node.a)], memo[id(node.b)]
        if node.dtype == INDEX_DTYPE:
            return method(ev.ctx, ev._as_lin(a), ev._as_lin(b))
        return _rebuild_binary(ev, node, a, b)

    return rule


def _rebuild_binary(ev: Evaluator, node: Any, a: Any, b: Any) -> Any:
    a, b = ev._as_expr(a), ev._as_expr(b)
    if a is node.a and b is node.b:
        return node
    if type(a) in _IMM or type(b) in _IMM:
        return build.BUILDERS[type(node)](a, b)
    return type(node)(a, b)


_IMM = (IntImm, FloatImm)


def _trunc(floor: Callable[[Affine, Lin, Lin], Lin]) -> Rule:
    """Division cut towards zero: as floor division where both sides are known not to be negative."""
    def rule(ev: Evaluator, node: Any, memo: dict[int, Any], env: Env) -> Any:
        a, b = memo[id(node.a)], memo[id(node.b)]
        if node.dtype == INDEX_DTYPE:
            x, y = ev._as_lin(a), ev._as_lin(b)
            if ev.ctx.always_at_least(x, 0) and ev.ctx.always_at_least(y, 1):
                return floor(ev.ctx, x, y)
            return ev.ctx.opaque(build.BUILDERS[type(node)](ev.ctx.expr(x), ev.ctx.expr(y)))
        return _rebuild_binary(ev, node, a, b)

    return rule


def _compare(verdict: Callable[["int | None", "int | None"], "bool | None"]) -> Rule:
    """A comparison, decided when the bounds (lo, hi) of a - b decide it."""
    def rule(ev: Evaluator, node: Any, memo: dict[int, Any], env: Env) -> Any:
        a, b = memo[id(node.a)], memo[id(node.b)]
        if type(a) is Lin and type(b) is Lin:
            known = verdict(*ev.ctx.compare(a, b))
            if known is not None:
                return _TRUE if known else _FALSE
        return _rebuild_binary(ev, node, a, b)

    return rule


def _less(lo: int | None, hi: int | None) -> bool | None:
    return True if hi is not None and hi < 0 else False if lo is not None and lo >= 0 else None


def _less_equal(lo: int | None, hi: int | None) -> bool | None:
    return True if hi is not None and hi <= 0 else False if lo is not None and lo > 0 else None


def _equal(lo: int | None, hi: int | None) -> bool | None:
    if lo is None or hi is None:
        return False if lo is not None and lo > 0 or hi is not None and hi < 0 else None
    return False if lo > 0 or hi < 0 else True if lo == hi == 0 else None


def _negated(verdict: Callable[[Any, Any], "bool | None"]) -> Callable[[Any, Any], "bool | None"]:
    def opposite(lo: int | None, hi: int | None) -> bool | None:
        known = verdict(lo, hi)
        return None if known is None else not known

    return opposite


def _binary(ev: Evaluator, node: Any, memo: dict[int, Any], env: Env) -> Any:
    return _rebuild_binary(ev, node, memo[id(node.a)], memo[id(node.b)])


def _not(ev: Evaluator, node: tir.Not, memo: dict[int, Any], env: Env) -> Any:
    a = memo[id(node.a)]
    return node if a is node.a else build.logical_not(a)


def _call(ev: Evaluator, node: tir.Call, memo: dict[int, Any], env: Env) -> Any:
    args = tuple(ev._as_expr(memo[id(a)]) if isinstance(a, PrimExpr) else a for a in node.args)
    if node.op is IF_THEN_ELSE and type(args[0]) is IntImm:
        taken = args[1] if args[0].value else args[2]
        return ev._as_lin(taken) if node.dtype == INDEX_DTYPE else taken
    if node.op is LIKELY and type(args[0]) is IntImm:
        return args[0]
    new = node if all(a is b for a, b in zip(args, node.args)) else tir.Call(node.dtype, node.op, args)
    return ev.ctx.opaque(new) if node.dtype == INDEX_DTYPE else new


def _select(ev: Evaluator, node: tir.Select, memo: dict[int, Any], env: Env) -> Any:
    c, t, f = (memo[id(x)] for x in (node.condition, node.true_value, node.false_value))
    if type(c) is IntImm:
        return t if c.value else f
    return _as_index(ev, node.replace(condition=c, true_value=ev._as_expr(t), false_value=ev._as_expr(f)))


def _as_index(ev: Evaluator, node: PrimExpr) -> Any:
    return ev.ctx.opaque(node) if node.dtype == INDEX_DTYPE else node


def _cast(ev: Evaluator, node: tir.Cast, memo: dict[int, Any], env: Env) -> Any:
    value = ev._as_expr(memo[id(node.value)])
    return _as_index(ev, node if value is node.value else build.cast(node.dtype, value))


def _other(ev: Evaluator, node: Any, memo: dict[int, Any], env: Env) -> Any:
    return _as_index(ev, node.map_children(lambda c: ev._as_expr(memo[id(c)]) if id(c) in memo else c))


_RULES: dict[type, Rule] = {
    IntImm: _int_imm, tir.Var: _var,
    tir.Add: _index_rule(Affine.add), tir.Sub: _index_rule(Affine.sub), tir.Mul: _index_rule(Affine.mul),
    tir.FloorDiv: _index_rule(Affine.floor_div), tir.FloorMod: _index_rule(Affine.floor_mod),
    tir.Min: _index_rule(Affine.min), tir.Max: _index_rule(Affine.max),
    tir.Div: _trunc(Affine.floor_div), tir.Mod: _trunc(Affine.floor_mod),
    tir.LT: _compare(_less), tir.LE: _compare(_less_equal), tir.GE: _compare(_negated(_less)), tir.GT: _compare(_negated(_less_equal)),
    tir.EQ: _compare(_equal), tir.NE: _compare(_negated(_equal)),
    tir.BinaryExpr: _binary, tir.Not: _not, tir.Call: _call, tir.Select: _select, tir.Cast: _cast, PrimExpr: _other,
}
