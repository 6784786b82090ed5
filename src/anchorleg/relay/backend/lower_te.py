"""LowerTE: primitive functions become ``PrimFunc``s of the module, and their calls ``call_lowered``.

Before → after::

    %0 = fn (%x, %y, Primitive=1) { add(%x, %y) }; %0(%a, %a)
    call_lowered(@mod_fused_add, (%a, %a), metadata={relay_attrs={Primitive=1}, all_prim_fn_vars=[@mod_fused_add]})

Functions for external compilers (``Compiler=``) become ``Extern`` functions of the module under their ``global_symbol``; calls of
``Extern`` functions and of loop programs become ``call_lowered`` as well.
"""
from __future__ import annotations

from typing import Any, Callable

from ...ir.attrs import DictAttrs
from ...ir.expr import BaseFunc, GlobalVar
from ...ir.module import IRModule
from ...ir.transform import ModulePass, Pass, PassContext, PassInfo, register_pass
from ...ir.type import FuncType
from ...support.errors import BuildError
from ...support.names import NameSupply
from ..expr import Call
from ..function import Function
from ..op.call import call_lowered, is_call_lowered
from ..transform.common import rewrite_exprs
from ..transform.fuse_ops import is_static
from . import te_lowering
from .te_compiler import TECompiler, lower_schedule
from .te_shape_func import ShapeFunction, shape_function_of

Process = Callable[[BaseFunc], None]


class _Lowering:
    """One run over a module: the functions lowered so far, by source function and by name."""

    def __init__(self, mod: IRModule, module_name: str, target: Any, process: Process | None) -> None:
        self.mod, self.module_name, self.target, self.process = mod, module_name, target, process
        self.compiler = TECompiler()
        self.added: dict[GlobalVar, BaseFunc] = {}
        self._by_source: dict[int, tuple[Function, GlobalVar]] = {}
        self._shapes: dict[int, tuple[Function, GlobalVar]] = {}
        self._names = NameSupply()
        for v in mod.functions:
            self._names.reserve(v.name_hint)

    def run(self) -> IRModule:
        """The lowered module."""
        functions = {v: self._function(f) for v, f in self.mod.functions.items()}
        return self.mod.with_functions({**functions, **self.added})

    def _function(self, func: BaseFunc) -> BaseFunc:
        if not isinstance(func, Function) or func.get_attr("Extern", 0) or func.get_attr("Primitive", 0):
            return func
        return rewrite_exprs(func, self._call)  # type: ignore[return-value]

    def _call(self, old: Any, new: Any) -> Any:
        if not isinstance(new, Call) or is_call_lowered(new):
            return new
        callee = new.op
        if isinstance(callee, Function) and callee.get_attr("Primitive", 0):
            return self._primitive(old, new, callee)
        if isinstance(callee, GlobalVar):
            target = self.mod.functions.get(callee)
            if target is not None and (not isinstance(target, Function) or target.get_attr("Extern", 0)):
                return self._lowered(new, callee, target.attrs, [])
        return new

    def _primitive(self, old: Call, new: Call, func: Function) -> Call:
        if func.get_attr("Compiler") is not None:
            return self._lowered(new, self._external(func), func.attrs, [])
        var = self._kernel(func)
        return self._lowered(new, var, func.attrs, [var])

    def _lowered(self, call: Call, var: GlobalVar, attrs: Any, kernels: list[GlobalVar]) -> Call:
        metadata = {"relay_attrs": DictAttrs(dict(attrs)), "all_prim_fn_vars": kernels}
        metadata.update(_shape_metadata(self, call, var))
        return call_lowered(var, call.args, metadata, call.span)

    def _kernel(self, func: Function) -> GlobalVar:
        known = self._by_source.get(id(func))
        if known is not None:
            return known[1]
        lowered = self.compiler.lower_as(func, self.target, self.module_name)
        var = lowered.prim_fn_var
        if var not in self.added:
            var._checked_type = func.checked_type
            self.added[var] = lowered.prim_func
            if self.process is not None:
                self.process(lowered.prim_func)
        self._by_source[id(func)] = (func, var)
        return var

    def shape_function(self, func: Function, found: ShapeFunction) -> GlobalVar:
        """The shape function of a function as a function of the module; once for each."""
        if id(func) not in self._shapes:
            name = self._names.fresh(f"{self.module_name}_{found.tensors.name}")
            var, made = GlobalVar(name), lower_schedule(found.tensors, te_lowering.make_schedule(found.tensors, self.target), name, self.target)
            self.added[var] = made
            self._shapes[id(func)] = (func, var)
        return self._shapes[id(func)][1]

    def _external(self, func: Function) -> GlobalVar:
        name = func.get_attr("global_symbol")
        if name is None:
            raise BuildError("a function for an external compiler needs the attribute global_symbol")
        known = self._by_source.get(id(func))
        if known is not None:
            return known[1]
        var = GlobalVar(str(name))
        var._checked_type = FuncType([p.checked_type for p in func.params], func.body.checked_type)
        attrs = {k: v for k, v in dict(func.attrs).items() if k not in ("Primitive", "Compiler", "Inline", "global_symbol")}
        external = Function(func.params, func.body, func.ret_type, func.type_params, DictAttrs({**attrs, "Extern": 1}), func.span)
        external._checked_type = func._checked_type
        self.added[var] = external
        if self.process is not None:
            self.process(func)
        self._by_source[id(func)] = (func, var)
        return var


def _shape_metadata(run: _Lowering, call: Call, var: GlobalVar) -> dict[str, Any]:
    """For a result of unknown shape: the lowered shape function and how it is called."""
    ty = call._checked_type if call._checked_type is not None else getattr(var._checked_type, "ret_type", None)
    func = call.op if isinstance(call.op, Function) else run.mod.functions.get(var)
    if ty is None or is_static(ty) or not isinstance(func, Function):
        return {}
    found = shape_function_of(func)
    shape_var = run.shape_function(func, found)
    return {"prim_shape_fn_var": shape_var, "prim_shape_fn_states": list(found.states), "prim_shape_fn_num_inputs": len(found.tensors.inputs),
            "prim_shape_fn_num_outputs": len(found.tensors.outputs), "all_prim_shape_fn_vars": [shape_var]}


def first_target(config: Any) -> Any:
    """The target that kernels are made for: of a compilation configuration, a target, or target text."""
    from ...target.target import Target

    primitive = getattr(config, "primitive_targets", None)
    return primitive[0] if primitive else Target.canon_multi_target(config)[0]


def LowerTE(module_name: str = "default", config: Any = "llvm", process: Process | None = None) -> Pass:
    """The pass; ``module_name`` is put before kernels' names as it is, ``config`` is a compilation configuration or a target, ``process`` is told of each lowered function."""
    def run(mod: IRModule, ctx: PassContext) -> IRModule:
        return _Lowering(mod, module_name, first_target(config), process).run()

    return ModulePass(run, PassInfo(0, "LowerTE", ("InferType",)))


register_pass("LowerTE", LowerTE)
