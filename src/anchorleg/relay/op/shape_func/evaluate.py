"""Sizes of everything inside a primitive function, as formulas over its arguments."""
from __future__ import annotations

import importlib
from typing import Any, Sequence

from ....ir.op import Op
from ....ir.type import TensorType
from ....ir.visit import post_order
from ...expr import Call, Constant, Tuple, TupleGetItem
from ..registry import attrs_of
from .declared import declared
from .dims import Dim, DimTable
from .registry import FIT_RULES, MOST_VALUES, SHAPE_RULES, VALUE_RULES, Known, NeedsValue, ShapeCase, flatten_types


def load_rules() -> None:
    """Makes all rules known."""
    importlib.import_module(f"{__package__}.rules")
    importlib.import_module(f"{__package__}.values")
    importlib.import_module(f"{__package__}.fits")


def children(node: Any) -> tuple[Any, ...]:
    """What evaluation descends into inside a primitive function."""
    if isinstance(node, Call):
        return node.args
    if isinstance(node, Tuple):
        return node.fields
    return (node.tuple_value,) if isinstance(node, TupleGetItem) else ()


class Evaluator:
    """Follows sizes through expressions.

    ``known`` maps expressions (by id) to lists of :class:`Known`, one for each tensor.  ``exact`` says whether every size that
    is not known statically was found by a rule; ``checks`` are conditions to test at run time.
    """

    def __init__(self, table: DimTable) -> None:
        load_rules()
        self.table = table
        self.known: dict[int, list[Known]] = {}
        self.keep: list[Any] = []
        self.checks: list[tuple[Dim, str]] = []
        self.missing: list[str] = []

    def bind(self, node: Any, found: list[Known]) -> None:
        """Notes what is known of an expression."""
        self.known[id(node)] = found
        self.keep.append(node)

    def run(self, body: Any) -> list[Known]:
        """What is known of an expression of operators."""
        for node in post_order(body, children):
            if id(node) not in self.known:
                self.bind(node, self.evaluate(node))
        return self.known[id(body)]

    def evaluate(self, node: Any) -> list[Known]:
        """What is known of one expression, its parts being known."""
        if isinstance(node, Constant):
            return [constant(node)]
        if isinstance(node, Tuple):
            return [k for f in node.fields for k in self.known[id(f)]]
        if isinstance(node, TupleGetItem):
            return self._field(node)
        if isinstance(node, Call) and isinstance(node.op, Op):
            return self._call(node)
        return self.unknown(node.checked_type)

    def _field(self, node: TupleGetItem) -> list[Known]:
        widths = [len(flatten_types(f)) for f in node.tuple_value.checked_type.fields]
        start = sum(widths[:node.index])
        return self.known[id(node.tuple_value)][start:start + widths[node.index]]

    def unknown(self, ty: Any) -> list[Known]:
        """Fresh sizes where a type has none."""
        return [Known(tuple(d if isinstance(d, int) else self.table.fresh() for d in t.dims), t.dtype) if isinstance(t, TensorType)
                else Known((), "handle") for t in flatten_types(ty)]

    def _call(self, call: Call) -> list[Known]:
        args = [k for a in call.args for k in self.known[id(a)]]
        types = flatten_types(call.checked_type)
        case = ShapeCase(attrs_of(call.op, call.attrs), args, self.table, call.checked_type, self.checks)
        dims = self._dims(call, case, types)
        values = self._values(call, case, len(types))
        return [Known(tuple(d), t.dtype, None if v is None else tuple(v)) for d, t, v in zip(dims, types, values)]

    def _dims(self, call: Call, case: ShapeCase, types: Sequence[TensorType]) -> list[list[Dim]]:
        static = [list(t.dims) for t in types]
        name = call.op.name
        if all(isinstance(d, int) for t in static for d in t) and not _checks_sizes(case):
            return static
        rule, fit = SHAPE_RULES.get(name) if declared(call) is None else None, FIT_RULES.get(name)
        try:
            if fit is not None:
                fit(case)
            found = rule(case) if rule is not None else None
        except (NeedsValue, IndexError):
            found = None
        if found is None or len(found) != len(types) or any(len(a) != len(b) for a, b in zip(found, static)):
            if not all(isinstance(d, int) for t in static for d in t):
                self.missing.append(name)
            return [[d if isinstance(d, int) else self.table.fresh() for d in t] for t in static]
        return [[self._better(name, s, d) for s, d in zip(st, ds)] for st, ds in zip(static, found)]

    def _better(self, name: str, static: Any, found: Dim) -> Dim:
        if not isinstance(static, int):
            return found
        if not isinstance(found, int):
            self.checks.append((self.table.equal(found, static), f"{name}: a size is not the {static} of the program's type"))
        return static

    def _values(self, call: Call, case: ShapeCase, count: int) -> list[list[Dim] | None]:
        rule = VALUE_RULES.get(call.op.name)
        if rule is None:
            return [None] * count
        try:
            found = rule(case)
        except Exception:  # a value that can't be followed is no error: it is computed at run time
            return [None] * count
        return [v if v is not None and len(v) <= MOST_VALUES else None for v in found]


def _checks_sizes(case: ShapeCase) -> bool:
    """Whether arguments have sizes that the static result depends on."""
    return any(not isinstance(d, int) for a in case.args for d in a.dims)


def constant(node: Constant) -> Known:
    """A constant's sizes, and elements when it may be a shape."""
    data = node.data
    values = None
    if ("int" in data.dtype or data.dtype == "bool") and data.size <= MOST_VALUES:
        values = tuple(int(v) for v in data.as_numpy_view().reshape(-1))
    return Known(tuple(data.shape), str(data.dtype), values)


def params_of(ty: Any, table: DimTable, first: int) -> list[Known]:
    """The tensors of a parameter's type, their unknown sizes as atoms of the arguments from number ``first`` on."""
    return [Known(tuple(d if isinstance(d, int) else table.atom("dim", first + i, k) for k, d in enumerate(t.dims)), t.dtype, None, first + i)
            for i, t in enumerate(flatten_types(ty))]


__all__ = ["Evaluator", "constant", "load_rules", "params_of"]
