"""Small helpers of computes and schedules: constants out of expressions, walks over tensor graphs."""
from __future__ import annotations

from typing import Any, Callable, Sequence

from ..ir.expr import IntImm, PrimExpr
from ..support.errors import ArgumentError
from ..te.operation import PlaceholderOp
from . import tag


class InvalidShapeError(ArgumentError):
    """A shape that an implementation cannot work with."""


def static_int(value: Any) -> int | None:
    """The value as an int when it is constant, else None."""
    if isinstance(value, int):
        return value
    return value.value if isinstance(value, IntImm) else None


def get_const_int(expr: Any) -> int:
    """The value of a constant index expression; ArgumentError when it is not constant."""
    found = static_int(expr)
    if found is None:
        found = static_int(_simplified(expr))
    if found is None:
        raise ArgumentError(f"a constant integer is expected, got {expr!r}")
    return found


def _simplified(expr: Any) -> Any:
    from .. import arith

    return arith.Analyzer().simplify(expr) if isinstance(expr, PrimExpr) else expr


def get_const_float(expr: Any) -> float:
    """The value of a floating-point constant."""
    if hasattr(expr, "value"):
        return float(expr.value)
    return float(expr)


def get_const_tuple(values: Sequence[Any]) -> tuple[Any, ...]:
    """A shape with its constant entries as ints; symbolic entries stay expressions."""
    return tuple(v if static_int(v) is None else static_int(v) for v in values)


def equal_const_int(expr: Any, value: int) -> bool:
    """Whether an expression is the constant ``value``."""
    return static_int(expr) == value


def prod(values: Sequence[Any]) -> Any:
    """The product of ints and expressions (1 for none)."""
    total: Any = 1
    for v in values:
        known = static_int(v)
        total = total * (v if known is None else known)
    return total


def same_extent(a: Any, b: Any) -> bool:
    """Whether two dimensions are known to be equal."""
    if a is b:
        return True
    x, y = static_int(a), static_int(b)
    if x is not None or y is not None:
        return x == y
    from ..ir.structural import structural_equal

    return structural_equal(a, b)


def unravel_index(flat: Any, shape: Sequence[Any]) -> list[Any]:
    """The indices, row-major, of element number ``flat`` of a tensor of that shape."""
    indices: list[Any] = []
    for dim in reversed(list(shape)[1:]):
        indices.append(flat % dim)
        flat = flat // dim
    return [flat, *reversed(indices)] if len(shape) else []


def ravel_index(indices: Sequence[Any], shape: Sequence[Any]) -> Any:
    """The number, row-major, of an element of a tensor of that shape."""
    flat: Any = 0
    for i, (index, dim) in enumerate(zip(indices, shape)):
        flat = index if i == 0 else flat * dim + index
    return flat


def operations(outs: Sequence[Any]) -> list[Any]:
    """Every operation that the tensors need, producers first, each once."""
    found: dict[int, Any] = {}
    seen: set[int] = set()
    stack = [(t.op, False) for t in reversed(list(outs))]
    while stack:
        op, ready = stack.pop()
        if ready:
            found[id(op)] = op
        elif id(op) not in seen:
            seen.add(id(op))
            stack.append((op, True))
            stack.extend((t.op, False) for t in reversed(op.input_tensors) if id(t.op) not in seen)
    return list(found.values())


def traverse_inline(sch: Any, final_op: Any, callback: Callable[[Any], None]) -> None:
    """Inlines the broadcast operations before ``final_op`` and calls ``callback`` on every operation, consumers first."""
    for op in reversed(operations([final_op.output(0)])):
        if tag.is_broadcast(op.tag) and op is not final_op and not any(op is o for o in sch.outputs):
            sch[op].compute_inline()
        callback(op)


def is_input(op: Any) -> bool:
    """Whether an operation is an input of the computation."""
    return isinstance(op, PlaceholderOp)


def as_list(outs: Any) -> list[Any]:
    """One tensor, or several, as a list."""
    return list(outs) if isinstance(outs, (list, tuple)) else [outs]
