"""The order of things: lowering pipelines and whole builds."""
from .build_module import build, get_binds, lower, schedule_to_module

__all__ = ["build", "get_binds", "lower", "schedule_to_module"]
