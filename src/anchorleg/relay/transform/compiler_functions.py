"""Passes for functions that an external compiler takes over (those with a ``Compiler`` attribute).

before OutlineCompilerFunctionsWithExistingGlobalSymbols::

    %0 = fn (%a, Compiler="x", global_symbol="f", Primitive=1) { … };  %0(%y)

after::

    def @f(%a, Compiler="x", global_symbol="f", Primitive=1) { … }     @f(%y)
"""
from __future__ import annotations

from typing import Any, Sequence

from ...ir.attrs import DictAttrs
from ...ir.expr import GlobalVar, RelayExpr
from ...ir.module import IRModule
from ...ir.structural import structural_equal
from ...ir.transform import ModulePass, Pass, PassContext, PassInfo, register_pass
from ...ir.visit import Walker
from ...support.errors import BuildError
from ..expr import Call, Let, Var
from ..function import Function
from .common import carry_type, descends, is_primitive, rewrite_exprs
from .inline import apply


def _matches(func: Any, compiler: str) -> bool:
    name = func.get_attr("Compiler") if isinstance(func, Function) else None
    return bool(name) and compiler in ("", str(name))


class _Outliner(Walker):
    """Takes the literals that are called, directly or by a variable bound to them, out into global functions."""

    def __init__(self, mod: IRModule, compiler: str) -> None:
        super().__init__()
        self.mod, self.compiler = mod, compiler
        self.outlined: dict[str, tuple[GlobalVar, Function]] = {}

    def global_for(self, func: Function) -> GlobalVar | None:
        """The global variable of a function to outline; None for one without a symbol."""
        symbol = func.get_attr("global_symbol")
        if not symbol or not _matches(func, self.compiler):
            return None
        name = str(symbol)
        if name not in self.outlined:
            there = self.mod.functions.get(self.mod.get_global_var(name)) if name in self.mod else None
            self._check_same(name, there, func)
            self.outlined[name] = (self.mod.get_global_var(name) if name in self.mod else GlobalVar(name), func)
        self._check_same(name, self.outlined[name][1], func)
        return self.outlined[name][0]

    @staticmethod
    def _check_same(name: str, there: Any, func: Function) -> None:
        if there is not None and there is not func and not structural_equal(there, func, map_free_vars=True):
            raise BuildError(f"two different functions have the global_symbol {name!r}: the code of the external compiler {func.get_attr('Compiler')!r} "
                             "would be found under one name for both; give each a name of its own")

    def visit_Call(self, call: Call) -> Any:
        var = self.global_for(call.op) if isinstance(call.op, Function) else None
        args = yield list(call.args)
        op = var
        if op is None:
            op = yield call.op
        return carry_type(call, call.replace(op=op, args=tuple(args)))

    def visit_Let(self, let: Let) -> Any:
        var = self.global_for(let.value) if isinstance(let.value, Function) else None
        if var is not None:
            self.memo[id(let.var)] = (let.var, var)
            return (yield let.body)
        value = yield let.value
        body = yield let.body
        return carry_type(let, let.replace(value=value, body=body))

    def visit_Var(self, var: Var) -> Var:
        return var

    def visit_default(self, node: Any) -> Any:
        if not descends(node):
            return node
        kids = node.children()
        results = yield kids
        table = {id(k): r for k, r in zip(kids, results)}
        return carry_type(node, node.map_children(lambda c: table[id(c)]))


def OutlineCompilerFunctionsWithExistingGlobalSymbols(compiler_filter: str = "") -> Pass:
    """Makes literals with ``Compiler`` (and, if given, this very value) and ``global_symbol`` global functions of that name."""

    def run(mod: IRModule, ctx: PassContext) -> IRModule:
        outliner = _Outliner(mod, compiler_filter)
        functions = {v: outliner.visit(f) if isinstance(f, Function) and not is_primitive(f) else f for v, f in mod.functions.items()}
        taken = {v.name_hint for v in functions}
        functions.update({v: f for v, f in outliner.outlined.values() if v.name_hint not in taken})
        return mod.with_functions(functions)

    return ModulePass(run, PassInfo(0, "OutlineCompilerFunctionsWithExistingGlobalSymbols"))


def MarkCompilerFunctionsAsExtern(compiler_filter: str = "") -> Pass:
    """Leaves of the attributes of functions with ``Compiler`` only ``Extern``: they are compiled already."""

    def run(mod: IRModule, ctx: PassContext) -> IRModule:
        return mod.with_functions({v: f.replace(attrs=DictAttrs({"Extern": 1})) if _matches(f, compiler_filter) else f  # type: ignore[attr-defined]
                                   for v, f in mod.functions.items()})

    return ModulePass(run, PassInfo(0, "MarkCompilerFunctionsAsExtern"))


def without_composites(expr: RelayExpr) -> RelayExpr:
    """``expr`` with calls of functions that carry ``Composite`` replaced by their bodies."""
    def rule(old: Any, new: Any) -> RelayExpr:
        composite = isinstance(new, Call) and isinstance(new.op, Function) and new.op.get_attr("Composite")
        return apply(new.op, new) if composite else new  # type: ignore[arg-type]

    return rewrite_exprs(expr, rule)


def InlineCompilerFunctionsBoundTo(global_vars: Sequence[GlobalVar]) -> Pass:
    """Puts the bodies of these global functions, and of the composite functions called in them, back where they are called."""
    names = {v.name_hint for v in global_vars}

    def run(mod: IRModule, ctx: PassContext) -> IRModule:
        chosen = {v.name_hint: f.replace(body=without_composites(f.body)) for v, f in mod.functions.items()  # type: ignore[attr-defined]
                  if v.name_hint in names and isinstance(f, Function)}
        if not chosen:
            return mod

        def rule(old: Any, new: Any) -> RelayExpr:
            called = isinstance(new, Call) and isinstance(new.op, GlobalVar) and new.op.name_hint in chosen
            return apply(chosen[new.op.name_hint], new) if called else new

        return mod.with_functions({v: rewrite_exprs(f, rule) if isinstance(f, Function) and not is_primitive(f) else f
                                   for v, f in mod.functions.items() if v.name_hint not in chosen})

    return ModulePass(run, PassInfo(0, "InlineCompilerFunctionsBoundTo"))


register_pass("OutlineCompilerFunctionsWithExistingGlobalSymbols", OutlineCompilerFunctionsWithExistingGlobalSymbols)
register_pass("MarkCompilerFunctionsAsExtern", MarkCompilerFunctionsAsExtern)
__all__ = ["OutlineCompilerFunctionsWithExistingGlobalSymbols", "MarkCompilerFunctionsAsExtern", "InlineCompilerFunctionsBoundTo", "without_composites"]
