"""Small helpers of the backends: mangled module names, kernel names."""
from __future__ import annotations

from enum import IntEnum

from ...support.errors import ArgumentError

_PREFIX = "tvmgen"


def mangle_module_name(mod_name: str | None) -> str:
    """The prefix of a module's symbols, e.g. ``default`` → ``tvmgen_default``; an already mangled name is an error."""
    if not mod_name:
        return _PREFIX
    if not mod_name.isascii():
        raise ArgumentError(f"the module name {mod_name!r} is expected to be of ASCII characters: symbols are named after it")
    if mod_name.startswith(_PREFIX):
        raise ArgumentError(f"the module name {mod_name!r} is expected to be the plain name: it has the prefix {_PREFIX!r} already")
    return f"{_PREFIX}_{mod_name}"


class CallType(IntEnum):
    """How an ahead-of-time program calls kernels: packed arguments looked up by name, the packed C signature by symbol, or plain pointers."""

    Packed = 0
    CPacked = 1
    Unpacked = 2
