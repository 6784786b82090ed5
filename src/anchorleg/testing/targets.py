"""Which targets tests run on: those of ``TVM_TEST_TARGETS`` (``;`` between them), else all that this machine can run."""
from __future__ import annotations

import os
from typing import Any, NamedTuple

from ..runtime.device import device
from ..runtime.module import enabled
from ..support.errors import AnchorlegError, ArgumentError, TargetError

DEFAULT_TEST_TARGETS = ["llvm", "cuda", "nvptx", "vulkan -from_device=0", "opencl", "opencl -device=mali,aocl_sw_emu",
                        "opencl -device=intel_graphics", "metal", "rocm", "hexagon"]


class TestTarget(NamedTuple):
    """A target's text, its kind, and whether code for it can be made and run here."""

    __test__ = False
    target: str
    kind: str
    is_enabled: bool
    is_runnable: bool


def requested_targets() -> list[str]:
    """The targets named by the environment, or the default ones."""
    named = [t.strip() for t in os.environ.get("TVM_TEST_TARGETS", "").split(";") if t.strip()]
    return named or list(DEFAULT_TEST_TARGETS)


def device_exists(kind: str) -> bool:
    """Whether there is a device for targets of a kind."""
    try:
        return bool(device(kind).exist)
    except (AnchorlegError, ValueError):
        return False


def test_targets(names: list[str] | None = None) -> list[TestTarget]:
    """The requested targets; ``llvm`` when none of them can run."""
    found = [_described(t) for t in (names or requested_targets())]
    if any(t.is_runnable for t in found):
        return found
    if not enabled("llvm"):
        raise TargetError(f"none of the targets {[t.target for t in found]} can run here, nor llvm")
    return [_described("llvm")]


test_targets.__test__ = False  # type: ignore[attr-defined]


def _described(text: str) -> TestTarget:
    kind = text.split()[0]
    made = enabled(kind)
    return TestTarget(text, kind, made, made and device_exists(kind))


def device_enabled(target: str) -> bool:
    """Whether tests on ``target`` (its kind counts) are wanted and can run."""
    if not isinstance(target, str):
        raise ArgumentError(f"device_enabled: expected a target's text, got {type(target).__name__}")
    return any(t.kind == target.split()[0] for t in test_targets() if t.is_runnable)


def enabled_targets() -> list[tuple[str, Any]]:
    """(target, device) of every target that tests can run on."""
    return [(t.target, device(t.kind)) for t in test_targets() if t.is_runnable]
