"""Upstream's address of the wrappers of executors."""

from __future__ import annotations

from .aot_executor import AotModule

__all__ = ["AotModule"]
