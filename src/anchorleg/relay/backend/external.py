"""Functions of external compilers: from ``Compiler="<name>"`` to runtime modules.

Two ways lead to code.  A target kind of the compiler's name may have a pass (``RelayToTIR``) that is run on the whole module; what it
leaves is given, function by function, to the registered function ``relay.ext.<name>``, which returns a runtime module with a packed
function of the name ``global_symbol``.

Afterwards the module's functions for external compilers are global, are marked ``Extern`` and are called by name.
"""
from __future__ import annotations

from typing import Any, Callable, Mapping, NamedTuple, Sequence

import numpy as np

from ...ir.attrs import DictAttrs
from ...ir.expr import BaseFunc, GlobalVar
from ...ir.module import IRModule
from ...ir.transform import get_pass
from ...ir.visit import post_order
from ...runtime import ndarray
from ...runtime.const_loader import ConstLoaderModule
from ...runtime.module import Module
from ...runtime.registry import get_global_func
from ...support.errors import BuildError, TypeMismatchError, UnsupportedOpError
from ..analysis.variables import expr_children
from ..expr import Call, Constant, Tuple, Var
from ..function import Function
from ..op.call import is_call_lowered
from ..transform.bind import substitute
from ..transform.common import carry_type, map_functions, rewrite_exprs
from ..transform.compiler_functions import OutlineCompilerFunctionsWithExistingGlobalSymbols, without_composites
from ..transform.fuse_ops import is_static
from ..transform.infer_type import infer_type
from ..transform.target_hooks import RelayToTIRTargetHook, compiler_of, has_external
from .contrib import load_compilers
from .operator_runner import flatten, type_of, unflatten
from .te_lowering import flatten_tensor_types

MODULES, CONSTANTS = "external_mods", "const_name_to_constant"  # attributes of a module in which passes leave what they made


class ExternalCall(NamedTuple):
    """A call of a function that is compiled elsewhere: its symbol and its arguments."""

    symbol: str
    function: BaseFunc
    args: Sequence[Any]


class ExternalCode:
    """What external compilers made of one module.

    ``modules``: runtime modules with the functions; ``constants``: what those need, by name; ``compilers``: symbol → compiler;
    ``prim_funcs``: loop programs by name, still to be compiled, with the target of each.
    """

    def __init__(self) -> None:
        self.modules: list[Module] = []
        self.constants: dict[str, ndarray.NDArray] = {}
        self.compilers: dict[str, str] = {}
        self.prim_funcs: dict[str, BaseFunc] = {}
        self._compiled: list[Module] | None = None

    @staticmethod
    def of(other: ExternalCode, prim_funcs: Mapping[str, BaseFunc]) -> ExternalCode:
        """What another has, with these loop programs instead of its own."""
        new = ExternalCode()
        new.modules, new.constants, new.compilers, new.prim_funcs = other.modules, other.constants, other.compilers, dict(prim_funcs)
        return new

    def __bool__(self) -> bool:
        return bool(self.modules or self.compilers or self.prim_funcs)

    def runtime_modules(self, target: Any) -> list[Module]:
        """The modules, with loop programs compiled by their target kind's ``TIRToRuntime``, or for ``target`` like any other."""
        if self._compiled is None:
            self._compiled = [compile_prim_funcs(funcs, each) for each, funcs in self._by_target(target)]
        return [*self.modules, *self._compiled]

    def _by_target(self, target: Any) -> list[tuple[Any, dict[str, BaseFunc]]]:
        groups: dict[str, tuple[Any, dict[str, BaseFunc]]] = {}
        for name, func in self.prim_funcs.items():
            own = func.get_attr("target")  # type: ignore[attr-defined]
            each = own if own is not None and own.kind.get_attr("TIRToRuntime") is not None else target
            groups.setdefault(str(each), (each, {}))[1][name] = func
        return list(groups.values())

    def attach(self, library: Module, target: Any) -> Module:
        """Imports everything into ``library``: modules that need constants by way of a module that hands them over."""
        by_symbol: dict[str, list[str]] = {}
        needy: list[Module] = []
        for module in self.runtime_modules(target):
            symbol, names = constants_of(module)
            if names:
                if symbol in by_symbol:
                    raise BuildError(f"two modules say that they have the function {symbol!r} (get_symbol) and need constants for it")
                by_symbol[symbol] = names
                needy.append(module)
            else:
                library.import_module(module)
        if needy:
            wanted = {n for names in by_symbol.values() for n in names}
            loader = ConstLoaderModule({k: v for k, v in self.constants.items() if k in wanted}, by_symbol)
            for module in needy:
                loader.import_module(module)
            library.import_module(loader)
        return library


def constants_of(module: Module) -> tuple[str, list[str]]:
    """The function of a module that needs constants, and their names; no names when it needs none."""
    symbol, names = module._find("get_symbol", False), module._find("get_const_vars", False)
    if symbol is None or names is None:
        return "", []
    return str(symbol()), [str(n) for n in names()]  # type: ignore[attr-defined]


def compile_prim_funcs(functions: Mapping[str, BaseFunc], target: Any) -> Module:
    """Loop programs as a runtime module."""
    from ...driver.build_module import build

    mod = IRModule({name: f.with_attr("global_symbol", name) for name, f in functions.items()})  # type: ignore[attr-defined]
    hook, names = target.kind.get_attr("TIRToRuntime"), ", ".join(functions)
    if hook is None:
        return build(mod, target=target if target.kind.name == "llvm" else "llvm")  # what runs here is machine code, whatever text others get
    try:
        made = hook(mod, target)
    except Exception as exc:
        raise BuildError(f"TIRToRuntime of the target kind {target.kind.name!r} failed on {names}: {type(exc).__name__}: {exc}") from exc
    if not isinstance(made, Module):
        raise TypeMismatchError(f"TIRToRuntime of the target kind {target.kind.name!r}, called for {names}, is expected to return a runtime Module, got "
                                f"{type(made).__name__}")
    return made


# -- compiling


def compile_external(mod: IRModule, targets: Sequence[Any] = ()) -> tuple[IRModule, ExternalCode]:
    """The module with its functions for external compilers marked ``Extern`` and called by name, and what their compilers made of them.

    ``targets`` are the targets of external compilers that the user gave.
    """
    return generate_external(lower_external(mod, targets))


def generate_external(lowered: IRModule) -> tuple[IRModule, ExternalCode]:
    """`compile_external` of a module that went through `lower_external`."""
    code = ExternalCode()
    code.modules = list(lowered.get_attr(MODULES) or ())
    code.constants = {str(k): v for k, v in dict(lowered.get_attr(CONSTANTS) or {}).items()}
    functions: dict[GlobalVar, BaseFunc] = {}
    for var, func in lowered.functions.items():
        functions[var] = func
        if not isinstance(func, Function):
            code.prim_funcs[var.name_hint] = func
        elif compiler_of(func) is not None:
            functions[var] = _compile_function(code, var, func)
    return lowered.with_functions(functions), code


def lower_external(mod: IRModule, targets: Sequence[Any] = ()) -> IRModule:
    """The module after the passes of external compilers' target kinds, with functions for external compilers global."""
    load_compilers()
    if not has_external(mod):
        return mod
    hooked = RelayToTIRTargetHook(targets)(mod)
    outlined = get_pass("InferType")(_plain_calls(OutlineCompilerFunctionsWithExistingGlobalSymbols()(hooked)))
    for var, func in outlined.functions.items():
        if isinstance(func, Function) and compiler_of(func) is None and not func.get_attr("Extern"):
            _check_literals(var, func)
    return outlined


def _check_literals(var: GlobalVar, func: Function) -> None:
    for node in post_order(func.body, expr_children):
        if compiler_of(node) is not None and node.get_attr("global_symbol") is None:  # type: ignore[attr-defined]
            raise BuildError(f"@{var.name_hint} holds a function for the external compiler {compiler_of(node)!r} without a name: give it the attribute "
                             "global_symbol, or let PartitionGraph make it")
        if compiler_of(node) is not None:
            raise BuildError(f"@{var.name_hint} uses the function {node.get_attr('global_symbol')} for the external compiler {compiler_of(node)!r} "  # type: ignore[attr-defined]
                             "as a value: functions of external compilers can only be called")


def _compile_function(code: ExternalCode, var: GlobalVar, func: Function) -> Function:
    compiler, symbol = str(compiler_of(func)), str(func.get_attr("global_symbol", var.name_hint))
    if symbol != var.name_hint:
        raise BuildError(f"the function @{var.name_hint} for the external compiler {compiler!r} has the global_symbol {symbol!r}: they are expected to be equal")
    code.compilers[symbol] = compiler
    module = _external_module(compiler, symbol, func)
    if module is not None:
        code.modules.append(module)
        for name, value in external_constants(func, symbol).items():
            code.constants[name] = value
    kept = {k: v for k, v in dict(func.attrs).items() if k not in ("Primitive", "Compiler", "Inline")}
    extern = func.replace(attrs=DictAttrs({**kept, "Extern": 1}))
    extern._checked_type = func._checked_type
    return extern


def _external_module(compiler: str, symbol: str, func: Function) -> Module | None:
    """What ``relay.ext.<compiler>`` makes of a function; None when the code comes from elsewhere."""
    generate = get_global_func(f"relay.ext.{compiler}", allow_missing=True)
    if generate is None:
        raise BuildError(f"the function {symbol!r} is for the external compiler {compiler!r}, which is not there: register relay.ext.{compiler}, a function of "
                         f"the Relay function that returns a runtime module, or a target kind {compiler!r} with a RelayToTIR pass; or put the function's "
                         "body back with transform.InlineCompilerFunctionsBoundTo")
    try:
        module = generate(func)
    except Exception as exc:
        raise BuildError(f"the external compiler {compiler!r} (relay.ext.{compiler}) failed on the function {symbol!r}: {type(exc).__name__}: {exc}") from exc
    if module is not None and not isinstance(module, Module):
        raise TypeMismatchError(f"the external compiler {compiler!r} (relay.ext.{compiler}), called for the function {symbol!r}, is expected to return a runtime "
                                f"Module, or None when the code comes from elsewhere, got {type(module).__name__}")
    if module is not None and not module.implements_function(symbol, True):
        raise BuildError(f"the external compiler {compiler!r} (relay.ext.{compiler}) returned a module of kind {module.type_key!r} that has no function {symbol!r}")
    return module


def external_constants(func: Function, symbol: str) -> dict[str, ndarray.NDArray]:
    """The constants of a function by the names under which its code asks for them.

    They are those that ``relay.ext.<compiler>.constant_updater(func, symbol)`` gives, else all in the function, named
    ``<symbol>_const_<number>`` in the order of evaluation.
    """
    compiler = str(func.get_attr("Compiler"))
    update = get_global_func(f"relay.ext.{compiler}.constant_updater", allow_missing=True)
    if update is None:
        found = [n for n in post_order(func.body, expr_children) if isinstance(n, Constant)]
        return {f"{symbol}_const_{i}": n.data for i, n in enumerate(found)}
    constants = {str(k): v for k, v in dict(update(func, symbol)).items()}
    wrong = [n for n in constants if not n.startswith(compiler)]
    if wrong:
        raise BuildError(f"relay.ext.{compiler}.constant_updater, called for the function {symbol!r}, gave the constants {', '.join(wrong)}: external constant "
                         f"names must start with the compiler's name, {compiler!r}")
    return constants


# -- calls


def _plain_calls(mod: IRModule) -> IRModule:
    """The module with ``call_lowered(@f, (a, b))``, which passes of target kinds leave, as ``@f(a, b)``."""
    def rule(old: Any, new: Any) -> Any:
        if not is_call_lowered(new) or not isinstance(new.args[1], Tuple):
            return new
        return carry_type(old, Call(new.args[0], new.args[1].fields, None, (), new.span))

    return map_functions(mod, lambda f: rewrite_exprs(f, rule))  # type: ignore[arg-type,return-value]


def external_call(call: Call, mod: IRModule | None) -> ExternalCall | None:
    """The call as one of a function that is compiled elsewhere: for an external compiler, or a loop program; None for any other."""
    func = mod.functions.get(call.op) if mod is not None and isinstance(call.op, GlobalVar) else None
    if func is None or isinstance(func, Function) and not (func.get_attr("Extern") or func.get_attr("Compiler")):
        return None
    return ExternalCall(call.op.name_hint, func, call.args)  # type: ignore[attr-defined]


def external_callables(mod: IRModule, code: ExternalCode, target: Any) -> dict[str, Callable[[list[Any]], Any]]:
    """The functions compiled elsewhere as callables from values (arrays, tuples of them) to values."""
    from ...runtime.compiled import CompiledModule

    library = code.attach(CompiledModule([], {}), target)
    return {v.name_hint: _callable(v, f, library) for v, f in mod.functions.items() if not isinstance(f, Function) or f.get_attr("Extern")}


def _callable(var: GlobalVar, func: BaseFunc, library: Module) -> Callable[[list[Any]], Any]:
    def run(args: list[Any]) -> Any:
        ty = _result_type(var, func, args)
        outputs = [ndarray.empty(t.concrete_shape, t.dtype) for t in flatten_tensor_types(ty)]
        inputs = [ndarray.aligned(ndarray.array(np.asarray(a))) for a in flatten(tuple(args))]
        library.get_function(var.name_hint, True)(*inputs, *outputs)
        return unflatten([o.numpy() for o in outputs], ty)

    return run


def _result_type(var: GlobalVar, func: BaseFunc, args: list[Any]) -> Any:
    """The result's type for these arguments: sizes that are not known follow from the function's body."""
    ty = (func if isinstance(func, Function) else var).checked_type.ret_type  # type: ignore[attr-defined]
    if is_static(ty) or not isinstance(func, Function):
        return ty
    binds = {p: Var(p.name_hint, type_of(a)) for p, a in zip(func.params, args)}
    found = infer_type(Function(list(binds.values()), substitute(without_composites(func.body), binds))).checked_type.ret_type  # type: ignore[arg-type]
    if not is_static(found):
        raise UnsupportedOpError(f"the external function @{var.name_hint} has results of the type {found}, whose sizes only its evaluation tells: whoever calls "
                                 "it has to give it the memory for them")
    return found


__all__ = ["ExternalCall", "ExternalCode", "compile_external", "compile_prim_funcs", "constants_of", "external_call", "external_callables",
           "external_constants", "generate_external", "lower_external"]
