"""Einstein's sum."""
from __future__ import annotations

from typing import Any

import numpy as np

from ....ir.attrs import STR, Attrs, Field
from ....ir.expr import Any as AnyDim
from ....ir.op import Op, OpPattern
from ....ir.type import TensorType, Type
from ....support.einsum import checked_equation, label_sizes
from ....support.errors import ArgumentError, TypeMismatchError
from ...expr import Call
from ..registry import declare
from .common import Dim, as_tuple, known, tuple_of_tensors


class EinsumAttrs(Attrs, name="relay.attrs.EinsumAttrs"):
    """Attributes of einsum."""

    equation = Field(STR, doc="The labels of the operands' axes and of the result's, as for numpy.einsum.")


def _size(sizes: list[Dim]) -> Dim:
    """The size of several axes of one label, where those of size 1 are repeated."""
    wide = next((s for s in sizes if known(s) and s != 1), None)
    unknown = [s for s in sizes if not known(s)]
    return wide if wide is not None else 1 if not unknown else unknown[0] if len(unknown) == 1 else AnyDim()


def _einsum_rel(args: tuple[Type, ...], attrs: EinsumAttrs, ctx: Any) -> Type | None:
    types = tuple_of_tensors(args[0])
    if types is None:
        return None
    if len({t.dtype for t in types}) != 1 or types[0].dtype == "bool":
        raise TypeMismatchError(f"expects operands of one dtype of numbers, got {', '.join(t.dtype for t in types) or 'none'}")
    try:
        terms, result = checked_equation(attrs.equation, [len(t.dims) for t in types])
        sizes = {label: _size(found) for label, found in label_sizes(terms, [t.dims for t in types]).items()}
    except ArgumentError as exc:
        raise TypeMismatchError(str(exc)) from exc
    return TensorType([sizes[c] for c in result], types[0].dtype)


def _einsum_numpy(attrs: EinsumAttrs, args: list[Any], out_type: Type) -> np.ndarray:
    return np.asarray(np.einsum(attrs.equation, *args[0]))


declare("einsum", attrs=EinsumAttrs, relation=_einsum_rel, pattern=OpPattern.OPAQUE, numpy=_einsum_numpy, level=1,
        doc="Products of elements of a tuple of tensors, summed over labels that the result lacks.")


def einsum(data: Any, equation: str) -> Call:
    """Products of the elements of a list (or tuple-typed expression) of tensors, summed as the ``equation`` says (see numpy.einsum)."""
    return Call(Op.get("einsum"), [as_tuple("einsum", data)], EinsumAttrs(equation=equation))


__all__ = ["EinsumAttrs", "einsum"]
