"""What a converter sees of the node it converts: inputs, attributes, types and values known now."""
from __future__ import annotations

from typing import TYPE_CHECKING, Any, Sequence

import numpy as np

from ....ir.expr import Any as AnyDim, RelayExpr
from ....ir.type import TensorType
from ....support.errors import ArgumentError, TypeMismatchError, UnsupportedOpError
from ...expr import Var
from .make import cast, const

if TYPE_CHECKING:
    from .importer import GraphImporter

_REQUIRED = object()


class NodeContext:
    """One ONNX node during conversion.

    ``inputs`` holds one expression per input, None where an optional input is absent; ``version`` is the version of the
    operator set that the node's operator comes from; ``outputs`` are the names of the outputs (empty where not wanted).
    """

    def __init__(self, importer: GraphImporter, op_type: str, name: str, version: int, inputs: Sequence[RelayExpr | None],
                 outputs: Sequence[str], attributes: dict[str, Any], scope: Any) -> None:
        self.importer, self.builder, self.scope = importer, importer.builder, scope
        self.op_type, self.name, self.version = op_type, name, version
        self.inputs, self.outputs, self.attributes = list(inputs), list(outputs), attributes

    # -- inputs and attributes ----------------------------------------------------------------------

    def input(self, index: int) -> RelayExpr | None:
        """An optional input: None when absent."""
        return self.inputs[index] if index < len(self.inputs) else None

    def need(self, index: int) -> RelayExpr:
        """An input that must be there."""
        found = self.input(index)
        if found is None:
            raise ArgumentError(f"input {index} is missing")
        return found

    def needs(self, count: int) -> list[RelayExpr]:
        """The first ``count`` inputs, which must be there."""
        return [self.need(i) for i in range(count)]

    def present(self) -> list[RelayExpr]:
        """All inputs of a variadic operator."""
        return [self.need(i) for i in range(len(self.inputs))]

    def present_from(self, first: int) -> list[RelayExpr]:
        """All inputs from that one on."""
        return [self.need(i) for i in range(first, len(self.inputs))]

    def alike(self, expr: RelayExpr, without: int | None = None) -> RelayExpr:
        """A variable of the type of ``expr`` (without one of its dimensions): for a look at what becomes of such a value."""
        t = self.builder.type_of(expr)
        if without is not None and isinstance(t, TensorType):
            t = TensorType([d for i, d in enumerate(t.dims) if i != without], t.dtype)
        var = Var("alike", t)
        var._checked_type = t
        return var

    def attr(self, name: str, default: Any = _REQUIRED) -> Any:
        """An attribute's value, or ``default`` when the node does not have it."""
        if name in self.attributes:
            return self.attributes[name]
        if default is _REQUIRED:
            raise ArgumentError(f"attribute {name!r} is missing")
        return default

    def wants(self, index: int) -> bool:
        """Whether output ``index`` is used."""
        return index < len(self.outputs) and bool(self.outputs[index])

    # -- types ---------------------------------------------------------------------------------------

    def type(self, expr: RelayExpr) -> TensorType:
        """The tensor type of an expression."""
        found = self.builder.type_of(expr)
        if not isinstance(found, TensorType):
            raise TypeMismatchError(f"a tensor is expected, got {found!r}")
        return found

    def dims(self, expr: RelayExpr) -> tuple[Any, ...]:
        """The dimensions of an expression: ints, or expressions where not known."""
        return self.type(expr).dims

    def rank(self, expr: RelayExpr) -> int:
        """The number of dimensions."""
        return len(self.dims(expr))

    def dtype(self, expr: RelayExpr) -> str:
        """The element type."""
        return self.type(expr).dtype

    def static_dims(self, expr: RelayExpr, why: str = "the input") -> tuple[int, ...]:
        """The dimensions, all of which must be known; UnsupportedOpError otherwise."""
        dims = self.dims(expr)
        if not all(isinstance(d, int) for d in dims):
            shown = ", ".join("?" if isinstance(d, AnyDim) else str(d) for d in dims)
            raise UnsupportedOpError(f"the shape ({shown}) of {why} must be known to convert this operator: give the sizes of the model's "
                                     "inputs with shape={name: (…)}")
        return dims

    def axis(self, value: int, rank: int) -> int:
        """An axis counted from the front."""
        if not -max(rank, 1) <= value < max(rank, 1):
            raise ArgumentError(f"axis {value} is out of range for a tensor of {rank} dimensions")
        return value % max(rank, 1)

    def axes(self, values: Sequence[int], rank: int) -> list[int]:
        """Axes counted from the front."""
        return [self.axis(int(v), rank) for v in values]

    def settled(self, *exprs: RelayExpr) -> list[RelayExpr]:
        """The expressions typed, with constant parts evaluated: for parts that a converter uses many times over."""
        return self.builder.settle(exprs)

    # -- values --------------------------------------------------------------------------------------

    def value(self, expr: RelayExpr | None) -> np.ndarray | None:
        """The value of an expression when it is known now (do not write to it), else None."""
        return None if expr is None else self.builder.value_of(expr)

    def known(self, index: int, what: str) -> np.ndarray | None:
        """The value of an optional input that must be constant: None when absent, UnsupportedOpError when not known."""
        expr = self.input(index)
        if expr is None:
            return None
        value = self.value(expr)
        if value is None:
            raise UnsupportedOpError(f"{what} (input {index}) must be a constant for this operator; it is computed from the model's inputs")
        return value

    def known_ints(self, index: int, what: str) -> list[int] | None:
        """The value of an optional constant input as a list of ints; None when absent."""
        value = self.known(index, what)
        return None if value is None else [int(v) for v in value.reshape(-1)]

    def scalar(self, index: int, default: Any, what: str) -> Any:
        """The value of an optional constant input of one element."""
        value = self.known(index, what)
        return default if value is None else value.reshape(-1)[0].item()

    def like(self, value: Any, expr: RelayExpr) -> RelayExpr:
        """A scalar constant of the dtype of ``expr``."""
        return const(value, self.dtype(expr))

    def to(self, expr: RelayExpr, dtype: str) -> RelayExpr:
        """``expr`` as ``dtype``."""
        return cast(expr, dtype, self.dtype(expr))
