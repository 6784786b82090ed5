"""FirstOrderGradient: functions give their result together with the gradients of their parameters, as a graph without control flow.

before::

    fn (%x) { multiply(%x, %x) }

after::

    fn (%x) {
      let %y = multiply(%x, %x);
      let %g = ones_like(%y);
      let %dx = multiply(%g, %x);
      let %dx_1 = multiply(%g, %x);
      let %dx_2 = add(%dx, %dx_1);
      (%y, (%dx_2,))
    }
"""
from __future__ import annotations

from typing import Any

from ...ir.expr import RelayExpr
from ...ir.module import IRModule
from ...ir.op import Op
from ...ir.transform import ModulePass, Pass, PassContext, PassInfo, register_pass
from ...ir.type import TupleType, Type
from ...ir.visit import post_order
from ...support.errors import ArgumentError, UnsupportedOpError
from ..analysis.variables import expr_children
from ..expr import Call, Constant, Let, Tuple, TupleGetItem, Var
from ..function import Function
from ..op.gradient import rule_of
from ..op.memory import flatten_tuple_type, from_tuple_type, to_tuple_type
from ..op.tensor import ones_like, zeros_like
from .bind import substitute_typed
from .common import call, is_primitive, rewrite_exprs, typed_replace
from .normal_forms import to_graph_normal_form


class Bindings:
    """A chain of lets that grows at its end."""

    def __init__(self) -> None:
        self.pairs: list[tuple[Var, RelayExpr]] = []

    def push(self, value: RelayExpr, ty: Type | None = None, name: str = "x") -> Var:
        """A new variable bound to ``value``, of type ``ty`` where that is known."""
        var = Var(f"{name}_{len(self.pairs)}", ty)
        var._checked_type = ty
        self.pairs.append((var, value))
        return var

    def around(self, result: RelayExpr) -> RelayExpr:
        """The chain with ``result`` at its end."""
        for var, value in reversed(self.pairs):
            result = Let(var, value, result)
        return result


def gradient_type(func: Function) -> TupleType:
    """What the derived function returns: (the result, (the gradient of each parameter, …))."""
    return TupleType([func.checked_type.ret_type, TupleType([p.checked_type for p in func.params])])


def check_differentiable(func: Function, what: str) -> None:
    """ArgumentError for a polymorphic function."""
    if func.type_params:
        raise ArgumentError(f"{what} expects a function without type parameters, got {len(func.type_params)} of them")


def rule_gradients(orig: Call, grad: RelayExpr) -> list[RelayExpr]:
    """The gradients of the call's arguments by its operator's rule; ArgumentError when the rule gives another number of them."""
    found = list(rule_of(orig.op)(orig, grad))
    if len(found) != len(orig.args):
        raise ArgumentError(f"the gradient rule of {orig.op.name} gave {len(found)} gradients for {len(orig.args)} arguments")
    return found


def _inlined(func: Function) -> RelayExpr:
    """The body without lets and without calls of function literals."""

    def rule(old: Any, new: Any) -> Any:
        if isinstance(new, Call) and isinstance(new.op, Function):
            return substitute_typed(new.op.body, dict(zip(new.op.params, new.args)))
        return new

    return rewrite_exprs(to_graph_normal_form(func.body), rule, below=lambda n: not isinstance(n, (Type, Op)))


class _Reverse:
    """Forward bindings of a graph, and gradients gathered against its direction; a tuple's gradients are those of its tensors."""

    def __init__(self, func: Function) -> None:
        self.bindings = Bindings()
        self.forward: dict[int, RelayExpr] = {id(p): p for p in func.params}
        self.gathered: dict[int, list[list[RelayExpr]]] = {}
        self.body = _inlined(func)
        self.order = list(post_order(self.body, expr_children))
        self.params = set(map(id, func.params))

    def run_forward(self) -> RelayExpr:
        """Binds every step of the program; gives the result."""
        for node in self.order:
            if id(node) not in self.forward:
                self.forward[id(node)] = self._bound(node)
        return self.forward[id(self.body)]

    def _bound(self, node: Any) -> RelayExpr:
        if isinstance(node, (Constant, Op)):
            return node
        if isinstance(node, Call) and not isinstance(node.op, Op) or not isinstance(node, (Call, Tuple, TupleGetItem)):
            raise UnsupportedOpError(f"FirstOrderGradient expects operators, tuples and constants, got a {type(node).__name__}: "
                                     "for control flow, closures and references see relay.transform.gradient(mode='higher_order')")
        value = node.map_children(lambda c: self.forward.get(id(c), c))
        value._checked_type = node.checked_type
        return self.bindings.push(value, node.checked_type)

    def add(self, node: RelayExpr, first: int, parts: list[RelayExpr]) -> None:
        """Adds to the gradients of the tensors of ``node``, from the one numbered ``first`` on."""
        if id(node) not in self.gathered:
            self.gathered[id(node)] = [[] for _ in flatten_tuple_type(node.checked_type)]
        for found, part in zip(self.gathered[id(node)][first:], parts):
            found.append(part)

    def gradients(self, node: RelayExpr) -> list[RelayExpr]:
        """The sums of what was gathered for the tensors of ``node``; zeros where nothing came."""
        types, values = flatten_tuple_type(node.checked_type), from_tuple_type(node.checked_type, self.forward[id(node)])
        found = self.gathered.get(id(node), [[] for _ in types])
        return [self._sum(parts, value, ty) for parts, value, ty in zip(found, values, types)]

    def _sum(self, parts: list[RelayExpr], value: RelayExpr, ty: Type) -> RelayExpr:
        total = parts[0] if parts else self.bindings.push(zeros_like(value), ty, "g")
        for part in parts[1:]:
            total = self.bindings.push(call("add", total, part), ty, "g")
        return total

    def run_backward(self) -> None:
        """Carries gradients from the result to the parameters."""
        for node in reversed(self.order):
            if id(node) in self.gathered and id(node) not in self.params:
                self._pass_on(node)

    def _pass_on(self, node: Any) -> None:
        if isinstance(node, Tuple):
            self._pass_on_tuple(node)
        elif isinstance(node, TupleGetItem):
            before = node.tuple_value.checked_type.fields[:node.index]
            self.add(node.tuple_value, sum(len(flatten_tuple_type(t)) for t in before), self.gradients(node))
        elif isinstance(node, Call):
            self._pass_on_call(node)

    def _pass_on_tuple(self, node: Tuple) -> None:
        grads = self.gradients(node)
        for field in node.fields:
            count = len(flatten_tuple_type(field.checked_type))
            self.add(field, 0, grads[:count])
            grads = grads[count:]

    def _pass_on_call(self, node: Call) -> None:
        bound = self.forward[id(node)]
        args = [self.forward[id(a)] for a in node.args]
        orig = typed_replace(node, args=tuple(args)) if any(a is not b for a, b in zip(args, node.args)) else node
        grad = to_tuple_type(node.checked_type, self.gradients(node))
        grad._checked_type = node.checked_type  # type: ignore[attr-defined]
        for arg, found in zip(node.args, rule_gradients(orig, grad)):
            self.add(arg, 0, self._named(arg.checked_type, substitute_node(found, orig, bound)))

    def _named(self, ty: Type, grad: RelayExpr) -> list[RelayExpr]:
        types = flatten_tuple_type(ty)
        whole = grad.fields if isinstance(grad, Tuple) and isinstance(ty, TupleType) else None
        parts = list(whole) if whole and len(whole) == len(types) else from_tuple_type(ty, grad if isinstance(grad, Var) else self.bindings.push(grad, ty, "g"))
        return [p if isinstance(p, Var) else self.bindings.push(p, t, "g") for p, t in zip(parts, types)]


def substitute_node(expr: RelayExpr, old: RelayExpr, new: RelayExpr) -> RelayExpr:
    """``expr`` with the very object ``old`` replaced, so that a rule that mentions its call does not compute it again."""
    return rewrite_exprs(expr, lambda was, now: new if was is old else now, below=lambda n: n is not old and isinstance(n, (Call, Tuple, TupleGetItem, Let, Function)))


def _seed(reverse: _Reverse, result: RelayExpr) -> None:
    """One for every tensor of the result."""
    ty = reverse.body.checked_type
    parts = [reverse.bindings.push(ones_like(v), t, "g") for v, t in zip(from_tuple_type(ty, result), flatten_tuple_type(ty))]
    reverse.add(reverse.body, 0, parts)


def first_order_gradient(func: Function) -> Function:
    """``func`` (typed, without control flow, closures and references) with the gradients of its parameters.

    Errors: ArgumentError for a polymorphic function; UnsupportedOpError where an operator has no gradient or the program is
    not a plain graph of operators.
    """
    check_differentiable(func, "FirstOrderGradient")
    reverse = _Reverse(func)
    result = reverse.run_forward()
    _seed(reverse, result)
    reverse.run_backward()
    grads = [to_tuple_type(p.checked_type, reverse.gradients(p)) for p in func.params]
    body = reverse.bindings.around(Tuple([result, Tuple(grads)]))
    return func.replace(body=body, ret_type=gradient_type(func))


def FirstOrderGradient() -> Pass:
    """Derives every global function on its own; see :func:`first_order_gradient`."""

    def run(mod: IRModule, ctx: PassContext) -> IRModule:
        return mod.with_functions({v: first_order_gradient(f) if isinstance(f, Function) and not is_primitive(f) else f for v, f in mod.functions.items()})

    return ModulePass(run, PassInfo(0, "FirstOrderGradient", ["InferType"]))


register_pass("FirstOrderGradient", FirstOrderGradient)
__all__ = ["Bindings", "FirstOrderGradient", "check_differentiable", "first_order_gradient", "gradient_type", "rule_gradients", "substitute_node"]
