"""Sessions: uploading modules and running them elsewhere.

A server here serves its own process: what is connected to it runs locally, through the same interface as on another machine.
"""
from __future__ import annotations

from .local import LocalSession, Server, connect

__all__ = ["LocalSession", "Server", "connect"]
