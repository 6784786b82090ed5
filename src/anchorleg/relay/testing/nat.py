"""Natural numbers as a data type (zero, successor): small programs of recursion and matching to test with.

The module of the prelude must hold ``nat.rly``.
"""
from __future__ import annotations

from typing import Any

from ...support.errors import TypeMismatchError


def _constructors(prelude: Any) -> tuple[Any, Any]:
    _, zero, successor = prelude.mod.get_type("nat")
    return zero, successor


def count(prelude: Any, n: Any) -> int:
    """The Python number of a value of type nat."""
    zero, successor = _constructors(prelude)
    total = 0
    while getattr(n, "tag", None) == successor.tag:
        n, total = n.fields[0], total + 1
    if getattr(n, "tag", None) != zero.tag:
        raise TypeMismatchError(f"expected a value of type nat, got {n!r}")
    return total


def make_nat_value(prelude: Any, n: int) -> Any:
    """The value of type nat of a Python number."""
    from ..backend.evaluator import ConstructorValue

    zero, successor = _constructors(prelude)
    value = ConstructorValue(zero.tag, [], zero)
    for _ in range(n):
        value = ConstructorValue(successor.tag, [value], successor)
    return value


def make_nat_expr(prelude: Any, n: int) -> Any:
    """An expression whose value is a Python number as a nat."""
    zero, successor = _constructors(prelude)
    expr = zero()
    for _ in range(n):
        expr = successor(expr)
    return expr
