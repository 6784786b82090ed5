"""EtaExpand: constructors and global functions used as values become function literals.

before::

    @f                         # as a value

after::

    fn (%eta_0: Tensor[(2), float32]) { @f(%eta_0) }
"""
from __future__ import annotations

from typing import Any

from ...ir.expr import GlobalVar, RelayExpr
from ...ir.module import IRModule
from ...ir.transform import ModulePass, Pass, PassContext, PassInfo, register_pass
from ...ir.type import FuncType, TypeCall
from ..adt import Constructor
from ..expr import Call, Var
from ..function import Function
from .common import map_functions, rewrite_exprs


def _expanded(callee: RelayExpr, ty: FuncType) -> Function:
    params = [Var(f"eta_{i}", t) for i, t in enumerate(ty.arg_types)]
    return Function(params, Call(callee, params, None, ty.type_params), ty.ret_type, ty.type_params)


def constructor_type(node: Constructor, mod: IRModule) -> FuncType | None:
    """The type of a constructor as a function, polymorphic as its data type is."""
    data = mod.type_definitions.get(node.belong_to)
    if data is None:
        return None
    made = TypeCall(node.belong_to, data.type_vars)
    return FuncType(node.inputs, made, data.type_vars)


def EtaExpand(expand_constructor: bool = True, expand_global_var: bool = False) -> Pass:
    """Expands constructors and/or global functions that stand where a value is wanted."""

    def wanted(node: Any) -> bool:
        return expand_constructor and isinstance(node, Constructor) or expand_global_var and isinstance(node, GlobalVar)

    def run(mod: IRModule, ctx: PassContext) -> IRModule:
        def type_of(node: Any) -> FuncType | None:
            ty = mod[node].checked_type if isinstance(node, GlobalVar) else constructor_type(node, mod)
            return ty if isinstance(ty, FuncType) else None

        def rule(old: Any, new: Any) -> RelayExpr:
            called = new.op if isinstance(new, Call) else None
            fields = {id(c): c for c in new.children() if wanted(c) and c is not called}
            table = {k: _expanded(c, type_of(c)) for k, c in fields.items() if type_of(c) is not None}  # type: ignore[arg-type]
            return new.map_children(lambda c: table.get(id(c), c)) if table else new

        return map_functions(mod, lambda f: rewrite_exprs(f, rule))  # type: ignore[arg-type,return-value]

    return ModulePass(run, PassInfo(1, "EtaExpand", ["InferType"]))


register_pass("EtaExpand", EtaExpand)
