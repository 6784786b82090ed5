"""LambdaLift: local functions become global ones.

A function that is only ever called is given what it captures as further parameters, so that its calls are plain calls
(and a loop written as a local recursive function is a jump); one that is used as a value becomes a global function from
its captured values to a closure.

before::

    def @main(%n, %x) { let %loop = fn (%i) { if (less(%i, %n)) { %loop(add(%i, 1)) } else { %x } }; %loop(0) }

after::

    def @main_loop(%i, %n, %x) { if (less(%i, %n)) { @main_loop(add(%i, 1), %n, %x) } else { %x } }
    def @main(%n, %x) { @main_loop(0, %n, %x) }
"""
from __future__ import annotations

from typing import Any

from ...ir.expr import GlobalVar, RelayExpr
from ...ir.module import IRModule
from ...ir.transform import ModulePass, Pass, PassContext, PassInfo, register_pass
from ...ir.type import FuncType
from ...ir.visit import Walker
from ...support.names import NameSupply
from ..analysis.variables import exprs, free_vars_of_parts
from ..expr import Call, Let, Var
from ..function import Function
from .common import descends, is_primitive
from .bind import substitute_typed


class _Lifted:
    """A local function: its variable, what it captures, the global it becomes."""

    __slots__ = ("func", "captured", "target", "is_direct")

    def __init__(self, func: Function, captured: list[Var], target: GlobalVar, is_direct: bool) -> None:
        self.func, self.captured, self.target, self.is_direct = func, captured, target, is_direct


def _is_local(node: Any) -> bool:
    return isinstance(node, Function) and not is_primitive(node)


class _Finder:
    """The local functions under a function, which of them are only called, and everything each captures."""

    def __init__(self, root: Function, name: str, names: NameSupply) -> None:
        self.lifted: dict[int, _Lifted] = {}  # by the id of the let variable, or of an anonymous function
        self.keep: list[Any] = [root]
        bound: dict[int, tuple[Var | None, Function]] = {}
        escaping: set[int] = set()
        for node in exprs(root.body):
            if isinstance(node, Let) and _is_local(node.value):
                bound[id(node.var)] = (node.var, node.value)  # type: ignore[assignment]
        named = {id(f) for _, f in bound.values()}
        for node in exprs(root.body):
            for child in _value_children(node):
                if isinstance(child, Var) and id(child) in bound:
                    escaping.add(id(child))
                elif _is_local(child) and id(child) not in named:
                    bound[id(child)] = (None, child)
                    escaping.add(id(child))
            if isinstance(node, Call) and _is_local(node.op):
                bound.setdefault(id(node.op), (None, node.op))
        if _is_local(root.body):
            bound[id(root.body)] = (None, root.body)
            escaping.add(id(root.body))
        captured = self._captures(bound, free_vars_of_parts(root.body) if bound else {})
        for key, (var, func) in bound.items():
            target = GlobalVar(names.fresh(f"{name}_{var.name_hint if var is not None else 'anon'}"))
            self.lifted[key] = _Lifted(func, captured[key], target, key not in escaping)

    def _captures(self, bound: dict[int, tuple[Var | None, Function]], free_in: dict[int, tuple[Var, ...]]) -> dict[int, list[Var]]:
        """Free variables, with those of local functions replaced by what these capture, until nothing changes."""
        free = {key: free_in[id(func)] for key, (_, func) in bound.items()}
        found: dict[int, dict[int, Var]] = {key: {id(v): v for v in vs if id(v) not in bound} for key, vs in free.items()}
        changed = True
        while changed:
            changed = False
            for key, vs in free.items():
                for v in vs:
                    if id(v) in bound:
                        new = {k: x for k, x in found[id(v)].items() if k not in found[key]}
                        if new:
                            found[key].update(new)
                            changed = True
        return {key: list(vs.values()) for key, vs in found.items()}


def _value_children(node: Any) -> list[Any]:
    """The parts of an expression that are used as values (a callee and the value of a let are not)."""
    if isinstance(node, Call):
        return list(node.args)
    if isinstance(node, Let):
        return [node.body] + ([] if _is_local(node.value) else [node.value] if isinstance(node.value, Var) else [])
    if is_primitive(node):
        return []
    if isinstance(node, Function):
        return [node.body]
    return [c for c in node.children() if isinstance(c, RelayExpr)]


class _Lifter(Walker):
    """Rewrites one function: local functions go, their calls and uses refer to globals."""

    def __init__(self, lifted: dict[int, _Lifted]) -> None:
        super().__init__()
        self.lifted = lifted
        self.done: list[tuple[GlobalVar, Function]] = []

    def visit_default(self, node: Any) -> Any:
        if not descends(node):
            return node
        return _typed_like(node, (yield from super().visit_default(node)))

    def visit_Var(self, var: Var) -> RelayExpr:
        found = self.lifted.get(id(var))
        return var if found is None else self._closure(found)

    def _closure(self, found: _Lifted) -> RelayExpr:
        call = Call(found.target, found.captured)
        call._checked_type = found.func._checked_type
        return call

    def visit_Call(self, call: Call) -> Any:
        args = yield list(call.args)
        key = id(call.op)
        found = self.lifted.get(key)
        if found is not None and found.func is call.op:
            yield from self._lift(found)
        if found is not None and found.is_direct:
            return _typed_like(call, call.replace(op=found.target, args=(*args, *found.captured)))
        op = call.op if not descends(call.op) and not isinstance(call.op, Var) else (yield call.op)
        return _typed_like(call, call.replace(op=op, args=tuple(args)))

    def visit_Let(self, let: Let) -> Any:
        found = self.lifted.get(id(let.var))
        if found is not None:
            yield from self._lift(found)
            return (yield let.body)
        value = yield let.value
        body = yield let.body
        return _typed_like(let, let.replace(value=value, body=body))

    def visit_Function(self, func: Function) -> Any:
        if is_primitive(func):
            return func
        found = self.lifted.get(id(func))
        if found is None:  # the root
            body = yield func.body
            return _typed_like(func, func.replace(body=body))
        yield from self._lift(found)
        return self._closure(found)

    def _lift(self, found: _Lifted) -> Any:
        body = yield found.func.body
        fresh = {v: _fresh(v) for v in found.captured}
        body = substitute_typed(body, fresh) if fresh else body
        extra = tuple(fresh.values())
        func = found.func
        ty = func._checked_type
        ret = ty.ret_type if isinstance(ty, FuncType) else func.ret_type
        if found.is_direct:
            whole = Function((*func.params, *extra), body, ret, func.type_params, func.attrs)
            if isinstance(ty, FuncType):
                whole._checked_type = FuncType([*ty.arg_types, *(v._checked_type for v in extra)], ret, ty.type_params)
        else:
            inner = Function(func.params, body, ret, func.type_params, func.attrs)
            inner._checked_type = ty
            whole = Function(extra, inner, ty).with_attr("Closure", 1)
            if ty is not None:
                whole._checked_type = FuncType([v._checked_type for v in extra], ty)
        self.done.append((found.target, whole))


def _fresh(var: Var) -> Var:
    new = Var(var.name_hint, var.type_annotation if var.type_annotation is not None else var._checked_type)
    new._checked_type = var._checked_type
    return new


def _typed_like(old: Any, new: Any) -> Any:
    if new is not old and isinstance(old, RelayExpr):  # a clause of a match has no type
        new._checked_type = old._checked_type
    return new


def lambda_lift(mod: IRModule) -> IRModule:
    """The module without local functions."""
    names = NameSupply()
    for v in mod.functions:
        names.reserve(v.name_hint)
    result: dict[GlobalVar, Any] = {}
    for var, func in mod.functions.items():
        result[var] = func
        if not _is_local(func) or func.get_attr("Closure"):
            continue
        finder = _Finder(func, var.name_hint, names)
        if finder.lifted:
            lifter = _Lifter(finder.lifted)
            result[var] = lifter.visit(func)
            result.update(dict(lifter.done))
            for target, made in lifter.done:
                target._checked_type = made._checked_type
    return mod.with_functions(result) if any(result.get(v) is not f for v, f in mod.functions.items()) else mod


def LambdaLift() -> Pass:
    """Makes local functions global ones, with what they capture as parameters or as fields of a closure."""
    return ModulePass(lambda mod, ctx: lambda_lift(mod), PassInfo(1, "LambdaLift", ["InferType"]))


register_pass("LambdaLift", LambdaLift)
__all__ = ["LambdaLift", "lambda_lift", "PassContext"]
