"""What later rooms provide: how a program is lowered so that its tunable computes announce themselves."""
from __future__ import annotations

from typing import Any, Callable

Extractor = Callable[[Any, Any, Any], None]
EXTRACTORS: list[Extractor] = []


def register_extractor(extractor: Extractor) -> None:
    """Sets how a program is lowered for its tasks: ``(mod, target, params)``."""
    EXTRACTORS.append(extractor)
