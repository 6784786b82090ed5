"""``prim_func``, ``ir_module`` and ``from_source``: the ways into the parser."""
from __future__ import annotations

import ast
import importlib
from contextlib import contextmanager
from types import FunctionType
from typing import Any, Iterator, Mapping, NamedTuple

from ..ir.attrs import DictAttrs
from ..ir.diagnostics import report
from ..ir.expr import GlobalVar
from ..ir.module import IRModule
from ..ir.span import SourceName, Span
from ..support.errors import TypeMismatchError
from ..tir.function import PrimFunc
from .errors import ScriptError
from .expressions import Evaluator
from .names import FunctionNames, Names
from .functions import parse_function
from .source import Source, annotations_of, captured_by_class, captured_names, in_module_class, source_of_object, source_of_text
from .types import TYPES, declared




class ModuleAttributes(NamedTuple):
    """``I.module_attrs({...})``."""

    attrs: Mapping[str, Any]


def module_attrs(attrs: Mapping[str, Any]) -> ModuleAttributes:
    """Attributes of the module."""
    return ModuleAttributes(attrs)


def prim_func(func: Any = None, private: bool = False, check_well_formed: bool = True) -> Any:
    """Makes a loop program of a Python function's source.

    Inside a class that ``ir_module`` decorates the function stays as it is: the class is read as a whole.  A ``private`` function
    has no ``global_symbol``.  ScriptError (file, line, what was expected) when the source is no program.
    """
    if func is None:
        inside = in_module_class(1)
        return lambda f: _prim_func(f, private, inside)
    return _prim_func(func, private, in_module_class(1))


def _prim_func(func: Any, private: bool, inside: bool) -> Any:
    if not isinstance(func, FunctionType):
        raise TypeMismatchError(f"T.prim_func decorates a function, got {type(func).__name__}")
    if inside:
        return func
    with _reported():
        source = source_of_object(func)
        node = _first(source, ast.FunctionDef)
        return parse_function(source, node, captured_names(func), annotations_of(func).get(func.__name__), private)


@contextmanager
def _reported() -> Iterator[None]:
    """Gives an error to the renderer of diagnostics, if there is one of the user's, before it is raised."""
    try:
        yield
    except ScriptError as error:
        report(None, [(Span(SourceName(error.filename), error.line, error.line, error.column + 1, error.column + 1), str(error))])
        raise


def ir_module(mod: Any = None, check_well_formed: bool = True) -> Any:
    """Makes a module of a class whose methods are loop programs."""
    if mod is None:
        return ir_module
    if not isinstance(mod, type):
        raise TypeMismatchError(f"ir_module decorates a class, got {type(mod).__name__}")
    with _reported():
        source = source_of_object(mod)
        return parse_module(source, _first(source, ast.ClassDef), captured_by_class(mod), annotations_of(mod))


def from_source(program: Any, extra_vars: Mapping[str, Any] | None = None, check_well_formed: bool = True) -> PrimFunc | IRModule:
    """The function or the module that a text (or a Python function or class) describes.

    ``T`` and ``I`` are known to it, and what ``extra_vars`` adds.  A text with several functions, or with a class, is a module.
    """
    if isinstance(program, FunctionType):
        return _prim_func(program, False, False)
    if isinstance(program, type):
        return ir_module(program)
    with _reported():
        return _from_text(program, extra_vars or {})


def _from_text(program: str, extra_vars: Mapping[str, Any]) -> PrimFunc | IRModule:
    source = source_of_text(program)
    names = {**_standard_names(), **extra_vars}
    found = [n for n in source.tree.body if isinstance(n, (ast.FunctionDef, ast.ClassDef))]
    _check_rest(source, [n for n in source.tree.body if n not in found])
    if not found:
        raise ScriptError("a function or a class is expected in the text, got neither", source.filename, source.first_line)
    if isinstance(found[0], ast.ClassDef) and len(found) == 1:
        return parse_module(source, found[0], names, {})
    if len(found) == 1:
        return parse_function(source, found[0], names, {}, _is_private(source, found[0], Names(names)))  # type: ignore[arg-type]
    return parse_functions(source, found, names, {})


def _standard_names() -> dict[str, Any]:
    modules = {"T": "tir", "I": "ir"}
    return {**{k: importlib.import_module(f"{__package__}.{v}") for k, v in modules.items()}, "inf": float("inf"), "nan": float("nan")}


def _check_rest(source: Source, nodes: list[ast.stmt]) -> None:
    """Only imports of the script languages, and texts, may stand beside the programs."""
    for node in nodes:
        if isinstance(node, ast.ImportFrom) and all(a.name in ("tir", "ir") for a in node.names):
            continue
        if not (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)):
            raise source.error(node, "functions, classes and imports of the script languages are expected at the top")


def _first(source: Source, kind: Any) -> Any:
    node = source.tree.body[0] if source.tree.body else None
    if not isinstance(node, kind):
        raise source.error(node, f"a {'class' if kind is ast.ClassDef else 'function'} is expected")
    return node


# ---------------------------------------------------------------- modules


def parse_module(source: Source, node: ast.ClassDef, outer: Mapping[str, Any], annotations: Mapping[str, Mapping[str, Any]]) -> IRModule:
    """The module a ``class`` statement describes."""
    return parse_functions(source, node.body, outer, annotations, node.name)


def parse_functions(source: Source, nodes: list[Any], outer: Mapping[str, Any], annotations: Mapping[str, Mapping[str, Any]],
                    class_name: str = "") -> IRModule:
    """The module of several functions; each may call the others."""
    functions = {n.name: GlobalVar(n.name) for n in nodes if isinstance(n, ast.FunctionDef)}
    own = FunctionNames(functions)
    names = {**outer, "cls": own, **({class_name: own} if class_name else functions)}
    results = {id(functions[n.name]): _result_dtype(source, n, names) for n in nodes if isinstance(n, ast.FunctionDef)}
    mod = IRModule()
    attrs: dict[str, Any] = {}
    for n in nodes:
        if isinstance(n, ast.FunctionDef):
            private = _is_private(source, n, Names(names))
            mod[functions[n.name]] = parse_function(source, n, names, annotations.get(n.name), private, results)
        else:
            attrs.update(_module_statement(source, n, names))
    mod.attrs = DictAttrs(attrs)
    return mod


def _module_statement(source: Source, node: ast.AST, names: Mapping[str, Any]) -> dict[str, Any]:
    """The module attributes that a statement of a class sets."""
    if isinstance(node, ast.Pass) or isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
        return {}
    value = Evaluator(source, Names(names)).evaluate(node.value) if isinstance(node, ast.Expr) else None
    if not isinstance(value, ModuleAttributes):
        raise source.error(node, "functions and I.module_attrs(...) are expected in a module")
    return dict(value.attrs)


def _result_dtype(source: Source, node: ast.FunctionDef, names: Mapping[str, Any]) -> str:
    """The dtype of what a function gives back; void without one."""
    if node.returns is None or isinstance(node.returns, ast.Constant):
        return "void"
    found = declared(Evaluator(source, Names(names)).evaluate(node.returns))
    return found.dtype if found is not None else TYPES["void"].dtype


def _is_private(source: Source, node: ast.FunctionDef, names: Names) -> bool:
    """Whether the decorator says ``private=True``; ScriptError when a function is not decorated with ``prim_func``."""
    for decorator in node.decorator_list:
        call = decorator if isinstance(decorator, ast.Call) else None
        if Evaluator(source, names).evaluate(call.func if call is not None else decorator) is prim_func:
            return any(k.arg == "private" and isinstance(k.value, ast.Constant) and bool(k.value.value) for k in (call.keywords if call else ()))
    raise source.error(node, f"function {node.name!r}: a loop program is decorated with @T.prim_func")
