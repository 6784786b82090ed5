"""How an operator is declared: one call names its inputs, attributes, type relation, fusion pattern and numpy rule.

::

    declare("nn.relu", relation=identity_rel, pattern=OpPattern.ELEMWISE,
            numpy=lambda attrs, args, out_type: np.maximum(args[0], 0))
"""
from __future__ import annotations

from typing import Any, Callable, Sequence

import numpy as np

from ...ir.attrs import Attrs, DictAttrs
from ...ir.op import Op, OpPattern, Relation, register_op
from ...ir.type import TensorType, Type
from ...runtime.dtype import numpy_dtype
from ...support.errors import ArgumentError, UnsupportedOpError

NumpyRule = Callable[[Any, "list[np.ndarray]", Type], "np.ndarray | tuple[np.ndarray, ...]"]


def declare(name: str, *, relation: Relation, inputs: Sequence[str] = ("data",), attrs: type[Attrs] | None = None,
            pattern: OpPattern = OpPattern.OPAQUE, numpy: NumpyRule | None = None, doc: str = "", level: int = 1,
            num_inputs: int | None = None, stateful: bool = False, **op_attrs: Any) -> Op:
    """Registers an operator and returns it.

    Parameters
    ----------
    relation: ``(arg_types, attrs, ctx) -> result type``; None when not enough is known; TypeMismatchError when wrong.
    inputs: names of the arguments.  ``num_inputs`` overrides their number (-1: any).
    attrs: the attribute class, or None for an operator without attributes.
    pattern: how fusion treats it.
    numpy: ``(attrs, arrays, out_type) -> array`` (or a tuple of arrays): the operator's meaning, used by constant
        folding and the interpreter.
    stateful: calls must not be merged, moved or dropped.
    op_attrs: further attributes by name, e.g. ``TNonComputational=True``, ``TReshapeOp=True``.
    """
    op = register_op(name, doc)
    for each in inputs if not op.arguments else ():
        op.add_argument(each, "Tensor", "")
    op.set_num_inputs(len(inputs) if num_inputs is None else num_inputs)
    op.attrs_type, op.relation, op.relation_name = attrs, relation, getattr(relation, "__name__", "relation")
    op.set_support_level(level)
    op.set_attr("TOpPattern", pattern)
    op.set_attr("TOpIsStateful", stateful)
    if numpy is not None:
        op.set_attr("FNumpy", numpy)
    for key, value in op_attrs.items():
        op.set_attr(key, value)
    return op


def attrs_class(op: Op) -> type[Attrs] | None:
    """The attribute class of an operator, whether declared by class or by registered name."""
    if isinstance(op.attrs_type, str):
        return Attrs.REGISTRY.get(op.attrs_type)
    return op.attrs_type


def attrs_of(op: Op, attrs: Any) -> Any:
    """A call's attributes; where it has none, the operator's defaults."""
    if attrs is not None:
        return attrs
    cls = attrs_class(op)
    return cls() if cls is not None and cls is not DictAttrs else None


def make_attrs(op_name: str, **values: Any) -> Any:
    """Attributes for a call of that operator; ArgumentError when it takes none."""
    cls = attrs_class(Op.get(op_name))
    if cls is None:
        raise ArgumentError(f"operator {op_name!r} takes no attributes, got {', '.join(values)}")
    return cls(**values)


def evaluate(op: Op | str, attrs: Any, args: Sequence[np.ndarray], out_type: Type) -> Any:
    """Applies the operator's numpy rule; the result has exactly the dtype (and tuple form) of ``out_type``.

    UnsupportedOpError when the operator has no numpy rule.
    """
    op = Op.get(op) if isinstance(op, str) else op
    rule = op.get_attr("FNumpy")
    if rule is None:
        raise UnsupportedOpError(f"operator {op.name!r} has no numpy rule, so it can be neither folded nor interpreted")
    with np.errstate(all="ignore"):
        result = rule(attrs_of(op, attrs), list(args), out_type)
    return _typed(result, out_type)


def _typed(result: Any, out_type: Type) -> Any:
    if isinstance(result, (tuple, list)):
        return tuple(_typed(r, t) for r, t in zip(result, out_type.fields))  # type: ignore[attr-defined]
    array = np.asarray(result)
    if isinstance(out_type, TensorType):
        want = numpy_dtype(out_type.dtype)
        return array if array.dtype == want else array.astype(want)
    return array


__all__ = ["declare", "attrs_class", "attrs_of", "make_attrs", "evaluate", "OpPattern", "NumpyRule", "Op"]
