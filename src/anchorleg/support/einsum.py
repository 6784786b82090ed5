"""The notation of Einstein's sums, as numpy reads it."""
from __future__ import annotations

import re
from typing import Any, Sequence

from .errors import ArgumentError

_STANDING = [chr(c) for c in range(0x3B1, 0x3CA)]  # Greek letters, for the axes of an ellipsis: they cannot occur in an equation


def parse_equation(equation: str, ranks: Sequence[int]) -> tuple[list[str], str]:
    """(labels of each operand, labels of the result), an ellipsis replaced by Greek letters, aligned to the right."""
    equation = equation.replace(" ", "")
    left, arrow, right = equation.partition("->")
    terms = left.split(",")
    if len(terms) != len(ranks) or not all(re.fullmatch(r"[A-Za-z]*(\.\.\.)?[A-Za-z]*", t) for t in (*terms, right)):
        raise ArgumentError(f"the equation {equation!r} does not fit {len(ranks)} operands")
    named = [len(t.replace("...", "")) for t in terms]
    width = max((r - n for t, r, n in zip(terms, ranks, named) if "..." in t), default=0)
    dots = _STANDING[:max(width, 0)]
    found = []
    for term, rank, n in zip(terms, ranks, named):
        if rank < n or rank > n and "..." not in term:
            raise ArgumentError(f"the equation {equation!r} gives {n} labels to an operand of {rank} dimensions")
        found.append(term.replace("...", "".join(dots[width - (rank - n):])))
    if arrow:
        return found, right.replace("...", "".join(dots))
    joined = "".join(found)
    return found, "".join(dots) + "".join(sorted(c for c in set(joined) if joined.count(c) == 1 and c not in dots))


def checked_equation(equation: str, ranks: Sequence[int]) -> tuple[list[str], str]:
    """As parse_equation; ArgumentError unless the result's labels are distinct, occur in an operand and name all that an ellipsis covers."""
    terms, result = parse_equation(equation, ranks)
    if len(set(result)) < len(result) or not set(result) <= set("".join(terms)):
        raise ArgumentError(f"the result's labels in {equation!r} do not all occur in an operand, or occur twice")
    if any(c in _STANDING and c not in result for c in "".join(terms)):
        raise ArgumentError(f"the result of {equation!r} has no '...' for the dimensions that it covers in the operands")
    return terms, result


def label_sizes(terms: Sequence[str], shapes: Sequence[Sequence[Any]]) -> dict[str, list[Any]]:
    """The sizes of the axes of each label.  ArgumentError where known ones differ, unless one of them is 1 and of another operand."""
    sizes: dict[str, list[Any]] = {}
    for term, shape in zip(terms, shapes):
        own: dict[str, Any] = {}
        for label, size in zip(term, shape):
            sizes.setdefault(label, []).append(size)
            if isinstance(size, int) and own.setdefault(label, size) != size:
                raise ArgumentError(f"one operand has the label {label!r} for axes of the sizes {own[label]} and {size}")
    for label, found in sizes.items():
        wide = sorted({s for s in found if isinstance(s, int) and s != 1})
        if len(wide) > 1:
            raise ArgumentError(f"the label {label!r} has the sizes {wide}")
    return sizes
