"""ManifestLifetimes: ``memory.kill`` after the last use of each variable.

before::

    let %y = add(%x, %x); let %z = add(%y, %y); %z

after::

    let %y = add(%x, %x); let %_0 = memory.kill(%x); let %z = add(%y, %y); let %_1 = memory.kill(%y); %z

Inside a branch a variable dies where the branch last uses it, when nothing behind the branch does.
"""
from __future__ import annotations

from typing import Any, Iterable

from ...ir.expr import RelayExpr
from ...ir.module import IRModule
from ...ir.transform import ModulePass, Pass, PassContext, PassInfo, register_pass
from ...ir.type import TupleType
from ...ir.visit import trampoline
from ..adt import Clause, Match
from ..analysis.variables import exprs, free_vars
from ..expr import If, Let, Tuple, Var
from ..function import Function
from ..op import memory
from .common import is_primitive, map_functions


def _table(variables: Iterable[Var]) -> dict[int, Var]:
    return {id(v): v for v in variables}


def _direct(value: RelayExpr) -> dict[int, Var]:
    """The variables that a value reads itself, branches and bodies aside, in order."""
    if isinstance(value, If):
        parts: list[Any] = [value.cond]
    elif isinstance(value, Match):
        parts = [value.data]
    elif isinstance(value, Var):
        parts = [value]
    elif isinstance(value, Function):
        parts = [] if is_primitive(value) else list(free_vars(value))
    else:
        parts = [v for c in value.children() if isinstance(c, RelayExpr) for v in ([c] if isinstance(c, Var) else _inside(c))]
    return _table(p for p in parts if isinstance(p, Var))


def _inside(part: RelayExpr) -> list[Var]:
    """Variables inside a tuple of arguments."""
    return [f for f in exprs(part) if isinstance(f, Var)] if isinstance(part, Tuple) else []


class _Lifetimes:
    def __init__(self) -> None:
        self.count = 0

    def chain(self, expr: RelayExpr, wanted: dict[int, Var]) -> Any:
        """(the chain with kills, what it reads) where ``wanted`` is read behind it."""
        lets: list[Let] = []
        while isinstance(expr, Let):
            lets.append(expr)
            expr = expr.body
        end, read = yield self.value(expr, wanted)
        live = {**wanted, **read, **_direct(expr)}
        pieces: list[tuple[Var, RelayExpr, list[Var]]] = []
        for let in reversed(lets):
            behind = {k: v for k, v in live.items() if k != id(let.var)}
            value, inner = yield self.value(let.value, behind)
            direct = _direct(let.value)
            dead = [v for k, v in direct.items() if k not in live and k not in inner]
            pieces.append((let.var, value, dead))
            live = {**direct, **inner, **behind}
        return self._build(pieces, end), {k: v for k, v in live.items()}

    def _build(self, pieces: list[tuple[Var, RelayExpr, list[Var]]], result: RelayExpr) -> RelayExpr:
        flat: list[tuple[Var, RelayExpr]] = []
        for var, value, dead in reversed(pieces):
            flat.append((var, value))
            for v in dead:
                flat.append((self._name(), _kill(v)))
        ty = result._checked_type
        for var, value in reversed(flat):
            result = Let(var, value, result)
            result._checked_type = ty
        return result

    def _name(self) -> Var:
        var = Var(f"_{self.count}", TupleType([]))
        var._checked_type = TupleType([])
        self.count += 1
        return var

    def value(self, value: RelayExpr, behind: dict[int, Var]) -> Any:
        """(the value with kills inside its branches, the variables that only those read)."""
        if isinstance(value, If):
            yes, a = yield self.chain(value.true_branch, behind)
            no, b = yield self.chain(value.false_branch, behind)
            new = value.replace(true_branch=yes, false_branch=no)
            new._checked_type = value._checked_type
            return new, _only({**a, **b}, behind)
        if isinstance(value, Match):
            clauses, read = [], {}
            for c in value.clauses:
                rhs, found = yield self.chain(c.rhs, behind)
                clauses.append(Clause(c.lhs, rhs))
                read.update(found)
            made = Match(value.data, clauses, value.complete)
            made._checked_type = value._checked_type
            return made, _only(read, behind)
        if isinstance(value, Function) and not is_primitive(value):
            body, _ = yield self.chain(value.body, _table(free_vars(value)))
            func = value.replace(body=body)
            func._checked_type = value._checked_type
            return func, {}
        return value, {}


def _only(read: dict[int, Var], behind: dict[int, Var]) -> dict[int, Var]:
    return {k: v for k, v in read.items() if k not in behind}


def _kill(var: Var) -> RelayExpr:
    call = memory.kill(var)
    call._checked_type = TupleType([])
    return call


def manifest_lifetimes(func: Function) -> Function:
    """A function in A-normal form with the ends of its variables' lives made explicit."""
    body, _ = trampoline(_Lifetimes().chain(func.body, {}))
    new = func.replace(body=body)
    new._checked_type = func._checked_type
    return new


def ManifestLifetimes() -> Pass:
    """Marks where variables die."""
    def run(mod: IRModule, ctx: PassContext) -> IRModule:
        return map_functions(mod, manifest_lifetimes)

    return ModulePass(run, PassInfo(0, "ManifestLifetimes", []))


register_pass("ManifestLifetimes", ManifestLifetimes)
__all__ = ["ManifestLifetimes", "manifest_lifetimes"]
