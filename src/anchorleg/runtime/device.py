"""`Device`: where a tensor lies, as a type number (upstream's and DLPack's) and an index."""

from __future__ import annotations

from functools import lru_cache

from ..support.errors import ArgumentError

kDLCPU, kDLCUDA, kDLCUDAHost, kDLOpenCL, kDLAOCL, kDLVulkan, kDLMetal = 1, 2, 3, 4, 32, 7, 8
kDLVPI, kDLROCM, kDLROCMHost, kDLExtDev, kDLHexagon, kDLWebGPU = 9, 10, 11, 12, 16, 15

_TYPE_NAME = {
    kDLCPU: "cpu", kDLCUDA: "cuda", kDLCUDAHost: "cuda_host", kDLOpenCL: "opencl", kDLAOCL: "aocl", kDLVulkan: "vulkan",
    kDLMetal: "metal", kDLVPI: "vpi", kDLROCM: "rocm", kDLROCMHost: "rocm_host", kDLExtDev: "ext_dev",
    kDLHexagon: "hexagon", kDLWebGPU: "webgpu",
}
_NAME_TYPE = {name: number for number, name in _TYPE_NAME.items()} | {
    "llvm": kDLCPU, "c": kDLCPU, "stackvm": kDLCPU, "test": kDLCPU, "hybrid": kDLCPU, "composite": kDLCPU,
    "gpu": kDLCUDA, "nvptx": kDLCUDA, "cl": kDLOpenCL, "sdaccel": kDLOpenCL, "aocl_sw_emu": kDLAOCL,
}


class Device:
    """A device type and an index; hashable, equal by value.

    Attributes: ``device_type`` (int), ``device_id`` (int).
    """

    __slots__ = ("device_type", "device_id")

    MASK2STR = _TYPE_NAME
    STR2MASK = _NAME_TYPE

    def __init__(self, device_type: int, device_id: int = 0) -> None:
        self.device_type = int(device_type)
        self.device_id = int(device_id)

    @property
    def type_name(self) -> str:
        """``cpu``, ``cuda`` …"""
        return _TYPE_NAME.get(self.device_type, f"device{self.device_type}")

    @property
    def exist(self) -> bool:
        """Whether this process can use the device."""
        probe = _PROBES.get(self.device_type)
        return probe is not None and probe(self.device_id)

    def sync(self, stream: object = None) -> None:
        """Wait for the device's work; the host's is done when a call returns."""

    @property
    def max_clock_rate(self) -> None:
        return None

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Device):
            return NotImplemented
        return self.device_type == other.device_type and self.device_id == other.device_id

    def __hash__(self) -> int:
        return hash((self.device_type, self.device_id))

    def __repr__(self) -> str:
        return f"{self.type_name}({self.device_id})"

    def __reduce__(self) -> tuple:
        return Device, (self.device_type, self.device_id)


# device type → whether index i can be used; rooms that add a device register here
_PROBES = {kDLCPU: lambda index: index >= 0}  # processors share their memory: any number of them can be named


def register_device_probe(device_type: int, probe) -> None:  # noqa: ANN001
    """Let ``Device.exist`` answer for a device type: ``probe(device_id) -> bool``."""
    _PROBES[device_type] = probe


@lru_cache(maxsize=64)
def _shared(device_type: int, device_id: int) -> Device:
    return Device(device_type, device_id)


def device(dev: "str | int | Device" = "cpu", dev_id: int = 0) -> Device:
    """A device from ``"cpu"``, ``"cuda"``, ``"cpu:0"``, ``"llvm -mcpu=…"`` (the target's host) or a type number.

    Raises `ArgumentError` naming the known devices for an unknown one.
    """
    if isinstance(dev, Device):
        return dev
    if isinstance(dev, int):
        return _shared(dev, dev_id)
    word = dev.split()[0] if dev.split() else ""
    name, _, index = word.partition(":")
    if name not in _NAME_TYPE or (index and not index.isdigit()):
        raise ArgumentError(f"unknown device {dev!r}: expected one of {', '.join(sorted(_NAME_TYPE))}")
    return _shared(_NAME_TYPE[name], int(index) if index else dev_id)


def cpu(dev_id: int = 0) -> Device:
    """The host."""
    return _shared(kDLCPU, dev_id)


def cuda(dev_id: int = 0) -> Device:
    """An NVIDIA device."""
    return _shared(kDLCUDA, dev_id)


gpu = cuda


def opencl(dev_id: int = 0) -> Device:
    """An OpenCL device."""
    return _shared(kDLOpenCL, dev_id)


cl = opencl


def vulkan(dev_id: int = 0) -> Device:
    """A Vulkan device."""
    return _shared(kDLVulkan, dev_id)


def metal(dev_id: int = 0) -> Device:
    """A Metal device."""
    return _shared(kDLMetal, dev_id)


mps = metal


def rocm(dev_id: int = 0) -> Device:
    """An AMD device."""
    return _shared(kDLROCM, dev_id)


def ext_dev(dev_id: int = 0) -> Device:
    """An extension device."""
    return _shared(kDLExtDev, dev_id)


def webgpu(dev_id: int = 0) -> Device:
    """A WebGPU device."""
    return _shared(kDLWebGPU, dev_id)


def hexagon(dev_id: int = 0) -> Device:
    """A Hexagon device."""
    return _shared(kDLHexagon, dev_id)
