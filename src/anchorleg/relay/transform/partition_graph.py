"""PartitionGraph: marked regions become global functions for their compilers.

before::

    def @main(%x) { compiler_end(abs(compiler_begin(%x, "c")), "c") }

after::

    def @tvmgen_default_c_main_0(%c_0_i0, Compiler="c", Primitive=1, Inline=1, global_symbol="tvmgen_default_c_main_0") { abs(%c_0_i0) }
    def @main(%x) { @tvmgen_default_c_main_0(%x) }

Marks of the compiler ``default`` go.  Constants that enter a region are put into its function.
"""
from __future__ import annotations

import itertools
from typing import Any, Iterable, Iterator

from ...ir.attrs import DictAttrs
from ...ir.expr import GlobalVar, RelayExpr
from ...ir.module import IRModule
from ...ir.supply import GlobalVarSupply
from ...ir.transform import ModulePass, Pass, PassContext, PassInfo
from ...ir.type import TupleType, Type
from ...ir.visit import Walker, trampoline
from ...runtime.name_transforms import sanitize_name
from ...runtime.registry import get_global_func
from ...support.errors import ArgumentError, TypeMismatchError
from ..analysis.annotated_regions import DEFAULT, AnnotatedRegion, AnnotatedRegionSet, is_begin, is_end
from ..expr import Call, Constant, Tuple, TupleGetItem, Var
from ..function import Function
from .bind import substitute
from .common import carry_type, descends, is_primitive, map_functions, rewrite_exprs

PREFIX = "tvmgen"


# -- before: tuples, the compiler "default"


def _ends_of_fields(expr: RelayExpr) -> RelayExpr:
    """``end((a, b))`` as ``(end(a), end(b))``: results of functions are flat tuples."""
    def rule(old: Any, new: Any) -> RelayExpr:
        return trampoline(_ended(new, new.args[0])) if is_end(new) and isinstance(new.args[0], Tuple) else new

    return rewrite_exprs(expr, rule)


def _ended(end: Call, value: RelayExpr) -> Any:
    """``value`` with an end like this one, a tuple field by field."""
    if isinstance(value, Tuple):
        fields = []
        for field in value.fields:
            fields.append((yield _ended(end, field)))
        return carry_type(value, value.replace(fields=tuple(fields)))
    made = Call(end.op, [value], end.attrs)
    made._checked_type = value._checked_type
    return made


def _without_default(expr: RelayExpr) -> RelayExpr:
    def rule(old: Any, new: Any) -> RelayExpr:
        return new.args[0] if (is_begin(new) or is_end(new)) and new.attrs.compiler == DEFAULT else new

    return rewrite_exprs(expr, rule)


# -- regions


class _RegionFunction:
    """The function being made of a region: its parameters with what is passed for them, then its results."""

    def __init__(self) -> None:
        self.params: dict[int, Var] = {}  # by what they stand for
        self.args: list[tuple[Var, RelayExpr]] = []
        self.results: dict[int, RelayExpr] = {}  # by what was ended
        self.begun = False


class _Partitioner(Walker):
    """Cuts the regions of one function out of it."""

    def __init__(self, func: Function, name: str, supply: GlobalVarSupply, bind_constants: bool) -> None:
        super().__init__()
        self.regions = AnnotatedRegionSet(func, func_name=name)
        self.supply, self.bind_constants = supply, bind_constants
        self.made: dict[GlobalVar, Function] = {}
        self._parts: dict[AnnotatedRegion, _RegionFunction] = {}
        self._inputs: dict[int, int] = {id(b): i for r in self.regions for i, b in enumerate(r.args)}

    def visit_Call(self, call: Call) -> Any:
        if is_begin(call):
            value = yield call.args[0]
            region = self.regions.get_region(call)
            return self._parameter(call, region, value) if region is not None and region.rets else value
        if is_end(call):
            return (yield from self._result(call))
        op, *args = yield [call.op, *call.args]
        return carry_type(call, call.replace(op=op, args=tuple(args)))

    def visit_default(self, node: Any) -> Any:
        if not descends(node) or isinstance(node, Function) and node.get_attr("Composite") is not None:
            return node
        return carry_type(node, (yield from super().visit_default(node)))

    def _part(self, region: AnnotatedRegion) -> _RegionFunction:
        return self._parts.setdefault(region, _RegionFunction())

    def _parameter(self, begin: Call, region: AnnotatedRegion, value: RelayExpr) -> Var:
        part, source = self._part(region), _source(begin)
        if id(source) not in part.params:
            var = Var(f"{region.target}_{region.id}_i{self._inputs[id(begin)]}", begin.checked_type)
            var._checked_type = begin.checked_type
            part.params[id(source)] = var
            part.args.append((var, value))
        return part.params[id(source)]

    def _result(self, end: Call) -> Any:
        region = self.regions.get_region(end)
        part = self._part(region)  # type: ignore[arg-type]
        if not part.results:
            if part.begun:
                raise ArgumentError(f"a region of the compiler {region.target!r} needs its own result by way of something outside of it: "  # type: ignore[union-attr]
                                    "split it in two, or let AnnotateTarget and MergeCompilerRegions make the regions")
            part.begun = True
            outputs = list({id(e.args[0]): e.args[0] for e in region.rets}.values())  # type: ignore[union-attr]
            fields = yield outputs
            self._make(region, part, outputs, fields)  # type: ignore[arg-type]
        return part.results[id(end.args[0])]

    def _make(self, region: AnnotatedRegion, part: _RegionFunction, outputs: list[RelayExpr], fields: list[RelayExpr]) -> None:
        """The region's function, and its call with a field for each result."""
        bound = {v: e for v, e in part.args if self.bind_constants and _is_constant(e)}
        params = [v for v, _ in part.args if v not in bound]
        single = len(outputs) == 1
        flat = [_flat(f, o.checked_type) for o, f in zip(outputs, fields)]
        body = fields[0] if single else Tuple([t for tensors in flat for t in tensors])
        func = Function(params, substitute(body, bound), outputs[0].checked_type if single else None)
        name = f"{region.target}_{region.name}_{region.id}"
        var = self.supply.fresh_global(name, add_prefix=False)
        self.made[var] = _attributed(_customised(func, region.target, name), region.target, name)
        call = Call(var, [e for v, e in part.args if v not in bound])
        numbers = itertools.count()
        for output in outputs:
            part.results[id(output)] = call if single else trampoline(_nested(output.checked_type, call, numbers))


def _flat(value: RelayExpr, ty: Type) -> list[RelayExpr]:
    """The tensors of a value: of several results, tuples are taken apart."""
    found: list[RelayExpr] = []
    stack = [(value, ty)]
    while stack:
        value, ty = stack.pop()
        if isinstance(ty, TupleType):
            fields = value.fields if isinstance(value, Tuple) else [TupleGetItem(value, i) for i in range(len(ty.fields))]
            stack.extend(reversed(list(zip(fields, ty.fields))))
        else:
            found.append(value)
    return found


def _nested(ty: Type, call: Call, numbers: Iterator[int]) -> Any:
    """A result of a call, put together from the fields of that number and the next."""
    if not isinstance(ty, TupleType):
        return TupleGetItem(call, next(numbers))
    fields = []
    for field in ty.fields:
        fields.append((yield _nested(field, call, numbers)))
    return Tuple(fields)


def _source(expr: Any) -> Any:
    """The value behind begins and ends: two begins of it are one parameter."""
    while is_begin(expr) or is_end(expr):
        expr = expr.args[0]
    return expr


def _is_constant(expr: RelayExpr) -> bool:
    return isinstance(expr, Constant) or isinstance(expr, Tuple) and all(isinstance(f, Constant) for f in expr.fields)


def _customised(func: Function, compiler: str, name: str) -> Function:
    """The function after the compiler's own passes, the registered function ``relay.ext.<compiler>.optimize``."""
    from .infer_type import InferType

    optimize = get_global_func(f"relay.ext.{compiler}.optimize", allow_missing=True)
    if optimize is None:
        return func
    result = optimize(InferType()(IRModule.from_expr(func)))
    if not isinstance(result, IRModule) or not isinstance(result.functions.get(_main(result)), Function):
        raise TypeMismatchError(f"relay.ext.{compiler}.optimize, called for the function {name}, is expected to return an IRModule with the "
                                f"function main, got {type(result).__name__}")
    return result["main"]


def _main(mod: IRModule) -> Any:
    return mod.get_global_var("main") if "main" in mod else None


def _attributed(func: Function, compiler: str, name: str) -> Function:
    more = {"global_symbol": name, "Primitive": 1, "Compiler": compiler, "Inline": 1}
    return func.replace(attrs=DictAttrs({**dict(func.attrs), **more}))


def _cut_out(mod: IRModule, bind_constants: bool) -> IRModule:
    supply = GlobalVarSupply(mod)
    functions: dict[GlobalVar, Any] = {}
    for var, func in mod.functions.items():
        functions[var] = func
        if isinstance(func, Function) and not is_primitive(func):
            partitioner = _Partitioner(func, var.name_hint, supply, bind_constants)
            if len(partitioner.regions):
                functions[var] = partitioner.visit(func)
                functions.update(partitioner.made)
    return mod.with_functions(functions)


# -- names


def _mangled(mod: IRModule, prefix: str) -> IRModule:
    """The module with the prefix before the names of functions for external compilers."""
    renamed: dict[GlobalVar, GlobalVar] = {}
    supply = GlobalVarSupply(mod)
    for var in _external(mod):
        name = sanitize_name(f"{prefix}_{var.name_hint}")
        if not var.name_hint.startswith(f"{prefix}_"):
            renamed[var] = supply.fresh_global(name, add_prefix=False)
    if not renamed:
        return mod
    by_name = {old.name_hint: new for old, new in renamed.items()}

    def rule(old: Any, new: Any) -> RelayExpr:
        return by_name.get(new.name_hint, new) if isinstance(new, GlobalVar) else new

    functions = {}
    for var, func in mod.functions.items():
        new = renamed.get(var)
        if new is not None:
            functions[new] = func.with_attr("global_symbol", new.name_hint)  # type: ignore[attr-defined]
        else:
            functions[var] = rewrite_exprs(func, rule) if isinstance(func, Function) and not is_primitive(func) else func
    return mod.with_functions(functions)


def _external(mod: IRModule) -> Iterable[GlobalVar]:
    return [v for v, f in mod.functions.items() if isinstance(f, Function) and f.get_attr("Compiler") is not None]


def PartitionGraph(mod_name: str = "default", bind_constants: bool = True) -> Pass:
    """Makes a global function of each marked region.

    Parameters
    ----------
    mod_name: the model's name; functions are called ``tvmgen_<mod_name>_<compiler>_<function>_<number>``.
    bind_constants: whether constants that enter a region become part of its function, rather than arguments.
    """
    if not isinstance(mod_name, str) or not mod_name.isascii():
        raise ArgumentError(f"PartitionGraph: mod_name is expected to be a name of ASCII characters, got {mod_name!r}")
    prefix = (f"{PREFIX}_{mod_name}" if not mod_name.startswith(PREFIX) else mod_name) if mod_name else PREFIX

    def run(mod: IRModule, ctx: PassContext) -> IRModule:
        from .infer_type import InferType

        plain = map_functions(mod, lambda f: _without_default(_ends_of_fields(f)))  # type: ignore[arg-type,return-value]
        return InferType()(_mangled(_cut_out(plain, bind_constants), prefix))

    return ModulePass(run, PassInfo(0, "PartitionGraph", ["InferType"]))


__all__ = ["PartitionGraph"]
