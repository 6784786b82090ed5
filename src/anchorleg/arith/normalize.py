"""From expressions to normal form: one rule per class of node.

The value of an expression is a :class:`Lin` (integers), a :class:`Cond` or Python bool (conditions), or a ``PrimExpr`` (floats, vectors,
pointers), in which equal terms are one object.  Integer arithmetic in a type other than the index type is taken apart only when
its bounds show that the machine's result is the mathematical one; otherwise the operation becomes an atom.
"""
from __future__ import annotations

from typing import Any, Callable, Sequence, Union

from ..ir.expr import INDEX_DTYPE, FloatImm, IntImm, PrimExpr
from ..ir.op import Op
from ..tir import build, intrin
from ..tir import expr as tir
from ..tir.buffer import BufferLoad, ProducerLoad
from ..tir.dtypes import info, is_integer, lanes_of
from ..tir.functor import kids, rebuild
from .integers import Algebra, fits
from .logic import Cond, Logic, Truth
from .terms import Lin, Space, common_rank

Value = Union[Lin, Cond, bool, PrimExpr]
_MAX_DEPTH = 60  # of plain recursion
_LEAF = (tir.StringImm, tir.Any)


class Normalizer:
    """Normal forms of expressions under the facts of one algebra."""

    def __init__(self) -> None:
        self.algebra = Algebra()
        self.space, self.facts = self.algebra.space, self.algebra.facts
        self.logic = Logic(self.algebra)
        self.memo: dict[int, tuple[PrimExpr, Value]] = {}
        self.vars: dict[int, Value] = {}
        self._var_keep: list[tir.Var] = []
        self._shared: dict[Any, PrimExpr] = {}

    # ------------------------------------------------------------ scopes

    def enter(self) -> tuple[Any, ...]:
        """Opens a scope for facts; hand the result to :meth:`leave`."""
        saved = (self.facts.snapshot(), self.algebra.divs, self.algebra.mods, self.memo)
        self.forget()
        return saved

    def leave(self, saved: tuple[Any, ...]) -> None:
        """Closes the scope."""
        facts, self.algebra.divs, self.algebra.mods, self.memo = saved
        self.facts.restore(facts)

    def forget(self) -> None:
        """Drops results that may be improved by new facts."""
        self.algebra.divs, self.algebra.mods, self.memo = {}, {}, {}
        self.facts.forget()

    def assume(self, c: Truth) -> None:
        """Takes a condition as true from here on (within the scope)."""
        pending = [c]
        while pending:
            c = pending.pop()
            if isinstance(c, bool) or not c.pure:
                continue
            if c.kind in ("and", "likely"):
                pending.extend(c.args)
            elif c.kind == "ge":
                self.facts.learn(c.args[0])
            elif c.kind == "eq":
                self.facts.learn(c.args[0])
                self.facts.learn(self.space.scale(c.args[0], -1))
            elif c.kind == "ne":
                self._learn_ne(c.args[0])

    def _learn_ne(self, x: Lin) -> None:
        low, high = self.facts.bound(x)
        if low == 0:
            self.facts.learn(self.space.shift(x, -1))
        elif high == 0:
            self.facts.learn(self.space.shift(self.space.scale(x, -1), -1))

    # ------------------------------------------------------------ variables

    def var(self, v: tir.Var) -> Value:
        """The value of a variable."""
        found = self.vars.get(id(v))
        if found is None:
            found = self.vars[id(v)] = self._new_var(v)
            self._var_keep.append(v)
        return found

    def _new_var(self, v: tir.Var) -> Value:
        kind = info(v.dtype).kind
        if kind == "bool":
            return self.logic.of_expr(v)
        if kind not in ("int", "uint") or lanes_of(v.dtype) != 1:
            return v
        a = self.space.atom(("var", id(v)), "var", (v,), v.dtype, v, self.space.next_rank(), 0)
        if isinstance(v, tir.SizeVar):
            a.base = (0, self.facts.atom_bound(a)[1])
            self.facts.forget()
        return self.space.of_atom(a)

    def known(self, v: tir.Var) -> bool:
        """Whether the variable has been met."""
        return id(v) in self.vars

    def set_var(self, v: tir.Var, value: Value) -> None:
        """Makes ``v`` mean ``value`` from here on."""
        if id(v) in self.vars:
            self.forget()
        else:
            self._var_keep.append(v)
        self.vars[id(v)] = value

    # ------------------------------------------------------------ expressions

    def value(self, e: PrimExpr) -> Value:
        """The normal form of an expression."""
        return self._go(e, 0)

    def lin(self, e: PrimExpr | int) -> Lin:
        """The normal form of an integer expression (of a bool: 0 or 1)."""
        if isinstance(e, int):
            return self.space.const(e)
        return self.as_lin(self._go(e, 0), e)

    def cond(self, e: PrimExpr | bool) -> Truth:
        """The normal form of a condition."""
        if isinstance(e, bool):
            return e
        return self.as_cond(self._go(e, 0), e)

    def as_lin(self, v: Value, e: PrimExpr) -> Lin:
        """A value as an integer."""
        if isinstance(v, Lin):
            return v
        if isinstance(v, bool):
            return self.space.const(int(v))
        if isinstance(v, Cond):
            return self.space.of_atom(self.space.atom(("bool", v.uid), "bool", (v,), "bool", v.expr, self._rank_of(v.expr), 1, v.pure))
        return self.opaque(v)

    def as_cond(self, v: Value, e: PrimExpr) -> Truth:
        """A value as a condition."""
        if isinstance(v, (bool, Cond)):
            return v
        if isinstance(v, Lin):
            return self.logic.ne0(v)
        return self.logic.of_expr(v, self._pure(v))

    def emit(self, v: Value, dtype: str) -> PrimExpr:
        """The expression of a value, in ``dtype``."""
        if isinstance(v, Lin):
            return self.space.emit(v, dtype)
        if isinstance(v, bool):
            return IntImm(dtype, v) if dtype == "bool" else build.make_const(int(v), dtype)
        if isinstance(v, Cond):
            return v.expr if dtype == "bool" else build.cast(dtype, v.expr)
        return v

    def _go(self, e: PrimExpr, depth: int) -> Value:
        t = type(e)
        if t is IntImm:
            return (e.value != 0) if e.dtype == "bool" else self.space.const(e.value) if e.dtype != "handle" else e  # type: ignore[attr-defined]
        if t is tir.Var or t is tir.SizeVar:
            return self.var(e)  # type: ignore[arg-type]
        if t is FloatImm or t in _LEAF:
            return e
        hit = self.memo.get(id(e))
        if hit is not None:
            return hit[1]
        if depth > _MAX_DEPTH:
            return self._deep(e)
        if t is tir.Select or t is tir.Call and e.op is intrin.IF_THEN_ELSE:  # type: ignore[attr-defined]
            result = self._branching(e, depth)
        else:
            result = self._apply(e, [self._go(k, depth + 1) for k in kids(e)])  # type: ignore[arg-type]
        self.memo[id(e)] = (e, result)
        return result

    def _deep(self, root: PrimExpr) -> Value:
        """The same on an explicit stack (branches are then not looked at under their condition)."""
        stack: list[tuple[PrimExpr, bool]] = [(root, False)]
        while stack:
            e, ready = stack.pop()
            if id(e) in self.memo:
                continue
            below = kids(e)
            if ready or not below:
                self.memo[id(e)] = (e, self._apply(e, [self._known(k) for k in below]) if below else self._go(e, 0))  # type: ignore[arg-type]
                continue
            stack.append((e, True))
            stack.extend((k, False) for k in below if kids(k))  # type: ignore[misc]
        return self.memo[id(root)][1]

    def _known(self, e: PrimExpr) -> Value:
        hit = self.memo.get(id(e))
        return hit[1] if hit is not None else self._go(e, 0)

    def _branching(self, e: Any, depth: int) -> Value:
        cond, yes, no = kids(e)
        c = self.as_cond(self._go(cond, depth + 1), cond)  # type: ignore[arg-type]
        if isinstance(c, bool):
            return self._go(yes if c else no, depth + 1)  # type: ignore[arg-type]
        return self._choose(e, c, self._under(c, yes, depth), self._under(self.logic.negate(c), no, depth))

    def _under(self, c: Truth, e: Any, depth: int) -> Value:
        """The value of ``e`` where ``c`` holds."""
        if not kids(e) or isinstance(c, bool) or not c.pure:
            return self._go(e, depth + 1)
        saved = self.enter()
        try:
            self.assume(c)
            return self._go(e, depth + 1)
        finally:
            self.leave(saved)

    def _apply(self, e: PrimExpr, below: list[Value]) -> Value:
        rule = _RULES.get(type(e))
        if rule is not None and "x" not in e.dtype:
            return rule(self, e, below)
        if type(e) in _VECTOR_DIVISIONS:
            found = _vector_division(self, e)
            if found is not None:
                return found
        return self.rebuilt(e, below)

    # ------------------------------------------------------------ what is not taken apart

    def rebuilt(self, e: PrimExpr, below: Sequence[Value]) -> PrimExpr:
        """The node over its simplified children; equal ones become one object."""
        new = rebuild(e, [self.emit(v, k.dtype) for v, k in zip(below, kids(e))])  # type: ignore[attr-defined]
        return self.share(new)

    def share(self, e: PrimExpr) -> PrimExpr:
        """The one object for a node whose children are such objects already."""
        if isinstance(e, tir.Call) and not intrin.is_pure_op(e.op):
            return e
        from ..tir.equal import _data

        key = (type(e), e.dtype, _data(e), *(_leaf_key(k) for k in kids(e)))
        return self._shared.setdefault(key, e)

    def opaque(self, e: PrimExpr) -> Lin:
        """An integer expression as an atom."""
        return self.space.of_atom(self.space.atom(("expr", id(e)), "expr", (e,), e.dtype, e, self._rank_of(e), 1, self._pure(e)))

    def _rank_of(self, e: PrimExpr) -> int:
        """The highest rank of the variables under a (small) expression; the present one for a large expression."""
        best, stack, budget = 0, [e], 64
        while stack and budget:
            x = stack.pop()
            budget -= 1
            value = self.vars.get(id(x))
            if isinstance(value, Lin):
                best = max(best, Space.rank(value))
            stack.extend(kids(x))  # type: ignore[arg-type]
        return best if budget else self.space.next_rank()

    def _pure(self, e: PrimExpr) -> bool:
        """Whether the value stays the same while statements run: no loads and no calls with effects (of large ones: no)."""
        stack, budget = [e], 64
        while stack and budget:
            x = stack.pop()
            budget -= 1
            if isinstance(x, (BufferLoad, ProducerLoad)) or isinstance(x, tir.Call) and not intrin.is_pure_op(x.op):
                return False
            stack.extend(kids(x))  # type: ignore[arg-type]
        return bool(budget)

    def bounded(self, e: PrimExpr, exact: Lin, operands: Sequence[Lin]) -> Lin:
        """``exact`` if the machine computes it in the type of ``e``, else the operation on ``operands`` as an atom."""
        dtype = e.dtype
        if dtype == INDEX_DTYPE or fits(self.facts.bound(exact), dtype):
            return exact
        return self.operation(e, operands)

    def operation(self, e: Any, operands: Sequence[Lin]) -> Lin:
        """A binary operation on integers as an atom."""
        key = ("op", type(e), e.dtype, *(o.uid for o in operands))
        found = self.space.find(key)
        if found is None:
            rank, depth, pure = common_rank(operands)
            made = build.BUILDERS[type(e)](*(self.space.emit(o, k.dtype) for o, k in zip(operands, kids(e))))  # type: ignore[attr-defined]
            found = self.space.atom(key, "op", tuple(operands), e.dtype, made, rank, depth, pure)
        return self.space.of_atom(found)

    def _choose(self, e: Any, c: Truth, yes: Value, no: Value) -> Value:
        if isinstance(c, bool):
            return yes if c else no
        if yes is no:
            return yes
        if not is_integer(e.dtype) or lanes_of(e.dtype) != 1:
            return self.rebuilt(e, [c, yes, no])
        if e.dtype == "bool":
            y, n = self.as_cond(yes, e), self.as_cond(no, e)
            if isinstance(e, tir.Select) or isinstance(y, bool) or isinstance(n, bool):
                return self._bool_choice(e, c, y, n)
            return self.logic.of_expr(self.rebuilt(e, [c, y, n]), c.pure and y.pure and n.pure)
        return self._int_choice(e, c, self.as_lin(yes, e), self.as_lin(no, e))

    def _bool_choice(self, e: Any, c: Cond, yes: Truth, no: Truth) -> Truth:
        """With one side known the choice is an and or an or; both sides unknown: as it is."""
        if isinstance(yes, bool):
            return self.logic.any([c, no]) if yes else self.logic.all([self.logic.negate(c), no])
        if isinstance(no, bool):
            return self.logic.any([self.logic.negate(c), yes]) if no else self.logic.all([c, yes])
        return self.logic.of_expr(self.rebuilt(e, [c, yes, no]), c.pure and yes.pure and no.pure)

    def _int_choice(self, e: Any, c: Cond, yes: Lin, no: Lin) -> Lin:
        lazy = not isinstance(e, tir.Select)
        key = ("select", lazy, c.uid, yes.uid, no.uid, e.dtype)
        found = self.space.find(key)
        if found is None:
            rank, depth, pure = common_rank((yes, no))
            y, n = self.space.emit(yes, e.dtype), self.space.emit(no, e.dtype)
            made = tir.Call(e.dtype, intrin.IF_THEN_ELSE, (c.expr, y, n)) if lazy else build.select(c.expr, y, n)
            found = self.space.atom(key, "select", (c, yes, no), e.dtype, made, max(rank, self._rank_of(c.expr)), depth, pure and c.pure)
        return self.space.of_atom(found)


def _leaf_key(k: Any) -> Any:
    """Constants by value, everything else by identity."""
    t = type(k)
    if t is IntImm:
        return ("i", k.dtype, k.value)
    if t is FloatImm:
        return ("f", k.dtype, repr(k.value))
    return ("s", k.value) if t is tir.StringImm else id(k)


# ---------------------------------------------------------------- rules by class of node

_Rule = Callable[[Normalizer, Any, "list[Value]"], Value]


def _add(n: Normalizer, e: tir.Add, b: list[Value]) -> Value:
    return _arith(n, e, b, lambda x, y: n.algebra.add(x, y))


def _sub(n: Normalizer, e: tir.Sub, b: list[Value]) -> Value:
    return _arith(n, e, b, lambda x, y: n.algebra.add(x, y, -1))


def _mul(n: Normalizer, e: tir.Mul, b: list[Value]) -> Value:
    return _arith(n, e, b, n.algebra.mul)


def _arith(n: Normalizer, e: Any, b: list[Value], fn: Callable[[Lin, Lin], Lin]) -> Value:
    if not is_integer(e.dtype) or e.dtype == "bool":
        return n.rebuilt(e, b)
    x, y = n.as_lin(b[0], e.a), n.as_lin(b[1], e.b)
    return n.bounded(e, fn(x, y), (x, y))


def _division(floor: bool, remainder: bool) -> _Rule:
    def rule(n: Normalizer, e: Any, b: list[Value]) -> Value:
        if not is_integer(e.dtype) or e.dtype == "bool":
            return n.rebuilt(e, b)
        x, d = n.as_lin(b[0], e.a), n.as_lin(b[1], e.b)
        exact = (n.algebra.modulo if remainder else n.algebra.divide)(x, d, floor)
        if exact is not None:
            return n.bounded(e, exact, (x, d))
        return _unknown_division(n, e, x, d, floor, remainder)

    return rule


def _unknown_division(n: Normalizer, e: Any, x: Lin, d: Lin, floor: bool, remainder: bool) -> Lin:
    kind = ("f" if floor else "t") + ("%" if remainder else "/")
    key = (kind, e.dtype, x.uid, d.uid)
    found = n.space.find(key)
    if found is None:
        rank, depth, pure = common_rank((x, d))
        if not d.terms and d.const == 0:
            made: PrimExpr = type(e)(n.space.emit(x, e.dtype), IntImm(e.dtype, 0))
        else:
            made = build.BUILDERS[type(e)](n.space.emit(x, e.dtype), n.space.emit(d, e.dtype))
        found = n.space.atom(key, kind, (x, d), e.dtype, made, rank, depth, pure)
    return n.space.of_atom(found)


def _extreme(kind: str) -> _Rule:
    def rule(n: Normalizer, e: Any, b: list[Value]) -> Value:
        if not is_integer(e.dtype) or e.dtype == "bool":
            return n.rebuilt(e, b)
        return n.algebra.extreme(kind, n.as_lin(b[0], e.a), n.as_lin(b[1], e.b))

    return rule


def _comparison(fn: Callable[[Logic, Algebra, Lin, Lin], Truth]) -> _Rule:
    def rule(n: Normalizer, e: Any, b: list[Value]) -> Value:
        if not is_integer(e.a.dtype):
            return _typed(n, n.rebuilt(e, b))
        return fn(n.logic, n.algebra, n.as_lin(b[0], e.a), n.as_lin(b[1], e.b))

    return rule


def _diff(a: Algebra, x: Lin, y: Lin, more: int = 0) -> Lin:
    return a.space.shift(a.add(x, y, -1), more)


def _boolean(fn: Callable[[Normalizer, Any, list[Truth]], Truth]) -> _Rule:
    return lambda n, e, b: fn(n, e, [n.as_cond(v, k) for v, k in zip(b, kids(e))])  # type: ignore[arg-type]


def _cast(n: Normalizer, e: tir.Cast, b: list[Value]) -> Value:
    source = e.value.dtype
    if not is_integer(e.dtype) or not is_integer(source):
        made = n.rebuilt(e, b)
        return _typed(n, made)
    if e.dtype == "bool":
        return n.as_cond(b[0], e.value) if source == "bool" else n.logic.ne0(n.as_lin(b[0], e.value))
    x = n.as_lin(b[0], e.value)
    if source != INDEX_DTYPE and e.dtype == INDEX_DTYPE and info(source).bits < 64 or fits_strictly(n, x, e.dtype):
        return x
    key = ("cast", e.dtype, x.uid)
    found = n.space.find(key)
    if found is None:
        made = build.cast(e.dtype, n.space.emit(x, source))
        found = n.space.atom(key, "cast", (x,), e.dtype, made, Space.rank(x), x.depth + 1, x.pure)
    return n.space.of_atom(found)


def fits_strictly(n: Normalizer, x: Lin, dtype: str) -> bool:
    """Whether the bounds of x show that it fits (into the index type too, which a uint64 need not)."""
    from ..tir.dtypes import int_range

    low, high = n.facts.bound(x)
    least, most = int_range(dtype)
    return least <= low and high <= most


def _typed(n: Normalizer, made: PrimExpr) -> Value:
    """A rebuilt node as the kind of value its dtype asks for."""
    if isinstance(made, IntImm):
        return n._go(made, 0)
    if "x" in made.dtype or not is_integer(made.dtype):
        return made
    return n.logic.of_expr(made, n._pure(made)) if made.dtype == "bool" else n.opaque(made)


def _call(n: Normalizer, e: tir.Call, b: list[Value]) -> Value:
    name = e.op.name if isinstance(e.op, Op) else ""
    if name == "tir.likely":
        return n.logic.likely(n.as_cond(b[0], e.args[0]))
    if name == "tir.if_then_else":
        return n._choose(e, n.as_cond(b[0], e.args[0]), b[1], b[2])
    if name in _BITS and is_integer(e.dtype) and e.dtype != "bool":
        found = _BITS[name](n, e, b)
        if found is not None:
            return found
    return _typed(n, n.rebuilt(e, b))


def _shift_left(n: Normalizer, e: tir.Call, b: list[Value]) -> Lin | None:
    x, s = n.as_lin(b[0], e.args[0]), n.as_lin(b[1], e.args[1])
    if s.terms or not 0 <= s.const < info(e.dtype).bits:
        return None
    exact = n.space.scale(x, 1 << s.const)
    return exact if e.dtype == INDEX_DTYPE or fits(n.facts.bound(exact), e.dtype) else None


def _shift_right(n: Normalizer, e: tir.Call, b: list[Value]) -> Lin | None:
    x, s = n.as_lin(b[0], e.args[0]), n.as_lin(b[1], e.args[1])
    return n.algebra.floor_div(x, 1 << s.const) if not s.terms and 0 <= s.const < info(e.dtype).bits else None


def _bit_and(n: Normalizer, e: tir.Call, b: list[Value]) -> Lin | None:
    x, m = n.as_lin(b[0], e.args[0]), n.as_lin(b[1], e.args[1])
    if m.terms or m.const < 0 or m.const & (m.const + 1):
        return None
    return n.algebra.floor_mod(x, m.const + 1)


_BITS: dict[str, Callable[[Normalizer, Any, "list[Value]"], "Lin | None"]] = {
    "tir.shift_left": _shift_left, "tir.shift_right": _shift_right, "tir.bitwise_and": _bit_and,
}


def _load(n: Normalizer, e: PrimExpr, b: list[Value]) -> Value:
    return _typed(n, n.rebuilt(e, b))


_VECTOR_DIVISIONS = {tir.FloorDiv: (True, False), tir.FloorMod: (True, True), tir.Div: (False, False), tir.Mod: (False, True)}


def _vector_division(n: Normalizer, e: Any) -> PrimExpr | None:
    """A ramp divided by a constant, when all lanes have one quotient, or when the stride is a multiple of the divisor."""
    if type(e.a) is not tir.Ramp or type(e.b) is not tir.Broadcast or not is_integer(e.dtype):
        return None
    floor, remainder = _VECTOR_DIVISIONS[type(e)]
    base, stride, c = n.lin(e.a.base), n.lin(e.a.stride), n.lin(e.b.value)
    if stride.terms or c.terms or c.const <= 0:
        return None
    span, lanes, dtype = stride.const * (e.a.lanes - 1), e.a.lanes, e.a.base.dtype
    if not floor and n.facts.bound(base)[0] + min(span, 0) < 0:
        return None
    quotient, rest = n.algebra.floor_div(base, c.const), n.algebra.floor_mod(base, c.const)
    low, high = n.facts.bound(rest)
    if 0 <= low + min(span, 0) and high + max(span, 0) < c.const:
        q, r = (quotient, 0), (rest, stride.const)
    elif stride.const % c.const == 0:
        q, r = (quotient, stride.const // c.const), (rest, 0)
    else:
        return None
    start, step = r if remainder else q
    return n.share(build.ramp(n.space.emit(start, dtype), build.make_const(step, dtype), lanes))


_RULES: dict[type, _Rule] = {
    tir.Add: _add, tir.Sub: _sub, tir.Mul: _mul,
    tir.Div: _division(False, False), tir.Mod: _division(False, True),
    tir.FloorDiv: _division(True, False), tir.FloorMod: _division(True, True),
    tir.Min: _extreme("min"), tir.Max: _extreme("max"),
    tir.EQ: _comparison(lambda c, s, x, y: c.eq0(_diff(s, x, y))), tir.NE: _comparison(lambda c, s, x, y: c.ne0(_diff(s, x, y))),
    tir.LT: _comparison(lambda c, s, x, y: c.ge0(_diff(s, y, x, -1))), tir.LE: _comparison(lambda c, s, x, y: c.ge0(_diff(s, y, x))),
    tir.GT: _comparison(lambda c, s, x, y: c.ge0(_diff(s, x, y, -1))), tir.GE: _comparison(lambda c, s, x, y: c.ge0(_diff(s, x, y))),
    tir.And: _boolean(lambda n, e, c: n.logic.all(c)), tir.Or: _boolean(lambda n, e, c: n.logic.any(c)),
    tir.Not: _boolean(lambda n, e, c: n.logic.negate(c[0])),
    tir.Select: lambda n, e, b: n._choose(e, n.as_cond(b[0], e.condition), b[1], b[2]),
    tir.Cast: _cast, tir.Call: _call, BufferLoad: _load, ProducerLoad: _load,
}
