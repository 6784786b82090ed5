"""PlanDevices: where each value is stored, and so where each primitive runs.

Marks (``on_device``), copies (``device_copy``), devices of parameters and results, and memory scopes of lowered functions say where some
values are.  From these follow others: a primitive's arguments and result are on one device, a call agrees with the function, and so on.
An operand that is elsewhere all the same is copied.
What stays open goes where the function's result is, or to the default device.  Afterwards every function says where its parameters and its
result are, copies stand wherever a value changes its device, and a mark (``constrain_result=True``) stands where a value is on another
device than its surroundings::

    def @main(%a, %b, %c) { subtract(on_device(add(%a, %b), virtual_device=cpu), %c) }

    def @main(%a {virtual_device=cpu}, %b {virtual_device=cpu}, %c {virtual_device=gpu}, virtual_device=gpu) {
      %0 = on_device(add(%a, %b), virtual_device=cpu, constrain_result=True);
      subtract(device_copy(%0, src_virtual_device=cpu, dst_virtual_device=gpu), %c) }

Running it again changes nothing.
"""
from __future__ import annotations

from typing import Any, Iterator

from ...ir.expr import GlobalVar, RelayExpr
from ...ir.module import IRModule
from ...ir.op import Op
from ...ir.structural import structural_equal
from ...ir.transform import ModulePass, Pass, PassContext, PassInfo, get_pass, register_pass
from ...ir.type import FuncType
from ...ir.visit import Walker, post_order
from ...support.errors import ArgumentError, TargetError
from ...target.virtual_device import UNCONSTRAINED, CompilationConfig, VirtualDevice
from ..adt import Clause, Constructor, Match
from ..analysis.variables import expr_children, pattern_vars
from ..expr import Call, If, Let, RefCreate, RefRead, RefWrite, Tuple, TupleGetItem, Var
from ..function import Function
from ..op.annotation import device_copy, on_device
from ..op.call import is_call_lowered
from .common import carry_type, is_op, is_primitive, map_functions, mentions, rewrite_exprs
from .device_domains import Domain, Domains, callee_of, is_copyable

_POLYMORPHIC = (Op, Constructor)


# ------------------------------------------------------------------------------------------------------------ small parts


def _typed(new: Any, like: RelayExpr) -> Any:
    new._checked_type = like._checked_type
    return new


def _is_normal(expr: Any) -> bool:
    """Whether it is a mark that constrains its input alone."""
    return is_op(expr, "on_device") and expr.attrs.constrain_body and not expr.attrs.constrain_result


def _fixed(body: RelayExpr, device: VirtualDevice) -> RelayExpr:
    """``body``, which is on ``device``, with a mark that says so; variables and functions say it themselves."""
    if isinstance(body, (*_POLYMORPHIC, GlobalVar, Var, Function)):
        return body
    return _typed(on_device(body, device, True, True), body)  # type: ignore[no-any-return]


def _copied(body: RelayExpr, source: VirtualDevice, target: VirtualDevice) -> RelayExpr:
    new = _typed(device_copy(body, source, target), body)
    new.span = body.span
    return new  # type: ignore[no-any-return]


def _children(node: Any) -> list[Any]:
    """The expressions below ``node``; primitive functions are not looked into, and a lowered call's tuple of arguments is no value."""
    if is_primitive(node):
        return list(node.params)
    if is_call_lowered(node):
        callee, args = callee_of(node)
        return [callee, *args]
    return expr_children(node)


def _preorder(root: RelayExpr) -> Iterator[RelayExpr]:
    """Every expression once, before its parts, the first parts first."""
    seen: set[int] = set()
    stack = [root]
    while stack:
        node = stack.pop()
        if id(node) not in seen:
            seen.add(id(node))
            yield node
            stack.extend(reversed(_children(node)))


def _graph_functions(mod: IRModule) -> list[tuple[GlobalVar, Function]]:
    return [(v, f) for v, f in mod.functions.items() if isinstance(f, Function) and not f.get_attr("Compiler")]


# ---------------------------------------------------------------------------------------------------------- 1: preparation


def _prepared(old: Any, new: Any, mod: IRModule) -> RelayExpr:
    """Marks where a copy would be of no use hold for their result as well; a field is taken before it is copied."""
    if isinstance(new, Let) and _is_normal(new.value):
        return carry_type(old, new.replace(value=_strict(new.value)))  # type: ignore[no-any-return]
    if isinstance(new, Function) and not is_primitive(new) and _is_normal(new.body):
        return carry_type(old, new.replace(body=_strict(new.body)))  # type: ignore[no-any-return]
    if isinstance(new, TupleGetItem) and _is_normal(new.tuple_value):
        mark: Any = new.tuple_value
        field = _typed(new.replace(tuple_value=mark.args[0]), old)
        return _typed(mark.replace(args=(field,)), old)  # type: ignore[no-any-return]
    if is_call_lowered(new) and not isinstance(_global(mod, new.args[0]), (Function, type(None))):
        fields = tuple(_loose(f) for f in new.args[1].fields)
        arguments = carry_type(new.args[1], new.args[1].replace(fields=fields))
        return _loose(carry_type(old, new.replace(args=(new.args[0], arguments))))
    return new  # type: ignore[no-any-return]


def _global(mod: IRModule, var: GlobalVar) -> Any:
    return mod[var.name_hint] if var.name_hint in mod else None


def _strict(mark: Any) -> RelayExpr:
    return _typed(on_device(mark.args[0], mark.attrs.virtual_device, True, True), mark)  # type: ignore[no-any-return]


def _loose(body: RelayExpr) -> RelayExpr:
    """A mark that says nothing but that a copy is allowed here."""
    return _typed(on_device(body, UNCONSTRAINED, False, False), body)  # type: ignore[no-any-return]


# ------------------------------------------------------------------------------------------------------------ 2: constraints


class _Constraints:
    """Constraints of a module: most hold; an operand may be elsewhere than it is wanted, and is copied there."""

    def __init__(self, domains: Domains) -> None:
        self.domains = domains
        self.marks: list[tuple[RelayExpr, Domain]] = []
        self.operands: list[tuple[RelayExpr, Domain]] = []

    def operand(self, owner: RelayExpr, value: RelayExpr, domain: Domain, why: str) -> None:
        """A part of a call or a tuple is where its owner wants it."""
        if isinstance(value, _POLYMORPHIC):
            return
        if isinstance(value, (GlobalVar, Function)) or not is_copyable(value._checked_type):
            self.domains.require(value, domain, why)
        else:
            (self.marks if is_op(owner, "on_device", "device_copy") else self.operands).append((value, domain))

    def settle(self) -> None:
        """Operands are where they are wanted as far as that does not contradict what is known; marks come first."""
        for value, domain in (*self.marks, *self.operands):
            self.domains.unify(self.domains.of(value), domain)


def _constrain_call(constraints: _Constraints, call: Call) -> None:
    domains = constraints.domains
    _, args = callee_of(call)
    callee = domains.of_callee(call).root
    if is_op(call, "device_copy") and not is_copyable(call._checked_type):
        raise TargetError(f"values of type {call._checked_type} are not copied between devices, only tensors and tuples of them are")
    if len(callee.parts) != len(args) + 1:
        raise TargetError(f"a function of {max(0, len(callee.parts) - 1)} parameters is called with {len(args)} arguments: {call}")
    domains.require(call, callee.parts[-1], "the result of a call")
    for value, part in zip(args, callee.parts):
        constraints.operand(call, value, part, "an operand of a call")


def _constrain_function(constraints: _Constraints, func: Function) -> None:
    domains = constraints.domains
    parts = domains.of(func).root.parts
    domains.require(func.body, parts[-1], "the result of a function")
    if func.virtual_device_ is not None:
        domains.require(func.body, domains.free(func.body._checked_type, func.virtual_device_), "the result of a function")
    for param, part in zip(func.params, parts):
        domains.require(param, part, "a parameter of a function")
        _constrain_var(domains, param)


def _constrain_var(domains: Domains, var: Var) -> None:
    if var.virtual_device_ is not None:
        domains.require(var, domains.free(var._checked_type, var.virtual_device_), "a variable")


def _constrain_let(constraints: _Constraints, let: Let) -> None:
    domains = constraints.domains
    domains.require(let.value, domains.of(let.var), "the value of a variable")
    _constrain_var(domains, let.var)
    domains.require(let.body, domains.of(let), "the value of a let")


def _constrain_match(constraints: _Constraints, match: Match) -> None:
    domains = constraints.domains
    whole = domains.of(match)
    domains.require(match.data, whole, "what is matched")
    for clause in match.clauses:
        for var in pattern_vars(clause.lhs):
            domains.require(var, domains.of(match.data), "a variable of a pattern")
        domains.require(clause.rhs, whole, "the value of a clause")


def _constrain_if(constraints: _Constraints, node: If) -> None:
    constraints.operand(node, node.cond, constraints.domains.of(node), "the condition of an if")
    for part in (node.true_branch, node.false_branch):
        constraints.domains.require(part, constraints.domains.of(node), "a branch of an if")


def _constrain_tuple(constraints: _Constraints, node: Tuple) -> None:
    for field in node.fields:
        constraints.operand(node, field, constraints.domains.of(node), "a field of a tuple")


def _constrain_held(constraints: _Constraints, node: Any) -> None:
    """Fields and references: all they hold is where they are."""
    for part in _children(node):
        if not isinstance(part, _POLYMORPHIC):
            constraints.domains.require(part, constraints.domains.of(node), "what a tuple or a reference holds")


_CONSTRAIN: dict[type, Any] = {Call: _constrain_call, Function: _constrain_function, Let: _constrain_let, Match: _constrain_match, If: _constrain_if,
                               Tuple: _constrain_tuple, TupleGetItem: _constrain_held, RefCreate: _constrain_held, RefRead: _constrain_held,
                               RefWrite: _constrain_held}


def _constrain_lowered(domains: Domains, var: GlobalVar, func: Any) -> None:
    """A lowered function's tensors may ask for memory of a scope; ``global``, the scope of those that do not, leaves it open."""
    from ...tir.device_constraints import get_prim_func_arg_and_result_memory_constraints

    if not isinstance(domains.type_of_global(var), FuncType):
        return
    scopes = get_prim_func_arg_and_result_memory_constraints(func, domains.type_of_global(var))
    for part, scope in zip(domains.of(var).root.parts, scopes):
        for leaf in part.leaves() if scope not in ("", "global") else ():
            leaf.device = VirtualDevice(memory_scope=scope)


def solve(mod: IRModule, config: CompilationConfig) -> Domains:
    """The domain of every expression of the module, with nothing left open."""
    domains = Domains(mod, config)
    for var, func in mod.functions.items():
        if not isinstance(func, Function):
            _constrain_lowered(domains, var, func)
    functions = _graph_functions(mod)
    constraints = _Constraints(domains)
    for var, func in functions:
        domains.require(var, domains.of(func), "a global function")
        for node in post_order(func, _children):
            rule = _CONSTRAIN.get(type(node))
            if rule is not None:
                rule(constraints, node)
    constraints.settle()
    for _, func in functions:
        _unify_loose_marks(domains, func)
    for _, func in functions:
        _default(domains, func)
    return domains


def _unify_loose_marks(domains: Domains, func: Function) -> None:
    """Where a copy is allowed but not asked for, both sides are on one device if they can be."""
    for node in post_order(func, _children):
        if is_op(node, "on_device") and not node.attrs.constrain_body and not node.attrs.constrain_result:  # type: ignore[attr-defined]
            domains.unify(domains.of(node), domains.of(node.args[0]))  # type: ignore[arg-type,attr-defined]


def _default(domains: Domains, func: Function) -> None:
    """Places what is open, from the outside in."""
    for node in _preorder(func):
        if isinstance(node, Function) and not is_primitive(node):
            domains.default_result_first(domains.of(node))
        elif isinstance(node, Call):
            domains.default_result_first(domains.of_callee(node))
        elif isinstance(node, Let):
            domains.default(domains.of(node.var), domains.device_of(node))


# ---------------------------------------------------------------------------------------------------------------- 3: result


class _Capture(Walker):
    """Writes the devices into the program."""

    def __init__(self, domains: Domains) -> None:
        super().__init__()
        self.domains = domains
        self.vars: dict[int, Var] = {}
        self.keep: list[Any] = []

    def visit_Type(self, ty: Any) -> Any:
        return ty

    def visit_Var(self, var: Var) -> Var:
        return self.vars.get(id(var), var)

    def placed(self, old: RelayExpr, new: RelayExpr, wanted: VirtualDevice, around: VirtualDevice | None) -> RelayExpr:
        """A part of an expression, copied to the device where it is ``wanted``; marked where that is not the one ``around`` it."""
        if isinstance(old, _POLYMORPHIC):
            return new
        own = self.domains.device_of(old)
        if own != wanted:
            new = _copied(self._marked(old, new, own), own, wanted)
        return self._marked(old, new, wanted) if around is None or wanted != around else new

    def _marked(self, old: Any, new: RelayExpr, device: VirtualDevice) -> RelayExpr:
        """`_fixed`; the mark that was there is kept when it says the same."""
        attrs: Any = getattr(old, "attrs", None)
        if (is_op(old, "on_device") and old.args[0] is new and attrs.constrain_body and attrs.constrain_result and attrs.virtual_device == device
                and not isinstance(new, (*_POLYMORPHIC, GlobalVar, Var, Function))):
            return old  # type: ignore[no-any-return]
        return _fixed(new, device)

    def _inside(self, parent: RelayExpr, old: RelayExpr, new: RelayExpr) -> RelayExpr:
        here = self.domains.device_of(parent)
        return self.placed(old, new, here, here)

    def visit_default(self, node: Any) -> Any:
        """Tuples, fields, branches, references: their parts are where they are."""
        kids = [c for c in node.children() if isinstance(c, RelayExpr)]
        if not kids or isinstance(node, _POLYMORPHIC):
            return node
        results = yield kids
        table = {id(k): self._inside(node, k, r) for k, r in zip(kids, results)}
        return carry_type(node, node.map_children(lambda c: table.get(id(c), c)))

    def visit_Function(self, func: Function) -> Any:
        if is_primitive(func):
            return func
        parts = self.domains.of(func).root.parts
        params = []
        for param, part in zip(func.params, parts):
            placed = param.replace(virtual_device_=part.result.device) if param.virtual_device_ != part.result.device else param
            self.vars[id(param)] = placed if placed is param else _typed(placed, param)
            params.append(self.vars[id(param)])
        here = parts[-1].result.device
        body = self.placed(func.body, (yield func.body), here, here)
        device = func.virtual_device_ if func.virtual_device_ == here else here
        return carry_type(func, func.replace(params=tuple(params), body=body, virtual_device_=device))

    def visit_Let(self, let: Let) -> Any:
        value = yield let.value
        value = self.placed(let.value, value, self.domains.device_of(let.var), None)
        body = yield let.body
        return carry_type(let, let.replace(value=value, body=self._inside(let, let.body, body)))

    def visit_Match(self, match: Match) -> Any:
        data, *results = yield [match.data, *(c.rhs for c in match.clauses)]
        clauses = [self._inside(match, c.rhs, r) for c, r in zip(match.clauses, results)]
        clauses = [c if r is c.rhs else Clause(c.lhs, r) for c, r in zip(match.clauses, clauses)]  # type: ignore[misc]
        return carry_type(match, match.replace(data=self._inside(match, match.data, data), clauses=tuple(clauses)))

    def visit_Call(self, call: Call) -> Any:
        if is_op(call, "on_device"):
            return (yield call.args[0])
        if is_op(call, "device_copy"):
            return self._copy(call, (yield call.args[0]))
        op, args = callee_of(call)
        new_op, *new_args = yield [op, *args]
        parts = self.domains.of_callee(call).root.parts
        here = self.domains.device_of(call)
        placed = tuple(self.placed(a, b, p.result.device, here) for a, b, p in zip(args, new_args, parts))
        if args is call.args:
            return carry_type(call, call.replace(op=self.placed(op, new_op, here, here), args=placed))
        arguments: Any = call.args[1]
        return carry_type(call, call.replace(args=(op, carry_type(arguments, arguments.replace(fields=placed)))))

    def _copy(self, call: Call, new: RelayExpr) -> RelayExpr:
        attrs: Any = call.attrs
        source, target = self.domains.device_of(call.args[0]), self.domains.device_of(call)
        if source == target:
            return new
        marked = self._marked(call.args[0], new, source)
        if marked is call.args[0] and attrs.src_virtual_device == source and attrs.dst_virtual_device == target:
            return call
        return _typed(_copied(marked, source, target), call)  # type: ignore[no-any-return]


def _captured(mod: IRModule, domains: Domains) -> IRModule:
    capture = _Capture(domains)
    return mod.with_functions({v: _captured_function(capture, domains, v, f) for v, f in mod.functions.items()})


def _captured_function(capture: _Capture, domains: Domains, var: GlobalVar, func: Any) -> Any:
    if isinstance(func, Function):
        return func if func.get_attr("Compiler") else capture.visit(func)
    if not isinstance(domains.type_of_global(var), FuncType):
        return func
    from ...tir.device_constraints import apply_prim_func_arg_and_result_memory_constraints

    scopes = [p.result.device.memory_scope for p in domains.of(var).root.parts]
    return apply_prim_func_arg_and_result_memory_constraints(func, domains.type_of_global(var), scopes)


# ------------------------------------------------------------------------------------------------------------------- pass


def is_marked(mod: IRModule) -> bool:
    """Whether the module says anywhere where something is to be."""
    def says(node: Any) -> bool:
        return is_op(node, "on_device", "device_copy") or isinstance(node, (Function, Var)) and node.virtual_device_ is not None

    return mentions(mod, says)


def plan_devices(mod: IRModule, config: CompilationConfig) -> IRModule:
    """The typed module with a device for every value; TargetError when what it says of devices contradicts itself."""
    prepared = map_functions(mod, lambda f: rewrite_exprs(f, lambda old, new: _prepared(old, new, mod)))  # type: ignore[arg-type,return-value]
    prepared = get_pass("InferType")(prepared)
    planned = _captured(prepared, solve(prepared, config))
    return mod if planned is mod or prepared is not mod and _says_the_same(planned, mod) else planned


def _says_the_same(planned: IRModule, mod: IRModule) -> bool:
    """Whether preparation alone has made another module of what was planned before."""
    def places(m: IRModule) -> list[Any]:
        return [n.virtual_device_ for _, f in _graph_functions(m) for n in post_order(f, _children) if isinstance(n, Function)]

    return structural_equal(planned, mod) and places(planned) == places(mod)


def PlanDevices(config: CompilationConfig | None = None) -> Pass:
    """Plans devices for the targets of ``config`` (``target.make_compilation_config``); default: the current target's."""
    def run(mod: IRModule, ctx: PassContext) -> IRModule:
        return plan_devices(mod, config if config is not None else _current_config(ctx))

    if config is not None and not isinstance(config, CompilationConfig):
        raise ArgumentError(f"a CompilationConfig is expected (target.make_compilation_config makes one), got {type(config).__name__}")
    return ModulePass(run, PassInfo(0, "PlanDevices", ["InferType"]))


def _current_config(ctx: PassContext) -> CompilationConfig:
    from ...target.target import Target

    return CompilationConfig(ctx, [Target.current() or Target("llvm")])


register_pass("PlanDevices", lambda: PlanDevices())
__all__ = ["PlanDevices", "is_marked", "plan_devices", "solve"]
