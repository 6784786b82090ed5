"""The graph language: expressions, types, operators, analyses and passes.

What costs time to load (passes, operators' strategies, frontends, building) is loaded when first used.
"""
from __future__ import annotations

import importlib
from typing import Any as _Any

from ..autotvm.hooks import register_extractor as _register_extractor
from ..ir.expr import Any, GlobalVar
from ..ir.expr import RelayExpr as Expr
from ..ir.module import register_library as _register_library
from ..ir.op import register_operator_library as _register_operator_library
from ..ir.transform import register_pass_library as _register_pass_library
from ..ir.span import SequentialSpan, SourceName, Span
from ..ir.type import (FuncType, GlobalTypeVar, IncompleteType, RefType, TensorType, TupleType, Type, TypeCall, TypeConstraint, TypeKind,
                       TypeRelation, TypeVar)
from .analysis.extract import register_runner as _register_runner
from .adt import (Clause, Constructor, Match, Pattern, PatternConstructor, PatternTuple, PatternVar, PatternWildcard, TypeData)
from .expr import (Call, Constant, If, Let, RefCreate, RefRead, RefWrite, Tuple, TupleGetItem, TupleWrapper, Var, bind, const, var)
from .function import Function
from .text.printer import astext, pretty_print
from .type import ShapeVar, scalar_type

# loaded on first use: name → (module under relay, name inside it or None for the module itself)
_LAZY: dict[str, tuple[str, str | None]] = {
    **{room: (room, None) for room in ("adt", "analysis", "backend", "base", "build_module", "dataflow_pattern", "expr", "expr_functor",
                                       "frontend", "function", "op", "prelude", "qnn", "quantize", "scope_builder", "testing", "text", "ty",
                                       "transform", "type_functor", "loops", "debug", "param_dict", "collage", "data_dep_optimization")},
    "nn": ("op.nn", None), "parser": ("text.parser", None),
    "build": ("build_module", "build"), "create_executor": ("executors", "create_executor"),
    "optimize": ("build_module", "optimize_and_fuse"), "build_config": ("transform", "build_config"), "vm": ("backend.vm", None),
    "parse": ("text.parser", "parse"), "fromtext": ("text.parser", "fromtext"), "parse_expr": ("text.parser", "parse_expr"),
    "SpanCheck": ("transform", "SpanCheck"), "ExprFunctor": ("expr_functor", "ExprFunctor"), "ExprVisitor": ("expr_functor", "ExprVisitor"),
    "ExprMutator": ("expr_functor", "ExprMutator"), "TypeFunctor": ("type_functor", "TypeFunctor"),
    "TypeVisitor": ("type_functor", "TypeVisitor"), "TypeMutator": ("type_functor", "TypeMutator"),
    "ScopeBuilder": ("scope_builder", "ScopeBuilder"), "Prelude": ("prelude", "Prelude"),
    "save_param_dict": ("param_dict", "save_param_dict"), "load_param_dict": ("param_dict", "load_param_dict"),
}


def _import_from_std(mod: _Any, name: str) -> None:
    importlib.import_module(f"{__name__}.library").import_from_std(mod, name)


def _lower_for_tasks(mod: _Any, target: _Any, params: _Any) -> None:
    importlib.import_module(f"{__name__}.task_extraction").lower_for_tasks(mod, target, params)


def _run_graph(mod: _Any) -> _Any:
    return importlib.import_module(f"{__name__}.executors").create_executor("graph", mod=mod).evaluate()


_register_library(_import_from_std)
_register_runner(_run_graph)
_register_extractor(_lower_for_tasks)
_register_pass_library(lambda: importlib.import_module(f"{__name__}.transform").load_all())
_register_operator_library(lambda: importlib.import_module(f"{__name__}.op"))


def __getattr__(name: str) -> _Any:
    if name not in _LAZY:
        return _operator(name)
    module, inner = _LAZY[name]
    found = importlib.import_module(f"{__name__}.{module}")
    return found if inner is None else getattr(found, inner)


def _operator(name: str) -> _Any:
    """An operator's constructor (``relay.add``), or a family of them (``relay.nn``)."""
    operators = None if name.startswith("_") else importlib.import_module(f"{__name__}.op")
    if not hasattr(operators, name):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(operators, name)


def __dir__() -> list[str]:
    return sorted({*globals(), *_LAZY})
