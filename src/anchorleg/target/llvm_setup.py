"""LLVM, started once and only when needed; and what it knows of processor names."""
from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
import threading
from functools import lru_cache
from typing import Any

# The machine scheduler hoists broadcasts out of register tiles and then spills them; the kernels' own order is better.
_OPTIONS = ("-enable-misched=false",)
_LOCK = threading.Lock()
_STARTED: list[Any] = []


def start_llvm() -> Any:
    """The ``llvmlite.binding`` module with every target initialised and our options set."""
    if not _STARTED:
        with _LOCK:
            if not _STARTED:
                _STARTED.append(_start())
    return _STARTED[0]


def _start() -> Any:
    import llvmlite.binding as llvm

    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    for option in _OPTIONS:
        llvm.set_option("anchorleg", option)
    return llvm


def unknown_names(triple: str, cpu: str, features: tuple[str, ...]) -> list[str]:
    """The names among the processor and its features that LLVM does not recognise for ``triple``."""
    # without +64bit an unknown x86-64 processor makes LLVM end the process
    guard = ("+64bit",) if triple.startswith("x86_64") else ()
    text = _warnings_of(triple, cpu, ",".join(features + guard))
    return re.findall(r"'([^']*)' is not a recognized (?:processor|feature)", text)


def _warnings_of(triple: str, cpu: str, features: str) -> str:
    """LLVM tells of unknown names on stderr alone, so stderr is caught while a code generator is made."""
    llvm = start_llvm()
    backend = llvm.Target.from_triple(triple)
    with _LOCK, tempfile.TemporaryFile() as caught:
        saved = os.dup(2)
        try:
            os.dup2(caught.fileno(), 2)
            machine = backend.create_target_machine(cpu=cpu, features=features)
            with llvm.create_context() as context, llvm.parse_assembly("define void @f() {\n ret void\n}", context) as module:
                module.triple = triple
                module.data_layout = str(machine.target_data)
                machine.emit_object(module)
        finally:
            os.dup2(saved, 2)
            os.close(saved)
        caught.seek(0)
        return caught.read().decode(errors="replace")


_LISTING = ("import llvmlite.binding as b, sys\nb.initialize_all_targets(); b.initialize_all_asmprinters()\n"
            "b.Target.from_triple(sys.argv[1]).create_target_machine(cpu='help')")


@lru_cache(maxsize=16)
def known_names(triple: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """All (processors, features) of the triple's family, for messages; LLVM prints them once a process, so one is started."""
    done = subprocess.run([sys.executable, "-c", _LISTING, triple], capture_output=True, text=True, timeout=60)
    processors, _, features = done.stderr.partition("Available features")
    pattern = re.compile(r"^\s+(\S+)\s+-\s", re.M)
    return tuple(pattern.findall(processors)), tuple(pattern.findall(features))
