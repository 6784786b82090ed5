"""PlanDevices: where each value is stored and each primitive runs, when all of it is on one device.

Marks for that device (``on_device``) and copies from it to itself are dropped.  Before → after::

    on_device(add(%x, %y), virtual_device=cpu)
    add(%x, %y)
"""
from __future__ import annotations

from typing import Any

from ...ir.expr import RelayExpr
from ...ir.module import IRModule
from ...ir.transform import ModulePass, Pass, PassContext, PassInfo, register_pass
from ...support.errors import UnsupportedOpError
from .common import is_op, map_functions, mentions, rewrite_exprs


def PlanDevices(config: Any = None) -> Pass:
    """The pass; ``config`` is a ``target.CompilationConfig``.

    UnsupportedOpError when the program is marked for several devices.
    """
    def run(mod: IRModule, ctx: PassContext) -> IRModule:
        if not mentions(mod, lambda n: is_op(n, "on_device", "device_copy")):
            return mod
        devices: set[Any] = set()
        new = map_functions(mod, lambda f: rewrite_exprs(f, lambda old, each: _unmarked(each, devices)))  # type: ignore[arg-type,return-value]
        if len(devices) > 1:
            raise UnsupportedOpError(f"the program is spread over several devices: {', '.join(map(str, devices))}; only one is supported")
        return new

    return ModulePass(run, PassInfo(0, "PlanDevices", ["InferType"]))


def _unmarked(expr: RelayExpr, devices: set[Any]) -> RelayExpr:
    if is_op(expr, "on_device"):
        _note(expr.attrs.virtual_device, devices)  # type: ignore[attr-defined]
        return expr.args[0]  # type: ignore[attr-defined,no-any-return]
    if is_op(expr, "device_copy"):
        _note(expr.attrs.src_virtual_device, devices)  # type: ignore[attr-defined]
        _note(expr.attrs.dst_virtual_device, devices)  # type: ignore[attr-defined]
        return expr.args[0]  # type: ignore[attr-defined,no-any-return]
    return expr


def _note(device: Any, devices: set[Any]) -> None:
    if device is not None and device.device_type_int >= 0:
        devices.add((device.device_type_int, device.virtual_device_id))


register_pass("PlanDevices", lambda: PlanDevices())
