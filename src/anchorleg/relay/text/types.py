"""Types of the graph language as text."""
from __future__ import annotations

from typing import Any, Callable, Generator

from ...ir.expr import Any as AnyDim
from ...ir.expr import IntImm
from ...ir.type import FuncType, GlobalTypeVar, IncompleteType, PrimType, RefType, TensorType, TupleType, Type, TypeCall, TypeVar
from ...ir.visit import Walker

Steps = Generator[Any, Any, str]


class TypeText(Walker):
    """Renders types; ``meta`` names what has no text of its own (symbolic dimensions, unknown types)."""

    def __init__(self, meta: Callable[[Any], str]) -> None:
        super().__init__()
        self.meta = meta

    def text(self, node: Type) -> str:
        """The type's text."""
        hit = self.memo.get(id(node))
        return hit[1] if hit is not None else self.visit(node)

    def dim(self, dim: Any) -> str:
        """One dimension's text."""
        if isinstance(dim, int):
            return str(dim)
        if isinstance(dim, AnyDim):
            return "?"
        return str(dim.value) if isinstance(dim, IntImm) else self.meta(dim)

    def visit_TensorType(self, node: TensorType) -> str:
        if not node.dims:
            return node.dtype
        return f"Tensor[({', '.join(map(self.dim, node.dims))}), {node.dtype}]"

    def visit_TypeVar(self, node: TypeVar) -> str:
        return node.name_hint

    def visit_GlobalTypeVar(self, node: GlobalTypeVar) -> str:
        return node.name_hint

    def visit_IncompleteType(self, node: IncompleteType) -> str:
        return "_"

    def visit_PrimType(self, node: PrimType) -> str:
        return node.dtype

    def visit_TypeCall(self, node: TypeCall) -> Steps:
        func = yield node.func
        args = yield list(node.args)
        return f"{func}[{', '.join(args)}]"

    def visit_TupleType(self, node: TupleType) -> Steps:
        fields = yield list(node.fields)
        return f"({', '.join(fields)}{',' if len(fields) == 1 else ''})"

    def visit_FuncType(self, node: FuncType) -> Steps:
        params = yield list(node.type_params)
        args = yield list(node.arg_types)
        result = yield node.ret_type
        return f"fn {'[' + ', '.join(params) + ']' if params else ''}({', '.join(args)}) -> {result}"

    def visit_RefType(self, node: RefType) -> Steps:
        value = yield node.value
        return f"ref({value})"

    def visit_default(self, node: Any) -> str:
        return self.meta(node)
