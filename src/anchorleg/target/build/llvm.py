"""LLVM text to object code, assembly and optimised LLVM text.

The emitter writes what should run; LLVM is our assembler, so no IR optimisation is done and code generation runs at level 2.
Code generation runs outside the interpreter's lock and outside llvmlite's own (each module has its context, each thread its
code generator, so LLVM allows it): `compile_many` uses threads.
"""
from __future__ import annotations

import re
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, Iterator, Sequence

from ...support.errors import BuildError
from ...support.knobs import BUILD_THREADS, DUMP
from ..cpu import CpuInfo, make_machine, resolve_cpu
from ..features import code_features
from ..llvm_setup import start_llvm
from ..target import Target

CODEGEN_LEVEL = 2


def compile_text(text: str, target: Target | str | None = None) -> bytes:
    """Object code of a module for ``target``; BuildError, naming the kernel, when LLVM refuses the text."""
    return _with_module(text, resolve_cpu(target), lambda machine, module: _emit(machine, module, True))


def assembly_of(text: str, target: Target | str | None = None) -> str:
    """The assembly of a module."""
    return _with_module(text, resolve_cpu(target), lambda machine, module: _emit(machine, module, False).decode())


def llvm_text_of(text: str, target: Target | str | None = None) -> str:
    """The module as LLVM prints it (verified, with its data layout)."""
    return _with_module(text, resolve_cpu(target), lambda machine, module: str(module))


def compile_many(texts: Sequence[str], target: Target | str | None = None, threads: int | None = None) -> list[bytes]:
    """Object code of several modules, compiled side by side; results in order."""
    count = min(len(texts), threads or BUILD_THREADS.get())
    if count <= 1:
        return [compile_text(t, target) for t in texts]
    resolve_cpu(target)
    with ThreadPoolExecutor(count) as pool:
        return list(pool.map(lambda t: compile_text(t, target), texts))


def required_features(target: Target | str | None = None) -> tuple[str, ...]:
    """LLVM's names of the processor features that code for ``target`` may use beyond its family's baseline."""
    return code_features(resolve_cpu(target))


def _with_module(text: str, cpu: CpuInfo, use: Any) -> Any:
    llvm = start_llvm()
    machine = make_machine(cpu.triple, cpu.cpu, cpu.features, opt=CODEGEN_LEVEL)
    with _named_errors(text), llvm.create_context() as context, llvm.parse_assembly(text, context) as module:
        module.triple = cpu.triple
        module.data_layout = str(machine.target_data)
        module.verify()
        return use(machine, module)


def _emit(machine: Any, module: Any, as_object: bool) -> bytes:
    """What ``machine.emit_object`` does, without llvmlite's process-wide lock around the long part."""
    from ctypes import string_at

    from llvmlite.binding import ffi

    locked = ffi.lib.LLVMPY_TargetMachineEmitToMemory
    generate = getattr(locked, "_cfn", locked)
    with ffi.OutputString() as error:
        buffer = generate(machine, module, int(as_object), error)
        if not buffer:
            raise RuntimeError(str(error))
    try:
        return string_at(ffi.lib.LLVMPY_GetBufferStart(buffer), ffi.lib.LLVMPY_GetBufferSize(buffer))
    finally:
        ffi.lib.LLVMPY_DisposeMemoryBuffer(buffer)


@contextmanager
def _named_errors(text: str) -> Iterator[None]:
    try:
        yield
    except RuntimeError as exc:
        raise BuildError(f"kernel {name_of(text)!r}: LLVM refused the generated code: {_with_line(str(exc), text)}{_dump(text)}") from exc


def name_of(text: str) -> str:
    """The kernel's name in a module's text."""
    match = re.search(r'^source_filename = "([^"]*)"', text, re.M)
    return match[1] if match else "?"


def _with_line(message: str, text: str) -> str:
    match = re.search(r":(\d+):(\d+):", message)
    lines = text.splitlines()
    if match is None or not 1 <= int(match[1]) <= len(lines):
        return message.strip()
    return f"{message.strip()}\n  line {match[1]}: {lines[int(match[1]) - 1].strip()}"


def _dump(text: str) -> str:
    """Writes refused text where a person can look at it; says where."""
    import tempfile
    from pathlib import Path

    folder = DUMP.get() or Path(tempfile.gettempdir()) / "anchorleg-failed"
    path = Path(folder) / f"{name_of(text)}.ll"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    except OSError as exc:
        return f"\n  (its text could not be written to {path}: {exc})"
    return f"\n  its text is in {path}"
