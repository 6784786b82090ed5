"""The virtual machine's profiler, under upstream's address."""
from __future__ import annotations

from .vm.profiler import VirtualMachineProfiler


def enabled() -> bool:
    """Whether the profiler is there: always."""
    return True


__all__ = ["VirtualMachineProfiler", "enabled"]
