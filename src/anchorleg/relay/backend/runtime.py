"""``Runtime``: which runtime the compiled module links against, with its options."""
from __future__ import annotations

from .registered_config import Option, RegisteredConfig


class Runtime(RegisteredConfig):
    """``cpp`` (an operating system is there) or ``crt`` (it is not)."""

    kind = "Runtime"
    registry: dict[str, dict[str, Option]] = {}
    flag_registry_name = "runtime"


Runtime.register("cpp", {"system-lib": Option(bool)})
Runtime.register("crt", {"system-lib": Option(bool)})
