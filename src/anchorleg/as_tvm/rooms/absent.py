"""Libraries for other devices that are not part of this package: ``exists()`` says so."""
from __future__ import annotations


def exists() -> bool:
    """Always False."""
    return False
