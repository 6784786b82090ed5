"""Accelerators described in Python: what they take, how it is lowered, and the C code around it.

A backend is a class: see :class:`UMABackend`.
"""
from .backend import UMABackend

__all__ = ["UMABackend", "uma_available"]


def uma_available() -> bool:
    """Whether backends can be described (always)."""
    return True
