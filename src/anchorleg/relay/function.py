"""Functions of the graph language."""
from __future__ import annotations

from typing import Any, Sequence

from ..ir.attrs import DictAttrs
from ..ir.expr import BaseFunc, RelayExpr
from ..ir.node import ATTRS, BINDS, CHILD, DATA
from ..ir.type import Type, TypeVar
from .expr import Call, Var


class Function(BaseFunc):
    """A function: parameters, body, optional result type, type parameters, attributes (``Primitive``, ``Compiler`` …).

    ``virtual_device_`` is where its result is stored (a VirtualDevice), None where that is open; it takes no part in equality.
    """

    __slots__ = ("params", "body", "ret_type", "type_params", "virtual_device_")
    FIELDS = {"type_params": BINDS, "params": BINDS, "ret_type": CHILD, "body": CHILD, "attrs": ATTRS, "virtual_device_": DATA}
    SHARED, LABELS = True, ("virtual_device_",)
    __hash__ = BaseFunc.__hash__

    def __init__(self, params: Sequence[Var], body: RelayExpr, ret_type: Type | None = None,
                 type_params: Sequence[TypeVar] | None = None, attrs: Any = None, span: Any = None) -> None:
        self.params, self.body, self.ret_type = tuple(params), body, ret_type
        self.type_params = tuple(type_params or ())
        self.attrs = attrs if attrs is not None else DictAttrs()
        self.span, self._checked_type, self.virtual_device_ = span, None, None

    def __call__(self, *args: RelayExpr) -> Call:
        return Call(self, args)
