"""Names of a model's inputs as identifiers."""
from __future__ import annotations

import re

from ..support.errors import ArgumentError


def sanitize_name(original_name: str) -> str:
    """The name with every character that is no letter, digit or underscore replaced by an underscore."""
    if not original_name:
        raise ArgumentError("Name is empty")
    return re.sub(r"[^0-9A-Za-z_]", "_", original_name)
