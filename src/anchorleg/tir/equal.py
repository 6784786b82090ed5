"""Deep equality of expressions: same shape, same constants, the very same variables and buffers."""
from __future__ import annotations

from typing import Any

from ..ir.expr import FloatImm, IntImm
from . import expr as tir
from .buffer import BufferLoad, ProducerLoad
from .functor import kids


def _data(e: Any) -> Any:
    """What two nodes of one class must share besides their children."""
    t = type(e)
    if t is IntImm or t is tir.StringImm:
        return e.value
    if t is FloatImm:
        return repr(e.value)  # tells 0.0 from -0.0 and takes NaN as equal to itself
    if t is tir.Call:
        return id(e.op)
    if t is BufferLoad:
        return id(e.buffer)
    if t is ProducerLoad:
        return id(e.producer)
    if t is tir.Shuffle:
        return e.indices
    if t is tir.Let:
        return id(e.var)
    if t is tir.Reduce:
        return id(e.combiner), tuple(map(id, e.axis)), e.value_index
    return None


def expr_deep_equal(a: Any, b: Any) -> bool:
    """Whether two expressions are the same term (variables and buffers by identity)."""
    if a is b:
        return True
    stack = [(a, b)]
    done: set[tuple[int, int]] = set()
    while stack:
        x, y = stack.pop()
        if x is y:
            continue
        if type(x) is not type(y) or x.dtype != y.dtype or isinstance(x, tir.Var) or _data(x) != _data(y):
            return False
        xs, ys = kids(x), kids(y)
        if len(xs) != len(ys):
            return False
        if xs and (id(x), id(y)) not in done:
            done.add((id(x), id(y)))
            stack.extend(zip(xs, ys))
    return True
