"""Parts of a program as modules of their own: fused functions, single expressions, and data to calibrate them with."""
from __future__ import annotations

from typing import Any, Callable, Mapping

from ...ir.expr import GlobalVar
from ...ir.module import IRModule
from ...ir.structural import structural_hash
from ...ir.type import TupleType
from ...support.errors import ArgumentError
from ..expr import Call, Tuple, TupleGetItem
from ..function import Function
from .variables import exprs


def extract_fused_functions(mod: IRModule) -> dict[GlobalVar, Function]:
    """The primitive functions that SimplifyInference and FuseOps make of ``main``, each named by its structural hash."""
    from ..transform import FuseOps, SimplifyInference

    fused = FuseOps(3)(SimplifyInference()(mod))
    found: dict[str, Function] = {}
    for node in exprs(fused["main"]):
        if isinstance(node, Function) and node.get_attr("Primitive"):
            found.setdefault(str(structural_hash(node)), node)
    return {GlobalVar(name): func for name, func in found.items()}


def extract_intermdeiate_expr(mod: IRModule, expr_id: int) -> IRModule:
    """The module of the expression shown as ``%<expr_id>`` when ``main`` is printed, with what it needs as parameters."""
    lines = [n for n in exprs(mod["main"]) if isinstance(n, (Call, Tuple, TupleGetItem))]
    if not 0 <= expr_id < len(lines):
        raise ArgumentError(f"main has the expressions %0 to %{len(lines) - 1}, not %{expr_id}")
    return IRModule.from_expr(lines[expr_id])


extract_intermediate_expr = extract_intermdeiate_expr


def get_calibration_data(mod: IRModule, data: Mapping[str, Any]) -> dict[GlobalVar, dict[str, list[Any]]]:
    """What goes into and comes out of every function for an external compiler (attribute ``Compiler``) when ``main`` runs on ``data``.

    The result maps each function's name to ``{"inputs": tensors, "outputs": tensors}``.  ``main`` must be free of control
    flow, and the functions' arguments must be tensors.
    """
    from ..transform import Inline

    if not _RUNNERS:
        raise ArgumentError("import anchorleg.relay before get_calibration_data")

    probed, places = _probe(mod)
    values = _RUNNERS[-1](Inline()(probed))(**data)
    values = list(values) if isinstance(values, (list, tuple)) or hasattr(values, "__len__") and not hasattr(values, "numpy") else [values]
    found: dict[GlobalVar, dict[str, list[Any]]] = {}
    for gvar, start, inputs, outputs in places:
        middle = start + inputs
        found[gvar] = {"inputs": values[start:middle], "outputs": values[middle:middle + outputs]}
    return found


_RUNNERS: list[Callable[[IRModule], Callable[..., Any]]] = []


def register_runner(make: Callable[[IRModule], Callable[..., Any]]) -> None:
    """Sets how a module becomes a function that runs its ``main`` (the executors provide this)."""
    _RUNNERS.append(make)


def _probe(mod: IRModule) -> tuple[IRModule, list[tuple[GlobalVar, int, int, int]]]:
    """The module with ``main`` returning what is asked for, and per function: where it stands, inputs, outputs."""
    from ..transform.infer_type import InferType

    typed = InferType()(mod)
    main = typed["main"]
    results: list[Any] = []
    places: list[tuple[GlobalVar, int, int, int]] = []
    for node in exprs(main):
        if not (isinstance(node, Call) and isinstance(node.op, GlobalVar) and typed[node.op].get_attr("Compiler")):
            continue
        kind = node._checked_type
        outputs = [TupleGetItem(node, i) for i in range(len(kind.fields))] if isinstance(kind, TupleType) else [node]
        places.append((node.op, len(results), len(node.args), len(outputs)))
        results.extend([*node.args, *outputs])
    funcs = {g: _inlined(f) if isinstance(f, Function) and f.get_attr("Compiler") else f for g, f in typed.functions.items()}
    new = typed.with_functions(funcs)
    new = new if new is not typed else typed.copy()
    new["main"] = Function(main.params, Tuple(results), None, main.type_params, main.attrs)
    return new, places


def _inlined(func: Function) -> Function:
    return func.without_attr("Compiler").with_attr("inline", 1)
