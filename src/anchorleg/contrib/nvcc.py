"""What CUDA devices can do; there may be none."""
from __future__ import annotations

from typing import Any

from ..support.errors import TargetError


def parse_compute_version(compute_version: str) -> tuple[int, int]:
    """``"8.6"`` → (8, 6)."""
    major, _, minor = str(compute_version).partition(".")
    return int(major), int(minor or 0)


def get_target_compute_version(target: Any = None) -> str:
    """The compute capability of the target or of the first CUDA device; TargetError (a ValueError) when there is none."""
    from ..runtime.device import device
    from ..target.target import Target

    chosen = Target(target) if target is not None else Target.current(allow_none=True)
    arch = chosen.attrs.get("arch") if chosen is not None else None
    if arch:
        digits = str(arch).split("_")[-1]
        return f"{digits[:-1]}.{digits[-1]}"
    gpu = device("cuda", 0)
    if not gpu.exist:
        raise TargetError("no CUDA architecture was given and there is no CUDA device")
    return str(gpu.compute_version)


def _at_least(compute_version: str, major: int, minor: int = 0) -> bool:
    return parse_compute_version(compute_version) >= (major, minor)


def have_fp16(compute_version: str) -> bool:
    """Whether devices of that capability compute in half precision."""
    return parse_compute_version(compute_version) == (5, 3) or _at_least(compute_version, 6)


def have_int8(compute_version: str) -> bool:
    """Whether devices of that capability have dot products of bytes."""
    return _at_least(compute_version, 6, 1)


def have_tensorcore(compute_version: str | None = None, target: Any = None) -> bool:
    """Whether devices of that capability (default: the target's) have tensor cores."""
    try:
        return _at_least(compute_version or get_target_compute_version(target), 7)
    except TargetError:
        return False


def have_bf16(compute_version: str) -> bool:
    """Whether devices of that capability compute in bfloat16."""
    return _at_least(compute_version, 8)


def have_cudagraph() -> bool:
    """Whether graphs of launches can be recorded: there is no CUDA runtime here."""
    return False
