"""``call_lowered``: the call of a function that has been lowered, with all its arguments in one tuple."""
from __future__ import annotations

from typing import Any, Sequence

from ...ir.attrs import RAW, Attrs, Field
from ...ir.expr import GlobalVar, RelayExpr
from ...ir.op import Op, OpPattern
from ...ir.type import FuncType, IncompleteType, TupleType, Type
from ...support.errors import TypeMismatchError
from ..expr import Call, Tuple
from .registry import declare


class CallLoweredAttrs(Attrs, name="relay.attrs.CallLoweredAttrs"):
    """Attributes of ``call_lowered``.

    ``metadata``: ``relay_attrs`` (the attributes of the function before lowering), ``all_prim_fn_vars`` (the lowered functions),
    and for dynamic results ``prim_shape_fn_var``, ``prim_shape_fn_states``, ``prim_shape_fn_num_inputs`` … .
    """

    metadata = Field(RAW, None, "What later stages need to know of the function before it was lowered.")


def _relation(args: tuple[Type, ...], attrs: Any, ctx: Any) -> Type | None:
    """The result type of the callee."""
    func, given = args
    if isinstance(func, IncompleteType) or isinstance(given, IncompleteType):
        return None
    if not isinstance(func, FuncType):
        raise TypeMismatchError(f"call_lowered calls a function, got a value of type {func}")
    if not isinstance(given, TupleType) or len(given.fields) != len(func.arg_types):
        raise TypeMismatchError(f"call_lowered: {len(func.arg_types)} arguments are expected in a tuple, got {given}")
    for want, have in zip(func.arg_types, given.fields):
        ctx.unify(want, have)
    return func.ret_type


declare("call_lowered", relation=_relation, inputs=("func", "arguments"), attrs=CallLoweredAttrs, pattern=OpPattern.OPAQUE, level=10,
        doc="The call of a lowered function.", TNonComputational=True)


def call_lowered(callee: GlobalVar, inputs: Sequence[RelayExpr], metadata: dict[str, Any] | None = None, span: Any = None) -> Call:
    """A call of the lowered function ``callee``."""
    return Call(Op.get("call_lowered"), [callee, Tuple(inputs)], CallLoweredAttrs(metadata=dict(metadata or {})), (), span)


def is_call_lowered(expr: Any) -> bool:
    """Whether ``expr`` is a ``call_lowered``."""
    return isinstance(expr, Call) and isinstance(expr.op, Op) and expr.op.name == "call_lowered"
