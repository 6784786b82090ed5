"""Value rules: the elements of small integer tensors, followed through the operators that shapes are computed with."""
from __future__ import annotations

import numpy as np

from ....ir.op import Op
from .dims import Dim, Size
from .registry import MOST_VALUES, ShapeCase, value_rule

_MOVES = ("reshape", "squeeze", "expand_dims", "strided_slice", "take", "concatenate", "stack", "transpose", "split", "copy", "dyn.reshape",
          "broadcast_to", "tile", "repeat", "reverse", "gather", "gather_nd")


@value_rule("shape_of", "vm.shape_of")
def _shape_of(c: ShapeCase) -> list[list[Dim] | None]:
    return [c.dims(0)]


@value_rule("ndarray_size")
def _size(c: ShapeCase) -> list[list[Dim] | None]:
    from .dims import product

    return [[product(c.dims(0))]]


@value_rule("cast")
def _cast(c: ShapeCase) -> list[list[Dim] | None]:
    values = c.args[0].values
    return [list(values) if values is not None and "int" in c.attrs.dtype else None]


def _array(arg: object) -> np.ndarray | None:
    """The elements of an argument as an object array."""
    if arg.values is None or not all(isinstance(d, int) for d in arg.dims):  # type: ignore[attr-defined]
        return None
    out = np.empty(len(arg.values), dtype=object)  # type: ignore[attr-defined]
    out[:] = arg.values  # type: ignore[attr-defined]
    return out.reshape(arg.dims)  # type: ignore[attr-defined]


def move(name: str, c: ShapeCase) -> list[list[Dim] | None]:
    """The elements moved as the operator's numpy rule moves them."""
    arrays = [_array(a) for a in c.args]
    count = len(getattr(c.out_type, "fields", (None,)))
    if any(a is None for a in arrays):
        return [None] * count
    if name in ("take", "gather", "gather_nd", "dyn.reshape"):
        if any(isinstance(v, Size) for v in arrays[1].flat):  # type: ignore[union-attr]
            return [None] * count
        arrays[1] = arrays[1].astype(np.int64)  # type: ignore[union-attr]
    args = [tuple(arrays)] if name in ("concatenate", "stack") else arrays
    found = Op.get(name).get_attr("FNumpy")(c.attrs, args, c.out_type)
    parts = found if isinstance(found, (tuple, list)) else [found]
    return [list(p.reshape(-1)) if p.size <= MOST_VALUES else None for p in parts]


for _name in _MOVES:
    value_rule(_name)(lambda c, name=_name: move(name, c))


def _arithmetic(name: str, c: ShapeCase) -> list[list[Dim] | None]:
    arrays = [_array(a) for a in c.args[:2]]
    if any(a is None for a in arrays):
        return [None]
    a, b = np.broadcast_arrays(*arrays)
    return [[_apply(name, c, x, y) for x, y in zip(a.flat, b.flat)]]


def _apply(name: str, c: ShapeCase, x: Dim, y: Dim) -> Dim:
    t = c.table
    if name == "add":
        return x + y
    if name == "subtract":
        return x - y
    if name == "multiply":
        return x * y
    if name in ("floor_divide", "divide"):
        return t.quotient(x, y) if name == "floor_divide" or not (isinstance(x, int) and isinstance(y, int)) else int(x / y) if y else 0
    if name in ("mod", "floor_mod"):
        return t.remainder(x, y)
    return t.maximum(x, y) if name == "maximum" else t.minimum(x, y)


for _name in ("add", "subtract", "multiply", "floor_divide", "divide", "floor_mod", "maximum", "minimum"):
    value_rule(_name)(lambda c, name=_name: _arithmetic(name, c))


@value_rule("equal")
def _equal(c: ShapeCase) -> list[list[Dim] | None]:
    return [_pairs(c, lambda t, x, y: t.equal(x, y))]


@value_rule("less")
def _less(c: ShapeCase) -> list[list[Dim] | None]:
    return [_pairs(c, lambda t, x, y: t.less(x, y))]


@value_rule("greater")
def _greater(c: ShapeCase) -> list[list[Dim] | None]:
    return [_pairs(c, lambda t, x, y: t.less(y, x))]


def _pairs(c: ShapeCase, fn: object) -> list[Dim] | None:
    arrays = [_array(a) for a in c.args[:2]]
    if any(a is None for a in arrays):
        return None
    a, b = np.broadcast_arrays(*arrays)
    return [fn(c.table, x, y) for x, y in zip(a.flat, b.flat)]  # type: ignore[operator]


@value_rule("where")
def _where(c: ShapeCase) -> list[list[Dim] | None]:
    arrays = [_array(a) for a in c.args]
    if any(a is None for a in arrays):
        return [None]
    return [[c.table.select(k, x, y) for k, x, y in zip(*(a.flat for a in np.broadcast_arrays(*arrays)))]]


def _filled(c: ShapeCase, value: int) -> list[list[Dim] | None]:
    dims = c.dims(0) if c.args and c.out_type is not None and c.attrs is None else getattr(c.out_type, "dims", ())
    if not all(isinstance(d, int) for d in dims) or "int" not in c.out_type.dtype:
        return [None]
    count = int(np.prod(dims, dtype=np.int64))
    return [[value] * count] if count <= MOST_VALUES else [None]


for _name, _value in (("zeros", 0), ("zeros_like", 0), ("ones", 1), ("ones_like", 1)):
    value_rule(_name)(lambda c, value=_value: _filled(c, value))
