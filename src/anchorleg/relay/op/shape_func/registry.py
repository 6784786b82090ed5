"""Shape rules: how the sizes of an operator's results follow from the sizes (and values) of its arguments.

A rule is ``rule(case) -> list of results' dimensions``; a :class:`ShapeCase` shows it attributes and arguments, and takes
the conditions that must hold at run time.  A value rule ``rule(case) -> list of results' elements (or None)`` follows the
elements of small integer tensors, for operators that shape computations are made of.  A fit rule ``rule(case)`` checks that
the arguments' sizes fit each other.
"""
from __future__ import annotations

from typing import Any, Callable, NamedTuple, Sequence

from ....ir.type import flatten_types
from .dims import Dim, DimTable

FitRule = Callable[["ShapeCase"], None]
ShapeRule = Callable[["ShapeCase"], "list[list[Dim]] | None"]
ValueRule = Callable[["ShapeCase"], "list[list[Dim] | None]"]
SHAPE_RULES: dict[str, ShapeRule] = {}
VALUE_RULES: dict[str, ValueRule] = {}
FIT_RULES: dict[str, FitRule] = {}
MOST_VALUES = 64  # elements: what is larger is no shape


class Known(NamedTuple):
    """What is known of a tensor: its sizes, its dtype, and its elements when they are formulas too."""

    dims: tuple[Dim, ...]
    dtype: str
    values: tuple[Dim, ...] | None = None
    source: int | None = None  # the number of the argument it is, for reading elements at run time


class NeedsValue(Exception):
    """A rule asks for an element that cannot be read where the sizes are computed."""


class ShapeCase:
    """One call: ``attrs``, ``args`` (tuples flattened), ``table`` to compute with, ``out_type``."""

    def __init__(self, attrs: Any, args: Sequence[Known], table: DimTable, out_type: Any, checks: list[tuple[Dim, str]]) -> None:
        self.attrs, self.args, self.table, self.out_type, self.checks = attrs, list(args), table, out_type, checks

    def dims(self, index: int) -> list[Dim]:
        """The sizes of an argument."""
        return list(self.args[index].dims)

    def value(self, index: int, element: int = 0) -> Dim:
        """An element of an integer argument; NeedsValue when it can't be read."""
        arg = self.args[index]
        if arg.values is not None:
            return arg.values[element]
        if arg.source is None or "int" not in arg.dtype:
            raise NeedsValue
        return self.table.atom("val", arg.source, element)

    def values(self, index: int) -> list[Dim]:
        """All elements of a vector argument of known length."""
        dims = self.args[index].dims
        count = dims[0] if dims else 1
        if not isinstance(count, int):
            raise NeedsValue
        return [self.value(index, i) for i in range(count)]

    def nonzero(self, index: int) -> Dim:
        """How many elements of an argument are not 0."""
        source = self.args[index].source
        if source is None:
            raise NeedsValue
        return self.table.atom("nonzero", source)

    def check(self, condition: Dim, text: str) -> None:
        """A condition that must hold at run time (0: it does not)."""
        if not isinstance(condition, int) or not condition:
            self.checks.append((condition, text))

    def agree(self, a: Dim, b: Dim, text: str) -> Dim:
        """Two sizes that must be equal; the one that is better known."""
        self.check(self.table.equal(a, b), text)
        return a if isinstance(a, int) or not isinstance(b, int) else b


def shape_rule(*names: str) -> Callable[[ShapeRule], ShapeRule]:
    """Registers a shape rule for operators."""
    def register(rule: ShapeRule) -> ShapeRule:
        for name in names:
            SHAPE_RULES[name] = rule
        return rule

    return register


def fit_rule(*names: str) -> Callable[[FitRule], FitRule]:
    """Registers what operators ask of their arguments' sizes."""
    def register(rule: FitRule) -> FitRule:
        for name in names:
            FIT_RULES[name] = rule
        return rule

    return register


def value_rule(*names: str) -> Callable[[ValueRule], ValueRule]:
    """Registers a value rule for operators."""
    def register(rule: ValueRule) -> ValueRule:
        for name in names:
            VALUE_RULES[name] = rule
        return rule

    return register


__all__ = ["FIT_RULES", "Known", "MOST_VALUES", "NeedsValue", "SHAPE_RULES", "ShapeCase", "VALUE_RULES", "fit_rule", "flatten_types", "shape_rule", "value_rule"]
