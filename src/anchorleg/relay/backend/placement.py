"""Devices in a build: planned before optimisation and again after it, written into primitive functions once these are made."""
from __future__ import annotations

from typing import Any, Sequence

from ...ir.module import IRModule
from ...ir.transform import PassContext, get_pass
from ...runtime.device import kDLCPU
from ...support.errors import TargetError
from ...target.virtual_device import CompilationConfig, VirtualDevice, device_type_of
from ..transform.device_scopes import devices_of, pin_devices, split_tuple_copies, unmarked
from ..transform.plan_devices import is_marked, plan_devices

Where = tuple[int, int]  # a device's type and number
HOST: Where = (kDLCPU, 0)


def main_target(targets: Sequence[Any]) -> Any:
    """The target of what nothing places elsewhere."""
    kind = CompilationConfig(PassContext.current(), list(targets)).default_primitive_virtual_device.device_type_int
    return next(t for t in targets if device_type_of(t) == kind)


def _place(device: VirtualDevice) -> tuple[int, int, str]:
    return device.device_type_int, max(0, device.virtual_device_id), "" if device.memory_scope == "global" else device.memory_scope


def place(mod: IRModule, targets: Sequence[Any]) -> IRModule:
    """A module that says where values are, planned; without any marks when all of it is where everything is by default.

    A module that says nothing comes back as it is.
    """
    if not is_marked(mod):
        return mod
    config = CompilationConfig(PassContext.current(), list(targets))
    planned = plan_devices(get_pass("InferType")(mod), config)
    if {_place(d) for d in devices_of(planned)} <= {_place(config.default_primitive_virtual_device)}:
        return unmarked(planned)
    return planned


def settle(mod: IRModule, targets: Sequence[Any]) -> IRModule:
    """An optimised module planned anew, as passes make values of which nobody has said where they are; tensors alone are copied."""
    return split_tuple_copies(place(mod, targets))


def pin(mod: IRModule) -> IRModule:
    """A fused module whose primitive functions say where they run."""
    return pin_devices(mod) if is_marked(mod) else mod


def without_devices(mod: IRModule, executor: str) -> IRModule:
    """The module for an executor of one processor: fine when all its devices are processors that share this machine's memory."""
    if not is_marked(mod):
        return mod
    others = {d for d in devices_of(mod) if d.device_type_int != kDLCPU}
    if others:
        raise TargetError(f"the {executor} executor runs on the host; the program places values on {', '.join(map(str, others))}: use the graph "
                          "executor or the virtual machine, or remove the marks")
    return unmarked(mod)


def where_of(node: Any) -> Where:
    """The device type and number that a primitive function, a variable or a constant names; the host when it names none."""
    return where(getattr(node, "virtual_device_", None))


def where(device: VirtualDevice | None) -> Where:
    """The type and number of a device; the host's where none is named."""
    if device is None or device.device_type_int < 0:
        return HOST
    return device.device_type_int, max(0, device.virtual_device_id)


def target_of(func: Any, default: Any) -> Any:
    """The target a primitive function is compiled for."""
    device = func.virtual_device_
    if device is None or device.target is None or device.device_type_int == device_type_of(default):
        return default
    return device.target


__all__ = ["HOST", "Where", "main_target", "pin", "place", "settle", "target_of", "where", "where_of", "without_devices"]
