"""Upstream's address of the graph executor."""

from __future__ import annotations

from ..runtime.graph_executor import GraphModule, create

__all__ = ["GraphModule", "create"]
