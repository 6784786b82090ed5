"""``Executor``: which executor a build is for, with its options."""
from __future__ import annotations

from .registered_config import Option, RegisteredConfig


class Executor(RegisteredConfig):
    """``graph`` (static shapes, one native call), or ``aot`` (ahead of time, for machines without an operating system)."""

    kind = "Executor"
    registry: dict[str, dict[str, Option]] = {}
    flag_registry_name = "executor"


Executor.register("graph", {"link-params": Option(bool, False)})
Executor.register("aot", {
    "link-params": Option(bool, True),
    "unpacked-api": Option(bool),
    "interface-api": Option(str),
    "workspace-byte-alignment": Option(int),
    "constant-byte-alignment": Option(int),
})
