"""AnnotateUsedMemory: how many bytes of tensors are alive while each primitive function runs.

before::

    def @main(%input: Tensor[(1, 2, 2, 4), int8]) {
      let %x_0 = fn (%x: Tensor[(1, 2, 2, 4), int8], Primitive=1) { nn.max_pool2d(%x) };
      let %x_1 = %x_0(%input);
      %x_1
    }

after::

    def @main(%input: Tensor[(1, 2, 2, 4), int8], io_used_memory=32) {
      let %x_0 = fn (%x: Tensor[(1, 2, 2, 4), int8], Primitive=1, used_memory=[32]) { nn.max_pool2d(%x) };
      let %x_1 = %x_0(%input);
      %x_1
    }

``used_memory`` has a number for each call of the function, in the order in which the calls are made.
"""
from __future__ import annotations

import math
from typing import Any, Iterable

from ...ir.expr import RelayExpr
from ...ir.module import IRModule
from ...ir.transform import ModulePass, Pass, PassContext, PassInfo, register_pass
from ...ir.type import FuncType, Type
from ...runtime.dtype import DataType
from ...support.errors import ArgumentError, UnsupportedOpError
from ..adt import Match
from ..analysis.variables import free_vars
from ..expr import If, Let, Var
from ..function import Function
from ..op.memory import flatten_tuple_type
from .common import is_primitive, rewrite_exprs


def _bytes(ty: Type) -> int:
    total = 0
    for t in flatten_tuple_type(ty):
        try:
            total += math.prod(t.concrete_shape) * ((DataType(t.dtype).bits * DataType(t.dtype).lanes + 7) // 8)
        except TypeError as exc:
            raise UnsupportedOpError(f"AnnotateUsedMemory does not support dynamic shapes, got {t}") from exc
    return total


def _chain(body: RelayExpr) -> tuple[list[Let], RelayExpr]:
    lets: list[Let] = []
    while isinstance(body, Let):
        if isinstance(body.value, (If, Match)):
            raise UnsupportedOpError("AnnotateUsedMemory expects a chain of lets without branches")
        lets.append(body)
        body = body.body
    return lets, body


def _tensors(variables: Iterable[Var]) -> dict[int, Var]:
    return {id(v): v for v in variables if not isinstance(v.checked_type, FuncType)}


def _called(value: Any, functions: dict[int, Function]) -> Function | None:
    """The primitive function that a value calls, by itself or through its variable."""
    op = getattr(value, "op", None)
    return op if is_primitive(op) else functions.get(id(op))


def _used_memory(main: Function) -> dict[int, list[int]]:
    """By the id of each primitive function, the bytes alive during its calls."""
    lets, result = _chain(main.body)
    functions: dict[int, Function] = {}
    for let in lets:
        if is_primitive(let.value) or id(let.value) in functions:
            functions[id(let.var)] = functions.get(id(let.value), let.value)  # type: ignore[arg-type]
    live = _tensors(free_vars(result))
    found: dict[int, list[int]] = {}
    for let in reversed(lets):
        after = live
        live = {**{k: v for k, v in live.items() if k != id(let.var)}, **_tensors(free_vars(let.value))}
        func = _called(let.value, functions)  # type: ignore[arg-type]
        if func is not None:
            alive = {**live, **after, id(let.var): let.var}
            found.setdefault(id(func), []).insert(0, sum(_bytes(v.checked_type) for v in alive.values()))
    return found


def annotate_used_memory(main: Function) -> Function:
    """A typed function in A-normal form with ``used_memory`` on its primitive functions and ``io_used_memory`` on itself.

    ArgumentError when it has no types, UnsupportedOpError for sizes that are not known and for branches.
    """
    if main._checked_type is None:
        raise ArgumentError("AnnotateUsedMemory expects a typed module: run relay.transform.InferType first")
    inputs_and_results = sum(_bytes(t) for t in [*(p.checked_type for p in main.params), main.body.checked_type])
    used = _used_memory(main)

    def rule(old: Any, new: Any) -> Any:
        if id(old) not in used:
            return new
        annotated = new.with_attr("used_memory", used[id(old)])
        annotated._checked_type = old._checked_type
        return annotated

    body = rewrite_exprs(main.body, rule)
    return main.replace(body=body).with_attr("io_used_memory", inputs_and_results)


def AnnotateUsedMemory() -> Pass:
    """Annotates ``main``; see :func:`annotate_used_memory`."""
    def run(mod: IRModule, ctx: PassContext) -> IRModule:
        main = mod.get_global_var("main")
        return mod.with_functions({v: annotate_used_memory(f) if v == main else f for v, f in mod.functions.items()})  # type: ignore[arg-type]

    return ModulePass(run, PassInfo(0, "AnnotateUsedMemory", ["InferType"]))


register_pass("AnnotateUsedMemory", AnnotateUsedMemory)
__all__ = ["AnnotateUsedMemory", "annotate_used_memory"]
