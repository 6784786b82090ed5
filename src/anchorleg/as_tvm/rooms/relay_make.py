"""``tvm.relay.op._make``: operators' constructors; here they are the public ones."""
from __future__ import annotations

from typing import Any


def __getattr__(name: str) -> Any:
    from ...relay import op

    found = None if name.startswith("__") else getattr(op, name, None)
    if not callable(found):
        raise AttributeError(f"there is no operator {name!r}")
    return found
