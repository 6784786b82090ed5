"""The target of a device of this machine."""
from __future__ import annotations

from typing import Any

from ..runtime.device import Device, device
from ..support.errors import TargetError
from .target import Target


def _cpu(dev: Device) -> Target:
    from .cpu import host_cpu

    host = host_cpu()
    return Target({"kind": "llvm", "mtriple": host.triple, "mcpu": host.cpu})


def _gpu(kind: str) -> Any:
    def detect(dev: Any) -> Target:
        config = {"kind": kind, "max_shared_memory_per_block": int(dev.max_shared_memory_per_block),
                  "max_threads_per_block": int(dev.max_threads_per_block), "thread_warp_size": int(dev.warp_size)}
        if kind == "cuda":
            config["arch"] = "sm_" + str(dev.compute_version).replace(".", "")
        return Target(config)

    return detect


SUPPORT_DEVICE = {"cpu": _cpu, **{k: _gpu(k) for k in ("cuda", "opencl", "metal", "vulkan", "rocm")}}


def detect_target_from_device(dev: str | Device) -> Target:
    """The target of ``dev`` (``"cpu"``, ``"cuda:0"``, a Device); TargetError when there is no such device here."""
    found = device(dev) if isinstance(dev, str) else dev
    if found.type_name not in SUPPORT_DEVICE:
        raise TargetError(f"Auto detection for device `{found.type_name}` is not supported; "
                          f"supported: {', '.join(SUPPORT_DEVICE)}")
    if not found.exist:
        raise TargetError(f"Cannot detect device `{found}`: it or its driver is not installed here")
    return SUPPORT_DEVICE[found.type_name](found)
