"""Schedules that are right on every target, by operator family: ``schedule_conv2d_nchw(outs)`` and the like."""
from __future__ import annotations

from typing import Any

from .injective import schedule_injective, schedule_injective_from_existing
from .nn.schedule import schedule_default
from .reduction_schedule import schedule_reduce


def default_schedule(outs: Any, auto_inline: bool = False) -> Any:
    """The schedule that is right for any computation."""
    return schedule_default(outs)


schedule_extern = default_schedule


def __getattr__(name: str) -> Any:
    if name.startswith("schedule_"):
        return default_schedule
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


__all__ = ["default_schedule", "schedule_extern", "schedule_injective", "schedule_injective_from_existing", "schedule_reduce"]
