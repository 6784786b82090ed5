"""The device of every expression of a planned program, told from the marks around it, and written down where it is needed.

After ``PlanDevices`` a value is on the device of the nearest mark (``on_device`` with ``constrain_result=True``) or function around it.
"""
from __future__ import annotations

from typing import Any

from ...ir.expr import GlobalVar, RelayExpr
from ...ir.module import IRModule
from ...ir.op import Op
from ...ir.type import TupleType
from ...ir.visit import trampoline
from ...target.virtual_device import UNCONSTRAINED, VirtualDevice
from ..adt import Constructor, Match
from ..expr import Call, Constant, Let, Tuple, TupleGetItem, Var
from ..function import Function
from .common import carry_type, is_op, is_primitive, map_functions, rewrite_exprs


def recover_virtual_device_map(mod: IRModule | None, expr: RelayExpr) -> dict[RelayExpr, VirtualDevice]:
    """The device of every expression under ``expr`` but operators and constructors, which run anywhere."""
    found: dict[RelayExpr, VirtualDevice] = {}
    bound: dict[Var, VirtualDevice] = {}
    stack: list[tuple[RelayExpr, VirtualDevice]] = [(expr, UNCONSTRAINED)]
    while stack:
        node, around = stack.pop()
        if node in found or isinstance(node, (Op, Constructor)):
            continue
        device = found[node] = _device_of(node, around, mod, bound)
        inside = device if is_op(node, "on_device") or isinstance(node, Function) and not is_primitive(node) else around
        if isinstance(node, Let):
            bound[node.var] = _device_of(node.value, around, mod, bound)
        stack.extend((c, inside) for c in reversed(_parts(node)))
    return found


def _parts(node: RelayExpr) -> list[Any]:
    if isinstance(node, Match):
        return [node.data, *(c.rhs for c in node.clauses)]
    return [c for c in node.children() if isinstance(c, RelayExpr)]


def _device_of(node: RelayExpr, around: VirtualDevice, mod: IRModule | None, bound: dict[Var, VirtualDevice]) -> VirtualDevice:
    if is_op(node, "on_device") and node.attrs.constrain_result and node.attrs.constrain_body:  # type: ignore[attr-defined]
        return node.attrs.virtual_device  # type: ignore[attr-defined,no-any-return]
    if isinstance(node, Var):
        return node.virtual_device_ or bound.get(node, UNCONSTRAINED)
    if isinstance(node, GlobalVar):
        func: Any = mod[node.name_hint] if mod is not None and node.name_hint in mod else None
        return getattr(func, "virtual_device_", None) or UNCONSTRAINED
    if isinstance(node, Function) and not is_primitive(node):
        return node.virtual_device_ or UNCONSTRAINED
    return around


def devices_of(mod: IRModule) -> set[VirtualDevice]:
    """The devices that a planned module names."""
    return {d for f in mod.functions.values() if isinstance(f, Function) for d in recover_virtual_device_map(mod, f).values()
            if not d.is_fully_unconstrained}


def pin_devices(mod: IRModule) -> IRModule:
    """A planned and fused module without marks: primitive functions and constants say themselves where they are.

    before → after::

        on_device(fn (%p, Primitive=1) { exp(%p) }(%x), virtual_device=cpu, constrain_result=True)
        fn (%p, Primitive=1, virtual_device=cpu) { exp(%p) }(%x)
    """
    return map_functions(mod, lambda f: _pinned(mod, f))


def _pinned(mod: IRModule, func: Function) -> Function:
    devices = recover_virtual_device_map(mod, func)

    def rule(old: Any, new: Any) -> RelayExpr:
        if is_op(old, "on_device"):
            return new.args[0]  # type: ignore[no-any-return]
        if isinstance(old, Call) and is_primitive(new.op):
            return carry_type(old, new.replace(op=_placed(new.op, devices[old])))  # type: ignore[no-any-return]
        return _placed(new, devices[old]) if isinstance(old, Constant) else new

    return rewrite_exprs(func, rule)  # type: ignore[return-value]


def _placed(node: Any, device: VirtualDevice) -> Any:
    return carry_type(node, node.replace(virtual_device_=None if device.is_fully_unconstrained else device))


def unmarked(mod: IRModule) -> IRModule:
    """The module without anything that says where values are: for programs that turned out to be on one device."""
    variables: dict[Var, Var] = {}

    def rule(old: Any, new: Any) -> RelayExpr:
        if is_op(old, "on_device", "device_copy"):
            return new.args[0]  # type: ignore[no-any-return]
        if isinstance(old, Var) and old.virtual_device_ is not None:
            if old not in variables:
                variables[old] = old.replace(virtual_device_=None)
                variables[old]._checked_type = old._checked_type
            return variables[old]
        return carry_type(old, new.replace(virtual_device_=None)) if isinstance(old, Function) else new  # type: ignore[no-any-return]

    return map_functions(mod, lambda f: rewrite_exprs(f, rule))  # type: ignore[arg-type,return-value]


def split_tuple_copies(mod: IRModule) -> IRModule:
    """The module with copies of tuples as tuples of copies: executors copy tensors."""
    def rule(old: Any, new: Any) -> RelayExpr:
        if is_op(new, "device_copy") and isinstance(old._checked_type, TupleType):
            return trampoline(_field_copies(new, new.args[0], old._checked_type))  # type: ignore[no-any-return]
        return new  # type: ignore[no-any-return]

    return map_functions(mod, lambda f: rewrite_exprs(f, rule))  # type: ignore[arg-type,return-value]


def _field_copies(copy: Call, value: RelayExpr, ty: Any) -> Any:
    """Steps that copy a value of a type, field by field; the mark around the value moves to its fields."""
    if not isinstance(ty, TupleType):
        made = copy.replace(args=(value,))
        made._checked_type = ty
        return made
    mark = value if is_op(value, "on_device") else None
    fields = []
    for i, each in enumerate(ty.fields):
        field: Any = TupleGetItem(mark.args[0] if mark is not None else value, i)  # type: ignore[attr-defined]
        field._checked_type = each
        if mark is not None:
            field = mark.replace(args=(field,))
            field._checked_type = each
        fields.append((yield _field_copies(copy, field, each)))
    whole = Tuple(fields)
    whole._checked_type = ty
    return whole


__all__ = ["devices_of", "pin_devices", "recover_virtual_device_map", "split_tuple_copies", "unmarked"]
