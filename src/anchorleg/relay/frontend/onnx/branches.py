"""Values that depend on which way a branch goes.

Two branches whose results have the same number of dimensions join in one ``If``.  Where they have not, no Relay value
can stand for the result: what follows is then converted once for each way, and the ``If`` chooses between the results of
that, at the first place where they agree again.  A way on which the rest of the model makes no sense (a convolution of a
tensor without channels, say) cannot be gone by a working model, and is left out.
"""
from __future__ import annotations

from typing import TYPE_CHECKING, Callable, NamedTuple, Union

from ....ir.expr import Any as AnyDim, RelayExpr
from ....ir.type import TensorType, TupleType, Type
from ....support.errors import ArgumentError, TypeMismatchError
from ...expr import If, Let, Tuple, Var
from .make import items

if TYPE_CHECKING:
    from .builder import Builder


class Fork(NamedTuple):
    """Results that differ in kind: those to take when the condition (a bool scalar) holds, and those when not."""

    condition: RelayExpr
    yes: Outcome
    no: Outcome

    def on_leaves(self, change: Callable[[list[RelayExpr]], list[RelayExpr]]) -> Fork:
        """The same fork of changed results."""
        return Fork(self.condition, *(w.on_leaves(change) if isinstance(w, Fork) else change(w) for w in (self.yes, self.no)))


Outcome = Union["list[RelayExpr]", Fork]


def leaves(outcome: Outcome) -> list[list[RelayExpr]]:
    """The results of every way."""
    pending, found = [outcome], []
    while pending:
        each = pending.pop()
        if isinstance(each, Fork):
            pending += [each.no, each.yes]
        else:
            found.append(each)
    return found


def fork_of(fork: Fork, go_on: Callable[[list[RelayExpr]], Outcome], builder: Builder) -> Outcome:
    """What ``go_on`` makes of the results of each way, joined where it can be.  Ways that make no sense are left out."""
    made: list[Outcome] = []
    failures: list[Exception] = []
    for way in (fork.yes, fork.no):
        try:
            made.append(fork_of(way, go_on, builder) if isinstance(way, Fork) else go_on(way))
        except (TypeMismatchError, ArgumentError) as exc:
            failures.append(exc)
    if not made:
        raise failures[0]
    return made[0] if len(made) == 1 else merged(fork.condition, made[0], made[1], builder)


def kept_leaves(outcome: Outcome, keep: Callable[[list[RelayExpr]], bool], builder: Builder) -> Outcome | None:
    """The outcome without the ways whose results are not to be kept; None when none is left."""
    if not isinstance(outcome, Fork):
        return outcome if keep(outcome) else None
    yes, no = kept_leaves(outcome.yes, keep, builder), kept_leaves(outcome.no, keep, builder)
    if yes is None or no is None:
        return no if yes is None else yes
    return merged(outcome.condition, yes, no, builder)


def merged(condition: RelayExpr, yes: Outcome, no: Outcome, builder: Builder) -> Outcome:
    """One list of results, where those of both ways are of the same kind; else a fork."""
    if isinstance(yes, Fork) or isinstance(no, Fork):
        return Fork(condition, yes, no)
    if len(yes) != len(no):
        raise ArgumentError(f"the branches give {len(yes)} and {len(no)} results")
    yes, no = builder.settle(yes), builder.settle(no)
    types = [(builder.type_of(a), builder.type_of(b)) for a, b in zip(yes, no)]
    joined = [a if x is y else join(a, b) for (a, b), x, y in zip(types, yes, no)]
    if any(t is None for t in joined):
        return Fork(condition, yes, no)
    differ = [i for i, (x, y) in enumerate(zip(yes, no)) if x is not y]
    chosen = _choice(condition, [yes[i] for i in differ], [no[i] for i in differ], [joined[i] for i in differ], builder)  # type: ignore[misc]
    found = list(yes)
    for i, each in zip(differ, chosen):
        found[i] = each
    return builder.settle(found)


def _choice(condition: RelayExpr, yes: list[RelayExpr], no: list[RelayExpr], types: list[Type], builder: Builder) -> list[RelayExpr]:
    yes, no = ([seen_as(e, builder.type_of(e), t) for e, t in zip(way, types)] for way in (yes, no))
    if not yes:
        return []
    if len(yes) == 1:
        return [_typed_if(condition, yes[0], no[0], types[0], builder)]
    whole = _typed_if(condition, *builder.settle([Tuple(yes), Tuple(no)]), TupleType(types), builder)
    return items(whole, len(yes))


def _typed_if(condition: RelayExpr, yes: RelayExpr, no: RelayExpr, t: Type, builder: Builder) -> RelayExpr:
    (condition, yes, no) = builder.settle([condition, yes, no])
    found = If(condition, yes, no)
    found._checked_type, found.span = t, builder.span
    return found


def join(a: Type, b: Type) -> Type | None:
    """The type that covers both: sizes that differ are not known.  None when there is none."""
    if isinstance(a, TupleType) and isinstance(b, TupleType) and len(a.fields) == len(b.fields):
        fields = [join(x, y) for x, y in zip(a.fields, b.fields)]
        return None if None in fields else TupleType(fields)
    if not isinstance(a, TensorType) or not isinstance(b, TensorType) or a.dtype != b.dtype or len(a.dims) != len(b.dims):
        return None
    return TensorType([x if _same(x, y) else AnyDim() for x, y in zip(a.dims, b.dims)], a.dtype)


def _same(x: object, y: object) -> bool:
    return x is y or isinstance(x, int) and isinstance(y, int) and x == y


def seen_as(expr: RelayExpr, have: Type, want: Type) -> RelayExpr:
    """``expr`` under a type that says less of its sizes: where both branches' sizes are numbers that differ, inference needs it said."""
    if _says_as_much(have, want):
        return expr
    var = Var("either", want)
    found = Let(var, expr, var)
    var._checked_type = found._checked_type = want
    return found


def _says_as_much(have: Type, want: Type) -> bool:
    pending: list[tuple[Type, Type]] = [(have, want)]
    while pending:
        a, b = pending.pop()
        if isinstance(a, TupleType):
            pending.extend(zip(a.fields, b.fields))  # type: ignore[attr-defined]
        elif any(isinstance(x, int) and not isinstance(y, int) for x, y in zip(a.dims, b.dims)):  # type: ignore[attr-defined]
            return False
    return True


__all__ = ["Fork", "Outcome", "fork_of", "join", "kept_leaves", "leaves", "merged", "seen_as"]
