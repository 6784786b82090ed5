"""Shape functions as tensor expressions: from the sizes (and elements) of a primitive function's arguments to those of its results.

Inputs, for each parameter: its elements, where sizes depend on them, then its sizes as a vector of int64.  Outputs: one
vector of int64 for each result; -1 where arguments do not fit each other.
"""
from __future__ import annotations

from typing import Any, NamedTuple, Sequence

from ...ir.op import Op
from ...ir.visit import post_order
from ...support.errors import BuildError
from ..expr import Call
from ..function import Function
from ..op.shape_func.declared import Declared, declared, ranks_of
from ..op.shape_func.dims import DimTable
from ..op.shape_func.evaluate import Evaluator, children, params_of
from ..op.shape_func.program import OPERATIONS, assemble, is_computable
from ..op.shape_func.registry import flatten_types
from .te_lowering import TEFunction, dim_for_te, shorten

ELEMENTS, SIZES = 1, 2  # what is read of a parameter, as call_lowered's metadata says it
_NAMES = {number: name for name, number in OPERATIONS.items()}


class ShapeFunction(NamedTuple):
    """The tensors, and for each parameter what is read of it (``ELEMENTS``, ``SIZES`` or both)."""

    tensors: TEFunction
    states: list[int]


class _Inputs:
    """Placeholders for the elements and the sizes of every tensor among the parameters, by the tensor's number."""

    def __init__(self, func: Function) -> None:
        from ... import te

        self.types = [flatten_types(p.checked_type) for p in func.params]
        flat = [(p.name_hint, t) for p, ts in zip(func.params, self.types) for t in ts]
        self.elements = [te.placeholder([dim_for_te(d) for d in t.dims], t.dtype, f"data_{n}") for n, t in flat]
        self.sizes = [te.placeholder((len(t.dims),) if t.dims else (), "int64", f"shape_{n}") for n, t in flat]
        self.read: set[int] = set()  # the tensors whose elements are read

    def states(self) -> list[int]:
        """What is read of each parameter."""
        first, found = 0, []
        for types in self.types:
            found.append(SIZES + (ELEMENTS if self.read & set(range(first, first + len(types))) else 0))
            first += len(types)
        return found

    def in_order(self) -> list[Any]:
        """All that the function takes."""
        first, found = 0, []
        for types, state in zip(self.types, self.states()):
            last = first + len(types)
            found += [*(self.elements[first:last] if state & ELEMENTS else ()), *self.sizes[first:last]]
            first = last
        return found

    def tensor(self, number: int) -> Any:
        """The elements of a tensor."""
        self.read.add(number)
        return self.elements[number]


def shape_function_of(func: Function) -> ShapeFunction:
    """The shape function of a typed function of operators: by rules, or by what is declared for its one operator."""
    inputs = _Inputs(func)
    found = declared(func.body)
    outputs = _by_declaration(func, found, inputs) if found is not None else _by_rules(func, inputs)
    names = [n.op.name for n in post_order(func.body, children) if isinstance(n, Call) and isinstance(n.op, Op)]
    return ShapeFunction(TEFunction(inputs.in_order(), outputs, None, None, shorten(["shape_func", *names]).replace(".", "_"), {}), inputs.states())


def _by_declaration(func: Function, found: Declared, inputs: _Inputs) -> list[Any]:
    call, numbers, first = func.body, {}, 0
    for p, types in zip(func.params, inputs.types):
        numbers[id(p)] = range(first, first + len(types))
        first += len(types)
    given: list[Any] = []
    for arg, elements in zip(call.args, found.reads_elements):  # type: ignore[attr-defined]
        if id(arg) not in numbers:
            raise BuildError(f"{call.op.name}: a declared shape function is called for arguments that are parameters only")  # type: ignore[attr-defined]
        given += [inputs.tensor(n) if elements else inputs.sizes[n] for n in numbers[id(arg)]]
    return list(found.function(call.attrs, given, ranks_of(call.checked_type)))  # type: ignore[attr-defined]


def _by_rules(func: Function, inputs: _Inputs) -> list[Any]:
    table = DimTable()
    facts, first = Evaluator(table), 0
    for p in func.params:
        known = params_of(p.checked_type, table, first)
        first += len(known)
        facts.bind(p, known)
    results = facts.run(func.body)
    if not is_computable(table, [d for k in results for d in k.dims] + [c for c, _ in facts.checks]):
        raise BuildError(f"sizes that only evaluation tells: no shape rule for {', '.join(facts.missing) or 'what the function computes'}")
    return _tensors(assemble(table, [k.dims for k in results], facts.checks), inputs)


def _tensors(program: Any, inputs: _Inputs) -> list[Any]:
    """The outputs of a shape program."""
    from ... import te, tir

    values: list[Any] = []
    rows: list[dict[int, Any]] = [{} for _ in program.ranks]
    fits: Any = None
    for op, a, b, c in program.steps:
        name = _NAMES[op]
        if name == "out":
            rows[a][b] = values[c] if fits is None else tir.Select(fits, values[c], tir.const(-1, "int64"))
        elif name == "check":
            condition = values[a] != tir.const(0, "int64")
            fits = condition if fits is None else tir.all(fits, condition)
        values.append(_STEPS[name](inputs, values, a, b, c) if name in _STEPS else None)
    return [te.compute((len(row),), lambda i, row=row: _chosen(i, row), name="shape") for row in rows]


def _chosen(i: Any, row: dict[int, Any]) -> Any:
    """The entry of a row at an index."""
    from ... import tir

    value = row[len(row) - 1] if row else tir.const(0, "int64")
    for at in range(len(row) - 2, -1, -1):
        value = tir.Select(i == at, row[at], value)
    return value


def _element(inputs: _Inputs, number: int, index: int) -> Any:
    tensor, at = inputs.tensor(number), []
    for d in reversed(tensor.shape[1:]):
        at.append(index % int(d))
        index //= int(d)
    return tensor(*([index, *reversed(at)] if tensor.shape else [])).astype("int64")


def _nonzero(inputs: _Inputs, number: int) -> Any:
    from ... import te, tir

    tensor = inputs.tensor(number)
    axes = [te.reduce_axis((0, d), name=f"r{i}") for i, d in enumerate(tensor.shape)]
    if not axes:
        return tir.Cast("int64", tensor() != tir.const(0, tensor.dtype))
    count = te.compute((), lambda: te.sum((tensor(*axes) != tir.const(0, tensor.dtype)).astype("int64"), axis=axes), name="count")
    return count()


def _size(inputs: _Inputs, number: int) -> Any:
    from ... import tir

    total: Any = tir.const(1, "int64")
    for i in range(len(inputs.elements[number].shape)):
        total = total * inputs.sizes[number](i)
    return total


def _binary(name: str) -> Any:
    def step(inputs: _Inputs, values: Sequence[Any], a: int, b: int, c: int) -> Any:
        from ... import tir

        x, y = values[a], values[b]
        one = tir.const(1, "int64")
        safe = tir.Select(y == tir.const(0, "int64"), one, y) if name in ("div", "mod") else y
        if name in ("eq", "lt"):
            return tir.Cast("int64", x == y if name == "eq" else x < y)
        return {"add": lambda: x + y, "sub": lambda: x - y, "mul": lambda: x * y, "div": lambda: tir.floordiv(x, safe),
                "mod": lambda: tir.floormod(x, safe), "max": lambda: tir.max(x, y), "min": lambda: tir.min(x, y)}[name]()

    return step


def _const(inputs: _Inputs, values: Sequence[Any], a: int, b: int, c: int) -> Any:
    from ... import tir

    return tir.const(a, "int64")


def _select(inputs: _Inputs, values: Sequence[Any], a: int, b: int, c: int) -> Any:
    from ... import tir

    return tir.Select(values[a] != tir.const(0, "int64"), values[b], values[c])


_STEPS = {
    "const": _const, "dim": lambda f, v, a, b, c: f.sizes[a](b), "val": lambda f, v, a, b, c: _element(f, a, b), "select": _select,
    "nonzero": lambda f, v, a, b, c: _nonzero(f, a), "size": lambda f, v, a, b, c: _size(f, a),
    **{name: _binary(name) for name in ("add", "sub", "mul", "div", "mod", "max", "min", "eq", "lt")},
}

__all__ = ["ELEMENTS", "SIZES", "ShapeFunction", "shape_function_of"]
