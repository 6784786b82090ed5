"""Where data is to be stored, and what code for it is compiled for, as known while compiling; any part may be left open."""
from __future__ import annotations

from typing import Any

from ..ir.node import DATA, Node
from ..runtime.device import Device, device as make_device, kDLCPU, kDLHexagon
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
        target = Target(target) if isinstance(target, str) else target
        if found is None:
            found = Device(UNKNOWN_TYPE, UNKNOWN_ID) if target is None else Device(device_type_of(target), 0)
        self._fill(found.device_type, found.device_id, target, memory_scope)

    def _fill(self, device_type: int, virtual_device_id: int, target: Target | None, memory_scope: str) -> None:
        self.device_type_int, self.virtual_device_id = int(device_type), int(virtual_device_id)
        self.target, self.memory_scope, self.span = target, str(memory_scope), None
        if target is not None and self.device_type_int != device_type_of(target):
            raise TargetError(f"the target {target} is for devices of type {device_type_of(target)}, got {self.device_type_int}")

    @classmethod
    def of(cls, device_type: int, virtual_device_id: int = UNKNOWN_ID, target: Target | None = None, memory_scope: str = "") -> VirtualDevice:
        """The virtual device with exactly these parts."""
        made = object.__new__(cls)
        made._fill(device_type, virtual_device_id, target, memory_scope)
        return made

    @property
    def device_type(self) -> int:
        """The device type's number, -1 for any."""
        return self.device_type_int

    @property
    def is_fully_unconstrained(self) -> bool:
        """Whether nothing is fixed."""
        return self.device_type_int == UNKNOWN_TYPE and self.virtual_device_id == UNKNOWN_ID and self.target is None and not self.memory_scope

    @property
    def is_fully_constrained(self) -> bool:
        """Whether everything is fixed."""
        return self.target is not None and self.virtual_device_id != UNKNOWN_ID and bool(self.memory_scope)

    def to_device(self) -> Device:
        """The device; ArgumentError when its type or id is open."""
        if self.device_type_int == UNKNOWN_TYPE or self.virtual_device_id == UNKNOWN_ID:
            raise ArgumentError(f"{self} names no particular device")
        return Device(self.device_type_int, self.virtual_device_id)

    def _key(self) -> tuple[Any, ...]:
        return self.device_type_int, self.virtual_device_id, self.target, self.memory_scope

    def __eq__(self, other: object) -> bool:
        return self is other or isinstance(other, VirtualDevice) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def __repr__(self) -> str:
        parts = []
        if self.device_type_int != UNKNOWN_TYPE:
            parts.append(f"device_type={self.device_type_int}")
        if self.virtual_device_id != UNKNOWN_ID:
            parts.append(f"virtual_device_id={self.virtual_device_id}")
        if self.target is not None:
            parts.append(f"target={self.target}")
        if self.memory_scope:
            parts.append(f"memory_scope='{self.memory_scope}'")
        return f"VirtualDevice({', '.join(parts) or '?'})"


def device_type_of(target: Target) -> int:
    """The device type that code for a target runs on."""
    return int(target.get_target_device_type())


UNCONSTRAINED = VirtualDevice()


def _either(left: Any, right: Any, free: Any) -> Any:
    """What both parts agree on; None where they do not."""
    return right if left == free else left if right in (free, left) else None


def _joined_target(left: Target | None, right: Target | None) -> tuple[bool, Target | None]:
    """Whether two targets go together, and the more telling one: a host may be named by one alone."""
    if left is None or right is None:
        return True, left if right is None else right
    if left == right or right.host is None and left.with_host(None) == right:
        return True, left
    return left.host is None and right.with_host(None) == left, right


def join(lhs: VirtualDevice, rhs: VirtualDevice) -> VirtualDevice | None:
    """The device that is as constrained as both; None when they contradict each other."""
    kind = _either(lhs.device_type_int, rhs.device_type_int, UNKNOWN_TYPE)
    number = _either(lhs.virtual_device_id, rhs.virtual_device_id, UNKNOWN_ID)
    scope = _either(lhs.memory_scope, rhs.memory_scope, "")
    fits, target = _joined_target(lhs.target, rhs.target)
    if kind is None or number is None or scope is None or not fits:
        return None
    return VirtualDevice.of(kind, number, target, scope)


def default_to(device: VirtualDevice, fallback: VirtualDevice) -> VirtualDevice:
    """``device`` with what it leaves open taken from ``fallback`` (the target only where it fits)."""
    kind = fallback.device_type_int if device.device_type_int == UNKNOWN_TYPE else device.device_type_int
    number = fallback.virtual_device_id if device.virtual_device_id == UNKNOWN_ID else device.virtual_device_id
    target = device.target
    if target is None and fallback.target is not None and device_type_of(fallback.target) == kind:
        target = fallback.target
    return VirtualDevice.of(kind, number, target, device.memory_scope or fallback.memory_scope)


class CompilationConfig:
    """The targets of one build, and the devices that follow from them.

    ``primitive_targets``: those of kernels, in order, with the host put in; ``host_target``: that of what calls them;
    ``default_primitive_virtual_device``: where kernels run that nothing else places (the context's ``relay.fallback_device_type``, else
    the only device type there is, else the host's); ``optional_homogeneous_target``: the one target when there is only one.

    TargetError when two targets are for one kind, or for one device type: which of them to take would be open.
    """

    def __init__(self, pass_ctx: Any, raw_targets: list[Target]) -> None:
        if not raw_targets:
            raise ArgumentError("at least one target is needed")
        self.host_target = _host_of(raw_targets)
        self.primitive_targets = [t.with_host(self.host_target) for t in raw_targets]
        self._check_kinds()
        self._known: dict[VirtualDevice, VirtualDevice] = {}
        self.host_virtual_device = self._unique(VirtualDevice.of(device_type_of(self.host_target), 0, self.host_target))
        self.default_primitive_virtual_device = self.canonical(VirtualDevice.of(self._default_type(pass_ctx), 0))
        self.optional_homogeneous_target = self.primitive_targets[0] if len(raw_targets) == 1 else None

    def _check_kinds(self) -> None:
        kinds: dict[str, Target] = {}
        types: dict[int, Target] = {}
        for target in self.primitive_targets:
            if target.kind.name in kinds:
                raise TargetError(f"several targets are given for the kind {target.kind.name!r}: {kinds[target.kind.name]} and {target}; give one")
            external = target.kind.is_external_codegen  # compiles functions, wherever the others compile operators
            same = target if external else types.setdefault(device_type_of(target), target)
            if same is not target:
                raise TargetError(f"several targets are given for devices of type {device_type_of(target)}: {same} and {target}; give one")
            kinds[target.kind.name] = target

    def _default_type(self, pass_ctx: Any) -> int:
        wanted = pass_ctx.get("relay.fallback_device_type") if pass_ctx is not None else None
        types = {device_type_of(t) for t in self.primitive_targets}
        if wanted is not None and int(wanted) <= 0:
            raise TargetError(f"relay.fallback_device_type is expected to be the number of a device type, got {wanted!r}")
        return int(wanted) if wanted is not None else types.pop() if len(types) == 1 else kDLCPU

    def _unique(self, device: VirtualDevice) -> VirtualDevice:
        """One object for equal devices."""
        return self._known.setdefault(device, device)

    def find_primitive_target_or_fail(self, device_type: int) -> Target:
        """The target for kernels on devices of a type; TargetError when there is none."""
        for target in self.primitive_targets:
            if device_type_of(target) == device_type and not target.kind.is_external_codegen:
                return target
        name = Device(device_type).type_name
        raise TargetError(f"no target was given for devices of type {device_type} ({name}): add one to the targets, "
                          f"which are {', '.join(map(str, self.primitive_targets))}")

    def find_primitive_target_for_kind(self, kind_name: str) -> Target | None:
        """The target of that kind; None when there is none."""
        return next((t for t in self.primitive_targets if t.kind.name == kind_name), None)

    def canonical(self, virtual_device: VirtualDevice) -> VirtualDevice:
        """The device with its target filled in from its type, or replaced by the equal one of this build."""
        target = virtual_device.target
        if target is not None:
            same = [t for t in (self.host_target, *self.primitive_targets) if t is target or t == target]
            target = same[0] if same else target
        elif virtual_device.device_type_int != UNKNOWN_TYPE:
            target = self.find_primitive_target_or_fail(virtual_device.device_type_int)
        return self._unique(VirtualDevice.of(virtual_device.device_type_int, virtual_device.virtual_device_id, target, virtual_device.memory_scope))


def _host_of(targets: list[Target]) -> Target:
    """The host: that of the first target that names one, else the first target that can be one, else this machine's processor."""
    named = next((t.host for t in targets if t.host is not None), None)
    able = next((t for t in targets if device_type_of(t) in (kDLCPU, kDLHexagon) and not t.kind.is_external_codegen), None)
    chosen = named if named is not None else able if able is not None else Target("llvm")
    return chosen.with_host(None) if chosen.host is not None else chosen


def make_compilation_config(ctxt: Any, target: Any, target_host: Any = None) -> CompilationConfig:
    """The configuration for targets as ``relay.build`` takes them."""
    return CompilationConfig(ctxt, Target.canon_multi_target_and_host(target, target_host))
