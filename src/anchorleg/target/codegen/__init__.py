"""Code generators, and what there is to know of the LLVM behind them."""
from __future__ import annotations

from typing import Any


def llvm_version_major(allow_none: bool = False) -> int | None:
    """The major version of the LLVM that code is generated with."""
    from ..llvm_setup import start_llvm

    return int(start_llvm().llvm_version_info[0])


def llvm_get_system_cpu() -> str:
    """LLVM's name of this machine's processor."""
    from ..llvm_setup import start_llvm

    return str(start_llvm().get_host_cpu_name())


def llvm_get_system_triple() -> str:
    """LLVM's name of this machine's platform."""
    from ..llvm_setup import start_llvm

    return str(start_llvm().get_default_triple())


def target_has_features(cpu_features: str | list[str], target: Any = None) -> bool:
    """Whether the target's processor (default: the current target's) has all those features."""
    from ..cpu import resolve_cpu
    from ..target import Target

    chosen = Target(target) if target is not None else Target.current() or Target("llvm")
    wanted = [cpu_features] if isinstance(cpu_features, str) else cpu_features
    have = resolve_cpu(chosen).features
    return all(f"+{f}" in have for f in wanted)
