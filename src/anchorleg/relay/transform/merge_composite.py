"""MergeComposite: what fits a pattern becomes a function that carries the pattern's name.

before::

    nn.relu(add(%a, %b))

after, for the pattern ``is_op("nn.relu")(is_op("add")(wildcard(), wildcard()))`` under the name ``test.add_relu``::

    fn (%x, %y, Composite="test.add_relu", PartitionedFromPattern="add_nn.relu_") { nn.relu(add(%x, %y)) }(%a, %b)
"""
from __future__ import annotations

from typing import Any, Callable, NamedTuple, Sequence

from ...ir.expr import RelayExpr
from ...ir.module import IRModule
from ...ir.transform import ModulePass, Pass, PassContext, PassInfo
from ...support.errors import ArgumentError
from ..dataflow_pattern import DFPattern, partition
from .common import map_functions


class CompositePattern(NamedTuple):
    """An entry of a pattern table: the function's name, what it is made of, and a last question before it is made."""

    name: str
    pattern: DFPattern
    check: Callable[[RelayExpr], bool]


def _always(expr: RelayExpr) -> bool:
    return True


def _entry(number: int, entry: Any) -> CompositePattern:
    parts = tuple(entry) if isinstance(entry, (tuple, list)) else ()
    check = parts[2] if len(parts) == 3 else _always
    if len(parts) not in (2, 3) or not isinstance(parts[0], str) or not isinstance(parts[1], DFPattern) or not callable(check):
        raise ArgumentError(f"entry {number} of the pattern table is expected to be (name, pattern) or (name, pattern, check), got {entry!r}")
    return CompositePattern(parts[0], parts[1], check)


def MergeComposite(pattern_table: Sequence[Any]) -> Pass:
    """Cuts what fits the patterns out into functions with the attribute ``Composite``.

    Parameters
    ----------
    pattern_table: entries ``(name, pattern)`` or ``(name, pattern, check)``, tried in order: what one took the next does not see.
        ``check(expr)`` is given the matched expression, with types, and says whether to take it.
    """
    table = [_entry(i, e) for i, e in enumerate(pattern_table)]

    def run(mod: IRModule, ctx: PassContext) -> IRModule:
        from .infer_type import InferType

        for name, pattern, check in table:
            mod = InferType()(map_functions(mod, lambda f: partition(pattern, f, {"Composite": name}, check)))  # type: ignore[arg-type,return-value]  # noqa: B023
        return mod

    return ModulePass(run, PassInfo(0, "MergeComposite", ["InferType"]))


__all__ = ["CompositePattern", "MergeComposite"]
