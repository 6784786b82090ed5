"""``tvm.relay.analysis._ffi_api``: the type solver by itself."""
from __future__ import annotations

from typing import Any, Callable

from ...ir.op import relation_named
from ...ir.type import Type, TypeRelation
from ...relay.transform.type_solver import Pending, TypeSolver
from ...support.errors import ArgumentError, TypeMismatchError


class _Solver:
    """Equations and relations between types, solved on request."""

    def __init__(self) -> None:
        self.problems: list[TypeMismatchError] = []
        self.solver = TypeSolver(lambda site, exc: self.problems.append(exc))

    def AddConstraint(self, constraint: TypeRelation) -> None:
        """Adds a relation; its last argument is the result."""
        relation = relation_named(constraint.func.name.removeprefix("tvm.relay.type_relation."))
        *args, result = constraint.args

        pending = Pending(constraint, lambda types: relation(types, constraint.attrs, self.solver), args, result)
        self.solver.pending.append(pending)
        self.solver.queue.append(pending)

    def Solve(self) -> bool:
        """Runs all relations that can answer; False when some can't."""
        for pending in self.solver.pending:
            if not pending.done:
                self.solver.queue.append(pending)
        self.solver.drain()
        if self.problems:
            raise self.problems[0]
        return all(p.done for p in self.solver.pending)

    def Unify(self, left: Type, right: Type) -> Type:
        """Both types made equal; TypeMismatchError when they can't be."""
        return self.solver.resolve(self.solver.unify(left, right))

    def Resolve(self, ty: Type) -> Type:
        """A type as far as it is known."""
        return self.solver.resolve(ty)


def _test_type_solver() -> Callable[[str], Any]:
    """A solver as a function of its methods' names."""
    solver = _Solver()

    def method(name: str) -> Any:
        if name not in ("Solve", "Unify", "Resolve", "AddConstraint"):
            raise ArgumentError(f"the type solver has no method {name!r}")
        return getattr(solver, name)

    return method


__all__ = ["_test_type_solver"]
