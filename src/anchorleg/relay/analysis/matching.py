"""Which values a match leaves without a clause."""
from __future__ import annotations

from enum import Enum
from itertools import product
from typing import Any, Generator

from ...ir.module import IRModule
from ...ir.visit import trampoline
from ...support.errors import ArgumentError
from ..adt import Constructor, Match, Pattern, PatternConstructor, PatternTuple, PatternWildcard

Steps = Generator[Any, Any, Any]


class _Fit(Enum):
    """How a clause's pattern stands to a candidate: a set of values given as a pattern."""

    YES = 0  # it matches all of them
    NO = 1  # it matches none
    SOME = 2  # the candidate says too little to tell


def unmatched_cases(match: Match, mod: IRModule | None = None) -> list[Pattern]:
    """Patterns of the values that no clause of ``match`` accepts; none when the match is complete.

    ``mod`` holds the definitions of the data types that occur.  Candidates start from "anything" and are split by
    constructor wherever a clause looks closer.
    """
    candidates: list[Pattern] = [PatternWildcard()]
    missing: list[Pattern] = []
    while candidates:
        candidate = candidates.pop()
        for clause in match.clauses:
            fit = _fit(clause.lhs, candidate)
            if fit is _Fit.SOME:
                candidates.extend(trampoline(_split(clause.lhs, candidate, mod)))
            if fit is not _Fit.NO:
                break
        else:
            missing.append(candidate)
    return missing


def _parts(pattern: Pattern) -> tuple[Pattern, ...] | None:
    return pattern.patterns if isinstance(pattern, (PatternConstructor, PatternTuple)) else None


def _fit(pattern: Pattern, candidate: Pattern) -> _Fit:
    result = _Fit.YES
    stack = [(pattern, candidate)]
    while stack:
        wanted, given = stack.pop()
        inner, parts = _parts(wanted), _parts(given)
        if inner is None:
            continue
        if parts is None or type(wanted) is not type(given):
            result = _Fit.SOME
            continue
        if isinstance(wanted, PatternConstructor) and wanted.constructor is not given.constructor:  # type: ignore[attr-defined]
            return _Fit.NO
        if len(inner) != len(parts):
            raise ArgumentError(f"patterns of {len(inner)} and {len(parts)} parts stand for the same value")
        stack.extend(zip(inner, parts))
    return result


def _split(pattern: Pattern, candidate: Pattern, mod: IRModule | None) -> Steps:
    """The candidate split by what the pattern looks at."""
    inner = _parts(pattern)
    if inner is None:
        return [candidate]
    parts = _parts(candidate)
    if parts is None:
        if isinstance(pattern, PatternTuple):
            return [PatternTuple([PatternWildcard() for _ in inner])]
        return [PatternConstructor(c, [PatternWildcard() for _ in c.inputs])
                for c in _siblings(pattern.constructor, mod)]  # type: ignore[attr-defined]
    choices = []
    for wanted, given in zip(inner, parts):
        choices.append((yield _split(wanted, given, mod)))
    return [candidate.replace(patterns=combination) for combination in product(*choices)]


def _siblings(constructor: Constructor, mod: IRModule | None) -> tuple[Constructor, ...]:
    """All constructors of a constructor's type."""
    data = mod.type_definitions.get(constructor.belong_to) if mod is not None else None
    if data is None:
        raise ArgumentError(f"the module does not define the type {constructor.belong_to.name_hint} that the match is about")
    return data.constructors
