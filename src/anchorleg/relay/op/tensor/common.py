"""What the element-wise families share: dtype rules, numpy rules in a wider type, and how constructors are made."""
from __future__ import annotations

from typing import Any, Callable

import numpy as np

from ....ir.expr import RelayExpr
from ....ir.op import Op, Relation
from ....ir.type import Type
from ....runtime.dtype import numpy_dtype
from ...expr import Call
from ..type_relations import is_float, require

Constructor1 = Callable[[RelayExpr], Call]
Constructor2 = Callable[[RelayExpr, RelayExpr], Call]


def is_bool(dtype: str) -> bool:
    """Whether a data type is bool."""
    return dtype == "bool"


def is_integer(dtype: str) -> bool:
    """Whether a data type is a signed or unsigned integer (bool is not)."""
    return dtype.startswith(("int", "uint")) and dtype != "uint1"


# what an operator accepts: (test of the data type, words for the error message)
FLOATS = (is_float, "floating-point numbers")
NUMBERS = (lambda t: is_float(t) or is_integer(t), "numbers (cast bool to another type first)")
BITS = (lambda t: is_integer(t) or is_bool(t), "integers or bool")
INTEGERS = (is_integer, "integers")
ANYTHING: tuple[Callable[[str], bool], str] | None = None


def accepting(relation: Relation, accept: tuple[Callable[[str], bool], str] | None) -> Relation:
    """``relation`` restricted to data types that the operator is defined on."""
    return relation if accept is None else require(relation, *accept)


def wide(array: np.ndarray) -> np.ndarray:
    """Narrow floats (16 bits and less) as float32, in which their arithmetic is done; anything else as it is."""
    small = array.dtype.kind in "fV" and array.dtype.itemsize < 4
    return array.astype(np.float32) if small else array


def elementwise(fn: Callable[..., Any]) -> Callable[[Any, list[np.ndarray], Type], np.ndarray]:
    """A numpy rule that applies ``fn`` to the arguments, narrow floats being computed in float32."""
    def rule(attrs: Any, args: list[np.ndarray], out_type: Type) -> np.ndarray:
        return np.asarray(fn(*[wide(a) for a in args])).astype(numpy_dtype(out_type.dtype), copy=False)  # type: ignore[attr-defined]

    return rule


def unary(name: str, doc: str) -> Constructor1:
    """The public constructor of an operator with one input and no attributes."""
    op = Op.get(name)

    def make(data: RelayExpr) -> Call:
        return Call(op, [data])

    return _named(make, name, doc)


def binary(name: str, doc: str) -> Constructor2:
    """The public constructor of an operator with two inputs and no attributes."""
    op = Op.get(name)

    def make(lhs: RelayExpr, rhs: RelayExpr) -> Call:
        return Call(op, [lhs, rhs])

    return _named(make, name, doc)


def _named(make: Any, name: str, doc: str) -> Any:
    make.__name__ = make.__qualname__ = name.rsplit(".", 1)[-1]
    make.__doc__ = doc
    return make
