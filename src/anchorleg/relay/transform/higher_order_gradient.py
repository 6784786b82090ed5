"""Derives any program, with branches, closures, recursion and references, by running it and remembering the way back.

Every tensor becomes a pair of its value and a reference to its gradient.  A further parameter of each function refers to
the *way back*: a function that adds each step's gradients to those of its arguments, last step first.  Every operator puts
its own step before the rest of the way.

before::

    fn (%x) { sin(%x) }

after::

    fn (%x) {
      let %way = ref(fn () { () });
      let %f = fn (%x1, %way1) {
        let %y = sin(%x1.0);
        let %y1 = (%y, ref(zeros_like(%y)));
        let %rest = %way1^;
        %way1 := fn () { %x1.1 := add(%x1.1^, multiply(%y1.1^, cos(%x1.0))); %rest() };
        %y1
      };
      let %x2 = (%x, ref(zeros_like(%x)));
      let %z = %f(%x2, %way);
      %z.1 := ones_like(%z.0);
      %way^();
      (%z.0, (%x2.1^,))
    }
"""
from __future__ import annotations

from typing import Any

from ...ir.expr import GlobalVar, RelayExpr
from ...ir.module import IRModule
from ...ir.op import Op
from ...ir.type import FuncType, RefType, TensorType, TupleType, Type
from ...ir.visit import Walker, post_order, rewrite
from ...support.errors import ArgumentError, UnsupportedOpError
from ..adt import Clause, Constructor, Match, Pattern, PatternVar
from ..analysis.variables import exprs, free_vars, pattern_vars
from ..expr import Call, Constant, If, Let, RefCreate, RefRead, RefWrite, Tuple, TupleGetItem, Var
from ..function import Function
from ..op.memory import flatten_tuple_type, from_tuple_type, to_tuple_type
from ..op.tensor import ones_like, zeros_like
from .bind import substitute
from .common import call, is_op, rewrite_exprs
from .first_order_gradient import Bindings, check_differentiable, gradient_type, rule_gradients, substitute_node
from .normal_forms import to_a_normal_form

_UNIT = TupleType([])
WAY_BACK = RefType(FuncType([], _UNIT))
_CHECKPOINT = "annotation.checkpoint"


def reverse_type(ty: Type) -> Type:
    """The type with each tensor paired with a reference to its gradient, and the way back as a last parameter of functions."""

    def paired(t: Any) -> Any:
        if isinstance(t, TensorType):
            return TupleType([t, RefType(t)])
        return FuncType([*t.arg_types, WAY_BACK], t.ret_type, t.type_params, t.type_constraints) if isinstance(t, FuncType) else t

    return rewrite(ty, paired, descend=lambda n: not isinstance(n, TensorType))  # type: ignore[return-value]


def _nowhere() -> RelayExpr:
    """A way back with no steps yet."""
    return RefCreate(Function([], Tuple([]), _UNIT))


def _pair(value: RelayExpr) -> RelayExpr:
    return Tuple([value, RefCreate(zeros_like(value))])


def _paired(ty: Type, value: RelayExpr) -> RelayExpr:
    """A value of type ``ty`` with each tensor in a pair."""
    return to_tuple_type(ty, [_pair(v) for v in _leaves(ty, value)])


def _values(ty: Type, paired: RelayExpr) -> RelayExpr:
    """The value inside pairs."""
    return to_tuple_type(ty, [TupleGetItem(p, 0) for p in _leaves(ty, paired)])


def _leaves(ty: Type, expr: RelayExpr) -> list[RelayExpr]:
    """The tensors of ``expr``, or their pairs; UnsupportedOpError where ``ty`` has anything but tensors and tuples."""
    if not all(isinstance(t, TensorType) for t in flatten_tuple_type(ty)):
        raise UnsupportedOpError(f"gradients of operators and results expect tensors and tuples of them, got {ty}")
    return from_tuple_type(ty, expr)


def _add_gradient(out: Bindings, ty: Type, paired: RelayExpr, grad: RelayExpr) -> None:
    for pair, more in zip(_leaves(ty, paired), _leaves(ty, grad)):
        ref = out.push(TupleGetItem(pair, 1))
        out.push(RefWrite(ref, call("add", RefRead(ref), more)))


class _Deriver(Walker):
    """Rewrites a typed program in A-normal form; ``out`` is the scope being written, ``way`` the current way back."""

    def __init__(self, way: Var) -> None:
        super().__init__()
        self.out, self.way = Bindings(), way
        self.globals: dict[GlobalVar, GlobalVar] = {}
        self.thunks: dict[int, Function] = {}

    def _scoped(self, body: RelayExpr, way: Var) -> Any:
        """The derived ``body`` in a scope of its own."""
        outer = self.out, self.way
        self.out, self.way = Bindings(), way
        result = yield body
        inner = self.out.around(result)
        self.out, self.way = outer
        return inner

    def visit_Var(self, node: Var) -> Var:
        return Var(node.name_hint, reverse_type(node.checked_type))

    def visit_Op(self, node: Op) -> Any:
        raise UnsupportedOpError(f"the operator {node.name} stands as a value: gradients expect operators to be called")

    def visit_Constructor(self, node: Constructor) -> Any:
        raise UnsupportedOpError(f"the constructor {node.name_hint} stands as a value: run relay.transform.EtaExpand first")

    def visit_GlobalVar(self, node: GlobalVar) -> GlobalVar:
        return self.globals.setdefault(node, GlobalVar(f"{node.name_hint}_grad"))

    def visit_Constant(self, node: Constant) -> RelayExpr:
        return self.out.push(_pair(self.out.push(node)))

    def visit_Let(self, node: Any) -> Any:
        while isinstance(node, Let):
            if _is_thunk(node.value):
                self.thunks[id(node.var)] = node.value
            else:
                value = yield node.value
                if isinstance(value, Var) and not isinstance(node.value, Function):
                    self.memo[id(node.var)] = (node.var, value)
                else:
                    var = yield node.var
                    self.out.pairs.append((var, value))
            node = node.body
        return (yield node)

    def visit_If(self, node: If) -> Any:
        cond = yield node.cond
        yes = yield from self._scoped(node.true_branch, self.way)
        no = yield from self._scoped(node.false_branch, self.way)
        return If(TupleGetItem(cond, 0), yes, no)

    def visit_Match(self, node: Match) -> Any:
        data = yield node.data
        clauses = []
        for clause in node.clauses:
            bound = {id(v): v for v in pattern_vars(clause.lhs)}
            renamed = yield list(bound.values())
            table = dict(zip(bound, renamed))
            pattern = rewrite(clause.lhs, lambda n: PatternVar(table[id(n.var)]) if isinstance(n, PatternVar) else n,
                              descend=lambda n: isinstance(n, Pattern) and not isinstance(n, PatternVar))
            rhs = yield from self._scoped(clause.rhs, self.way)
            clauses.append(Clause(pattern, rhs))
        return Match(data, clauses, node.complete)

    def visit_Function(self, node: Function) -> Any:
        params = yield list(node.params)
        way = Var("way", WAY_BACK)
        body = yield from self._scoped(node.body, way)
        return Function([*params, way], body, reverse_type(node.checked_type.ret_type), node.type_params)

    def visit_Call(self, node: Call) -> Any:
        if is_op(node, _CHECKPOINT):
            return (yield from self._checkpoint(node))
        args = yield list(node.args)
        if isinstance(node.op, Op):
            return self._operator(node, args)
        if isinstance(node.op, Constructor):
            _check_constructor(node.op)
            return Call(node.op, args)
        callee = yield node.op
        return Call(callee, [*args, self.way])

    def _operator(self, node: Call, args: list[RelayExpr]) -> RelayExpr:
        inputs = [_typed(self.out.push(_values(a.checked_type, p)), a.checked_type) for a, p in zip(node.args, args)]
        orig = _typed(node.replace(args=tuple(inputs)), node.checked_type)
        value = _typed(self.out.push(orig), node.checked_type)
        result = self.out.push(_paired(node.checked_type, value))
        rest = self.out.push(RefRead(self.way))
        back = Bindings()
        grad = self._gradient_of(back, node.checked_type, result)
        for arg, pair, found in zip(node.args, args, rule_gradients(orig, grad)):
            _add_gradient(back, arg.checked_type, pair, back.push(substitute_node(found, orig, value)))
        self._go_back_by(back, rest)
        return result

    def _gradient_of(self, out: Bindings, ty: Type, paired: RelayExpr) -> RelayExpr:
        parts = [_typed(out.push(RefRead(TupleGetItem(p, 1))), t) for p, t in zip(_leaves(ty, paired), flatten_tuple_type(ty))]
        return _typed(to_tuple_type(ty, parts), ty)

    def _go_back_by(self, steps: Bindings, rest: RelayExpr) -> None:
        """Makes the way back one that takes ``steps`` and goes on with ``rest``."""
        self.out.push(RefWrite(self.way, to_a_normal_form(Function([], steps.around(Call(rest, [])), _UNIT))))

    def _checkpoint(self, node: Call) -> Any:
        """Only the value is kept; on the way back the expression is computed again, with its way back, which is then taken."""
        thunk, ty = self.thunks[id(node.args[0])], node.checked_type
        outside = free_vars(thunk)
        paired = yield outside
        inputs = {v: self.out.push(_values(v.checked_type, p)) for v, p in zip(outside, paired)}
        result = self.out.push(_paired(ty, self.out.push(substitute(_renamed(_plain(thunk.body)), inputs))))
        rest = self.out.push(RefRead(self.way))
        outer, back = (self.out, self.way), Bindings()
        again = back.push(_nowhere(), WAY_BACK)
        self.out, self.way = back, again
        computed = back.push((yield _renamed(thunk.body)))
        self.out, self.way = outer
        for old, new in zip(_leaves(ty, result), _leaves(ty, computed)):
            back.push(RefWrite(TupleGetItem(new, 1), RefRead(TupleGetItem(old, 1))))
        back.push(Call(RefRead(again), []))
        self._go_back_by(back, rest)
        return result


def _typed(node: Any, ty: Type) -> Any:
    node._checked_type = ty
    return node


def _check_constructor(node: Constructor) -> None:
    if any(isinstance(t, TensorType) for field in node.inputs for t in post_order(field)):
        raise UnsupportedOpError(f"the constructor {node.name_hint} holds tensors of a fixed type, which cannot be paired with their gradients: "
                                 "expected a data type with type parameters for what it holds")


def _is_thunk(node: Any) -> bool:
    return isinstance(node, Function) and node.get_attr("Checkpoint") is not None


def _hide_checkpoints(func: Function) -> Function:
    """Arguments of checkpoints as functions without parameters, so that normal form leaves them together."""

    def rule(old: Any, new: Any) -> Any:
        if not is_op(new, _CHECKPOINT):
            return new
        thunk = _typed(Function([], new.args[0]).with_attr("Checkpoint", 1), FuncType([], old.checked_type))
        return _typed(new.replace(args=(thunk,)), old.checked_type)

    return rewrite_exprs(func, rule)  # type: ignore[return-value]


def _plain(expr: RelayExpr) -> RelayExpr:
    """The program in normal form without the functions that :func:`_hide_checkpoints` made."""
    thunks = {id(n.var): n.value for n in exprs(expr) if isinstance(n, Let) and _is_thunk(n.value)}
    bodies: dict[int, RelayExpr] = {}

    def rule(old: Any, new: Any) -> Any:
        if _is_thunk(old):
            bodies[id(old)] = new.body
        if isinstance(old, Let) and _is_thunk(old.value):
            return new.body
        return bodies[id(thunks[id(old.args[0])])] if is_op(old, _CHECKPOINT) else new

    return rewrite_exprs(expr, rule, keep_types=False)


def _renamed(expr: RelayExpr) -> RelayExpr:
    """A copy with variables of its own for those it binds."""
    outside = {id(v) for v in free_vars(expr)}

    def rule(old: Any, new: Any) -> Any:
        return new if not isinstance(old, Var) or id(old) in outside else _typed(Var(old.name_hint, old.type_annotation), old.checked_type)

    return rewrite_exprs(expr, rule)


def _checked(func: Any, what: str) -> Function:
    if not isinstance(func, Function):
        raise ArgumentError(f"gradient expects a function or a global variable of the module, got {what}")
    check_differentiable(func, "gradient")
    if func._checked_type is None:
        raise ArgumentError("gradient expects a function with types: run relay.transform.InferType first")
    for p in func.params:
        if not isinstance(p.checked_type, TensorType):
            raise UnsupportedOpError(f"gradient expects parameters that are tensors, got {p.name_hint}: {p.checked_type}")
    return func


def _normal(func: Function) -> Function:
    return to_a_normal_form(_hide_checkpoints(func))  # type: ignore[return-value]


def _derive_globals(deriver: _Deriver, mod: IRModule | None) -> None:
    """Adds the derived form of each global function that is called, and of those these call, to the module."""
    done: set[GlobalVar] = set()
    while waiting := [g for g in deriver.globals if g not in done]:
        for old in waiting:
            if mod is None:
                raise ArgumentError(f"gradient: the function calls @{old.name_hint}; give the module that has it")
            done.add(old)
            if mod[old]._checked_type is None:
                raise ArgumentError(f"gradient expects a module with types, @{old.name_hint} has none: run relay.transform.InferType first")
            mod[deriver.globals[old]] = deriver.visit(_normal(mod[old]))


def _run(out: Bindings, deriver: _Deriver, func: Function, way: Var) -> RelayExpr:
    """Calls the derived function, seeds the gradient of the result's first tensor with ones, goes back, and reads gradients."""
    result_type = func.checked_type.ret_type
    derived = out.push(deriver.visit(_normal(func)))
    pairs = [out.push(_pair(p)) for p in func.params]
    result = out.push(Call(derived, [*pairs, way]))
    leaves = _leaves(result_type, result)
    if not leaves:
        raise UnsupportedOpError("gradient expects a function that returns a tensor, got one that returns ()")
    out.push(RefWrite(TupleGetItem(leaves[0], 1), ones_like(TupleGetItem(leaves[0], 0))))
    out.push(Call(RefRead(way), []))
    return Tuple([_values(result_type, result), Tuple([RefRead(TupleGetItem(p, 1)) for p in pairs])])


def higher_order_gradient(expr: Any, mod: IRModule | None = None) -> Function:
    """The function (or global function of ``mod``) with the gradients of its parameters, which are tensors.

    The result's first tensor is what is differentiated. Global functions that are called get a derived form in ``mod``, under
    their name with ``_grad``. Errors: ArgumentError for what is not a typed, monomorphic function; UnsupportedOpError for
    operators without a gradient and for data types that hold tensors of a fixed type.
    """
    if isinstance(expr, GlobalVar) and mod is None:
        raise ArgumentError(f"gradient: give the module that has @{expr.name_hint}")
    func = _checked(mod[expr] if isinstance(expr, GlobalVar) else expr, type(expr).__name__)  # type: ignore[index]
    out = Bindings()
    way = out.push(_nowhere(), WAY_BACK, "way")
    deriver = _Deriver(way)
    result = _run(out, deriver, func, way)
    _derive_globals(deriver, mod)
    return func.replace(body=out.around(result), ret_type=gradient_type(func), type_params=())


__all__ = ["WAY_BACK", "higher_order_gradient", "reverse_type"]
