"""``tvm.relay.transform._ffi_api``: passes by name, those without a public constructor too."""
from __future__ import annotations

from typing import Any

from ...relay import transform


def __getattr__(name: str) -> Any:
    return getattr(transform, name)
