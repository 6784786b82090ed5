"""The compiled inner loop as ctypes functions, made once per process."""
from __future__ import annotations

import ctypes
import re
import threading
from typing import Any

from ..native import NativeLibrary
from ..native_python import compile_native, constants_of
from .bytecode import Inner, Opcode
from .native import source

_ARITY = {"run": 1, "start": 4, "unwind": 1, "release": 2, "trim": 2, "new_tensor": 6, "foreign": 6, "new_adt": 4, "is_last": 1, "set_register": 3,
          "keep": 1, "collect_cycles": 3, "let_go": 3}


class Core:
    """The machine's functions (``core.run(machine)`` …) and its constants (``core.M_PC`` …)."""

    def __init__(self) -> None:
        text = source()
        code = compile_native(text, list(_ARITY), _operations())
        self._library = NativeLibrary.from_objects([code], [f"np_{n}" for n in _ARITY], name="anchorleg-vm")
        for name, arity in _ARITY.items():
            quick = name not in ("run", "unwind", "trim")  # those that take no time keep the interpreter lock
            kind = (ctypes.PYFUNCTYPE if quick else ctypes.CFUNCTYPE)(ctypes.c_int64, *[ctypes.c_int64] * arity)
            setattr(self, name, kind(self._library[f"np_{name}"]))
        vars(self).update(constants_of(text, _operations()))

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(name)


def _operations() -> dict[str, int]:
    """The numbers of all operations by the names they have in the native text: ``AllocADT`` is ``ALLOC_ADT``."""
    return {re.sub(r"(?<=[a-z])(?=[A-Z])", "_", o.name).upper(): int(o) for kinds in (Opcode, Inner) for o in kinds}


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
