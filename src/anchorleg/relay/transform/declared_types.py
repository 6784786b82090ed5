"""Sizes that declared types tell and values need not have: where ManifestAlloc checks them.

Type inference lets a tensor of unknown size be an argument, a field or a result whose type tells the size.  Compiled code
counts on what types tell, so the sizes are compared where such a value enters.
"""
from __future__ import annotations

from typing import Any, Sequence

from ...ir.expr import GlobalVar, RelayExpr
from ...ir.op import Op
from ...ir.type import FuncType, TensorType, TupleType, Type
from ..adt import Constructor
from ..expr import Call, RefRead, Var
from ..op.shape_func.dims import Dim, DimTable
from ..op.shape_func.registry import Known, flatten_types
from .declared_shapes import let_checks, tensors_of


def _open(known: Known, wanted: Any) -> list[tuple[int, int]]:
    """The axes whose size a type tells and the facts do not, with the size."""
    if not isinstance(wanted, TensorType) or len(wanted.dims) != len(known.dims):
        return []
    return [(i, d) for i, (d, k) in enumerate(zip(wanted.dims, known.dims)) if isinstance(d, int) and k != d]


def demand(manifest: Any, atom: RelayExpr, wanted: Type | None, text: str, scope: Any) -> None:
    """Checks that a value has the sizes that ``wanted`` tells, as far as they are not known of it."""
    facts, types = manifest._facts_of(atom), flatten_types(wanted) if isinstance(wanted, (TensorType, TupleType)) else []
    if len(facts) == len(types) and any(_open(k, t) for k, t in zip(facts, types)):
        check(manifest, atom, [_open(k, t) for k, t in zip(facts, types)], text, scope)


def distrust(manifest: Any, var: Var, text: str, scope: Any) -> None:
    """Checks all sizes that a variable's type tells, whatever is known of it: it comes from where another type may have been."""
    ty = var._checked_type
    if isinstance(ty, (TensorType, TupleType)):
        asked = [[(i, d) for i, d in enumerate(t.dims) if isinstance(d, int)] if isinstance(t, TensorType) else [] for t in flatten_types(ty)]
        if any(asked):
            check(manifest, var, asked, text, scope)


def check(manifest: Any, atom: RelayExpr, asked: Sequence[Sequence[tuple[int, Dim]]], text: str, scope: Any) -> None:
    """Compares sizes of the tensors in a value, given for each of them as (axis, size)."""
    tensors = tensors_of(manifest, atom, atom.checked_type, scope)
    table, used, checks = DimTable(), [], []
    for tensor, sizes in zip(tensors, asked):
        if sizes:
            checks += [(table.equal(table.atom("dim", len(used), axis), size), f"{text}: a size is not the {size} of its type") for axis, size in sizes]
            used.append(tensor)
    let_checks(manifest, table, checks, used, 0, scope)


def before(manifest: Any, old: RelayExpr, new: RelayExpr, scope: Any) -> None:
    """Checks what a call is given."""
    if isinstance(old, Call) and not isinstance(old.op, Op):
        callee = old.op._checked_type
        types = old.op.inputs if isinstance(old.op, Constructor) else callee.arg_types if isinstance(callee, FuncType) else ()
        for i, (a, t) in enumerate(zip(new.args, types)):  # type: ignore[attr-defined]
            demand(manifest, a, t, f"argument {i} of {_name(old.op)}", scope)


def after(manifest: Any, var: Var, value: RelayExpr, scope: Any) -> None:
    """Checks what a closure gave or a reference held."""
    if isinstance(value, Call) and not isinstance(value.op, (Op, GlobalVar, Constructor)):
        distrust(manifest, var, f"the result of {_name(value.op)}", scope)
    elif isinstance(value, RefRead):
        distrust(manifest, var, "what a reference holds", scope)


def _name(callee: Any) -> str:
    hint = getattr(callee, "name_hint", "")
    return f"@{hint}" if isinstance(callee, GlobalVar) else hint and f"{hint}" or "a function"


__all__ = ["after", "before", "check", "demand", "distrust"]
