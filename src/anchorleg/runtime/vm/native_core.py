"""The compiled inner loop as ctypes functions, made once per process."""
from __future__ import annotations

import ctypes
import threading
from pathlib import Path
from typing import Any

from ..native import NativeLibrary
from ..native_python import compile_native

_ARITY = {"run": 1, "start": 4, "unwind": 1, "release": 2, "trim": 2, "new_tensor": 6, "foreign": 6, "new_adt": 4, "is_last": 1, "set_register": 3,
          "keep": 1}


class Core:
    """The machine's functions (``core.run(machine)`` …) and its constants (``core.M_PC`` …)."""

    def __init__(self) -> None:
        source = (Path(__file__).parent / "machine_code.py").read_text()
        self._library = NativeLibrary.from_objects([compile_native(source, list(_ARITY))], [f"np_{n}" for n in _ARITY], name="anchorleg-vm")
        for name, arity in _ARITY.items():
            quick = name not in ("run", "unwind", "trim")  # those that take no time keep the interpreter lock
            kind = (ctypes.PYFUNCTYPE if quick else ctypes.CFUNCTYPE)(ctypes.c_int64, *[ctypes.c_int64] * arity)
            setattr(self, name, kind(self._library[f"np_{name}"]))
        for line in source.splitlines():
            name, mark, value = line.partition(" = ")
            if mark and name.isupper() and not line.startswith(" "):
                setattr(self, name, int(value.split("#")[0]))

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(name)


_core: Core | None = None
_lock = threading.Lock()


def core() -> Core:
    """The process's core."""
    global _core
    if _core is None:
        with _lock:
            if _core is None:
                _core = Core()
    return _core
