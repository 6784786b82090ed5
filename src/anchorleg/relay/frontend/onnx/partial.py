"""Values of shape computations that are known in part.

When a model has a dimension that is not known before run time, ``Shape`` of a tensor is not a constant, but most of its
elements are.  This table follows such small integer vectors through the operators that only move elements, so that, say,
``Reshape`` to ``[Shape(x)[0], 12, 64]`` is still known to have two fixed sizes, and one that is a dimension of ``x``.
"""
from __future__ import annotations

from typing import Any

import numpy as np

from ....ir.expr import Any as AnyDim, PrimExpr, RelayExpr
from ....ir.op import Op
from ....ir.type import TensorType
from ...expr import Call, Constant, Tuple, TupleGetItem

_MOVES = frozenset({"reshape", "squeeze", "expand_dims", "strided_slice", "take", "concatenate", "stack", "transpose", "split", "copy"})
_ARITHMETIC = {"add": lambda a, b: a + b, "subtract": lambda a, b: a - b, "multiply": lambda a, b: a * b,
               "floor_divide": lambda a, b: a // b}
_LIMIT = 64  # elements: what is larger is no shape


class PartialValues:
    """Object arrays (ints, and dimension expressions where not known) by the expression whose value they are."""

    def __init__(self) -> None:
        self._known: dict[RelayExpr, Any] = {}

    def get(self, expr: RelayExpr) -> np.ndarray | None:
        """What is known of the value of ``expr``: an object array, or None."""
        if isinstance(expr, Constant):
            return _of_constant(expr)
        return self._known.get(expr)

    def learn(self, expr: RelayExpr) -> np.ndarray | None:
        """Works out the value of a typed expression whose arguments have been learned; None when nothing is known."""
        value = self._evaluate(expr)
        if value is not None:
            self._known[expr] = value
        return value if isinstance(value, np.ndarray) else None

    def _evaluate(self, expr: RelayExpr) -> Any:
        if isinstance(expr, TupleGetItem):
            fields = self._known.get(expr.tuple_value)
            return fields[expr.index] if fields is not None else None
        if not isinstance(expr, Call) or not isinstance(expr.op, Op):
            return None
        if expr.op.name in ("shape_of", "vm.shape_of"):
            return _shape(expr.args[0].checked_type)
        if expr.op.name == "cast":
            return self._known.get(expr.args[0]) if "int" in expr.attrs.dtype else None
        if expr.op.name in _MOVES:
            return self._move(expr)
        return self._compute(expr) if expr.op.name in _ARITHMETIC else None

    def _arguments(self, call: Call) -> list[Any] | None:
        flat = [f for a in call.args for f in (a.fields if isinstance(a, Tuple) else (a,))]
        if not any(f in self._known for f in flat):
            return None
        values = {id(f): self.get(f) for f in flat}
        if any(v is None for v in values.values()):
            return None
        return [tuple(values[id(f)] for f in a.fields) if isinstance(a, Tuple) else values[id(a)] for a in call.args]

    def _move(self, call: Call) -> Any:
        args = self._arguments(call)
        if args is None:
            return None
        if call.op.name == "take":  # the places must be numbers
            args[1] = args[1].astype(np.int64) if all(isinstance(i, int) for i in args[1].flat) else None
        if args[-1] is None:
            return None
        found = call.op.get_attr("FNumpy")(call.attrs, args, call.checked_type)
        return tuple(map(_boxed, found)) if isinstance(found, (tuple, list)) else _boxed(found)

    def _compute(self, call: Call) -> np.ndarray | None:
        args = self._arguments(call)
        if args is None:
            return None
        a, b = np.broadcast_arrays(*args)
        out = np.empty(a.shape, dtype=object)
        for i in np.ndindex(a.shape):
            both = isinstance(a[i], int) and isinstance(b[i], int) and not (b[i] == 0 and "divide" in call.op.name)
            out[i] = _ARITHMETIC[call.op.name](a[i], b[i]) if both else _neutral(call.op.name, a[i], b[i])
        return out


def _boxed(value: Any) -> np.ndarray:
    """An array; numpy gives the element itself where an array of objects has no dimensions."""
    if isinstance(value, np.ndarray):
        return value
    out = np.empty((), dtype=object)
    out[()] = value
    return out


def _neutral(name: str, a: Any, b: Any) -> Any:
    unit = 0 if name in ("add", "subtract") else 1
    if isinstance(b, int) and b == unit:
        return a
    if isinstance(a, int) and a == unit and name in ("add", "multiply"):
        return b
    return AnyDim()


def _shape(t: Any) -> np.ndarray | None:
    if not isinstance(t, TensorType):
        return None
    out = np.empty(len(t.dims), dtype=object)
    for i, d in enumerate(t.dims):
        out[i] = d
    return out


def _of_constant(expr: Constant) -> np.ndarray | None:
    if "int" not in expr.data.dtype or expr.data.size > _LIMIT:
        return None
    value = expr.data.as_numpy_view()
    out = np.empty(value.shape, dtype=object)
    for i in np.ndindex(value.shape):
        out[i] = int(value[i])
    return out


def fully_known(value: np.ndarray) -> bool:
    """Whether every element is a number."""
    return all(not isinstance(v, PrimExpr) for v in value.flat)
