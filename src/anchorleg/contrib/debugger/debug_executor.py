"""Upstream's address of the debug executor."""

from __future__ import annotations

from ...runtime.graph_executor_debug import GraphModuleDebug, create

__all__ = ["GraphModuleDebug", "create"]
