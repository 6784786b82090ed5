"""Where data is to be stored, and what code for it is compiled for, as known while compiling; any part may be left open."""
from __future__ import annotations

from typing import Any

from ..ir.node import DATA, Node
from ..runtime.device import Device, device as make_device
from ..support.errors import ArgumentError, TargetError
from .target import Target

UNKNOWN_TYPE, UNKNOWN_ID = -1, -1


class VirtualDevice(Node):
    """A device type and id (-1: any), a target (None: any) and a memory scope (empty: any).

    Parameters
    ----------
    device: a Device, a device's name, or None for any.
    target: what is compiled for it; its kind has to fit the device.
    memory_scope: e.g. ``"global"``.
    """

    __slots__ = ("device_type_int", "virtual_device_id", "target", "memory_scope")
    FIELDS = {"device_type_int": DATA, "virtual_device_id": DATA, "target": DATA, "memory_scope": DATA}

    def __init__(self, device: Any = None, target: Any = None, memory_scope: str = "") -> None:
        found = make_device(device) if isinstance(device, str) else device
        if found is not None and not isinstance(found, Device):
            raise ArgumentError(f"a device or its name is expected, got {type(device).__name__} {device!r}")
        self.device_type_int = int(found.device_type) if found is not None else UNKNOWN_TYPE
        self.virtual_device_id = int(found.device_id) if found is not None else UNKNOWN_ID
        self.target = Target(target) if isinstance(target, str) else target
        self.memory_scope, self.span = str(memory_scope), None
        if self.target is not None and found is None:
            self.device_type_int, self.virtual_device_id = device_type_of(self.target), 0
        if self.target is not None and self.device_type_int != device_type_of(self.target):
            raise TargetError(f"the target {self.target} is for devices of type {device_type_of(self.target)}, got {self.device_type_int}")

    @property
    def device_type(self) -> int:
        """The device type's number, -1 for any."""
        return self.device_type_int

    @property
    def is_fully_unconstrained(self) -> bool:
        """Whether nothing is fixed."""
        return self.device_type_int == UNKNOWN_TYPE and self.target is None and not self.memory_scope

    def __eq__(self, other: object) -> bool:
        return isinstance(other, VirtualDevice) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def _key(self) -> tuple[Any, ...]:
        return self.device_type_int, self.virtual_device_id, str(self.target), self.memory_scope

    def __repr__(self) -> str:
        parts = []
        if self.device_type_int != UNKNOWN_TYPE:
            parts += [f"device_type={self.device_type_int}", f"virtual_device_id={self.virtual_device_id}"]
        if self.target is not None:
            parts.append(f"target={self.target}")
        if self.memory_scope:
            parts.append(f"memory_scope='{self.memory_scope}'")
        return f"VirtualDevice({', '.join(parts) or '?'})"


def device_type_of(target: Target) -> int:
    """The device type that code for a target runs on."""
    return int(target.get_target_device_type())


UNCONSTRAINED = VirtualDevice()


class CompilationConfig:
    """The targets of one build.

    ``primitive_targets``: those of kernels, in order; ``host_target``: that of what calls them; ``optional_homogeneous_target``: the
    one target when there is only one.
    """

    def __init__(self, pass_ctx: Any, raw_targets: list[Target]) -> None:
        if not raw_targets:
            raise ArgumentError("at least one target is needed")
        self.primitive_targets = list(raw_targets)
        hosts = [t.host for t in raw_targets if t.host is not None]
        cpus = [t for t in raw_targets if device_type_of(t) == int(make_device("cpu").device_type)]
        self.host_target = hosts[0] if hosts else cpus[0] if cpus else Target("llvm")
        self.host_virtual_device = VirtualDevice(make_device("cpu", 0), self.host_target)
        default_type = pass_ctx.get("relay.fallback_device_type") if pass_ctx is not None else None
        chosen = next((t for t in raw_targets if default_type is not None and device_type_of(t) == default_type), raw_targets[0])
        self.default_primitive_virtual_device = VirtualDevice(None, chosen)
        self.optional_homogeneous_target = raw_targets[0] if len(raw_targets) == 1 else None

    def find_primitive_target_or_fail(self, device_type: int) -> Target:
        """The target for kernels on devices of a type; TargetError when there is none."""
        for target in self.primitive_targets:
            if device_type_of(target) == device_type:
                return target
        raise TargetError(f"no target was given for devices of type {device_type}; there are: {', '.join(map(str, self.primitive_targets))}")

    def canonical(self, virtual_device: VirtualDevice) -> VirtualDevice:
        """The device with its target filled in from its type."""
        if virtual_device.device_type_int == UNKNOWN_TYPE or virtual_device.target is not None:
            return virtual_device
        full = VirtualDevice(None, self.find_primitive_target_or_fail(virtual_device.device_type_int), virtual_device.memory_scope)
        full.virtual_device_id = max(0, virtual_device.virtual_device_id)
        return full


def make_compilation_config(ctxt: Any, target: Any, target_host: Any = None) -> CompilationConfig:
    """The configuration for targets as ``relay.build`` takes them."""
    return CompilationConfig(ctxt, Target.canon_multi_target_and_host(target, target_host))
