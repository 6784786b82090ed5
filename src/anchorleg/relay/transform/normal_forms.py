"""ToANormalForm, ToGraphNormalForm: between nested (graph) programs and programs where every step has a name.

before::

    add(multiply(%x, %x), %x)

after ToANormalForm::

    let %x_0 = multiply(%x, %x); let %x_1 = add(%x_0, %x); %x_1
"""
from __future__ import annotations

from typing import Any, Mapping

from ...ir.expr import GlobalVar, RelayExpr
from ...ir.module import IRModule
from ...ir.op import Op
from ...ir.transform import ModulePass, Pass, PassContext, PassInfo, register_pass
from ...ir.visit import Walker
from ..adt import Clause, Constructor, Match
from ..analysis.variables import exprs
from ..expr import Call, Constant, If, Let, RefCreate, RefRead, RefWrite, Tuple, TupleGetItem, Var
from ..function import Function
from ..op.annotation import on_device
from .common import carry_type, descends, is_op, is_primitive, map_functions
from .device_scopes import recover_virtual_device_map

_ATOMS = (Var, GlobalVar, Op, Constructor)


class Scope:
    """A sequence of bindings being built, nested in another; scopes that end with it may stand among its bindings.

    ``jump`` leads to a scope further out, so that the way to any ancestor takes a number of steps logarithmic in its depth.
    """

    __slots__ = ("parent", "depth", "jump", "bindings")

    def __init__(self, parent: Scope | None) -> None:
        self.parent, self.depth = parent, 0 if parent is None else parent.depth + 1
        self.jump: Scope = self
        if parent is not None:
            far = parent.jump
            even = parent.depth - far.depth == far.depth - far.jump.depth
            self.jump = far.jump if even else parent
        self.bindings: list[tuple[Var, RelayExpr] | Scope] = []

    def wrap(self, result: RelayExpr) -> RelayExpr:
        """The bindings around ``result``."""
        stack: list[tuple[Var, RelayExpr] | Scope] = [self]
        while stack:
            each = stack.pop()
            if isinstance(each, Scope):
                stack.extend(each.bindings)
            else:
                result = _with_type(Let(each[0], each[1], result), result._checked_type)
        return result

    def upto(self, depth: int) -> Scope:
        """The scope around this one at that depth."""
        at = self
        while at.depth > depth:
            at = at.jump if at.jump.depth >= depth else at.parent  # type: ignore[assignment]
        return at


def _with_type(node: Any, ty: Any) -> Any:
    node._checked_type = ty
    return node


def _common(a: Scope, b: Scope) -> Scope:
    """The innermost scope that holds both."""
    a, b = a.upto(b.depth), b.upto(a.depth)
    while a is not b:
        if a.jump is not b.jump:
            a, b = a.jump, b.jump
        else:
            a, b = a.parent, b.parent  # type: ignore[assignment]
    return a


class ScopeFinder:
    """The scope in which each expression must be computed: the innermost that holds all its uses."""

    def __init__(self, root: RelayExpr) -> None:
        self.scope_of: dict[int, Scope] = {}
        self.body_scope: dict[tuple[int, int], Scope] = {}
        self.root_scope = Scope(None)
        self.spread: set[int] = set()  # expressions used in other scopes than their own
        order = _topological(root)
        self.scope_of[id(root)] = self.root_scope
        for node in order:
            for position, child in enumerate(parts_of(node)):
                self._meet(child, self.scope_for(node, position))

    def scope_for(self, node: Any, position: int) -> Scope:
        """The scope in which a part of ``node`` is computed."""
        here = self.scope_of[id(node)]
        if not _opens_scope(node, position):
            return here
        key = (id(node), position)
        if key not in self.body_scope:
            self.body_scope[key] = Scope(here)
        return self.body_scope[key]

    def _meet(self, child: Any, scope: Scope) -> None:
        old = self.scope_of.get(id(child))
        if old is scope:
            return
        if old is not None:
            self.spread.add(id(child))
            scope = _common(old, scope)
        self.scope_of[id(child)] = scope


def parts_of(node: Any) -> list[Any]:
    """The expressions inside ``node``, scopes opened by it included."""
    if isinstance(node, Function):
        return [] if is_primitive(node) else [node.body]
    if isinstance(node, If):
        return [node.cond, node.true_branch, node.false_branch]
    if isinstance(node, Match):
        return [node.data, *(c.rhs for c in node.clauses)]
    if isinstance(node, Let):
        return [node.value, node.body]
    if isinstance(node, Call):
        return [node.op, *node.args]
    return [c for c in node.children() if isinstance(c, RelayExpr)] if descends(node) else []


def _opens_scope(node: Any, position: int) -> bool:
    if isinstance(node, Function):
        return True
    if isinstance(node, (If, Match)):
        return position > 0
    return isinstance(node, Let) and position == 1


def _topological(root: RelayExpr) -> list[RelayExpr]:
    """Users before what they use."""
    order: list[RelayExpr] = []
    seen: set[int] = set()
    stack: list[tuple[Any, bool]] = [(root, False)]
    while stack:
        node, ready = stack.pop()
        if ready:
            order.append(node)
            continue
        if id(node) in seen:
            continue
        seen.add(id(node))
        stack.append((node, True))
        stack.extend((c, False) for c in parts_of(node) if id(c) not in seen)
    return order[::-1]


class _Namer(Walker):
    """Rebuilds a program with every computed value bound to a variable in its scope.

    Where marks tell devices (after ``PlanDevices``), each bound value gets the mark that stood around it.
    """

    def __init__(self, finder: ScopeFinder, devices: Mapping[RelayExpr, Any]) -> None:
        super().__init__()
        self.finder, self.devices, self.count = finder, devices, 0

    def name(self, old: RelayExpr, value: RelayExpr) -> RelayExpr:
        """A variable bound to ``value`` in the scope where ``old`` belongs."""
        var = _with_type(Var(f"x_{self.count}", old._checked_type), old._checked_type)
        self.count += 1
        value._checked_type = old._checked_type  # type: ignore[attr-defined]
        device = self.devices.get(old)
        if device is not None and not device.is_fully_unconstrained and not isinstance(value, Function):
            value = _with_type(on_device(value, device, True, True), old._checked_type)
        self.finder.scope_of[id(old)].bindings.append((var, value))
        return var

    def closed(self, node: Any, position: int, result: RelayExpr) -> RelayExpr:
        """The scope opened by ``node`` at ``position`` with its result."""
        return self.finder.scope_for(node, position).wrap(result)

    def visit_default(self, node: Any) -> Any:
        if isinstance(node, _ATOMS):
            return node
        if not descends(node):
            return self.name(node, node.replace()) if is_primitive(node) else node
        parts = parts_of(node)
        results = yield parts
        table = {id(p): r for p, r in zip(parts, results)}
        return self.name(node, _copy(node, node.map_children(lambda c: table.get(id(c), c))))

    def visit_Constant(self, node: Constant) -> RelayExpr:
        return self.name(node, node)

    def visit_Call(self, node: Call) -> Any:
        if self.devices and is_op(node, "on_device") and node.attrs.constrain_body and node.attrs.constrain_result:  # type: ignore[attr-defined]
            return (yield node.args[0])
        args = yield list(node.args)
        op = node.op
        if not isinstance(op, _ATOMS) and not is_primitive(op):
            op = yield op
        return self.name(node, _copy(node, node.replace(op=op, args=tuple(args))))

    def visit_Function(self, node: Function) -> Any:
        if is_primitive(node):
            return self.name(node, node)
        body = yield node.body
        return self.name(node, _copy(node, node.replace(body=self.closed(node, 0, body))))

    def visit_If(self, node: If) -> Any:
        cond = yield node.cond
        yes = yield node.true_branch
        no = yield node.false_branch
        return self.name(node, If(cond, self.closed(node, 1, yes), self.closed(node, 2, no), node.span))

    def visit_Match(self, node: Match) -> Any:
        data = yield node.data
        clauses = []
        for i, clause in enumerate(node.clauses):
            rhs = yield clause.rhs
            clauses.append(Clause(clause.lhs, self.closed(node, i + 1, rhs)))
        return self.name(node, Match(data, clauses, node.complete))

    def visit_Let(self, node: Let) -> Any:
        scope = self.finder.scope_of[id(node)]
        if isinstance(node.value, Function) and not is_primitive(node.value):
            body = yield node.value.body
            value = node.value.replace(body=self.closed(node.value, 0, body))
            value._checked_type = node.value._checked_type
            scope.bindings.append((node.var, value))
        else:
            value = yield node.value
            scope.bindings.append((node.var, value))
        result = yield node.body
        scope.bindings.append(self.finder.scope_for(node, 1))
        return result


def _copy(old: Any, new: Any) -> Any:
    return new if new is not old else old.replace()


def to_a_normal_form(expr: RelayExpr) -> RelayExpr:
    """An expression (a function's body is normalised inside it) in A-normal form."""
    devices = recover_virtual_device_map(None, expr) if any(is_op(e, "on_device") for e in exprs(expr)) else {}
    return _normalised(expr, devices)


def _normalised(expr: RelayExpr, devices: Mapping[RelayExpr, Any]) -> RelayExpr:
    if isinstance(expr, Function):
        return expr if is_primitive(expr) else _with_type(expr.replace(body=_normalised(expr.body, devices)), expr._checked_type)
    finder = ScopeFinder(expr)
    result = _Namer(finder, devices).visit(expr)
    return finder.root_scope.wrap(result)


class _Grapher(Walker):
    def visit_Let(self, node: Let) -> Any:
        if isinstance(node.value, Function) and _mentions(node.value, node.var):
            value = yield node.value
            body = yield node.body
            return carry_type(node, node.replace(value=value, body=body))
        value = yield node.value
        self.memo[id(node.var)] = (node.var, value)
        return (yield node.body)

    def visit_default(self, node: Any) -> Any:
        if not descends(node):
            return node
        kids = node.children()
        results = yield kids
        table = {id(k): r for k, r in zip(kids, results)}
        new = node.map_children(lambda c: table[id(c)])
        return carry_type(node, new)


def _mentions(func: Function, var: Var) -> bool:
    from ..analysis.variables import free_vars

    return any(v is var for v in free_vars(func))


def to_graph_normal_form(expr: RelayExpr) -> RelayExpr:
    """An expression without ``let``, except for local recursive functions."""
    return _Grapher().visit(expr)


def _pass(name: str, level: int, fn: Any) -> Any:
    def create() -> Pass:
        def run(mod: IRModule, ctx: PassContext) -> IRModule:
            return map_functions(mod, fn)

        return ModulePass(run, PassInfo(level, name, []))

    create.__name__ = name
    register_pass(name, create)
    return create


ToANormalForm = _pass("ToANormalForm", 1, to_a_normal_form)
ToGraphNormalForm = _pass("ToGraphNormalForm", 1, to_graph_normal_form)
__all__ = ["ToANormalForm", "ToGraphNormalForm", "to_a_normal_form", "to_graph_normal_form", "RefCreate", "RefRead", "RefWrite", "Tuple", "TupleGetItem"]
