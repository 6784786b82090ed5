"""Upstream's address of the ahead-of-time executor."""

from __future__ import annotations

from ..runtime.aot_executor import AotModule

__all__ = ["AotModule"]
